import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.rocksdb.*;

/** Calls that few programs make, and what RocksJava's own tests do not ask of them. */
public class Seldom {
  public static void main(String[] arguments) throws Exception {
    RocksDB.loadLibrary();
    Smoke.tellLibrary();
    Path place = Paths.get(arguments[0]);
    Files.createDirectories(place);
    ranges(place.resolve("ranges").toString());
    rangesBesideTransactions(place);
    endless(place.resolve("endless").toString());
    imported(place);
    files(place.resolve("files").toString());
    canceled(place.resolve("canceled").toString());
    environments(place.resolve("environments").toString());
    termination(place.resolve("termination").toString());
    delimiters(place.resolve("delimiters").toString());
    unknown(place.resolve("unknown"));
    damaged(place.resolve("damaged").toString());
    tables(place.resolve("tables").toString());
    recovery(place.resolve("recovery").toString());
    readers(place);
    slices();
    listeners();
    threads();
  }

  private static void ranges(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
         Slice from = new Slice("b"); Slice to = new Slice("d")) {
      for (String key : Arrays.asList("a", "b", "c", "d")) {
        db.put(key.getBytes(), "value".getBytes());
      }
      RocksDB.CountAndSize stats = db.getApproximateMemTableStats(new Range(from, to));
      check(stats.count == 2 && stats.size >= 2 * 6, stats.count + " entries, " + stats.size + " bytes");
      db.clipColumnFamily(null, "b".getBytes(), "d".getBytes());
      check(db.get("a".getBytes()) == null && db.get("d".getBytes()) == null, "clipped");
      check(db.get("b".getBytes()) != null && db.get("c".getBytes()) != null, "kept");
      check(!db.getProperty("rocksdb.stats").contains("Cumulative writes: 0 writes"), "it was counted");
      db.resetStats();
      check(db.getProperty("rocksdb.stats").contains("Cumulative writes: 0 writes, 0 keys"), db.getProperty("rocksdb.stats"));
    }
  }

  /** Transactions would not notice that a range is deleted: the database below them deletes ranges. */
  private static void rangesBesideTransactions(Path place) throws RocksDBException {
    byte[] a = "a".getBytes();
    byte[] b = "b".getBytes();
    try (Options options = new Options().setCreateIfMissing(true); WriteOptions write = new WriteOptions();
         OptimisticTransactionDB db = OptimisticTransactionDB.open(options, place.resolve("optimistic").toString());
         WriteBatch range = new WriteBatch(); WriteBatch key = new WriteBatch()) {
      db.put(a, "1".getBytes());
      refused(Status.Code.NotSupported, () -> db.deleteRange(a, b));
      refused(Status.Code.NotSupported, () -> db.deleteRange(write, a, b));
      range.deleteRange(a, b);
      refused(Status.Code.NotSupported, () -> db.write(write, range));
      key.put(b, "2".getBytes());
      db.write(write, key);
      check(db.get(a) != null && db.get(b) != null, "the range is there, and the batch");
      RocksDB base = db.getBaseDB();
      check(base.getNativeHandle() == db.getBaseDB().getNativeHandle(), "one database below");
      base.deleteRange(a, b);
      check(db.get(a) == null && db.get(b) != null, "the database below deletes a range");
      base.write(write, range);
      base.close();
    }
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, place.resolve("locking").toString());
         WriteOptions write = new WriteOptions(); WriteBatch range = new WriteBatch()) {
      refused(Status.Code.NotSupported, () -> db.deleteRange(a, b));
      range.deleteRange(a, b);
      refused(Status.Code.InvalidArgument, () -> db.write(write, range));
    }
  }

  /** An empty array as the end of a range of compactRange is no end. */
  private static void endless(String path) throws RocksDBException {
    byte[] none = new byte[0];
    byte[][][] ranges = {{none, none}, {"b".getBytes(), none}, {none, "b".getBytes()}};
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
         FlushOptions flush = new FlushOptions()) {
      for (byte[][] range : ranges) {
        db.put("a".getBytes(), "1".getBytes());
        db.put("c".getBytes(), "1".getBytes());
        db.flush(flush);
        check(db.getProperty("rocksdb.num-files-at-level0").equals("1"), "it was flushed");
        db.compactRange(range[0], range[1]);
        check(db.getProperty("rocksdb.num-files-at-level0").equals("0"), new String(range[0]) + ".." + new String(range[1]));
      }
    }
  }

  /** A column family that a TransactionDB imports has locks for its keys. */
  private static void imported(Path place) throws RocksDBException {
    byte[] key = "key".getBytes();
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, place.resolve("imported").toString());
         WriteOptions write = new WriteOptions(); Checkpoint checkpoint = Checkpoint.create(db);
         ColumnFamilyOptions family = new ColumnFamilyOptions();
         ImportColumnFamilyOptions copied = new ImportColumnFamilyOptions()) {
      db.put(key, "1".getBytes());
      try (ExportImportFilesMetaData files =
               checkpoint.exportColumnFamily(db.getDefaultColumnFamily(), place.resolve("exported").toString());
           ColumnFamilyHandle own = db.createColumnFamilyWithImport(
               new ColumnFamilyDescriptor("new".getBytes(), family), copied, files);
           Transaction txn = db.beginTransaction(write)) {
        db.put(own, "other".getBytes(), "2".getBytes());
        txn.put(own, key, "3".getBytes());
        txn.commit();
        check(new String(db.get(own, key)).equals("3"), "written in what was imported");
      }
    }
  }

  /** A table that ends where the range does goes only with its end. */
  private static void files(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path)) {
      db.put("a".getBytes(), "value".getBytes());
      db.put("c".getBytes(), "value".getBytes());
      db.compactRange();
      ColumnFamilyHandle family = db.getDefaultColumnFamily();
      List<byte[]> range = Arrays.asList("a".getBytes(), "c".getBytes());
      db.deleteFilesInRanges(family, range, false);
      check(db.get("c".getBytes()) != null, "it ends with the range, whose end is not of it");
      db.deleteFilesInRanges(family, Arrays.asList(null, "b".getBytes()), true);
      check(db.get("c".getBytes()) != null, "it reaches out of the range");
      db.deleteFilesInRanges(family, range, true);
      check(db.get("a".getBytes()) == null && db.get("c".getBytes()) == null, "it lies within the range");
    }
  }

  private static void canceled(String path) throws Exception {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
         CompactRangeOptions how = new CompactRangeOptions()) {
      db.put("a".getBytes(), "1".getBytes());
      check(!how.canceled(), "not canceled");
      how.setCanceled(true);
      check(how.canceled(), "canceled");
      try {
        db.compactRange(db.getDefaultColumnFamily(), null, null, how);
        check(false, "it ends");
      } catch (RocksDBException ended) {
        check(ended.getStatus().getCode() == Status.Code.Incomplete, ended.getMessage());
      }
      how.setCanceled(false);
      // One that waits, as nothing may run: another thread ends it, whether it has begun or not.
      Status[] status = new Status[1];
      db.pauseBackgroundWork();
      Thread caller = new Thread(() -> {
        try {
          db.compactRange(db.getDefaultColumnFamily(), null, null, how);
        } catch (RocksDBException ended) {
          status[0] = ended.getStatus();
        }
      });
      caller.start();
      how.setCanceled(true);
      caller.join();
      check(status[0] != null && status[0].getCode() == Status.Code.Incomplete, "ended by another");
      db.continueBackgroundWork();
      how.setCanceled(false);
      db.compactRange(db.getDefaultColumnFamily(), null, null, how);
      check(db.getProperty("rocksdb.num-files-at-level0").equals("0"), "it was compacted");
    }
  }

  private static void environments(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path)) {
      check(db.getEnv() == Env.getDefault(), "the default one");
    }
    try (Env memory = new RocksMemEnv(Env.getDefault());
         Options options = new Options().setCreateIfMissing(true).setEnv(memory); RocksDB db = RocksDB.open(options, path)) {
      Env own = db.getEnv();
      check(own != Env.getDefault() && own.getNativeHandle() == db.getEnv().getNativeHandle(), "its own, once");
      check(!own.getThreadList().isEmpty(), "it has threads");
    }
  }

  private static void termination(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
         WriteOptions write = new WriteOptions(); WriteBatch batch = new WriteBatch()) {
      batch.put("a".getBytes(), "1".getBytes());
      batch.markWalTerminationPoint();
      db.write(write, batch);
      batch.delete("b".getBytes());
      check(batch.getWalTerminationPoint().getCount() == 1 && batch.getWalTerminationPoint().getContentFlags() == 2, "the point");
      try {
        db.write(write, batch);
        check(false, "a write that is to be in no log");
      } catch (RocksDBException refused) {
        check(refused.getStatus().getCode() == Status.Code.NotSupported, refused.getMessage());
      }
      batch.clear();
      check(batch.getWalTerminationPoint().isCleared(), "cleared");
      batch.put("b".getBytes(), "2".getBytes());
      db.write(write, batch);
      check(db.get("a".getBytes()) != null && db.get("b".getBytes()) != null, "written");
    }
  }

  /** A delimiter that is a character is one byte, the lower one. */
  private static void delimiters(String path) throws RocksDBException {
    try (StringAppendOperator joined = new StringAppendOperator('\u20ff');
         Options options = new Options().setCreateIfMissing(true).setMergeOperator(joined);
         RocksDB db = RocksDB.open(options, path)) {
      db.merge("a".getBytes(), "1".getBytes());
      db.merge("a".getBytes(), "2".getBytes());
      check(Arrays.equals(db.get("a".getBytes()), new byte[] {'1', (byte) 0xff, '2'}), "joined by a byte");
    }
  }

  /** Options with names that nobody knows are refused, unless that is not wanted. */
  private static void unknown(Path path) throws Exception {
    Properties properties = new Properties();
    properties.put("max_open_files", "7");
    properties.put("option_of_tomorrow", "7");
    try (ConfigOptions strict = new ConfigOptions();
         ConfigOptions lax = new ConfigOptions().setIgnoreUnknownOptions(true)) {
      check(DBOptions.getDBOptionsFromProps(strict, properties) == null, "a name that nobody knows");
      try (DBOptions read = DBOptions.getDBOptionsFromProps(lax, properties)) {
        check(read.maxOpenFiles() == 7, "the other one is taken");
      }
      try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path.toString())) {
        // Its OPTIONS file is all that is wanted.
      }
      Path file = path.resolve(OptionsUtil.getLatestOptionsFileName(path.toString(), Env.getDefault()));
      String text = new String(Files.readAllBytes(file)).replace("[DBOptions]", "[DBOptions]\n  option_of_tomorrow=7");
      Files.write(file, text.getBytes());
      for (ConfigOptions config : Arrays.asList(strict, lax)) {
        try (DBOptions options = new DBOptions()) {
          Call latest = () -> OptionsUtil.loadLatestOptions(config, path.toString(), options, new ArrayList<>());
          Call named = () -> OptionsUtil.loadOptionsFromFile(config, file.toString(), options, new ArrayList<>());
          if (config == strict) {
            refused(Status.Code.InvalidArgument, latest);
            refused(Status.Code.InvalidArgument, named);
          } else {
            latest.make();
            named.make();
          }
        }
      }
    }
  }

  /** A batch of damaged bytes shows them, and is not taken for one without records. */
  private static void damaged(String path) throws RocksDBException {
    byte[] whole;
    try (WriteBatch batch = new WriteBatch()) {
      batch.put("a".getBytes(), "1".getBytes());
      whole = batch.data();
    }
    byte[] miscounted = whole.clone();
    miscounted[8] = 2;
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path);
         WriteOptions write = new WriteOptions(); Smoke.Told told = new Smoke.Told()) {
      for (byte[] bytes : Arrays.asList(Arrays.copyOf(whole, whole.length - 1), miscounted)) {
        try (WriteBatch batch = new WriteBatch(bytes)) {
          refused(Status.Code.Corruption, () -> batch.iterate(told));
          refused(Status.Code.Corruption, () -> db.write(write, batch));
          check(Arrays.equals(batch.data(), bytes) && batch.count() == bytes[8], "the bytes that it was given");
          batch.clear();
          batch.iterate(told);
          db.write(write, batch);
        }
      }
    }
  }

  private static void tables(String path) throws RocksDBException {
    List<String> told = Collections.synchronizedList(new ArrayList<>());
    try (AbstractEventListener listener = new AbstractEventListener() {
           @Override public void onTableFileCreationStarted(TableFileCreationBriefInfo table) {
             told.add("begins " + table.getReason() + " " + table.getColumnFamilyName());
           }

           @Override public void onTableFileCreated(TableFileCreationInfo table) {
             told.add("made " + table.getTableProperties().getNumEntries() + " " + table.getStatus().getCode()
                 + " " + (table.getFileSize() > 0) + " " + table.getFilePath().endsWith(".sst"));
           }
         };
         Options options = new Options().setCreateIfMissing(true).setListeners(Collections.singletonList(listener));
         RocksDB db = RocksDB.open(options, path); FlushOptions flush = new FlushOptions()) {
      db.put("a".getBytes(), "1".getBytes());
      db.flush(flush);
      check(told.equals(Arrays.asList("begins FLUSH default", "made 1 Ok true true")), told.toString());
      for (TableProperties table : db.getPropertiesOfAllTables().values()) {
        check(table.getFilterPolicyName() == null && table.getComparatorName() != null, "it has no filter");
      }
    }
  }

  private static void recovery(String path) throws Exception {
    List<String> told = Collections.synchronizedList(new ArrayList<>());
    CountDownLatch begun = new CountDownLatch(1);
    CountDownLatch completed = new CountDownLatch(1);
    try (AbstractEventListener listener = new AbstractEventListener() {
           @Override public boolean onErrorRecoveryBegin(BackgroundErrorReason reason, Status error) {
             told.add("begins " + reason + " " + error.getCode() + " " + error.getSubCode());
             begun.countDown();
             return true;
           }

           @Override public void onErrorRecoveryCompleted(Status old) {
             told.add("completed " + old.getCode() + " " + old.getSubCode());
             completed.countDown();
           }
         };
         SstFileManager space = new SstFileManager(Env.getDefault());
         Options options = new Options().setCreateIfMissing(true).setSstFileManager(space)
             .setListeners(Collections.singletonList(listener));
         RocksDB db = RocksDB.open(options, path); FlushOptions flush = new FlushOptions()) {
      space.setMaxAllowedSpaceUsage(1);
      db.put("a".getBytes(), "1".getBytes());
      try {
        db.flush(flush);
      } catch (RocksDBException full) {
        // Maybe it ended before.
      }
      check(begun.await(5, TimeUnit.MINUTES), "nothing begins");
      space.setMaxAllowedSpaceUsage(0);
      check(completed.await(5, TimeUnit.MINUTES), "nothing is completed");
      db.put("b".getBytes(), "2".getBytes());
      check(told.equals(Arrays.asList("begins FLUSH IOError Undefined", "completed IOError Undefined")), told.toString());
    }
  }

  private static void readers(Path place) throws RocksDBException {
    String path = place.resolve("alone.sst").toString();
    try (Options options = new Options().setMergeOperatorName("stringappend"); EnvOptions files = new EnvOptions();
         SstFileWriter writer = new SstFileWriter(files, options)) {
      writer.open(path);
      writer.put("a".getBytes(), "1".getBytes());
      writer.merge("b".getBytes(), "2".getBytes());
      writer.delete("c".getBytes());
      writer.put("d".getBytes(), "4".getBytes());
      writer.finish();
    }
    try (Options options = new Options().setMergeOperatorName("stringappend"); ReadOptions read = new ReadOptions();
         SstFileReader reader = new SstFileReader(options)) {
      try {
        reader.verifyChecksum();
        check(false, "nothing is open");
      } catch (IllegalArgumentException closed) {
        // As it should be.
      }
      reader.open(path);
      reader.verifyChecksum();
      check(reader.getTableProperties().getNumEntries() == 4, "entries");
      try (SstFileReaderIterator rows = reader.newIterator(read)) {
        StringBuilder text = new StringBuilder();
        for (rows.seekToFirst(); rows.isValid(); rows.next()) {
          text.append(new String(rows.key())).append(new String(rows.value()));
        }
        for (rows.seekForPrev("c".getBytes()); rows.isValid(); rows.prev()) {
          text.append(new String(rows.key()));
        }
        rows.status();
        check(text.toString().equals("a1b2d4ba"), text.toString());
      }
    }
    try (Options options = new Options(); SstFileReader reader = new SstFileReader(options)) {
      reader.open(place.resolve("none.sst").toString());
      check(false, "there is no such file");
    } catch (RocksDBException missing) {
      check(missing.getStatus().getCode() == Status.Code.IOError, missing.getMessage());
    }
  }

  /** A slice over a buffer grows as far as that goes. */
  private static void slices() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(8).put("abcdefgh".getBytes());
    try (DirectSlice slice = new DirectSlice(buffer, 2)) {
      slice.setLength(6);
      check(slice.toString().equals("abcdef"), slice.toString());
      slice.removePrefix(4);
      slice.setLength(9);
      check(slice.toString().equals("efgh"), slice.toString());
    }
  }

  /** Says whether it wants to hear of files by a field, which is set after the listener is made. */
  private static class Listener extends AbstractEventListener {
    private final List<String> wanted;

    Listener(String... wanted) {
      this.wanted = Arrays.asList(wanted);
    }

    @Override public boolean shouldBeNotifiedOnFileIO() {
      return wanted.contains("files");
    }
  }

  private static void listeners() throws RocksDBException {
    try (Listener none = new Listener(); Listener files = new Listener("files"); Options options = new Options()) {
      options.setListeners(Collections.singletonList(none));
      refused(Status.Code.NotSupported, () -> options.setListeners(Collections.singletonList(files)));
      check(options.listeners().size() == 1 && options.listeners().get(0) == none, "the first is left");
    }
  }

  private static void threads() {
    check(ThreadStatus.getOperationName(OperationType.OP_FLUSH).equals("Flush"), "names");
    check(ThreadStatus.interpretOperationProperties(OperationType.OP_FLUSH, new long[6]).size() == 3, "properties");
    check(Env.getDefault().getThreadPoolQueueLen(Priority.BOTTOM) == 0, "nobody waits");
  }

  private interface Call {
    void make() throws RocksDBException;
  }

  private static void refused(Status.Code code, Call call) {
    try {
      call.make();
    } catch (RocksDBException refused) {
      check(refused.getStatus().getCode() == code, refused.getStatus().getCodeString());
      return;
    }
    check(false, "it is " + code);
  }

  private static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
