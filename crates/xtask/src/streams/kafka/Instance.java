import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.KeyQueryMetadata;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * A Kafka Streams application: counts the words of `lines` and joins `left` with `right`, exactly once; each process is one instance.
 * It answers over HTTP on loopback: /status, /counts (its own part), and /count?word (from whichever instance has it).
 */
public class Instance implements StateRestoreListener {
  static final String COUNTS = "counts-store";
  private final AtomicLong restored = new AtomicLong();
  private KafkaStreams streams;
  private int port;

  /** Arguments: Kafka's address, the directory of the state, how many replicas topics and state have beside the first. */
  public static void main(String[] arguments) throws Exception {
    new Instance().run(arguments[0], arguments[1], Integer.parseInt(arguments[2]));
  }

  static Topology topology() {
    StreamsBuilder builder = new StreamsBuilder();
    Consumed<String, String> texts = Consumed.with(Serdes.String(), Serdes.String());
    builder.stream("lines", texts)
        .flatMapValues(line -> Arrays.asList(line.split(" ")))
        .groupBy((key, word) -> word, Grouped.with(Serdes.String(), Serdes.String()))
        .count(Materialized.as(COUNTS))
        .toStream()
        .to("counts", Produced.with(Serdes.String(), Serdes.Long()));
    builder.stream("left", texts)
        .join(builder.stream("right", texts), (left, right) -> left + "+" + right,
            JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofHours(1)),
            StreamJoined.with(Serdes.String(), Serdes.String(), Serdes.String()))
        .to("joined", Produced.with(Serdes.String(), Serdes.String()));
    return builder.build();
  }

  private void run(String kafka, String directory, int replicas) throws Exception {
    HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    port = server.getAddress().getPort();
    Properties settings = new Properties();
    settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "words");
    settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, kafka);
    settings.put(StreamsConfig.STATE_DIR_CONFIG, directory);
    settings.put(StreamsConfig.APPLICATION_SERVER_CONFIG, "127.0.0.1:" + port);
    settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    settings.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, Math.min(replicas, 1));
    settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, replicas + 1);
    // Every count is sent on: the outputs show whether each word was counted once.
    settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
    settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
    // How long a killed instance keeps its tasks.
    settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 15_000);
    settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
    streams = new KafkaStreams(topology(), settings);
    streams.setGlobalStateRestoreListener(this);
    server.createContext("/status", exchange -> answer(exchange, status()));
    server.createContext("/counts", exchange -> answer(exchange, counts()));
    server.createContext("/count", exchange -> answer(exchange, count(exchange.getRequestURI().getQuery())));
    server.setExecutor(Executors.newFixedThreadPool(2));
    server.start();
    streams.start();
    System.out.println("@port " + port);
    // The parent closes our standard input, or ends.
    while (System.in.read() >= 0) {}
    streams.close();
    Runtime.getRuntime().halt(0);
  }

  private static void answer(HttpExchange exchange, String text) throws IOException {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    exchange.sendResponseHeaders(200, bytes.length == 0 ? -1 : bytes.length);
    exchange.getResponseBody().write(bytes);
    exchange.close();
  }

  /** `state NAME`, `restored RECORDS`, `active TASK`, `standby TASK` and `library PATH`, a line each. */
  private String status() throws IOException {
    StringBuilder text = new StringBuilder("state " + streams.state() + "\nrestored " + restored + "\n");
    streams.metadataForLocalThreads().forEach(thread -> {
      thread.activeTasks().forEach(task -> text.append("active ").append(task.taskId()).append('\n'));
      thread.standbyTasks().forEach(task -> text.append("standby ").append(task.taskId()).append('\n'));
    });
    for (String line : Files.readAllLines(Path.of("/proc/self/maps"))) {
      if (line.contains("librocksdbjni")) {
        return text + "library " + line.substring(line.indexOf('/')) + "\n";
      }
    }
    return text.toString();
  }

  private ReadOnlyKeyValueStore<String, Long> store() {
    return streams.store(StoreQueryParameters.fromNameAndType(COUNTS, QueryableStoreTypes.keyValueStore()));
  }

  private String counts() {
    StringBuilder text = new StringBuilder();
    try (KeyValueIterator<String, Long> all = store().all()) {
      all.forEachRemaining(row -> text.append(row.key).append(' ').append(row.value).append('\n'));
    }
    return text.toString();
  }

  private String count(String word) throws IOException {
    KeyQueryMetadata where = streams.queryMetadataForKey(COUNTS, word, new StringSerializer());
    if (where.activeHost().port() != port) {
      URI there = URI.create("http://127.0.0.1:" + where.activeHost().port() + "/count?" + word);
      return new String(there.toURL().openStream().readAllBytes(), StandardCharsets.UTF_8);
    }
    return String.valueOf(store().get(word));
  }

  @Override public void onRestoreStart(TopicPartition partition, String store, long first, long end) {}

  @Override public void onBatchRestored(TopicPartition partition, String store, long end, long count) {
    restored.addAndGet(count);
  }

  @Override public void onRestoreEnd(TopicPartition partition, String store, long count) {}
}
