import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.HashSet;
import java.util.Set;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.Request;
import org.junit.runner.manipulation.Filter;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/** Runs the classes named after a file of tests to be left out, and says what becomes of each test, a line each. */
public class Runner extends RunListener {
  private static final PrintStream SAID = System.out;
  private boolean failed;

  public static void main(String[] arguments) throws Exception {
    Set<String> skipped = new HashSet<>(Files.readAllLines(Paths.get(arguments[0])));
    // What tests print is not for the list.
    System.setOut(System.err);
    for (int place = 1; place < arguments.length; place++) {
      JUnitCore core = new JUnitCore();
      core.addListener(new Runner());
      core.run(Request.aClass(Class.forName(arguments[place])).filterWith(new Filter() {
        @Override public boolean shouldRun(Description test) {
          return !test.isTest() || !skipped.contains(name(test));
        }

        @Override public String describe() {
          return "those that are not left out";
        }
      }));
      SAID.println("@done " + arguments[place]);
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

  private static String name(Description test) {
    return test.getClassName().replace("org.rocksdb.", "") + "." + test.getMethodName();
  }

  @Override public void testStarted(Description test) {
    failed = false;
    SAID.println("@start " + name(test));
  }

  @Override public void testFailure(Failure failure) {
    failed = true;
    String message = String.valueOf(failure.getException()).replaceAll("\\s+", " ");
    // A failure before or after the tests of a class is the class's.
    SAID.println("@fail " + name(failure.getDescription()) + " " + message.substring(0, Math.min(300, message.length())));
  }

  @Override public void testAssumptionFailure(Failure failure) {
    failed = true;
    SAID.println("@ignored " + name(failure.getDescription()));
  }

  @Override public void testIgnored(Description test) {
    SAID.println("@ignored " + name(test));
  }

  @Override public void testFinished(Description test) {
    if (!failed) {
      SAID.println("@pass " + name(test));
    }
  }
}
