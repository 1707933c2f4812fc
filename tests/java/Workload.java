import java.io.InputStream;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * The Java program of the tests: java Workload MODE[=VALUE]...
 *
 * It prints READY when all threads have reached their state, and ends with its standard input, so that it does not outlive its test.
 * Compiled for release 8, so that every JVM runs it. Each mode is a method below; tests/support/jvms.py describes them.
 */
public final class Workload {
    static final List<Object> KEPT = new ArrayList<>();
    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        List<Runnable> afterReady = new ArrayList<>();
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            String value = pair.length > 1 ? pair[1] : "";
            switch (pair[0]) {
                case "sleep": sleepers(Integer.parseInt(value)); break;
                case "park": parked(Integer.parseInt(value)); break;
                case "socket": readers(Integer.parseInt(value)); break;
                case "wait": waiters(Integer.parseInt(value)); break;
                case "blocked": blocked(Integer.parseInt(value)); break;
                case "lock": lockWaiters(Integer.parseInt(value)); break;
                case "nasty": nasty(); break;
                case "burn": burn(value.split(":")); break;
                case "deadlock": deadlock(); break;
                case "threeway": threeWay(); break;
                case "lockdeadlock": lockDeadlock(); break;
                case "virtualdeadlock": virtualDeadlock(); break;
                case "retain": retain(Integer.parseInt(value)); break;
                case "lambda": lambdas(Integer.parseInt(value)); break;
                case "leak": leak(Long.parseLong(value)); break;
                case "cache": cache(Integer.parseInt(value)); break;
                case "allocate": allocate(Long.parseLong(value)); break;
                case "gc": collect(Long.parseLong(value)); break;
                case "map": map(value); break;
                case "virtual": virtual(Integer.parseInt(value), Workload::sleepForever); break;
                case "virtualburn": virtual(Integer.parseInt(value), Workload::burnVirtually); break;
                case "lag": afterReady.add(lag(Long.parseLong(value))); break;
                case "hog": afterReady.add(hog()); break;
                default: throw new IllegalArgumentException(argument);
            }
        }
        System.out.println("READY");
        System.out.flush();
        for (Runnable action : afterReady) {
            action.run();
        }
        growUntilInputEnds();
        Runtime.getRuntime().halt(0);
    }

    /**
     * Each + on standard input keeps a thousand more objects, and is answered by GREW; a t starts threads until one fails to start,
     * and is answered by STARTED and their number.
     */
    static void growUntilInputEnds() throws Exception {
        int typed;
        while ((typed = System.in.read()) >= 0) {
            if (typed == '+') {
                retain(1000);
                System.out.println("GREW");
                System.out.flush();
            } else if (typed == 't') {
                System.out.println("STARTED " + startUntilItFails());
                System.out.flush();
            }
        }
    }

    static int startUntilItFails() throws Exception {
        int started = 0;
        try {
            while (true) {
                start("more-" + started, Workload::sleepForever, null);
                started++;
            }
        } catch (OutOfMemoryError full) {
            return started;
        }
    }

    static void untilInputEnds(InputStream input) throws Exception {
        while (input.read() >= 0) {
            continue;
        }
    }

    /** Starts a daemon thread, and waits until it is in the state `arrived`; null: does not wait. */
    static Thread start(String name, Runnable body, Thread.State arrived) throws Exception {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
        while (arrived != null && thread.getState() != arrived) {
            Thread.sleep(1);
        }
        return thread;
    }

    static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    static void sleepForever() {
        while (true) {
            pause(1_000_000_000L);
        }
    }

    static void sleepers(int count) throws Exception {
        for (int i = 0; i < count; i++) {
            start("sleep-" + i, Workload::sleepForever, Thread.State.TIMED_WAITING);
        }
    }

    static void parkForever() {
        while (true) {
            LockSupport.park(KEPT);
        }
    }

    static void parked(int count) throws Exception {
        for (int i = 0; i < count; i++) {
            start("park-" + i, Workload::parkForever, Thread.State.WAITING);
        }
    }

    static void readForever(InputStream input) {
        try {
            untilInputEnds(input);
        } catch (Exception ended) {
            throw new IllegalStateException(ended);
        }
    }

    /** Threads in a native socket read: RUNNABLE to the JVM, asleep to the kernel. */
    static void readers(int count) throws Exception {
        ServerSocket server = new ServerSocket(0, count + 1, InetAddress.getLoopbackAddress());
        KEPT.add(server);
        for (int i = 0; i < count; i++) {
            Socket near = new Socket(server.getInetAddress(), server.getLocalPort());
            KEPT.add(near);
            KEPT.add(server.accept());
            InputStream input = near.getInputStream();
            start("socket-" + i, () -> readForever(input), Thread.State.RUNNABLE);
        }
        Thread.sleep(count == 0 ? 0 : 100);
    }

    static void waitForever(Object monitor) {
        synchronized (monitor) {
            while (true) {
                try {
                    monitor.wait();
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
            }
        }
    }

    static void waiters(int count) throws Exception {
        Object monitor = new Object();
        for (int i = 0; i < count; i++) {
            start("wait-" + i, () -> waitForever(monitor), Thread.State.WAITING);
        }
    }

    static void enter(Object monitor) {
        synchronized (monitor) {
            sink++;
        }
    }

    static void holdMonitor(Object monitor) {
        synchronized (monitor) {
            sleepForever();
        }
    }

    /** lock-holder sleeps inside a monitor that every blocked-N wants to enter. */
    static void blocked(int count) throws Exception {
        Object monitor = new Object();
        start("lock-holder", () -> holdMonitor(monitor), Thread.State.TIMED_WAITING);
        for (int i = 0; i < count; i++) {
            start("blocked-" + i, () -> enter(monitor), Thread.State.BLOCKED);
        }
    }

    static void holdLock(ReentrantLock lock) {
        lock.lock();
        sleepForever();
    }

    /** reentrant-holder sleeps with a ReentrantLock that every lock-N waits for. */
    static void lockWaiters(int count) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        start("reentrant-holder", () -> holdLock(lock), Thread.State.TIMED_WAITING);
        for (int i = 0; i < count; i++) {
            start("lock-" + i, lock::lock, Thread.State.WAITING);
        }
    }

    /** Thread names with quotes, separators, escapes, bidi marks, markup, blanks, and an empty one. */
    static void nasty() throws Exception {
        String[] names = {
            "say \"hi\" #1 prio=5", "a;b;c", "tab\there", "escape\u001b[31mred", "\u202eright to left", "umlaut \u00e4 \u65e5\u672c",
            "<b>[bold]x[/bold]</b>", " leading and trailing ", "",
        };
        for (String name : names) {
            start(name, Workload::sleepForever, Thread.State.TIMED_WAITING);
        }
    }

    /** A unit of work, some milliseconds. The long counter keeps the safepoint poll in the loop. */
    static long work(long rounds) {
        long value = rounds;
        for (long i = 0; i < rounds; i++) {
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        return value;
    }

    static long calibrated(long nanos) {
        long rounds = 1_000_000;
        for (int warm = 0; warm < 30; warm++) {
            sink += work(rounds);
        }
        long best = Long.MAX_VALUE;
        for (int i = 0; i < 10; i++) {
            long begun = System.nanoTime();
            sink += work(rounds);
            best = Math.min(best, System.nanoTime() - begun);
        }
        return Math.max(1, rounds * nanos / Math.max(1, best));
    }

    /**
     * Threads burn-W whose CPU times are as their weights: each does W units of about 4 ms, sleeps 20 ms, and waits for the others, so
     * that the proportion holds on a loaded machine too.
     */
    static void burn(String[] weights) throws Exception {
        long unit = calibrated(4_000_000);
        CyclicBarrier round = new CyclicBarrier(weights.length);
        for (String weight : weights) {
            long rounds = unit * Integer.parseInt(weight);
            start("burn-" + weight, () -> burnForever(rounds, round), null);
        }
    }

    static void burnForever(long rounds, CyclicBarrier round) {
        while (true) {
            sink += work(rounds);
            pause(20);
            try {
                round.await();
            } catch (Exception broken) {
                throw new IllegalStateException(broken);
            }
        }
    }

    static void deadlock() throws Exception {
        Object first = new Object();
        Object second = new Object();
        CountDownLatch both = new CountDownLatch(2);
        Thread a = start("deadlock-A", () -> lockTwo(first, second, both), null);
        Thread b = start("deadlock-B", () -> lockTwo(second, first, both), null);
        while (a.getState() != Thread.State.BLOCKED || b.getState() != Thread.State.BLOCKED) {
            Thread.sleep(1);
        }
    }

    /** three-0 waits for three-1, which waits for three-2, which waits for three-0. */
    static void threeWay() throws Exception {
        Object[] locks = {new Object(), new Object(), new Object()};
        CountDownLatch all = new CountDownLatch(3);
        Thread[] threads = new Thread[3];
        for (int i = 0; i < 3; i++) {
            Object mine = locks[i];
            Object theirs = locks[(i + 1) % 3];
            threads[i] = start("three-" + i, () -> lockTwo(mine, theirs, all), null);
        }
        for (Thread thread : threads) {
            while (thread.getState() != Thread.State.BLOCKED) {
                Thread.sleep(1);
            }
        }
    }

    /** lockdead-A and lockdead-B, over two ReentrantLocks. */
    static void lockDeadlock() throws Exception {
        ReentrantLock first = new ReentrantLock();
        ReentrantLock second = new ReentrantLock();
        CountDownLatch both = new CountDownLatch(2);
        start("lockdead-A", () -> lockTwoOwned(first, second, both), null);
        start("lockdead-B", () -> lockTwoOwned(second, first, both), null);
        while (!first.hasQueuedThreads() || !second.hasQueuedThreads()) {
            Thread.sleep(1);
        }
    }

    static void lockTwoOwned(ReentrantLock mine, ReentrantLock theirs, CountDownLatch both) {
        mine.lock();
        both.countDown();
        try {
            both.await();
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
        theirs.lock();
    }

    /** Two virtual threads over two monitors; they also block where blocking pins the carrier. */
    static void virtualDeadlock() throws Exception {
        Object first = new Object();
        Object second = new Object();
        CountDownLatch both = new CountDownLatch(2);
        virtual(1, () -> lockTwo(first, second, both));
        virtual(1, () -> lockTwo(second, first, both));
        both.await();
        Thread.sleep(200);
    }

    static void lockTwo(Object mine, Object theirs, CountDownLatch both) {
        synchronized (mine) {
            both.countDown();
            try {
                both.await();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
            enter(theirs);
        }
    }

    /** Objects that are kept for ever, in a known number. */
    static final class Retained {
        long value = 1;
    }

    static void retain(int count) {
        Object[] all = new Object[count];
        for (int i = 0; i < count; i++) {
            all[i] = new Retained();
        }
        KEPT.add(all);
    }

    static void lambdas(int count) {
        for (int i = 0; i < count; i++) {
            int captured = i;
            Supplier<Integer> lambda = () -> captured;
            KEPT.add(lambda);
        }
    }

    /** 64 bytes of fields beside the header: 80 bytes on a 64-bit JVM with compressed class pointers. */
    static final class Leaked {
        long a = 1, b, c, d, e, f, g, h;
    }

    static final int LEAKED_BYTES = 80;

    /** A steady leak of instances of one class, in steps of 20 ms. */
    static void leak(long bytesPerSecond) throws Exception {
        start("leak", () -> {
            List<Leaked> leaked = new ArrayList<>();
            long begun = System.nanoTime();
            while (true) {
                long due = (long) ((System.nanoTime() - begun) * 1e-9 * bytesPerSecond / LEAKED_BYTES);
                while (leaked.size() < due) {
                    leaked.add(new Leaked());
                }
                pause(20);
            }
        }, null);
    }

    static final class CacheEntry {
        byte[] payload = new byte[100];
    }

    static final class BoundedMap extends LinkedHashMap<Integer, CacheEntry> {
        private static final long serialVersionUID = 1;
        private final int most;

        BoundedMap(int most) {
            this.most = most;
        }

        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, CacheEntry> eldest) {
            return size() > most;
        }
    }

    /** A cache of at most N entries: it fills, and then replaces entries without growing. */
    static void cache(int entries) throws Exception {
        Map<Integer, CacheEntry> cache = new BoundedMap(entries);
        CountDownLatch full = new CountDownLatch(1);
        start("cache", () -> {
            for (int key = 0; ; key++) {
                cache.put(key, new CacheEntry());
                if (key == entries) {
                    full.countDown();
                }
                if (key > entries && key % 100 == 0) {
                    pause(1);
                }
            }
        }, null);
        full.await();
    }

    /** Garbage at a steady rate, in steps of 10 ms. */
    static void allocate(long bytesPerSecond) throws Exception {
        start("allocate", () -> {
            while (true) {
                for (long made = 0; made < bytesPerSecond / 100; made += 1024) {
                    sink += new byte[1008].length;
                }
                pause(10);
            }
        }, null);
    }

    /** A full collection every so many milliseconds. */
    static void collect(long everyMillis) throws Exception {
        start("gc", () -> {
            while (true) {
                System.gc();
                pause(everyMillis);
            }
        }, null);
    }

    /** Two threads read a mapped file at random for ever: page faults, from the disk where memory is short. */
    static void map(String file) throws Exception {
        try (FileChannel channel = FileChannel.open(Paths.get(file))) {
            MappedByteBuffer pages = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            for (int i = 0; i < 2; i++) {
                Random random = new Random(i);
                start("map-" + i, () -> {
                    while (true) {
                        sink += pages.get(random.nextInt(pages.capacity()));
                    }
                }, null);
            }
        }
    }

    static void burnVirtually() {
        while (true) {
            sink += work(1_000_000);
        }
    }

    /** Virtual threads, reached by reflection since release 8 does not know them: JDK 21 and later. */
    static void virtual(int count, Runnable body) throws Exception {
        Method startVirtualThread = Thread.class.getMethod("startVirtualThread", Runnable.class);
        for (int i = 0; i < count; i++) {
            KEPT.add(startVirtualThread.invoke(null, body));
        }
        Thread.sleep(100);
    }

    /** Nested counted loops: compiled without a safepoint poll where the JVM is told so. */
    static int spin(int outer, int inner) {
        int value = 1;
        for (int i = 0; i < outer; i++) {
            for (int j = 0; j < inner; j++) {
                value = value * 31 + (value >>> 3) + j;
            }
        }
        return value;
    }

    /**
     * Compiles the loops first, and then, after READY, lets the thread "hog" run them for hours. Start the JVM with -XX:+UseSerialGC
     * -XX:LoopStripMiningIter=0 -XX:-UseCountedLoopSafepoints; with other options the loops have safepoint polls.
     */
    static Runnable hog() throws Exception {
        return withoutPolls("hog", () -> sink += spin(Integer.MAX_VALUE, 1_000_000));
    }

    /** The same in portions of about so many ms: each delays a safepoint by up to that time. */
    static Runnable lag(long ms) throws Exception {
        return withoutPolls("laggard", () -> {
            long begun = System.nanoTime();
            sink += spin(1_000, 1_000);
            int outer = (int) Math.min(Integer.MAX_VALUE, ms * 1_000_000 * 1_000 / (System.nanoTime() - begun + 1));
            while (true) {
                sink += spin(outer, 1_000);
            }
        });
    }

    static Runnable withoutPolls(String name, Runnable body) throws Exception {
        CountDownLatch go = new CountDownLatch(1);
        CountDownLatch warm = new CountDownLatch(1);
        start(name, () -> {
            for (int i = 0; i < 30_000; i++) {
                sink += spin(20, 200);
            }
            pause(500);
            for (int i = 0; i < 30_000; i++) {
                sink += spin(20, 200);
            }
            warm.countDown();
            try {
                go.await();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
            body.run();
        }, null);
        warm.await();
        return go::countDown;
    }
}
