package org.apache.flink.state.rocksdb;

import java.io.File;
import java.nio.file.Files;
import java.util.List;
import org.apache.flink.runtime.state.CheckpointStorage;
import org.apache.flink.runtime.state.StateBackendMigrationTestBase;
import org.apache.flink.runtime.state.storage.FileSystemCheckpointStorage;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameter;
import org.apache.flink.testutils.junit.extensions.parameterized.ParameterizedTestExtension;
import org.apache.flink.testutils.junit.extensions.parameterized.Parameters;
import org.junit.jupiter.api.extension.ExtendWith;

/** Flink's tests of state whose serializer changes, which it publishes without a backend, on RocksDB's. */
@ExtendWith(ParameterizedTestExtension.class)
class RocksDBMigrationTest extends StateBackendMigrationTestBase<EmbeddedRocksDBStateBackend> {
  @Parameter public boolean incremental;

  @Parameters(name = "incremental={0}") public static List<Boolean> incremental() {
    return List.of(false, true);
  }

  @Override protected EmbeddedRocksDBStateBackend getStateBackend() throws Exception {
    EmbeddedRocksDBStateBackend backend = new EmbeddedRocksDBStateBackend(incremental);
    backend.setDbStoragePath(Files.createTempDirectory(tempFolder, "db").toString());
    return backend;
  }

  @Override protected CheckpointStorage getCheckpointStorage() throws Exception {
    File checkpoints = Files.createTempDirectory(tempFolder, "checkpoints").toFile();
    return new FileSystemCheckpointStorage(checkpoints.toURI(), 0);
  }
}
