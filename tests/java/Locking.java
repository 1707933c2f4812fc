import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;

/**
 * java Locking MODE[=N]...: threads that hold locks up, and virtual ones that pin their carriers. Prints READY; ends with its input.
 *
 * pinned=N: N virtual threads sleep in a monitor; waiting=N: in Object.wait; initializer=N: N virtual threads, each in a class
 * initializer of its own (at most 2); virtuallock=N: N virtual threads wait for a ReentrantLock that one of them holds; readlock=N: a
 * writer and N readers wait for a lock that three readers hold; sleeping=N: N virtual threads sleep and wake.
 */
public final class Locking {
    static final List<Object> KEPT = new ArrayList<>();
    static final ReentrantLock LOCK = new ReentrantLock();

    static final class First {
        static {
            pause(1_000_000_000L);
        }

        static void touch() {}
    }

    static final class Second {
        static {
            pause(1_000_000_000L);
        }

        static void touch() {}
    }

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] pair = argument.split("=");
            int count = Integer.parseInt(pair[1]);
            switch (pair[0]) {
                case "pinned": each(count, () -> pinned(new Object())); break;
                case "waiting": each(count, () -> waiting(new Object())); break;
                case "initializer":
                    each(1, First::touch);
                    each(count - 1, Second::touch);
                    break;
                case "virtuallock": virtualLock(count); break;
                case "readlock": readLock(count); break;
                case "sleeping": each(count, Locking::sleepAndWake); break;
                default: throw new IllegalArgumentException(argument);
            }
        }
        Thread.sleep(300);
        System.out.println("READY");
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }

    static void pinned(Object monitor) {
        synchronized (monitor) {
            pause(1_000_000_000L);
        }
    }

    static void waiting(Object monitor) {
        synchronized (monitor) {
            try {
                monitor.wait();
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }

    static void sleepAndWake() {
        while (true) {
            pause(5);
        }
    }

    static void virtualLock(int count) throws Exception {
        CountDownLatch held = new CountDownLatch(1);
        each(1, () -> locked(held));
        held.await();
        each(count, () -> locked(held));
    }

    static void locked(CountDownLatch held) {
        LOCK.lock();
        held.countDown();
        pause(1_000_000_000L);
    }

    static void readLock(int count) throws Exception {
        ReentrantReadWriteLock lock = new ReentrantReadWriteLock();
        for (int i = 0; i < 3; i++) {
            start("reader-" + i, () -> {
                lock.readLock().lock();
                pause(1_000_000_000L);
            });
        }
        while (lock.getReadLockCount() < 3) {
            Thread.sleep(1);
        }
        start("writer", () -> lock.writeLock().lock());
        while (lock.getQueueLength() < 1) {
            Thread.sleep(1);
        }
        for (int i = 0; i < count; i++) {
            start("late-" + i, () -> lock.readLock().lock());
        }
    }

    static void start(String name, Runnable body) {
        Thread thread = new Thread(body, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Virtual threads, reached by reflection: javac may be one that does not know them. */
    static void each(int count, Runnable body) throws Exception {
        for (int i = 0; i < count; i++) {
            KEPT.add(Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, body));
        }
    }

    static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }
}
