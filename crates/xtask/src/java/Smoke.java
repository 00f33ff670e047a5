import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.rocksdb.*;

/** The same few calls on every jar: what most programs begin with. */
public class Smoke {
  public static void main(String[] arguments) throws Exception {
    RocksDB.loadLibrary();
    tellLibrary();
    BlockBasedTableConfig table = new BlockBasedTableConfig();
    table.setFilterPolicy(new BloomFilter(10)).setBlockCache(new LRUCache(8 << 20)).setBlockSize(8192);
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    try (ColumnFamilyOptions family = new ColumnFamilyOptions().setTableFormatConfig(table).setWriteBufferSize(1 << 20);
         DBOptions options = new DBOptions().setCreateIfMissing(true).setCreateMissingColumnFamilies(true);
         RocksDB db = RocksDB.open(options, arguments[0],
             Arrays.asList(new ColumnFamilyDescriptor(RocksDB.DEFAULT_COLUMN_FAMILY, family),
                 new ColumnFamilyDescriptor("other".getBytes(), family)), handles)) {
      ColumnFamilyHandle other = handles.get(1);
      db.put("a".getBytes(), "1".getBytes());
      db.put(other, "b".getBytes(), "2".getBytes());
      try (WriteBatch batch = new WriteBatch(); WriteOptions write = new WriteOptions().setSync(true)) {
        batch.put("c".getBytes(), "3".getBytes());
        batch.delete("a".getBytes());
        db.write(write, batch);
      }
      try (FlushOptions flush = new FlushOptions()) {
        db.flush(flush);
      }
      check(db.get("a".getBytes()) == null && new String(db.get("c".getBytes())).equals("3"), "get");
      ByteBuffer key = ByteBuffer.allocateDirect(1).put((byte) 'b');
      ByteBuffer value = ByteBuffer.allocateDirect(8);
      key.flip();
      try (ReadOptions read = new ReadOptions(); RocksIterator rows = db.newIterator(other, read)) {
        check(db.get(other, read, key, value) == 1 && value.get(0) == '2', "get of buffers");
        rows.seekToFirst();
        check(rows.isValid() && new String(rows.key()).equals("b") && new String(rows.value()).equals("2"), "iterator");
        rows.next();
        check(!rows.isValid(), "end");
        rows.status();
      }
      try (ReadOptions read = new ReadOptions()) {
        db.get(other, read, key, ByteBuffer.allocate(8));
        check(false, "one buffer is direct, the other is not");
      } catch (RocksDBException mixed) {
        // As it should be.
      }
      try (WriteBatch batch = new WriteBatch()) {
        batch.put(ByteBuffer.allocate(8), ByteBuffer.allocate(8));
        check(false, "buffers that are not direct");
      } catch (RocksDBException | AssertionError indirect) {
        check(String.valueOf(indirect.getMessage()).startsWith("Invalid key argument"), indirect.getMessage());
      }
      try {
        db.put(new byte[] {1}, 0, 9, new byte[0], 0, 0);
        check(false, "an array beyond its end");
      } catch (RuntimeException beyond) {
        // As it should be.
      }
      try {
        db.endTrace();
        check(false, "endTrace");
      } catch (RocksDBException missing) {
        check(missing.getStatus().getCode() == Status.Code.NotSupported, "code");
        check(missing.getMessage().equals("RocksDB.endTrace"), missing.getMessage());
      }
      // One budget for all that the process opens, in place of the cache of these options.
      boolean budget = System.getenv("OUTCROP_MEMORY_BUDGET") != null;
      long capacity = Long.parseLong(db.getProperty("rocksdb.block-cache-capacity"));
      check(budget ? capacity == (64L << 20) / 16 * 15 : capacity == 8 << 20, "capacity of the cache " + capacity);
      batches(other);
      levels(db);
      for (ColumnFamilyHandle handle : handles) {
        handle.close();
      }
    }
    try (Options options = new Options(); RocksDB db = RocksDB.openReadOnly(options, arguments[0])) {
      check(new String(db.get("c".getBytes())).equals("3"), "opened again");
      db.put("d".getBytes(), new byte[0]);
      check(false, "a write to what is only read");
    } catch (RocksDBException refused) {
      check(refused.getStatus().getCode() == Status.Code.NotSupported, refused.getMessage());
    }
  }

  /** Says which library is loaded. */
  static void tellLibrary() throws java.io.IOException {
    for (String line : Files.readAllLines(Paths.get("/proc/self/maps"))) {
      if (line.contains("librocksdbjni")) {
        System.out.println("@library " + line.substring(line.indexOf('/')));
        break;
      }
    }
  }

  /** Handlers are told the number of each column family, that of the default one too. */
  private static void batches(ColumnFamilyHandle other) throws RocksDBException {
    try (WriteBatch batch = new WriteBatch(); Told told = new Told()) {
      batch.put("a".getBytes(), "1".getBytes());
      batch.merge(other, "b".getBytes(), "2".getBytes());
      batch.delete("c".getBytes());
      batch.singleDelete(other, "d".getBytes());
      batch.deleteRange("e".getBytes(), "f".getBytes());
      batch.putLogData("g".getBytes());
      batch.iterate(told);
      check(told.text.toString().equals("put 0 a 1;merge 1 b 2;delete 0 c;singleDelete 1 d;deleteRange 0 e f;logData g;"),
          told.text.toString());
    }
    // An indexed batch gives its writes at that time, in a batch that goes with it.
    try (WriteBatchWithIndex indexed = new WriteBatchWithIndex(true)) {
      indexed.put("a".getBytes(), "1".getBytes());
      WriteBatch first = indexed.getWriteBatch();
      check(first.count() == 1, "one write");
      indexed.put("b".getBytes(), "2".getBytes());
      check(indexed.getWriteBatch().count() == 2 && first.count() == 2, "two writes");
    }
  }

  /** Levels of the perf context are RocksJava's. */
  private static void levels(RocksDB db) {
    PerfLevel before = db.getPerfLevel();
    for (PerfLevel level : PerfLevel.values()) {
      if (level != PerfLevel.UNINITIALIZED && level != PerfLevel.OUT_OF_BOUNDS) {
        db.setPerfLevel(level);
        check(db.getPerfLevel() == level, level + " became " + db.getPerfLevel());
      }
    }
    db.setPerfLevel(before);
  }

  static class Told extends WriteBatch.Handler {
    final StringBuilder text = new StringBuilder();

    private void tell(Object... words) {
      for (int i = 0; i < words.length; i++) {
        text.append(i == 0 ? "" : " ").append(words[i] instanceof byte[] ? new String((byte[]) words[i]) : words[i]);
      }
      text.append(';');
    }

    @Override public void put(int family, byte[] key, byte[] value) { tell("put", family, key, value); }
    @Override public void put(byte[] key, byte[] value) { tell("put", key, value); }
    @Override public void merge(int family, byte[] key, byte[] value) { tell("merge", family, key, value); }
    @Override public void merge(byte[] key, byte[] value) { tell("merge", key, value); }
    @Override public void delete(int family, byte[] key) { tell("delete", family, key); }
    @Override public void delete(byte[] key) { tell("delete", key); }
    @Override public void singleDelete(int family, byte[] key) { tell("singleDelete", family, key); }
    @Override public void singleDelete(byte[] key) { tell("singleDelete", key); }
    @Override public void deleteRange(int family, byte[] begin, byte[] end) { tell("deleteRange", family, begin, end); }
    @Override public void deleteRange(byte[] begin, byte[] end) { tell("deleteRange", begin, end); }
    @Override public void logData(byte[] blob) { tell("logData", blob); }
    @Override public void putBlobIndex(int family, byte[] key, byte[] value) { tell("putBlobIndex", family, key, value); }
    @Override public void markBeginPrepare() { tell("markBeginPrepare"); }
    @Override public void markEndPrepare(byte[] xid) { tell("markEndPrepare", xid); }
    @Override public void markNoop(boolean empty) { tell("markNoop", empty); }
    @Override public void markRollback(byte[] xid) { tell("markRollback", xid); }
    @Override public void markCommit(byte[] xid) { tell("markCommit", xid); }
    @Override public void markCommitWithTimestamp(byte[] xid, byte[] time) { tell("markCommitWithTimestamp", xid, time); }
  }

  private static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
