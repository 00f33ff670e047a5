# Outcrop in the place of RocksDB: the targets that RocksDB's own package has. Only the C API is there.
get_filename_component(_rocksdb_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
get_filename_component(_rocksdb_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

if(NOT TARGET RocksDB::rocksdb)
  find_package(Threads REQUIRED)

  add_library(RocksDB::rocksdb STATIC IMPORTED)
  set_target_properties(RocksDB::rocksdb PROPERTIES
    IMPORTED_LOCATION "${_rocksdb_lib}/librocksdb.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_rocksdb_prefix}/include"
    INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")

  add_library(RocksDB::rocksdb-shared SHARED IMPORTED)
  set_target_properties(RocksDB::rocksdb-shared PROPERTIES
    IMPORTED_LOCATION "${_rocksdb_lib}/librocksdb.so.@API@"
    IMPORTED_SONAME "librocksdb.so.@MAJOR@"
    INTERFACE_INCLUDE_DIRECTORIES "${_rocksdb_prefix}/include")
endif()

unset(_rocksdb_prefix)
unset(_rocksdb_lib)
