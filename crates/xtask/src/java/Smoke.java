import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.rocksdb.*;

/** The same few calls on every jar: what most programs begin with. */
public class Smoke {
  public static void main(String[] arguments) throws Exception {
    RocksDB.loadLibrary();
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
      try {
        db.put(new byte[] {1}, 0, 9, new byte[0], 0, 0);
        check(false, "an array beyond its end");
      } catch (RuntimeException beyond) {
        // As it should be.
      }
      try {
        db.resetStats();
        check(false, "resetStats");
      } catch (RocksDBException missing) {
        check(missing.getStatus().getCode() == Status.Code.NotSupported, "code");
        check(missing.getMessage().equals("RocksDB.resetStats"), missing.getMessage());
      }
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

  private static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
