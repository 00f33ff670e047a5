import static org.junit.platform.engine.discovery.DiscoverySelectors.selectClass;

import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.platform.engine.FilterResult;
import org.junit.platform.engine.TestExecutionResult;
import org.junit.platform.engine.UniqueId;
import org.junit.platform.launcher.Launcher;
import org.junit.platform.launcher.LauncherDiscoveryRequest;
import org.junit.platform.launcher.PostDiscoveryFilter;
import org.junit.platform.launcher.TestExecutionListener;
import org.junit.platform.launcher.TestIdentifier;
import org.junit.platform.launcher.core.LauncherDiscoveryRequestBuilder;
import org.junit.platform.launcher.core.LauncherFactory;

/** Runs the classes named after a file of tests to be left out, on JUnit's platform; says what becomes of each test, a line each. */
public class PlatformRunner implements TestExecutionListener {
  private static final PrintStream SAID = System.out;
  private final String className;

  private PlatformRunner(String className) {
    this.className = className.substring(className.lastIndexOf('.') + 1);
  }

  public static void main(String[] arguments) throws Exception {
    // A test with parameters is left out as a whole, with all invocations.
    Set<String> skipped = new HashSet<>();
    for (String test : Files.readAllLines(Paths.get(arguments[0]))) {
      skipped.add(test.replaceAll("\\[.*", ""));
    }
    // What tests print is not for the list.
    System.setOut(System.err);
    Launcher launcher = LauncherFactory.create();
    for (String name : List.of(arguments).subList(1, arguments.length)) {
      PlatformRunner listener = new PlatformRunner(name);
      PostDiscoveryFilter filter = test -> {
        boolean left = test.getChildren().isEmpty() && skipped.contains(listener.name(test.getUniqueId()));
        return FilterResult.includedIf(!left);
      };
      LauncherDiscoveryRequest request =
          LauncherDiscoveryRequestBuilder.request().selectors(selectClass(name)).filters(filter).build();
      launcher.execute(request, listener);
      SAID.println("@done " + name);
    }
    for (String line : Files.readAllLines(Paths.get("/proc/self/maps"))) {
      if (line.contains("rocksdbjni")) {
        SAID.println("@library " + line.substring(line.indexOf('/')));
        break;
      }
    }
    SAID.println("@end");
    // Threads that a test leaves behind do not keep the JVM.
    Runtime.getRuntime().halt(0);
  }

  /** `Class.method`, and in brackets which invocation of a test with parameters. */
  private String name(UniqueId id) {
    StringBuilder name = new StringBuilder(className);
    for (UniqueId.Segment segment : id.getSegments()) {
      String value = segment.getValue().replaceAll("\\(.*", "").replaceAll("\\s+", "_");
      switch (segment.getType()) {
        case "engine", "class", "runner" -> {}
        case "test-template-invocation", "class-template-invocation", "dynamic-test" -> name.append('[').append(value).append(']');
        default -> name.append(value.startsWith("[") ? "" : ".").append(value);
      }
    }
    return name.toString();
  }

  @Override public void executionStarted(TestIdentifier test) {
    if (test.isTest()) {
      SAID.println("@start " + name(test.getUniqueIdObject()));
    }
  }

  @Override public void executionSkipped(TestIdentifier test, String reason) {
    SAID.println("@ignored " + name(test.getUniqueIdObject()));
  }

  @Override public void executionFinished(TestIdentifier test, TestExecutionResult result) {
    String name = name(test.getUniqueIdObject());
    switch (result.getStatus()) {
      case FAILED -> {
        // A failure before or after the tests of a class is the class's.
        StringBuilder why = new StringBuilder();
        for (Throwable cause = result.getThrowable().orElse(null); cause != null; cause = cause.getCause()) {
          String text = cause.toString().replaceAll("\\s+", " ");
          why.append(why.isEmpty() ? "" : " <- ").append(text, 0, Math.min(300, text.length()));
        }
        SAID.println("@fail " + name + " " + why);
      }
      case ABORTED -> SAID.println("@ignored " + name);
      default -> {
        if (test.isTest()) {
          SAID.println("@pass " + name);
        }
      }
    }
  }
}
