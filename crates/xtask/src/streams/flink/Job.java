import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.functions.source.legacy.SourceFunction;
import org.apache.flink.util.Collector;

/**
 * A job of Flink's with keyed state in RocksDB, on a cluster in this process. Record i has the key i % KEYS, so that its key was counted
 * i / KEYS times before it: any other count means that state was lost, or used twice.
 *
 * <pre>
 * write DIRECTORY        both task managers are killed on the way: the job goes on from its last incremental checkpoint. Then savepoints of
 *                        both formats and a checkpoint are taken, and the process waits for being killed
 * read DIRECTORY PATH PARALLELISM ...
 *                        restores the job from each path in turn, at that parallelism, and lets it end
 * </pre>
 * Waits for events; the time is bounded by whoever starts it.
 */
public class Job {
  static final int KEYS = 500;
  static final long TOTAL = 40_000;

  /** What tasks and the program tell each other: they are one process. */
  static class Gate {
    /** The source sends what comes before it. */
    static volatile long limit;
    /** Records counted since the job was restored last. */
    static final AtomicLong counted = new AtomicLong();
    /** How often the source began, and where it began last. */
    static final AtomicInteger starts = new AtomicInteger();
    static volatile long startedAt;
    /** By key. */
    static final Map<Integer, Long> counts = new ConcurrentHashMap<>();
    static final AtomicReference<String> wrong = new AtomicReference<>();
  }

  static class Numbers implements SourceFunction<Long>, CheckpointedFunction, Serializable {
    private volatile boolean running = true;
    private long next;
    private transient ListState<Long> places;

    @Override public void initializeState(FunctionInitializationContext context) throws Exception {
      places = context.getOperatorStateStore().getListState(new ListStateDescriptor<>("next", Long.class));
      for (Long place : places.get()) {
        next = place;
      }
      Gate.counted.set(0);
      Gate.startedAt = next;
      Gate.starts.incrementAndGet();
    }

    @Override public void snapshotState(FunctionSnapshotContext context) throws Exception {
      places.update(List.of(next));
    }

    @Override public void run(SourceContext<Long> context) throws Exception {
      while (running && next < TOTAL) {
        if (next >= Gate.limit) {
          // Looks again soon: nobody tells.
          Thread.sleep(5);
          continue;
        }
        synchronized (context.getCheckpointLock()) {
          context.collect(next);
          next++;
        }
      }
    }

    @Override public void cancel() {
      running = false;
    }
  }

  static class Counting extends KeyedProcessFunction<Integer, Long, Long> {
    private transient ValueState<Long> count;
    /** The same count by the hundreds of the records, so that it is spread over entries that are read by a prefix. */
    private transient MapState<Long, Long> parts;
    private transient ListState<String> texts;

    @Override public void open(OpenContext context) {
      count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Long.class));
      parts = getRuntimeContext().getMapState(new MapStateDescriptor<>("parts", Long.class, Long.class));
      texts = getRuntimeContext().getListState(new ListStateDescriptor<>("texts", String.class));
    }

    @Override public void processElement(Long record, Context context, Collector<Long> out) throws Exception {
      long before = count.value() == null ? 0 : count.value();
      long sum = 0;
      for (Long part : parts.values()) {
        sum += part;
      }
      long listed = 0;
      for (String text : texts.get()) {
        listed += text.length();
      }
      long expected = record / KEYS;
      if (before != expected || sum != expected || listed != 7 * (expected / 10)) {
        Gate.wrong.compareAndSet(null, "record " + record + " finds " + before + ", " + sum + " and " + listed);
      }
      count.update(before + 1);
      Long part = parts.get(before / 10);
      parts.put(before / 10, part == null ? 1 : part + 1);
      if ((before + 1) % 10 == 0) {
        texts.add("a text.");
      }
      Gate.counts.put(context.getCurrentKey(), before + 1);
      Gate.counted.incrementAndGet();
      out.collect(record);
    }
  }

  private final MiniCluster cluster;

  private Job(Path directory) throws Exception {
    Map<String, String> settings = new HashMap<>();
    settings.put("state.backend.type", "rocksdb");
    settings.put("state.backend.rocksdb.localdir", Files.createDirectories(directory.resolve("local")).toString());
    settings.put("execution.checkpointing.incremental", "true");
    settings.put("execution.checkpointing.dir", Files.createDirectories(directory.resolve("checkpoints")).toUri().toString());
    settings.put("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
    // All state in files, however little it is.
    settings.put("execution.checkpointing.data-inline-threshold", "0b");
    // Checkpoints are taken when this program asks for them.
    settings.put("execution.checkpointing.interval", "24h");
    settings.put("execution.checkpointing.timeout", "1h");
    settings.put("restart-strategy.type", "fixed-delay");
    settings.put("restart-strategy.fixed-delay.attempts", "5");
    settings.put("restart-strategy.fixed-delay.delay", "100ms");
    // On a busy machine they come late.
    settings.put("heartbeat.timeout", "10min");
    settings.put("taskmanager.memory.managed.size", "64m");
    settings.put("taskmanager.memory.network.min", "32m");
    settings.put("taskmanager.memory.network.max", "32m");
    settings.put("io.tmp.dirs", Files.createDirectories(directory.resolve("tmp")).toString());
    settings.put("rest.bind-port", "0");
    this.settings = Configuration.fromMap(settings);
    cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(this.settings).setNumTaskManagers(2)
        .setNumSlotsPerTaskManager(2).build());
    cluster.start();
  }

  private final Configuration settings;

  public static void main(String[] arguments) throws Exception {
    int status = 1;
    try {
      Job job = new Job(Path.of(arguments[1]));
      if (arguments[0].equals("write")) {
        job.write(Path.of(arguments[1]));
        System.out.println("@written");
        // Until the process is killed, or its parent ends.
        while (System.in.read() >= 0) {}
      } else {
        for (int place = 2; place < arguments.length; place += 2) {
          job.read(arguments[place], Integer.parseInt(arguments[place + 1]));
        }
        library();
        status = 0;
      }
    } catch (Throwable error) {
      error.printStackTrace();
    }
    Runtime.getRuntime().halt(status);
  }

  /** Starts the job, from `path` unless it is null. */
  private JobID submit(String path, int parallelism) throws Exception {
    StreamExecutionEnvironment environment = StreamExecutionEnvironment.getExecutionEnvironment(settings);
    environment.setMaxParallelism(16);
    environment.addSource(new Numbers()).setParallelism(1).uid("numbers")
        .keyBy(record -> (int) (record % KEYS))
        .process(new Counting()).setParallelism(parallelism).uid("counting")
        .sinkTo(new DiscardingSink<>()).setParallelism(1).uid("nowhere");
    JobGraph graph = environment.getStreamGraph().getJobGraph();
    if (path != null) {
      graph.setSavepointRestoreSettings(SavepointRestoreSettings.forPath(path, false));
    }
    Gate.starts.set(0);
    Gate.counts.clear();
    cluster.submitJob(graph).get();
    return graph.getJobID();
  }

  private void write(Path directory) throws Exception {
    String savepoints = Files.createDirectories(directory.resolve("savepoints")).toUri().toString();
    Gate.limit = TOTAL / 4;
    JobID job = submit(null, 2);
    waitFor("a quarter", job, () -> Gate.counted.get() == TOTAL / 4);
    cluster.triggerCheckpoint(job).get();
    Gate.limit = TOTAL / 2;
    waitFor("half", job, () -> Gate.counted.get() == TOTAL / 2);
    cluster.triggerCheckpoint(job).get();
    // Records that are counted from here on are in no checkpoint.
    Gate.limit = TOTAL * 5 / 8;
    waitFor("five eighths", job, () -> Gate.counted.get() == TOTAL * 5 / 8);
    CompletableFuture.allOf(cluster.terminateTaskManager(0), cluster.terminateTaskManager(1)).get();
    System.err.println("both task managers are gone");
    cluster.startTaskManager();
    cluster.startTaskManager();
    waitFor("the job goes on", job, () -> Gate.starts.get() >= 2 && Gate.counted.get() == TOTAL / 8);
    check(Gate.startedAt == TOTAL / 2, "it went on at record " + Gate.startedAt);
    Gate.limit = TOTAL * 3 / 4;
    waitFor("three quarters", job, () -> Gate.counted.get() == TOTAL / 4);
    String canonical = cluster.triggerSavepoint(job, savepoints, false, SavepointFormatType.CANONICAL).get();
    String plain = cluster.triggerSavepoint(job, savepoints, false, SavepointFormatType.NATIVE).get();
    String checkpoint = cluster.triggerCheckpoint(job).get();
    // These records are lost with the process, and counted again by the one that goes on.
    Gate.limit = TOTAL * 7 / 8;
    waitFor("seven eighths", job, () -> Gate.counted.get() == TOTAL * 3 / 8);
    check(Gate.wrong.get() == null, Gate.wrong.get());
    library();
    System.out.println("@canonical " + canonical + "\n@native " + plain + "\n@checkpoint " + checkpoint);
  }

  private void read(String path, int parallelism) throws Exception {
    Gate.limit = TOTAL;
    JobID job = submit(path, parallelism);
    JobResult result = cluster.requestJobResult(job).get();
    if (result.getSerializedThrowable().isPresent()) {
      throw new IllegalStateException(path, result.getSerializedThrowable().get());
    }
    check(Gate.wrong.get() == null, path + ": " + Gate.wrong.get());
    check(Gate.starts.get() == 1 && Gate.startedAt == TOTAL * 3 / 4, path + ": began " + Gate.starts + " times, at " + Gate.startedAt);
    check(Gate.counted.get() == TOTAL / 4, path + ": " + Gate.counted + " records were counted");
    for (int key = 0; key < KEYS; key++) {
      check(Gate.counts.get(key) == TOTAL / KEYS, path + ": key " + key + " was counted " + Gate.counts.get(key) + " times");
    }
    System.out.println("@restored " + path);
  }

  private interface Event {
    boolean happened() throws Exception;
  }

  private void waitFor(String what, JobID job, Event event) throws Exception {
    while (!event.happened()) {
      check(!cluster.getJobStatus(job).get().isGloballyTerminalState(), what + ": the job has ended");
      check(Gate.wrong.get() == null, what + ": " + Gate.wrong.get());
      // Asks again soon: nobody tells.
      Thread.sleep(20);
    }
    System.err.println(what);
  }

  private static void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException(otherwise);
    }
  }

  /** Says which library this process has mapped. */
  private static void library() throws Exception {
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      if (line.contains("rocksdbjni")) {
        System.out.println("@library " + line.substring(line.indexOf('/')));
        return;
      }
    }
  }
}
