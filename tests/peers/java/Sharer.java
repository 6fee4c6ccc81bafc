/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sharer in Java: Sharer redisson|curator lock|semaphore PORT. It speaks the lines of ../README.md.
 * Each of its contenders is a thread; all have one client, as the threads of a service do.
 */
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.RetryOneTime;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public class Sharer {
  private static final int LEASE_S = 10, HOLD_MS = 20, PAUSE_US = 6000, LIMIT = 4;
  private static final List<Hold> held = new ArrayList<>();

  interface Hold {
    void release() throws Exception;
  }

  interface Way {
    Hold acquire() throws Exception;
  }

  /** How it shares, and how it takes the lock alone; a semaphore has no such way. */
  record Peer(String version, Way share, Way alone) {}

  // Apart, because each peer's jars are there alone.
  static class OfRedisson {
    static Peer peer(String kind, String port) {
      Config config = new Config();
      config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
      RedissonClient redisson = Redisson.create(config);
      String version = Redisson.class.getPackage().getImplementationVersion();
      if (kind.equals("lock")) {
        RReadWriteLock lock = redisson.getReadWriteLock("redisson-lock");
        return new Peer(version, way(lock.readLock()), way(lock.writeLock()));
      }
      RPermitExpirableSemaphore semaphore = redisson.getPermitExpirableSemaphore("redisson-permits");
      semaphore.trySetPermits(LIMIT);
      return new Peer(version, () -> {
        String permit = semaphore.acquire(LEASE_S, TimeUnit.SECONDS);
        return () -> semaphore.release(permit);
      }, null);
    }

    private static Way way(RLock lock) {
      return () -> {
        lock.lock(LEASE_S, TimeUnit.SECONDS);
        return lock::unlock;
      };
    }
  }

  static class OfCurator {
    static Peer peer(String kind, String port) throws Exception {
      CuratorFramework curator = CuratorFrameworkFactory.newClient(
          "127.0.0.1:" + port, LEASE_S * 1000, 15000, new RetryOneTime(100));
      curator.start();
      curator.blockUntilConnected();
      String version = InterProcessSemaphoreV2.class.getPackage().getImplementationVersion();
      version += " (ZooKeeper " + org.apache.zookeeper.Version.getVersion() + ")";
      if (kind.equals("lock")) {
        var lock = new InterProcessReadWriteLock(curator, "/lock");
        return new Peer(version, way(lock.readLock()), way(lock.writeLock()));
      }
      var semaphore = new InterProcessSemaphoreV2(curator, "/semaphore", LIMIT);
      return new Peer(version, () -> {
        Lease lease = semaphore.acquire();
        return () -> semaphore.returnLease(lease);
      }, null);
    }

    private static Way way(InterProcessMutex lock) {
      return () -> {
        lock.acquire();
        return lock::release;
      };
    }
  }

  private static void answer(List<Long> numbers) {
    System.out.println("done 0");
    System.out.println(numbers.stream().map(String::valueOf).collect(Collectors.joining(" ")));
  }

  private static void pairs(Way way, int count) throws Exception {
    List<Long> took = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      long start = System.nanoTime();
      way.acquire().release();
      took.add(System.nanoTime() - start);
    }
    answer(took);
  }

  // One contender: turns for so long, and at least one.
  private static List<Long> turns(Way way, int ms) throws Exception {
    List<Long> events = new ArrayList<>();
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
    do {
      events.add(System.nanoTime());
      Hold hold = way.acquire();
      events.add(System.nanoTime());
      TimeUnit.MILLISECONDS.sleep(HOLD_MS);
      events.add(System.nanoTime());
      hold.release();
      TimeUnit.MICROSECONDS.sleep(ThreadLocalRandom.current().nextInt(PAUSE_US));
    } while (System.nanoTime() < end);
    return events;
  }

  private static void contend(ExecutorService threads, Way way, int count, int ms) throws Exception {
    List<Future<List<Long>>> contenders = new ArrayList<>();
    for (int i = 0; i < count; i++) contenders.add(threads.submit(() -> turns(way, ms)));
    List<Long> events = new ArrayList<>();
    for (var contender : contenders) events.addAll(contender.get());
    answer(events);
  }

  private static void hold(Way way, int count) throws Exception {
    for (int i = 0; i < count; i++) held.add(way.acquire());
    answer(List.of());
  }

  private static void end() throws Exception {
    for (Hold hold : held) hold.release();
    held.clear();
    answer(List.of());
  }

  public static void main(String[] arguments) throws Exception {
    String kind = arguments[1], port = arguments[2];
    boolean redisson = arguments[0].equals("redisson");
    Peer peer = redisson ? OfRedisson.peer(kind, port) : OfCurator.peer(kind, port);
    ExecutorService threads = Executors.newCachedThreadPool();
    int contenders = 1;
    System.out.println("ready " + System.nanoTime() + " " + peer.version());
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] words = line.split(" ");
      int count = Integer.parseInt(words[1]);
      switch (words[0]) {
        case "contenders" -> contenders = count;
        case "pairs" -> pairs(peer.share(), count);
        case "share" -> contend(threads, peer.share(), contenders, count);
        case "alone" -> contend(threads, peer.alone(), contenders, count);
        case "hold" -> hold(peer.share(), count);
        default -> end();
      }
    }
    Runtime.getRuntime().halt(0);
  }
}
