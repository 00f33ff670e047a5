import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.concurrent.atomic.AtomicLong;
import org.rocksdb.*;

/** Calls that only the jar of Flink has. */
public class Flink {
  /** Of an element: a time, a letter, and the comma behind it. */
  private static final int LENGTH = 10;

  public static void main(String[] arguments) throws Exception {
    RocksDB.loadLibrary();
    Smoke.tellLibrary();
    Path place = Paths.get(arguments[0]);
    Files.createDirectories(place);
    lists(place.resolve("fixed").toString(), FlinkCompactionFilter.Config.createForFixedElementList(100, 0, LENGTH));
    lists(place.resolve("other").toString(), FlinkCompactionFilter.Config.createForList(100, 0, () -> Flink::nextUnexpired));
    histograms();
    deletions(place.resolve("deletions").toString());
  }

  private static int nextUnexpired(byte[] list, long ttl, long now) {
    int at = 0;
    while (at < list.length && ByteBuffer.wrap(list).getLong(at) + ttl <= now) {
      at += LENGTH;
    }
    return Math.min(at, list.length);
  }

  /** Elements of a list go one by one, whether they were added alone or together. */
  private static void lists(String path, FlinkCompactionFilter.Config config) throws RocksDBException {
    AtomicLong now = new AtomicLong(50);
    try (FlinkCompactionFilter.FlinkCompactionFilterFactory factory =
             new FlinkCompactionFilter.FlinkCompactionFilterFactory(now::get);
         Options options = new Options().setCreateIfMissing(true).setMergeOperatorName("stringappendtest")
             .setCompactionFilterFactory(factory);
         RocksDB db = RocksDB.open(options, path); FlushOptions flush = new FlushOptions();
         CompactRangeOptions all = new CompactRangeOptions()
             .setBottommostLevelCompaction(CompactRangeOptions.BottommostLevelCompaction.kForce)) {
      factory.configure(config);
      byte[] old = element(0, 'a');
      byte[] young = element(30, 'b');
      db.merge("alone".getBytes(), old);
      db.merge("alone".getBytes(), young);
      db.merge("together".getBytes(), list(old, young));
      db.merge("expired".getBytes(), list(old, old));
      db.flush(flush);
      now.set(110);
      db.compactRange(db.getDefaultColumnFamily(), null, null, all);
      check(Arrays.equals(db.get("alone".getBytes()), young), "the younger of two operands");
      check(Arrays.equals(db.get("together".getBytes()), young), "the younger element of an operand");
      check(db.get("expired".getBytes()) == null, "an operand without a young element");
      // The same of values, which they are by now.
      db.merge("alone".getBytes(), element(60, 'c'));
      now.set(120);
      db.compactRange(db.getDefaultColumnFamily(), null, null, all);
      check(Arrays.equals(db.get("alone".getBytes()), list(young, element(60, 'c'))), "both are young");
      now.set(130);
      db.compactRange(db.getDefaultColumnFamily(), null, null, all);
      check(Arrays.equals(db.get("alone".getBytes()), element(60, 'c')), "the first of a value");
      check(db.get("together".getBytes()) == null, "a value without a young element");
    }
  }

  /** Histograms that RocksDB has no more, and of which this jar has two, are empty. */
  private static void histograms() {
    try (Statistics statistics = new Statistics()) {
      for (HistogramType type : HistogramType.values()) {
        if (type != HistogramType.HISTOGRAM_ENUM_MAX) {
          check(statistics.getHistogramData(type).getCount() == 0, type.toString());
          statistics.getHistogramString(type);
        }
      }
    }
    new Statistics(EnumSet.of(HistogramType.BYTES_COMPRESSED, HistogramType.BYTES_DECOMPRESSED)).close();
  }

  /** With force one call enables deletions of files, however often they were disabled. */
  private static void deletions(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); RocksDB db = RocksDB.open(options, path)) {
      db.disableFileDeletions();
      db.disableFileDeletions();
      db.enableFileDeletions(false);
      check(db.getProperty("rocksdb.is-file-deletions-enabled").equals("0"), "disabled twice, enabled once");
      db.disableFileDeletions();
      db.enableFileDeletions(true);
      check(db.getProperty("rocksdb.is-file-deletions-enabled").equals("1"), "enabled by force");
    }
  }

  private static byte[] element(long time, char letter) {
    return ByteBuffer.allocate(LENGTH - 1).putLong(time).put((byte) letter).array();
  }

  private static byte[] list(byte[] first, byte[] second) {
    return ByteBuffer.allocate(2 * LENGTH - 1).put(first).put((byte) ',').put(second).array();
  }

  private static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
