/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A contender in Java: Contender fair|plain PORT, with Redisson. It speaks the lines of
 * ../README.md.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class Contender {
  private static final String LOCK = "sixteen-byte-nam";
  private static final int LEASE_S = 30, HOLD_MS = 3, PAUSE_US = 6000;

  private static void answer(long[] numbers) {
    System.out.println("done 0");
    var words = LongStream.of(numbers).mapToObj(String::valueOf);
    System.out.println(words.collect(Collectors.joining(" ")));
  }

  private static void pairs(RLock lock, int count) {
    long[] took = new long[count];
    for (int i = 0; i < count; i++) {
      long start = System.nanoTime();
      lock.lock(LEASE_S, TimeUnit.SECONDS);
      lock.unlock();
      took[i] = System.nanoTime() - start;
    }
    answer(took);
  }

  private static void contend(RLock lock, int count) throws InterruptedException {
    long[] events = new long[3 * count];
    for (int i = 0; i < count; i++) {
      events[3 * i] = System.nanoTime();
      lock.lock(LEASE_S, TimeUnit.SECONDS);
      events[3 * i + 1] = System.nanoTime();
      TimeUnit.MILLISECONDS.sleep(HOLD_MS);
      events[3 * i + 2] = System.nanoTime();
      lock.unlock();
      TimeUnit.MICROSECONDS.sleep(ThreadLocalRandom.current().nextInt(PAUSE_US));
    }
    answer(events);
  }

  public static void main(String[] arguments) throws Exception {
    Config config = new Config();
    config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[1]);
    RedissonClient redisson = Redisson.create(config);
    RLock lock = arguments[0].equals("fair") ? redisson.getFairLock(LOCK) : redisson.getLock(LOCK);
    String version = Redisson.class.getPackage().getImplementationVersion();
    System.out.println("ready " + System.nanoTime() + " " + version);
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      int count = Integer.parseInt(words[1]);
      if (words[0].equals("pairs")) pairs(lock, count);
      else contend(lock, count);
    }
    Runtime.getRuntime().halt(0);
  }
}
