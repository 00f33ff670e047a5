package outcrop;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.openjdk.jmh.annotations.*;
import org.openjdk.jmh.infra.Blackhole;
import org.rocksdb.*;

/**
 * Measures calls through RocksJava: reads of keys that are cached, writes, and steps of an iterator, with arrays and direct buffers.
 * Keys come in an order that a fixed step makes; 16 bytes each, with values of 100.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Bench {
  private static final int KEYS = 100_000;
  private static final int VALUE = 100;
  private static final int STEP = 61_291;
  private static final int ROWS = 100;

  private Path directory;
  private Options options;
  private RocksDB db;
  private ReadOptions read;
  private WriteOptions write;
  private int place;
  private final byte[] key = new byte[16];
  private final byte[] value = new byte[VALUE];
  private final ByteBuffer directKey = ByteBuffer.allocateDirect(16);
  private final ByteBuffer directValue = ByteBuffer.allocateDirect(VALUE);

  @Setup
  public void open() throws Exception {
    RocksDB.loadLibrary();
    directory = Files.createTempDirectory("java-bench");
    BlockBasedTableConfig table = new BlockBasedTableConfig().setBlockCache(new LRUCache(256 << 20)).setFilterPolicy(new BloomFilter(10));
    options = new Options().setCreateIfMissing(true).setTableFormatConfig(table).setWriteBufferSize(64 << 20);
    db = RocksDB.open(options, directory.toString());
    read = new ReadOptions();
    write = new WriteOptions();
    for (int i = 0; i < KEYS; i++) {
      name(i);
      db.put(write, key, value);
    }
    db.compactRange();
    for (int i = 0; i < KEYS; i++) {
      name(i);
      db.get(read, key, value);
    }
  }

  @TearDown
  public void close() throws Exception {
    db.close();
    read.close();
    write.close();
    options.close();
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }

  private void name(int i) {
    byte[] digits = Integer.toString(100_000_000 + i).getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(digits, 0, key, 0, digits.length);
  }

  private void nextKey() {
    place = (place + STEP) % KEYS;
    int rest = place;
    for (int digit = 8; digit > 0; digit--) {
      key[digit] = (byte) ('0' + rest % 10);
      rest /= 10;
    }
  }

  private ByteBuffer nextDirectKey() {
    nextKey();
    directKey.clear();
    directKey.put(key);
    directKey.flip();
    return directKey;
  }

  @Benchmark
  public byte[] getArray() throws RocksDBException {
    nextKey();
    return db.get(read, key);
  }

  @Benchmark
  public int getIntoArray() throws RocksDBException {
    nextKey();
    return db.get(read, key, value);
  }

  @Benchmark
  public int getDirect() throws RocksDBException {
    directValue.clear();
    return db.get(read, nextDirectKey(), directValue);
  }

  @Benchmark
  public void putArray() throws RocksDBException {
    nextKey();
    db.put(write, key, value);
  }

  @Benchmark
  public void putDirect() throws RocksDBException {
    directValue.clear();
    db.put(write, nextDirectKey(), directValue);
  }

  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void iterateArray(Blackhole hole) {
    nextKey();
    try (RocksIterator rows = db.newIterator(read)) {
      rows.seek(key);
      for (int row = 0; row < ROWS && rows.isValid(); row++) {
        hole.consume(rows.key());
        hole.consume(rows.value());
        rows.next();
      }
    }
  }

  @Benchmark
  @OperationsPerInvocation(ROWS)
  public void iterateDirect(Blackhole hole) {
    try (RocksIterator rows = db.newIterator(read)) {
      rows.seek(nextDirectKey());
      for (int row = 0; row < ROWS && rows.isValid(); row++) {
        directKey.clear();
        directValue.clear();
        hole.consume(rows.key(directKey));
        hole.consume(rows.value(directValue));
        rows.next();
      }
    }
  }
}
