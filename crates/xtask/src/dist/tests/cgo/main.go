// A program in Go that uses every area of the C API through the installed header and library. What the library says it does not
// have is said by name; anything else that fails ends the program.
package main

/*
#cgo pkg-config: rocksdb
#include "callbacks.h"
*/
import "C"

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

var err *C.char

// text is a C string that lives as long as the program.
func text(s string) *C.char { return C.CString(s) }

func size(s string) C.size_t { return C.size_t(len(s)) }

func must(what string) {
	if err != nil {
		fmt.Println("failed:", what, C.GoString(err))
		os.Exit(1)
	}
}

func want(what string, found, wanted any) {
	if found != wanted {
		fmt.Println("failed:", what, "found", found, "wanted", wanted)
		os.Exit(1)
	}
}

// optional says whether what was called is there: its error must name that it is not.
func optional(what string) bool {
	if err == nil {
		return true
	}
	said := C.GoString(err)
	want(what+": "+said, strings.HasPrefix(said, "Not implemented"), true)
	C.rocksdb_free(unsafe.Pointer(err))
	err = nil
	fmt.Println("not there:", what)
	return false
}

func taken(bytes *C.char, n C.size_t) string {
	if bytes == nil {
		return "nothing"
	}
	defer C.rocksdb_free(unsafe.Pointer(bytes))
	return C.GoStringN(bytes, C.int(n))
}

type store struct {
	db    *C.rocksdb_t
	write *C.rocksdb_writeoptions_t
	read  *C.rocksdb_readoptions_t
}

func (s store) put(key, value string) {
	C.rocksdb_put(s.db, s.write, text(key), size(key), text(value), size(value), &err)
	must("put")
}

func (s store) get(key string) string {
	var n C.size_t
	value := C.rocksdb_get(s.db, s.read, text(key), size(key), &n, &err)
	must("get")
	return taken(value, n)
}

func options() *C.rocksdb_options_t {
	opts := C.rocksdb_options_create()
	C.rocksdb_options_set_create_if_missing(opts, 1)
	C.rocksdb_options_set_merge_operator(opts, C.append())
	C.rocksdb_options_enable_statistics(opts)
	C.rocksdb_options_set_ratelimiter(opts, C.rocksdb_ratelimiter_create(1<<30, 100_000, 10))
	C.rocksdb_options_add_eventlistener(opts, C.listener())
	return opts
}

// tables has a cache, which is given, and a filter.
func tables(opts *C.rocksdb_options_t) *C.rocksdb_cache_t {
	table := C.rocksdb_block_based_options_create()
	cache := C.rocksdb_cache_create_lru(8 << 20)
	C.rocksdb_block_based_options_set_block_cache(table, cache)
	C.rocksdb_block_based_options_set_filter_policy(table, C.rocksdb_filterpolicy_create_bloom(10))
	C.rocksdb_options_set_block_based_table_factory(opts, table)
	universal := C.rocksdb_universal_compaction_options_create()
	C.rocksdb_options_set_universal_compaction_options(opts, universal)
	C.rocksdb_universal_compaction_options_destroy(universal)
	return cache
}

func main() {
	dir := os.Args[1]
	opts := options()
	cache := tables(opts)
	s := store{
		C.rocksdb_open(opts, text(filepath.Join(dir, "db")), &err),
		C.rocksdb_writeoptions_create(),
		C.rocksdb_readoptions_create(),
	}
	must("open")
	writesAndReads(s)
	batches(s)
	iterators(s)
	files(s, opts, dir)
	counts(s, opts, cache)
	families(s, opts)
	chosenCompaction(s)
	mayBeMissing(s, opts, dir)
	C.rocksdb_close(s.db)
	order(dir)
	transactions(opts, dir)
	fmt.Println("all good")
}

func writesAndReads(s store) {
	s.put("apple", "red")
	s.put("banana", "yellow")
	C.rocksdb_merge(s.db, s.write, text("apple"), 5, text("ish"), 3, &err)
	must("merge")
	want("merged", s.get("apple"), "redish")
	C.rocksdb_delete(s.db, s.write, text("banana"), 6, &err)
	must("delete")
	want("deleted", s.get("banana"), "nothing")
	snapshot := C.rocksdb_create_snapshot(s.db)
	s.put("cherry", "dark")
	C.rocksdb_readoptions_set_snapshot(s.read, snapshot)
	want("in the snapshot", s.get("cherry"), "nothing")
	C.rocksdb_readoptions_set_snapshot(s.read, nil)
	C.rocksdb_release_snapshot(s.db, snapshot)
	want("after the snapshot", s.get("cherry"), "dark")
}

func batches(s store) {
	batch := C.rocksdb_writebatch_create()
	defer C.rocksdb_writebatch_destroy(batch)
	C.rocksdb_writebatch_put(batch, text("date"), 4, text("brown"), 5)
	C.rocksdb_writebatch_delete(batch, text("cherry"), 6)
	want("records", C.records(batch), C.int(2))
	C.rocksdb_write(s.db, s.write, batch, &err)
	must("write")
	want("date", s.get("date"), "brown")

	indexed := C.rocksdb_writebatch_wi_create(0, 1)
	defer C.rocksdb_writebatch_wi_destroy(indexed)
	C.rocksdb_writebatch_wi_put(indexed, text("elder"), 5, text("black"), 5)
	var n C.size_t
	value := C.rocksdb_writebatch_wi_get_from_batch_and_db(indexed, s.db, s.read, text("elder"), 5, &n, &err)
	must("get from batch and db")
	want("indexed", taken(value, n), "black")
}

func iterators(s store) {
	iter := C.rocksdb_create_iterator(s.db, s.read)
	defer C.rocksdb_iter_destroy(iter)
	keys := ""
	for C.rocksdb_iter_seek_to_first(iter); C.rocksdb_iter_valid(iter) != 0; C.rocksdb_iter_next(iter) {
		var n C.size_t
		key := C.rocksdb_iter_key(iter, &n)
		keys += C.GoStringN(key, C.int(n)) + " "
	}
	C.rocksdb_iter_get_error(iter, &err)
	must("iterate")
	want("keys", keys, "apple date ")
}

// files: flushes, lists, checkpoints, the WAL, and tables made elsewhere.
func files(s store, opts *C.rocksdb_options_t, dir string) {
	updates := C.rocksdb_get_updates_since(s.db, 1, nil, &err)
	must("updates since")
	want("updates", C.rocksdb_wal_iter_valid(updates), C.uchar(1))
	C.rocksdb_wal_iter_destroy(updates)

	flush := C.rocksdb_flushoptions_create()
	C.rocksdb_flush(s.db, flush, &err)
	must("flush")
	C.rocksdb_flushoptions_destroy(flush)
	live := C.rocksdb_livefiles(s.db)
	want("live files", C.rocksdb_livefiles_count(live), C.int(1))
	C.rocksdb_livefiles_destroy(live)

	checkpoint := C.rocksdb_checkpoint_object_create(s.db, &err)
	must("checkpoint")
	C.rocksdb_checkpoint_create(checkpoint, text(filepath.Join(dir, "checkpoint")), 0, &err)
	must("checkpoint")
	C.rocksdb_checkpoint_object_destroy(checkpoint)

	table := text(filepath.Join(dir, "made.sst"))
	env := C.rocksdb_envoptions_create()
	writer := C.rocksdb_sstfilewriter_create(env, opts)
	C.rocksdb_sstfilewriter_open(writer, table, &err)
	must("table")
	C.rocksdb_sstfilewriter_put(writer, text("fig"), 3, text("purple"), 6, &err)
	must("table")
	C.rocksdb_sstfilewriter_finish(writer, &err)
	must("table")
	C.rocksdb_sstfilewriter_destroy(writer)
	C.rocksdb_envoptions_destroy(env)
	ingest := C.rocksdb_ingestexternalfileoptions_create()
	C.rocksdb_ingest_external_file(s.db, &table, 1, ingest, &err)
	must("ingest")
	C.rocksdb_ingestexternalfileoptions_destroy(ingest)
	want("ingested", s.get("fig"), "purple")
}

func counts(s store, opts *C.rocksdb_options_t, cache *C.rocksdb_cache_t) {
	value := C.rocksdb_property_value(s.db, text("rocksdb.estimate-num-keys"))
	want("property", value != nil, true)
	C.rocksdb_free(unsafe.Pointer(value))
	statistics := C.rocksdb_options_statistics_get_string(opts)
	want("statistics", strings.Contains(C.GoString(statistics), "rocksdb."), true)
	C.rocksdb_free(unsafe.Pointer(statistics))
	want("cached", C.rocksdb_cache_get_usage(cache) > 0, true)
	start, limit, lens := text("a"), text("z"), C.size_t(1)
	var sizes C.uint64_t
	C.rocksdb_approximate_sizes(s.db, 1, &start, &lens, &limit, &lens, &sizes, &err)
	must("sizes")
	want("sequence number", C.rocksdb_get_latest_sequence_number(s.db) >= 5, true)
}

func families(s store, opts *C.rocksdb_options_t) {
	family := C.rocksdb_create_column_family(s.db, opts, text("users"), &err)
	must("create column family")
	C.rocksdb_put_cf(s.db, s.write, family, text("ann"), 3, text("1"), 1, &err)
	must("put in a column family")
	want("of another family", s.get("ann"), "nothing")
	C.rocksdb_drop_column_family(s.db, family, &err)
	must("drop column family")
	C.rocksdb_column_family_handle_destroy(family)
	compact := C.rocksdb_compactoptions_create()
	C.rocksdb_compactoptions_set_exclusive_manual_compaction(compact, 1)
	C.rocksdb_compact_range_opt(s.db, compact, nil, 0, nil, 0)
	C.rocksdb_compactoptions_destroy(compact)
	want("compacted", s.get("apple"), "redish")
}

func chosenCompaction(s store) {
	live := C.rocksdb_livefiles(s.db)
	name := C.rocksdb_livefiles_name(live, 0)
	compact := C.rocksdb_compaction_options_create()
	defer C.rocksdb_compaction_options_destroy(compact)
	C.rocksdb_compact_files(s.db, compact, &name, 1, 6, -1, nil, nil, nil, &err)
	must("compact files")
	C.rocksdb_livefiles_destroy(live)
	want("compacted", s.get("apple"), "redish")
}

// mayBeMissing has what a library may refuse, naming it.
func mayBeMissing(s store, opts *C.rocksdb_options_t, dir string) {
	backups := C.rocksdb_backup_engine_open(opts, text(filepath.Join(dir, "backups")), &err)
	if optional("backups") {
		C.rocksdb_backup_engine_create_new_backup(backups, s.db, &err)
		must("backup")
		C.rocksdb_backup_engine_close(backups)
	}
	env := C.rocksdb_create_default_env()
	files := C.rocksdb_envoptions_create()
	trace := C.rocksdb_trace_options_create()
	C.rocksdb_start_trace(s.db, env, files, trace, text(filepath.Join(dir, "trace")), &err)
	if optional("traces") {
		C.rocksdb_end_trace(s.db, &err)
		must("end of the trace")
	}
	C.rocksdb_trace_options_destroy(trace)
	C.rocksdb_envoptions_destroy(files)
	C.rocksdb_env_destroy(env)
	db := C.rocksdb_open_with_ttl(opts, text(filepath.Join(dir, "ttl")), 3600, &err)
	if optional("TTL") {
		C.rocksdb_close(db)
	}
}

// order: a database with an order of its own, which others are refused.
func order(dir string) {
	opts := options()
	C.rocksdb_options_set_comparator(opts, C.backwards())
	s := store{
		C.rocksdb_open(opts, text(filepath.Join(dir, "backwards")), &err),
		C.rocksdb_writeoptions_create(),
		C.rocksdb_readoptions_create(),
	}
	must("open")
	s.put("a", "1")
	s.put("b", "2")
	iter := C.rocksdb_create_iterator(s.db, s.read)
	C.rocksdb_iter_seek_to_first(iter)
	var n C.size_t
	key := C.rocksdb_iter_key(iter, &n)
	want("first backwards", C.GoStringN(key, C.int(n)), "b")
	C.rocksdb_iter_destroy(iter)
	C.rocksdb_close(s.db)
	C.rocksdb_open(options(), text(filepath.Join(dir, "backwards")), &err)
	want("another order", err != nil, true)
	C.rocksdb_free(unsafe.Pointer(err))
	err = nil
}

func transactions(opts *C.rocksdb_options_t, dir string) {
	of := C.rocksdb_transactiondb_options_create()
	db := C.rocksdb_transactiondb_open(opts, of, text(filepath.Join(dir, "transactions")), &err)
	must("open")
	write, one := C.rocksdb_writeoptions_create(), C.rocksdb_transaction_options_create()
	transaction := C.rocksdb_transaction_begin(db, write, one, nil)
	C.rocksdb_transaction_put(transaction, text("k"), 1, text("v"), 1, &err)
	must("put")
	other := C.rocksdb_transaction_begin(db, write, one, nil)
	C.rocksdb_transaction_put(other, text("k"), 1, text("w"), 1, &err)
	want("locked", err != nil, true)
	C.rocksdb_free(unsafe.Pointer(err))
	err = nil
	C.rocksdb_transaction_commit(transaction, &err)
	must("commit")
	read := C.rocksdb_readoptions_create()
	var n C.size_t
	value := C.rocksdb_transactiondb_get(db, read, text("k"), 1, &n, &err)
	must("get")
	want("committed", taken(value, n), "v")
	C.rocksdb_transaction_destroy(other)
	C.rocksdb_transaction_destroy(transaction)
	C.rocksdb_transactiondb_close(db)
}
