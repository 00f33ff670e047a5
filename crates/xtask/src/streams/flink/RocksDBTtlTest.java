package org.apache.flink.runtime.state.ttl;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.stream.Stream;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.runtime.state.CheckpointStorage;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.storage.FileSystemCheckpointStorage;
import org.apache.flink.state.rocksdb.EmbeddedRocksDBStateBackend;
import org.apache.flink.state.rocksdb.RocksDBKeyedStateBackend;
import org.junit.jupiter.api.Disabled;
import org.junit.jupiter.api.TestTemplate;

/** Flink's tests of state with a time to live, which it publishes without a backend, on RocksDB's; and compactions of that state. */
class RocksDBTtlTest extends TtlStateTestBase {
  private static final String AT_RANDOM = "fails at random, with every library alike";

  @Override protected StateBackendTestContext createStateBackendTestContext(TtlTimeProvider clock) {
    return new StateBackendTestContext(clock) {
      @Override protected StateBackend createStateBackend() {
        return new EmbeddedRocksDBStateBackend(false);
      }

      @Override protected CheckpointStorage createCheckpointStorage() {
        return new FileSystemCheckpointStorage("file://" + System.getProperty("java.io.tmpdir") + "/checkpoints");
      }
    };
  }

  @Override protected boolean incrementalCleanupSupported() {
    return false;
  }

  @Override @Disabled(AT_RANDOM) @TestTemplate void testMultipleKeysWithSnapshotCleanup() {}

  @Override @Disabled(AT_RANDOM) @TestTemplate void testMultipleNamespacesWithSnapshotCleanup() {}

  @TestTemplate void compactionsTakeWhatHasExpired() throws Exception {
    StateDescriptor<?, ?> state = initTest(getConfBuilder(TTL).cleanupInRocksdbCompactFilter(1L).build());
    compactAt(state, 0);
    update("early", ctx().updateEmpty);
    update("late", ctx().updateEmpty);

    compactAt(state, 50);
    assertThat(original("early")).isTrue();
    assertThat(original("late")).isTrue();
    update("late", ctx().updateUnexpired);

    // The first value of both has expired, the second of one has not.
    compactAt(state, 120);
    assertThat(original("early")).isFalse();
    assertThat(original("late")).isTrue();
    sbetc.setCurrentKey("late");
    assertThat(ctx().get()).isEqualTo(ctx().getUnexpired);

    compactAt(state, 170);
    assertThat(original("late")).isFalse();
  }

  @TestTemplate void compactionsAfterARestoreTakeWhatHasExpired() throws Exception {
    StateDescriptor<?, ?> state = initTest(getConfBuilder(TTL).cleanupInRocksdbCompactFilter(1L).build());
    timeProvider.time = 0;
    update("early", ctx().updateEmpty);
    takeAndRestoreSnapshot(StateBackendTestContext.NUMBER_OF_KEY_GROUPS);
    timeProvider.time = 50;
    update("late", ctx().updateEmpty);
    compactAt(state, 120);
    assertThat(original("early")).isFalse();
    assertThat(original("late")).isTrue();
  }

  private <V> void update(String key, V value) throws Exception {
    sbetc.setCurrentKey(key);
    ctx().update(value);
  }

  /** Whether the state of a key is in the database, expired or not. */
  private boolean original(String key) throws Exception {
    sbetc.setCurrentKey(key);
    return !ctx().isOriginalEmptyValue();
  }

  private void compactAt(StateDescriptor<?, ?> state, long time) throws Exception {
    timeProvider.time = time;
    RocksDBKeyedStateBackend<String> backend = sbetc.getKeyedStateBackend();
    backend.compactState(state);
  }
}
