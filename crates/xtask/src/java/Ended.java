import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import org.rocksdb.*;

/** Objects of a transaction and snapshots, used when what they are of has ended, or is another by now. */
public class Ended {
  public static void main(String[] arguments) throws Exception {
    RocksDB.loadLibrary();
    Smoke.tellLibrary();
    Path place = Paths.get(arguments[0]);
    Files.createDirectories(place);
    batches(place.resolve("batches").toString());
    replaced(place.resolve("replaced").toString());
    released(place.resolve("released").toString());
    names(place.resolve("names").toString());
    deadlocks(place.resolve("deadlocks").toString());
  }

  /** The batch of commit time is empty after a commit and a rollback, and goes on as the transaction does. */
  private static void batches(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, path); WriteOptions write = new WriteOptions()) {
      Transaction txn = db.beginTransaction(write);
      WriteBatch batch = prepare(txn, "one");
      batch.put("c1".getBytes(), "1".getBytes());
      txn.commit();
      check(batch.count() == 0 && text(db, "c1").equals("1"), "after a commit");
      batch.put("late".getBytes(), "1".getBytes());
      check(txn.getCommitTimeWriteBatch().count() == 1, "the same batch");
      txn = db.beginTransaction(write, txn);
      check(batch.count() == 0, "begun again");
      check(prepare(txn, "two").getNativeHandle() == batch.getNativeHandle(), "the same batch again");
      batch.put("c2".getBytes(), "2".getBytes());
      txn.rollback();
      check(batch.count() == 0, "after a rollback");
      batch.put("later".getBytes(), "1".getBytes());
      txn = db.beginTransaction(write, txn);
      prepare(txn, "three");
      batch.put("c3".getBytes(), "3".getBytes());
      txn.commit();
      txn.close();
      check(text(db, "late") == null && text(db, "later") == null && text(db, "c2") == null, "what was not committed");
      check(text(db, "c3").equals("3") && text(db, "three").equals("own"), "what was");
    }
    try (Options options = new Options(); OptimisticTransactionDB db = OptimisticTransactionDB.open(options, path);
         WriteOptions write = new WriteOptions(); Transaction txn = db.beginTransaction(write)) {
      WriteBatch batch = txn.getCommitTimeWriteBatch();
      batch.put("c4".getBytes(), "4".getBytes());
      txn.rollback();
      check(batch.count() == 0, "an optimistic one");
    }
  }

  private static WriteBatch prepare(Transaction txn, String name) throws RocksDBException {
    txn.setName(name);
    check(txn.getLogNumber() == 0, "it is in no log");
    txn.put(name.getBytes(), "own".getBytes());
    txn.prepare();
    check(txn.getLogNumber() > 0, "it is in a log");
    return txn.getCommitTimeWriteBatch();
  }

  /** An older snapshot of a transaction is gone once it has another one; options that have it keep it. */
  private static void replaced(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, path); WriteOptions write = new WriteOptions();
         ReadOptions read = new ReadOptions()) {
      Transaction txn = db.beginTransaction(write);
      check(txn.getSnapshot() == null, "no snapshot");
      txn.setSnapshot();
      Snapshot first = txn.getSnapshot();
      long at = first.getSequenceNumber();
      read.setSnapshot(first);
      check(txn.getSnapshot().getNativeHandle() == first.getNativeHandle(), "one snapshot");
      db.put("k".getBytes(), "1".getBytes());
      txn.setSnapshot();
      check(first.getSequenceNumber() == at, "options keep it");
      Snapshot second = txn.getSnapshot();
      check(second.getSequenceNumber() > at && second.getNativeHandle() != first.getNativeHandle(), "another one");
      gone(first, db);
      check(db.get(read, "k".getBytes()) == null, "options read at the first");
      db.put("k".getBytes(), "2".getBytes());
      txn.setSnapshot();
      gone(second, db);
      second = txn.getSnapshot();
      long later = second.getSequenceNumber();
      try {
        db.releaseSnapshot(second);
        check(false, "it is the transaction's");
      } catch (IllegalStateException refused) {
        check(second.getSequenceNumber() == later, "and stays so");
      }
      txn.clearSnapshot();
      gone(second, db);
      txn.setSnapshot();
      Snapshot third = txn.getSnapshot();
      txn = db.beginTransaction(write, txn);
      gone(third, db);
      txn.setSnapshot();
      Snapshot fourth = txn.getSnapshot();
      txn.close();
      gone(fourth, db);
      read.setSnapshot(null);
      check(db.getProperty("rocksdb.num-snapshots").equals("0"), "nothing holds one");
    }
  }

  private static void gone(Snapshot snapshot, RocksDB db) throws RocksDBException {
    try {
      snapshot.getSequenceNumber();
      check(false, "the number of what is gone");
    } catch (IllegalStateException gone) {
      // As it should be.
    }
    try (ReadOptions read = new ReadOptions()) {
      read.setSnapshot(snapshot);
      check(false, "options with what is gone");
    } catch (IllegalStateException gone) {
      // As it should be.
    }
    try {
      db.releaseSnapshot(snapshot);
      check(false, "released again");
    } catch (IllegalStateException gone) {
      // As it should be.
    }
  }

  /** A snapshot is released once, also by its database as that closes. */
  private static void released(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true)) {
      RocksDB db = RocksDB.open(options, path);
      db.put("k".getBytes(), "1".getBytes());
      Snapshot first = db.getSnapshot();
      Snapshot second = db.getSnapshot();
      check(first.getSequenceNumber() == second.getSequenceNumber(), "one moment");
      db.releaseSnapshot(first);
      gone(first, db);
      check(db.getProperty("rocksdb.num-snapshots").equals("1"), "the other one stays");
      db.close();
      gone(first, db);
      gone(second, db);
      // It is closed: nothing of the snapshots holds it.
      RocksDB.open(options, path).close();
    }
  }

  /** Transactions are found by their names, also those that the last process left prepared. */
  private static void names(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions how = new TransactionDBOptions();
         WriteOptions write = new WriteOptions()) {
      try (TransactionDB db = TransactionDB.open(options, how, path)) {
        Transaction kept = db.beginTransaction(write);
        kept.setName("kept");
        check(db.getTransactionByName("kept").getNativeHandle() == kept.getNativeHandle(), "by name");
        check(db.getTransactionByName("other") == null, "no such name");
        check(db.getAllPreparedTransactions().isEmpty(), "none is prepared");
        kept.put("k".getBytes(), "1".getBytes());
        kept.prepare();
        check(db.getAllPreparedTransactions().size() == 1, "one is prepared");
        kept.setLogNumber(77);
        check(kept.getLogNumber() == 77, "another number");
        kept.close();
        Transaction other = db.beginTransaction(write);
        other.setName("other");
        other.commit();
        check(db.getTransactionByName("other") == null, "committed");
        other.close();
      }
      try (TransactionDB db = TransactionDB.open(options, how, path)) {
        Transaction found = db.getTransactionByName("kept");
        check(found.getName().equals("kept") && found.getLogNumber() > 0, "found again");
        List<Transaction> prepared = db.getAllPreparedTransactions();
        check(prepared.size() == 1 && prepared.get(0).getNativeHandle() == found.getNativeHandle(), "one object");
      }
      try (TransactionDB db = TransactionDB.open(options, how, path)) {
        List<Transaction> prepared = db.getAllPreparedTransactions();
        check(prepared.size() == 1 && db.getAllPreparedTransactions().size() == 1, "each time");
        // Its methods assert an object that Java owns: the jar gives none.
        check(db.get("k".getBytes()) == null, "not decided");
      }
    }
  }

  private static void deadlocks(String path) throws RocksDBException {
    try (Options options = new Options().setCreateIfMissing(true); TransactionDBOptions how = new TransactionDBOptions();
         TransactionDB db = TransactionDB.open(options, how, path)) {
      db.setDeadlockInfoBufferSize(123);
      check(db.getDeadlockInfoBuffer().length == 0, "no deadlock");
    }
  }

  private static String text(RocksDB db, String key) throws RocksDBException {
    byte[] value = db.get(key.getBytes());
    return value == null ? null : new String(value);
  }

  private static void check(boolean good, String what) {
    if (!good) {
      throw new AssertionError(what);
    }
  }
}
