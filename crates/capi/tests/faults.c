/* Situations of a program, with either library: faults.c MODE DIR
 *   fork    a child that was forked closes the database; the parent goes on
 *   opens   and opens one of its own (RocksDB's threads are not there then: its flush never ends)
 *   full    DIR is a small file system: filled, emptied, and writes go on without opening the database again
 *   threads many databases share the threads of the process
 *   missing a manual compaction meets a table that is not there: where tables are kept open nothing notices, else writes are refused */
#define _DEFAULT_SOURCE
#include "rocksdb/c.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what, const char *error) {
  fprintf(stderr, "%s: %s\n", what, error ? error : "failed");
  exit(1);
}

static rocksdb_t *open_with(const char *dir, const char *name, int max_open_files) {
  char path[600], *error = NULL;
  snprintf(path, sizeof path, "%s/%s", dir, name);
  rocksdb_options_t *options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 1 << 20);
  rocksdb_options_set_max_open_files(options, max_open_files);
  rocksdb_t *db = rocksdb_open(options, path, &error);
  if (error) die("open", error);
  rocksdb_options_destroy(options);
  return db;
}

static rocksdb_t *open_at(const char *dir, const char *name) { return open_with(dir, name, -1); }

static int put(rocksdb_t *db, unsigned number, size_t length) {
  char key[20], *value = malloc(length), *error = NULL;
  unsigned state = number * 2654435761u + 1;
  for (size_t i = 0; i < length; i++) value[i] = (char)((state = state * 1103515245u + 12345u) >> 16);
  snprintf(key, sizeof key, "%010u", number);
  rocksdb_writeoptions_t *options = rocksdb_writeoptions_create();
  rocksdb_put(db, options, key, 10, value, length, &error);
  rocksdb_writeoptions_destroy(options);
  free(value);
  if (error) rocksdb_free(error);
  return error == NULL;
}

static int has(rocksdb_t *db, unsigned number) {
  char key[20], *error = NULL;
  size_t length;
  snprintf(key, sizeof key, "%010u", number);
  rocksdb_readoptions_t *options = rocksdb_readoptions_create();
  char *value = rocksdb_get(db, options, key, 10, &length, &error);
  if (error) die("get", error);
  rocksdb_readoptions_destroy(options);
  int found = value != NULL;
  rocksdb_free(value);
  return found;
}

static void forked(const char *dir, int opens) {
  rocksdb_t *db = open_at(dir, "db");
  for (unsigned i = 0; i < 1000; i++) put(db, i, 100);
  for (int round = 0; round < 3; round++) {
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      rocksdb_close(db);
      if (round == 2 && opens) {
        /* A child has threads of its own for what it opens itself. */
        rocksdb_t *other = open_at(dir, "of child");
        char *error = NULL;
        put(other, 1, 10);
        rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
        rocksdb_flush(other, options, &error);
        if (error) die("flush", error);
        rocksdb_close(other);
      }
      _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 7) die("child", "it did not end well");
    if (!put(db, 1000 + (unsigned)round, 100)) die("put", "the parent cannot write any more");
  }
  rocksdb_close(db);
  db = open_at(dir, "db");
  for (unsigned i = 0; i < 1003; i++)
    if (!has(db, i)) die("get", "a row is missing");
  rocksdb_close(db);
}

static void full(const char *dir) {
  char filler[600];
  snprintf(filler, sizeof filler, "%s/filler", dir);
  rocksdb_t *db = open_at(dir, "db");
  char chunk[65536];
  memset(chunk, 1, sizeof chunk);
  FILE *file = fopen(filler, "w");
  for (int i = 0; i < 256; i++) fwrite(chunk, 1, sizeof chunk, file);
  fclose(file);
  unsigned count = 0;
  while (put(db, count, 1000)) count++;
  /* Acknowledged is what comes before; what was refused is not there. */
  remove(filler);
  int seconds = 0;
  while (!put(db, count, 1000)) {
    if (++seconds > 120) die("put", "writes are still refused");
    sleep(1);
  }
  for (unsigned i = 0; i <= count; i++)
    if (!has(db, i)) die("get", "a row is missing");
  rocksdb_close(db);
  db = open_at(dir, "db");
  for (unsigned i = 0; i <= count; i++)
    if (!has(db, i)) die("get", "a row is missing after opening again");
  rocksdb_close(db);
}

static int threads_here(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = 0;
  while (readdir(tasks)) count++;
  closedir(tasks);
  return count - 2;
}

static void threads(const char *dir) {
  rocksdb_t *dbs[100];
  char name[20];
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "db%d", i);
    dbs[i] = open_at(dir, name);
    put(dbs[i], 1, 10);
  }
  if (threads_here() > 20) die("threads", "each database has its own");
  rocksdb_env_t *env = rocksdb_create_default_env();
  rocksdb_env_set_background_threads(env, 5);
  rocksdb_env_set_high_priority_background_threads(env, 3);
  if (rocksdb_env_get_background_threads(env) != 5) die("env", "low");
  if (rocksdb_env_get_high_priority_background_threads(env) != 3) die("env", "high");
  rocksdb_env_destroy(env);
  for (int i = 0; i < 100; i++) rocksdb_close(dbs[i]);
}

static void flush(rocksdb_t *db) {
  char *error = NULL;
  rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
  rocksdb_flush(db, options, &error);
  rocksdb_flushoptions_destroy(options);
  if (error) die("flush", error);
}

/* Removes the first table in DIR/NAME. */
static void remove_table(const char *dir, const char *name) {
  char path[600], first[300] = "~";
  snprintf(path, sizeof path, "%s/%s", dir, name);
  DIR *entries = opendir(path);
  for (struct dirent *entry; (entry = readdir(entries));)
    if (strstr(entry->d_name, ".sst") && strcmp(entry->d_name, first) < 0)
      snprintf(first, sizeof first, "%s", entry->d_name);
  closedir(entries);
  snprintf(path, sizeof path, "%s/%s/%s", dir, name, first);
  if (unlink(path)) die("unlink", path);
}

static void missing(const char *dir, int max_open_files) {
  char name[30];
  snprintf(name, sizeof name, "open %d", max_open_files);
  rocksdb_t *db = open_with(dir, name, max_open_files);
  for (unsigned table = 0; table < 3; table++) {
    for (unsigned i = 0; i < 100; i++) put(db, i, 10);
    flush(db);
  }
  rocksdb_close(db);
  db = open_with(dir, name, max_open_files);
  remove_table(dir, name);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  int noticed = max_open_files >= 0;
  char *errors = rocksdb_property_value(db, "rocksdb.background-errors");
  if (strcmp(errors, noticed ? "1" : "0")) die("background errors", errors);
  rocksdb_free(errors);
  if (put(db, 1000, 10) == noticed) die("put", noticed ? "was taken" : "was refused");
  rocksdb_close(db);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  if (!strcmp(argv[1], "fork")) forked(argv[2], 0);
  if (!strcmp(argv[1], "opens")) forked(argv[2], 1);
  if (!strcmp(argv[1], "full")) full(argv[2]);
  if (!strcmp(argv[1], "threads")) threads(argv[2]);
  if (!strcmp(argv[1], "missing")) missing(argv[2], -1), missing(argv[2], 20);
  puts("all good");
  return 0;
}
