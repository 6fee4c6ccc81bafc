/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One process of the Java side: Redisson's fair lock, driven by lines.
 *
 * Reads "PARTY LOCK VERB [NUMBER...]" from stdin and answers "PARTY RESULT..." on stdout, one line for each, in the order in
 * which they are done. A party is a thread of its own (to Redisson: a holder of its own) and does its lines one after
 * another, so one that waits for a lock holds up no other. The verbs are described in lab.h; driver.c speaks the same.
 * Ends at the end of stdin, without giving back anything. It must not retry, correct or order anything by itself: what
 * Redisson does is what is tested.
 *
 * Arguments: PORT [watchdog=MS] [fairwait=MS] [cluster=1] [sentinel=door] [user=NAME:PASSWORD]; whatever is not named
 * keeps Redisson's default. cluster=1: the port is that of a node of a cluster; sentinel=door: of a Sentinel without users, of a
 * master with this name.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.Config;

public class Driver {
  private final RedissonClient redisson;
  private final Map<String, ExecutorService> parties = new ConcurrentHashMap<>();

  private Driver(RedissonClient redisson) {
    this.redisson = redisson;
  }

  public static void main(String[] arguments) throws Exception {
    Config config = new Config();
    String address = "redis://127.0.0.1:" + arguments[0];
    BaseConfig<?> servers;
    if (Arrays.asList(arguments).contains("cluster=1")) {
      servers = config.useClusterServers().addNodeAddress(address);
    } else if (Arrays.asList(arguments).contains("sentinel=door")) {
      servers = config.useSentinelServers().setMasterName("door").setCheckSentinelsList(false).addSentinelAddress(address);
    } else {
      servers = config.useSingleServer().setAddress(address);
    }
    for (String argument : Arrays.copyOfRange(arguments, 1, arguments.length)) {
      String text = argument.substring(argument.indexOf('=') + 1);
      if (argument.startsWith("user=")) {
        String[] words = text.split(":");
        servers.setUsername(words[0]);
        servers.setPassword(words[1]);
      }
      if (!text.matches("[0-9]+")) continue;
      long value = Long.parseLong(text);
      if (argument.startsWith("watchdog=")) {
        config.setLockWatchdogTimeout(value);
      } else if (argument.startsWith("fairwait=")) { // older versions do not have it
        Config.class.getMethod("setFairLockWaitTimeout", long.class).invoke(config, value);
      }
    }
    new Driver(Redisson.create(config)).serve();
    Runtime.getRuntime().halt(0);
  }

  private void serve() throws Exception {
    answer("ready", String.valueOf(System.nanoTime()));
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.trim().split(" ");
      parties.computeIfAbsent(words[0], party -> Executors.newSingleThreadExecutor()).execute(() -> {
        String result;
        try {
          result = carryOut(words);
        } catch (IllegalMonitorStateException e) {
          result = "not-held";
        } catch (Exception e) {
          result = "error " + e;
        }
        answer(words[0], result);
      });
    }
  }

  private static synchronized void answer(String party, String result) {
    System.out.println(party + " " + result);
    System.out.flush();
  }

  private String carryOut(String[] words) throws Exception {
    String name = words[1];
    RLock lock = redisson.getFairLock(name);
    long first = words.length > 3 ? Long.parseLong(words[3]) : -1;
    long second = words.length > 4 ? Long.parseLong(words[4]) : -1;
    switch (words[2]) {
      case "id":
        return redisson.getId() + ":" + Thread.currentThread().getId();
      case "clock":
        return String.valueOf(System.nanoTime());
      case "try":
        return yes(first > 0 ? lock.tryLock(0, first, TimeUnit.MILLISECONDS) : lock.tryLock());
      case "wait":
        return yes(lock.tryLock(first, second, TimeUnit.MILLISECONDS)) + " " + System.nanoTime();
      case "lock":
        lock(lock, first);
        return String.valueOf(System.nanoTime());
      case "unlock":
        long before = System.nanoTime();
        lock.unlock();
        return before + " " + System.nanoTime();
      case "force":
        return yes(lock.forceUnlock());
      case "locked":
        return yes(lock.isLocked());
      case "ttl":
        return String.valueOf(lock.remainTimeToLive());
      case "count":
        return String.valueOf(lock.getHoldCount());
      case "pass":
        return pass(words[0], name, lock);
      case "run":
        return run(words[0], name, lock, first, second);
      case "bench":
        return bench(lock, (int) first);
      default:
        return "error verb";
    }
  }

  private static String yes(boolean value) {
    return value ? "1" : "0";
  }

  private static void lock(RLock lock, long lease) {
    if (lease > 0) lock.lock(lease, TimeUnit.MILLISECONDS);
    else lock.lock();
  }

  private String pass(String party, String name, RLock lock) {
    lock.lock();
    long at = System.nanoTime();
    int count = lock.getHoldCount();
    long inside = redisson.getAtomicLong("inside:" + name).incrementAndGet();
    redisson.getList("log:" + name, StringCodec.INSTANCE).add(party);
    redisson.getAtomicLong("inside:" + name).decrementAndGet();
    lock.unlock();
    return at + " " + count + " " + inside;
  }

  /* Passes with pauses of up to `pause` ms; the largest hold count, and how many were inside at once at most. */
  private String run(String party, String name, RLock lock, long passes, long pause) throws Exception {
    long count = 0;
    long inside = 0;
    for (long i = 0; i < passes; i++) {
      String[] result = pass(party, name, lock).split(" ");
      count = Math.max(count, Long.parseLong(result[1]));
      inside = Math.max(inside, Long.parseLong(result[2]));
      Thread.sleep((long) (Math.random() * (pause + 1)));
    }
    return count + " " + inside;
  }

  private static String bench(RLock lock, int rounds) {
    long[] times = new long[rounds];
    for (int i = 0; i < rounds; i++) {
      long start = System.nanoTime();
      lock.lock();
      lock.unlock();
      times[i] = System.nanoTime() - start;
    }
    Arrays.sort(times);
    return times[rounds / 2] + " " + times[rounds / 10] + " " + times[rounds * 9 / 10];
  }
}
