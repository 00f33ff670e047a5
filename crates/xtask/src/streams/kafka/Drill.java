import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.test.KafkaClusterTestKit;
import org.apache.kafka.common.test.TestKitNodes;

/**
 * Runs instances of the application on a cluster of Kafka's on loopback, and checks what comes out. Waits for events; the time
 * is bounded by whoever starts it.
 *
 * <pre>
 * drill     three brokers, three instances, one killed on the way: counts and joins exact, its tasks taken over by the instance
 *           that had them as standbys; then all state is deleted and restored from the changelogs
 * measure   one broker, one instance: records per second, and the time to restore
 * </pre>
 */
public class Drill {
  private static final int PARTITIONS = 3;
  private static final int WORDS_PER_LINE = 5;

  private final Path directory;
  private final String library;
  private final int words;
  private final List<Process> processes = new ArrayList<>();
  /** By word, and by key of the join: what a consumer of committed records has seen. */
  private final Map<String, Long> counted = new TreeMap<>();
  private final Map<String, String> joined = new TreeMap<>();
  private long countsSeen;

  private Drill(Path directory, String library, int words) {
    this.directory = directory;
    this.library = library;
    this.words = words;
  }

  /** Arguments: drill or measure, a directory, the library's directory or an empty one for the jar's own, lines, different words. */
  public static void main(String[] arguments) throws Exception {
    boolean measure = arguments[0].equals("measure");
    Drill drill = new Drill(Path.of(arguments[1]), arguments[2], Integer.parseInt(arguments[4]));
    int brokers = measure ? 1 : 3;
    TestKitNodes nodes = new TestKitNodes.Builder().setCombined(true).setNumBrokerNodes(brokers).setNumControllerNodes(1)
        .setBaseDirectory(Files.createDirectories(drill.directory.resolve("brokers"))).build();
    int status = 0;
    try (KafkaClusterTestKit cluster = new KafkaClusterTestKit.Builder(nodes)
        .setConfigProp("offsets.topic.replication.factor", "" + brokers)
        .setConfigProp("offsets.topic.num.partitions", "3")
        .setConfigProp("transaction.state.log.replication.factor", "" + brokers)
        .setConfigProp("transaction.state.log.min.isr", "" + Math.min(brokers, 2))
        .setConfigProp("transaction.state.log.num.partitions", "3")
        .setConfigProp("group.initial.rebalance.delay.ms", "0")
        // On a busy machine a broker's heartbeat may come late.
        .setConfigProp("broker.session.timeout.ms", "60000")
        .build()) {
      cluster.format();
      cluster.startup();
      cluster.waitForReadyBrokers();
      drill.run(cluster.bootstrapServers(), brokers - 1, Integer.parseInt(arguments[3]), measure);
    } catch (Exception error) {
      error.printStackTrace();
      status = 1;
    } finally {
      drill.processes.forEach(Process::destroyForcibly);
    }
    Runtime.getRuntime().halt(status);
  }

  private void run(String kafka, int replicas, int lines, boolean measure) throws Exception {
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", kafka))) {
      List<NewTopic> topics = Stream.of("lines", "left", "right", "counts", "joined")
          .map(name -> new NewTopic(name, PARTITIONS, (short) (replicas + 1))).toList();
      admin.createTopics(topics).all().get();
    }
    Map<String, Object> reading = Map.of("bootstrap.servers", kafka, "isolation.level", "read_committed",
        "key.deserializer", StringDeserializer.class, "value.deserializer", ByteArrayDeserializer.class);
    Map<String, Object> writing = Map.of("bootstrap.servers", kafka, "key.serializer", StringSerializer.class,
        "value.serializer", StringSerializer.class, "acks", "all", "linger.ms", 5);
    try (KafkaConsumer<String, byte[]> outputs = new KafkaConsumer<>(reading);
        KafkaProducer<String, String> inputs = new KafkaProducer<>(writing)) {
      outputs.assign(Stream.of("counts", "joined")
          .flatMap(topic -> Stream.iterate(0, n -> n < PARTITIONS, n -> n + 1).map(n -> new TopicPartition(topic, n))).toList());
      outputs.seekToBeginning(outputs.assignment());
      if (measure) {
        measure(kafka, inputs, outputs, lines);
      } else {
        drill(kafka, replicas, inputs, outputs, lines);
      }
    }
  }

  private void drill(String kafka, int replicas, KafkaProducer<String, String> inputs, KafkaConsumer<String, byte[]> outputs,
      int lines) throws Exception {
    List<Peer> peers = new ArrayList<>();
    for (int number = 0; number < 3; number++) {
      peers.add(new Peer("instance-" + number, kafka, replicas));
    }
    waitForAllTasks(peers, 6);
    produce(inputs, 0, lines / 2);
    read(outputs, lines / 2, peers);
    say("half of the lines is counted");

    // Some lines are in work when an instance is killed, and some come after that, however fast the others are.
    produce(inputs, lines / 2, lines - lines / 8);
    read(outputs, lines / 2 + lines / 8, peers);
    // Instances that were slow to answer may have lost tasks to others meanwhile: which they have is asked right before.
    waitForAllTasks(peers, 6);
    Peer victim = peers.stream().max(Comparator.comparing(peer -> peer.withState("active").size())).orElseThrow();
    Set<String> lost = victim.withState("active");
    Map<String, Peer> standbys = new HashMap<>();
    for (Peer peer : peers) {
      peer.withState("standby").forEach(task -> standbys.put(task, peer));
    }
    victim.process.destroyForcibly().waitFor();
    peers.remove(victim);
    say("killed " + victim.name + ", which had " + lost);
    produce(inputs, lines - lines / 8, lines);
    read(outputs, lines, peers);
    waitForAllTasks(peers, 6);
    for (String task : lost) {
      Peer standby = standbys.get(task);
      check(standby != null && standby.withState("active").contains(task), task + " is not where its standby was: "
          + (standby == null ? "there was none" : standby.name));
    }
    say("their standbys took over " + lost);
    checkOutputs(lines);
    checkQueries(peers, lines);
    String mapped = peers.get(0).line("library");

    for (Peer peer : peers) {
      peer.stop();
    }
    peers.clear();
    delete(directory.resolve("state"));
    long started = System.nanoTime();
    Peer alone = new Peer("restored", kafka, 0);
    peers.add(alone);
    waitForAllTasks(peers, 0);
    double seconds = (System.nanoTime() - started) / 1e9;
    long restored = Long.parseLong(alone.line("restored"));
    check(restored >= words, "only " + restored + " records were restored");
    checkQueries(peers, lines);
    say("restored " + restored + " records in " + seconds + " s");
    alone.stop();
    System.out.println("@result {\"lines\":" + lines + ",\"counted\":" + countsSeen + ",\"joined\":" + joined.size()
        + ",\"taken_over\":" + lost.size() + ",\"restored\":" + restored + ",\"library\":\"" + mapped + "\"}");
  }

  private void measure(String kafka, KafkaProducer<String, String> inputs, KafkaConsumer<String, byte[]> outputs, int lines)
      throws Exception {
    produce(inputs, 0, lines);
    List<Peer> peers = new ArrayList<>();
    peers.add(new Peer("measured", kafka, 0));
    waitFor("the first word is counted", peers, () -> poll(outputs) > 0);
    long first = System.nanoTime();
    long seen = countsSeen;
    read(outputs, lines, peers);
    double counting = (System.nanoTime() - first) / 1e9;
    double rate = (countsSeen - seen) / counting;
    checkOutputs(lines);
    String mapped = peers.get(0).line("library");
    peers.remove(0).stop();
    delete(directory.resolve("state"));
    Peer alone = new Peer("restored", kafka, 0);
    peers.add(alone);
    waitFor("a record is restored", peers, () -> !alone.line("restored").equals("0"));
    long started = System.nanoTime();
    long before = Long.parseLong(alone.line("restored"));
    waitForAllTasks(peers, 0);
    double restoring = (System.nanoTime() - started) / 1e9;
    long restored = Long.parseLong(alone.line("restored"));
    checkQueries(peers, lines);
    alone.stop();
    System.out.println("@result {\"records\":" + countsSeen + ",\"counts_per_second\":" + rate + ",\"restored\":" + restored
        + ",\"restored_per_second\":" + (restored - before) / restoring + ",\"restore_seconds\":" + restoring + ",\"library\":\""
        + mapped + "\"}");
  }

  /** The words of a line, the same in every run. */
  private List<String> line(int number) {
    return Stream.iterate(0, place -> place < WORDS_PER_LINE, place -> place + 1)
        .map(place -> "word" + (number * 7919L + place * 104729L) % words).toList();
  }

  /** Lines, and for each a record on both sides of the join. */
  private void produce(KafkaProducer<String, String> inputs, int from, int to) {
    for (int number = from; number < to; number++) {
      inputs.send(new ProducerRecord<>("lines", "" + number, String.join(" ", line(number))));
      inputs.send(new ProducerRecord<>("left", "" + number, "l" + number));
      inputs.send(new ProducerRecord<>("right", "" + number, "r" + number));
    }
    inputs.flush();
  }

  /** Reads until every word of so many lines is counted, and their records are joined. */
  private void read(KafkaConsumer<String, byte[]> outputs, int lines, List<Peer> peers) throws Exception {
    waitFor(lines + " lines are counted and joined", peers, () -> {
      poll(outputs);
      return countsSeen >= (long) lines * WORDS_PER_LINE && joined.size() >= lines;
    });
  }

  /** What is new: each count follows on the one before, and nothing is joined twice. */
  private long poll(KafkaConsumer<String, byte[]> outputs) {
    for (ConsumerRecord<String, byte[]> record : outputs.poll(Duration.ofMillis(100))) {
      if (record.topic().equals("joined")) {
        String before = joined.put(record.key(), new String(record.value(), StandardCharsets.UTF_8));
        check(before == null, record.key() + " is joined twice");
      } else {
        long count = java.nio.ByteBuffer.wrap(record.value()).getLong();
        Long before = counted.put(record.key(), count);
        check(count == (before == null ? 1 : before + 1), record.key() + " is " + count + " after " + before);
        countsSeen++;
      }
    }
    return countsSeen;
  }

  private Map<String, Long> expected(int lines) {
    return Stream.iterate(0, number -> number < lines, number -> number + 1).flatMap(number -> line(number).stream())
        .collect(Collectors.groupingBy(word -> word, TreeMap::new, Collectors.counting()));
  }

  private void checkOutputs(int lines) {
    check(counted.equals(expected(lines)), "the counts that came out are not those of the lines");
    for (int number = 0; number < lines; number++) {
      check(("l" + number + "+r" + number).equals(joined.get("" + number)), number + " is joined to " + joined.get("" + number));
    }
  }

  /** Nine tasks: a third each of splitting, counting and joining. Counting and joining have state, and may have standbys of it. */
  private static void waitForAllTasks(List<Peer> peers, int standbys) throws Exception {
    waitFor("all tasks and " + standbys + " standbys are somewhere", peers, () -> tasks(peers, "active").size() == 9
        && tasks(peers, "standby").size() == standbys && peers.stream().allMatch(Peer::running));
  }

  /** The stores of all instances together have the counts, and any instance finds each. */
  private void checkQueries(List<Peer> peers, int lines) throws Exception {
    Map<String, Long> expected = expected(lines);
    Map<String, Long> found = new TreeMap<>();
    // Stores do not answer while tasks move: what was asked then is asked again.
    waitFor("the stores answer, and stay where they are", peers, () -> {
      List<Set<String>> before = peers.stream().map(peer -> peer.tasks("active")).toList();
      found.clear();
      try {
        for (Peer peer : peers) {
          for (String row : peer.get("/counts").lines().toList()) {
            String[] parts = row.split(" ");
            found.merge(parts[0], Long.valueOf(parts[1]), (one, other) -> Long.MIN_VALUE);
          }
        }
        for (String word : expected.keySet().stream().limit(20).toList()) {
          found.put("asked for " + word, Long.valueOf(peers.get(0).get("/count?" + word)));
        }
      } catch (IOException | NumberFormatException moving) {
        return false;
      }
      return peers.stream().allMatch(Peer::running) && tasks(peers, "active").size() == 9
          && before.equals(peers.stream().map(peer -> peer.tasks("active")).toList());
    });
    for (String word : expected.keySet().stream().limit(20).toList()) {
      Long count = found.remove("asked for " + word);
      check(expected.get(word).equals(count), "asked for " + word + ": " + count);
    }
    check(found.equals(expected), "the stores have " + found.size() + " words, or other counts, or one twice");
  }

  private static List<String> tasks(List<Peer> peers, String kind) {
    return peers.stream().flatMap(peer -> peer.tasks(kind).stream()).toList();
  }

  private interface Event {
    boolean happened() throws Exception;
  }

  private static void waitFor(String what, List<Peer> peers, Event event) throws Exception {
    while (!event.happened()) {
      for (Peer peer : peers) {
        check(peer.process.isAlive(), what + ": " + peer.name + " has ended; its log is " + peer.log);
        check(!peer.line("state").equals("ERROR"), what + ": " + peer.name + " has failed; its log is " + peer.log);
      }
      // Asks again soon: nobody tells.
      Thread.sleep(20);
    }
  }

  private static void check(boolean holds, String otherwise) {
    if (!holds) {
      throw new IllegalStateException(otherwise);
    }
  }

  private static void say(String what) {
    System.err.println(what);
  }

  private static void delete(Path directory) throws Exception {
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
    }
  }

  /** A process of the application. */
  private class Peer {
    final String name;
    final File log;
    final Process process;
    private final String address;

    Peer(String name, String kafka, int replicas) throws Exception {
      this.name = name;
      Path state = Files.createDirectories(directory.resolve("state").resolve(name));
      log = directory.resolve(name + ".log").toFile();
      List<String> command = new ArrayList<>(List.of("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
          "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"));
      command.add("-Djava.library.path=" + library);
      command.addAll(List.of("-cp", System.getProperty("java.class.path"), "Instance", kafka, state.toString(), "" + replicas));
      process = new ProcessBuilder(command).redirectError(log).start();
      processes.add(process);
      BufferedReader said = process.inputReader();
      String line;
      do {
        line = said.readLine();
        check(line != null, name + " did not start; its log is " + log);
      } while (!line.startsWith("@port "));
      address = "http://127.0.0.1:" + line.substring(6);
    }

    String get(String path) throws Exception {
      return new String(URI.create(address + path).toURL().openStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    /** What the status says after a word. */
    String line(String word) throws Exception {
      return get("/status").lines().filter(line -> line.startsWith(word + " ")).map(line -> line.substring(word.length() + 1))
          .findFirst().orElse("");
    }

    boolean running() {
      try {
        return line("state").equals("RUNNING");
      } catch (Exception error) {
        return false;
      }
    }

    Set<String> tasks(String kind) {
      try {
        return get("/status").lines().filter(line -> line.startsWith(kind + " ")).map(line -> line.substring(kind.length() + 1))
            .collect(Collectors.toCollection(TreeSet::new));
      } catch (Exception error) {
        return Set.of();
      }
    }

    /** Those that have state. Splitting lines, which has none, is the first part of the topology. */
    Set<String> withState(String kind) {
      return tasks(kind).stream().filter(task -> !task.startsWith("0_")).collect(Collectors.toCollection(TreeSet::new));
    }

    void stop() throws Exception {
      process.getOutputStream().close();
      process.waitFor();
    }
  }
}
