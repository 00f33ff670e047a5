// A program in C++ that has functions of its own with names that the library's insides have, too.
#include <rocksdb/c.h>

#include <iostream>
#include <memory>
#include <string>

extern "C" {
unsigned ZSTD_versionNumber() { return 42; }
void rust_eh_personality() {}
}

int main(int, char** arguments) {
  char* error = nullptr;
  std::unique_ptr<rocksdb_options_t, decltype(&rocksdb_options_destroy)> options(rocksdb_options_create(),
                                                                                rocksdb_options_destroy);
  rocksdb_options_set_create_if_missing(options.get(), 1);
  rocksdb_options_set_compression(options.get(), rocksdb_zstd_compression);
  std::unique_ptr<rocksdb_t, decltype(&rocksdb_close)> db(rocksdb_open(options.get(), arguments[1], &error),
                                                         rocksdb_close);
  if (error != nullptr) {
    std::cerr << error << "\n";
    return 1;
  }
  std::unique_ptr<rocksdb_writeoptions_t, decltype(&rocksdb_writeoptions_destroy)> write(
      rocksdb_writeoptions_create(), rocksdb_writeoptions_destroy);
  std::unique_ptr<rocksdb_readoptions_t, decltype(&rocksdb_readoptions_destroy)> read(rocksdb_readoptions_create(),
                                                                                      rocksdb_readoptions_destroy);
  for (int i = 0; i < 1000 && error == nullptr; i++) {
    const std::string key = std::to_string(i), value(200, static_cast<char>('a' + i % 20));
    rocksdb_put(db.get(), write.get(), key.data(), key.size(), value.data(), value.size(), &error);
  }
  rocksdb_compact_range(db.get(), nullptr, 0, nullptr, 0);
  size_t length = 0;
  char* value = rocksdb_get(db.get(), read.get(), "77", 2, &length, &error);
  const bool right = error == nullptr && std::string(value, length) == std::string(200, 'r') && ZSTD_versionNumber() == 42;
  rocksdb_free(value);
  std::cout << (right ? "all good" : "wrong") << "\n";
  return right ? 0 : 1;
}
