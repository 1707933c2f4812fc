import java.io.InputStream;
import java.lang.reflect.Method;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.sql.Connection;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.Semaphore;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.IntStream;
import javax.sql.DataSource;

/**
 * Thread pools of the tests, in trouble and healthy: java Pools MODE[=VALUE]...
 *
 * It prints READY when the threads have had time to reach their state, and ends with its standard input. Compiled for
 * release 8; libraries are used by reflection. Each mode is a method below.
 */
public final class Pools {
    static final List<Object> KEPT = new ArrayList<>();
    static final int SIZE = 4;
    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            String[] values = pair.length > 1 ? pair[1].split(":") : new String[0];
            switch (pair[0]) {
                case "source": OrderDao.pool = Sources.open(values[0]); break;
                case "server": server(values); break;
                case "redis": redis(values); break;
                case "selfwait": selfWait(values[0]); break;
                case "fanout": fanOut(); break;
                case "bounded": bounded(); break;
                case "full": fullQueue(); break;
                case "recursion": recursion(); break;
                case "idle": idle(); break;
                case "busy": busy(); break;
                case "moving": moving(Integer.parseInt(values[0]), Integer.parseInt(values[1])); break;
                default: throw new IllegalArgumentException(argument);
            }
        }
        Thread.sleep(500);
        System.out.println("READY");
        while (System.in.read() >= 0) {
            Thread.yield();
        }
        Runtime.getRuntime().halt(0);
    }

    static ThreadFactory named(String name) {
        AtomicInteger number = new AtomicInteger();
        return task -> {
            Thread thread = new Thread(task, name + number.incrementAndGet());
            thread.setDaemon(true);
            return thread;
        };
    }

    static ExecutorService fixed(String name, int threads) {
        ExecutorService pool = Executors.newFixedThreadPool(threads, named(name));
        KEPT.add(pool);
        return pool;
    }

    /** server=THREADS:READERS:PORT[:TIMEOUT_MS]: READERS of the request threads wait for an answer, the others for a connection. */
    static void server(String[] values) throws Exception {
        int threads = Integer.parseInt(values[0]);
        int readers = Integer.parseInt(values[1]);
        ExecutorService pool = fixed("http-nio-8080-exec-", threads);
        KEPT.add(OrderDao.pool.getConnection());
        KEPT.add(OrderDao.pool.getConnection());
        for (int number = 0; number < threads; number++) {
            if (number < readers) {
                JedisClient client = new JedisClient("127.0.0.1", Integer.parseInt(values[2]), values.length > 3 ? Integer.parseInt(values[3]) : 0);
                pool.execute(client::get);
            } else {
                pool.execute(OrderDao::load);
            }
        }
    }

    /** redis=ADDRESS@PORT@TIMEOUT_MS:...: a thread reader-N for each. */
    static void redis(String[] values) throws Exception {
        ThreadFactory factory = named("reader-");
        for (String value : values) {
            String[] words = value.split("@");
            JedisClient client = new JedisClient(words[0].replace('_', ':'), Integer.parseInt(words[1]), Integer.parseInt(words[2]));
            factory.newThread(client::get).start();
        }
    }

    /** selfwait=future|join|forkjoin|latch|invokeall|single: every worker waits for tasks of its own pool. */
    static void selfWait(String how) throws Exception {
        switch (how) {
            case "future": everyWorker("report-", pool -> Reports.build(pool)); break;
            case "join": everyWorker("report-", pool -> Reports.join(pool)); break;
            case "latch": everyWorker("report-", pool -> Reports.latch(pool)); break;
            case "invokeall": everyWorker("report-", pool -> Reports.all(pool)); break;
            case "single":
                ExecutorService one = fixed("single-", 1);
                one.execute(() -> Reports.build(one));
                break;
            case "forkjoin":
                ForkJoinPool pool = new ForkJoinPool(SIZE);
                CountDownLatch begun = new CountDownLatch(SIZE);
                for (int number = 0; number < SIZE; number++) {
                    pool.execute(() -> {
                        begun.countDown();
                        Reports.await(begun);
                        Reports.latch(pool);
                    });
                }
                KEPT.add(pool);
                break;
            default: throw new IllegalArgumentException(how);
        }
    }

    interface Job {
        void run(ExecutorService pool);
    }

    static void everyWorker(String name, Job job) {
        ExecutorService pool = fixed(name, SIZE);
        CountDownLatch begun = new CountDownLatch(SIZE);
        for (int number = 0; number < SIZE; number++) {
            pool.execute(() -> {
                begun.countDown();
                Reports.await(begun);
                job.run(pool);
            });
        }
    }

    /** fanout: the workers of one pool wait for tasks that those of another one run. */
    static void fanOut() {
        ExecutorService outer = fixed("outer-", SIZE);
        ExecutorService inner = fixed("inner-", SIZE);
        for (int number = 0; number < SIZE; number++) {
            outer.execute(() -> {
                while (true) {
                    Reports.get(inner.submit(() -> Reports.compute(20)));
                }
            });
        }
    }

    /** bounded: all workers in one stack; others wait for tasks in the queue. */
    static void bounded() {
        ExecutorService pool = fixed("mail-", SIZE);
        Semaphore never = new Semaphore(0);
        for (int number = 0; number < SIZE; number++) {
            pool.execute(() -> Mailer.send(never));
        }
        for (int number = 0; number < 3; number++) {
            Future<?> queued = pool.submit(() -> { });
            named("caller-" + number + "-").newThread(() -> Reports.get(queued)).start();
        }
    }

    /** full: producers wait for room in a queue whose consumer sleeps. */
    static void fullQueue() {
        BlockingQueue<Object> queue = new ArrayBlockingQueue<>(1);
        for (int number = 0; number < 3; number++) {
            named("producer-" + number + "-").newThread(() -> Mailer.enqueue(queue)).start();
        }
    }

    /** recursion: a thread that burns CPU at the end of 183 equal frames, and one in a cycle of two. */
    static void recursion() {
        named("swallow-").newThread(() -> Swallow.depth(182)).start();
        named("cycle-").newThread(() -> Swallow.ping(60)).start();
    }

    /** idle: pools without work, a hand-written consumer, a timer, a ForkJoinPool that has worked. */
    static void idle() throws Exception {
        ExecutorService pool = fixed("idle-", 3);
        for (int number = 0; number < 3; number++) {
            pool.submit(() -> { }).get();
        }
        ScheduledExecutorService scheduled = Executors.newScheduledThreadPool(2, named("tick-"));
        scheduled.scheduleAtFixedRate(() -> { }, 0, 3600, TimeUnit.SECONDS);
        KEPT.add(scheduled);
        KEPT.add(new java.util.Timer("timer", true));
        BlockingQueue<Object> queue = new LinkedBlockingQueue<>();
        for (int number = 0; number < 3; number++) {
            named("consumer-").newThread(() -> Consumer.loop(queue)).start();
        }
        IntStream.range(0, 1000).parallel().forEach(number -> sink += number);
    }

    /** busy: a consumer loop, parallel streams and two pools with short tasks, all with work. */
    static void busy() {
        BlockingQueue<Object> queue = new ArrayBlockingQueue<>(10);
        for (int number = 0; number < 2; number++) {
            named("kafka-consumer-").newThread(() -> Consumer.work(queue)).start();
        }
        named("kafka-producer-").newThread(() -> Consumer.feed(queue)).start();
        named("streams-").newThread(() -> Consumer.streams()).start();
        fanOut();
    }

    /** moving=THREADS:MS: request threads share two connections for MS milliseconds each: a bottleneck, and no standstill. */
    static void moving(int threads, int milliseconds) throws Exception {
        ExecutorService pool = fixed("http-nio-9090-exec-", threads);
        for (int number = 0; number < threads; number++) {
            pool.execute(() -> {
                while (true) {
                    OrderDao.query(milliseconds);
                }
            });
        }
    }
}

final class OrderDao {
    static DataSource pool;

    static void load() {
        try (Connection connection = pool.getConnection()) {
            Pools.sink++;
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static void query(int milliseconds) {
        try (Connection connection = pool.getConnection()) {
            Reports.compute(milliseconds);
            connection.prepareStatement("SELECT SUM(X) FROM SYSTEM_RANGE(1, 20000)").executeQuery().next();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}

final class JedisClient {
    private final Socket socket = new Socket();

    JedisClient(String host, int port, int timeout) throws Exception {
        socket.connect(new InetSocketAddress(host, port));
        socket.setSoTimeout(timeout);
    }

    void get() {
        try {
            InputStream answer = socket.getInputStream();
            Pools.sink += answer.read();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}

final class Reports {
    static void build(ExecutorService pool) {
        get(pool.submit(() -> compute(1)));
    }

    static void join(ExecutorService pool) {
        CompletableFuture.supplyAsync(() -> compute(1), pool).join();
    }

    static void latch(ExecutorService pool) {
        CountDownLatch parts = new CountDownLatch(1);
        pool.execute(parts::countDown);
        await(parts);
    }

    static void all(ExecutorService pool) {
        List<Callable<Long>> parts = new ArrayList<>();
        parts.add(() -> compute(1));
        parts.add(() -> compute(1));
        try {
            pool.invokeAll(parts);
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static <T> T get(Future<T> future) {
        try {
            return future.get();
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static long compute(int milliseconds) {
        long end = System.nanoTime() + milliseconds * 1_000_000L;
        while (System.nanoTime() < end) {
            Pools.sink++;
        }
        return Pools.sink;
    }
}

final class Mailer {
    static void send(Semaphore permits) {
        permits.acquireUninterruptibly();
    }

    static void enqueue(BlockingQueue<Object> queue) {
        try {
            while (true) {
                queue.put("mail");
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }
}

final class Swallow {
    static void depth(int more) {
        if (more > 0) {
            depth(more - 1);
        }
        while (more == 0) {
            Pools.sink++;
        }
    }

    static void ping(int more) {
        pong(more);
    }

    static void pong(int more) {
        if (more > 0) {
            ping(more - 1);
        }
        while (more == 0) {
            Pools.sink++;
        }
    }
}

final class Consumer {
    static void loop(BlockingQueue<Object> queue) {
        try {
            while (true) {
                queue.take();
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static void work(BlockingQueue<Object> queue) {
        try {
            while (true) {
                queue.poll(100, TimeUnit.MILLISECONDS);
                Reports.compute(1);
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static void feed(BlockingQueue<Object> queue) {
        try {
            while (true) {
                queue.put("record");
            }
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    static void streams() {
        while (true) {
            Pools.sink += IntStream.range(0, 200_000).parallel().mapToLong(number -> number % 7).sum();
        }
    }
}

/** Connection pools with two connections of H2, of libraries on the class path. */
final class Sources {
    static DataSource open(String library) throws Exception {
        switch (library) {
            case "hikari": return hikari();
            case "dbcp2": return filled("org.apache.commons.dbcp2.BasicDataSource", "setUrl", "setMaxTotal", 2);
            case "dbcp": return filled("org.apache.commons.dbcp.BasicDataSource", "setUrl", "setMaxActive", 2);
            case "c3p0": return filled("com.mchange.v2.c3p0.ComboPooledDataSource", "setJdbcUrl", "setMaxPoolSize", 2);
            case "tomcat": return filled("org.apache.tomcat.jdbc.pool.DataSource", "setUrl", "setMaxActive", 2);
            case "druid": return filled("com.alibaba.druid.pool.DruidDataSource", "setUrl", "setMaxActive", 2);
            default: throw new IllegalArgumentException(library);
        }
    }

    private static DataSource hikari() throws Exception {
        Class<?> type = Class.forName("com.zaxxer.hikari.HikariDataSource");
        Object source = type.getConstructor().newInstance();
        set(source, "setJdbcUrl", "jdbc:h2:mem:orders");
        set(source, "setMaximumPoolSize", 2);
        set(source, "setConnectionTimeout", 600_000L);
        return (DataSource) source;
    }

    private static DataSource filled(String name, String url, String limit, int size) throws Exception {
        Object source = Class.forName(name).getConstructor().newInstance();
        set(source, url, "jdbc:h2:mem:orders");
        set(source, limit, size);
        for (String driver : new String[] {"setDriverClassName", "setDriverClass"}) {
            try {
                set(source, driver, "org.h2.Driver");
            } catch (NoSuchMethodException absent) {
                continue;
            }
        }
        try {
            set(source, "setMaxWait", 600_000);
        } catch (NoSuchMethodException absent) {
            return (DataSource) source;
        }
        return (DataSource) source;
    }

    private static void set(Object target, String name, Object value) throws Exception {
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && method.getParameterCount() == 1) {
                Class<?> type = method.getParameterTypes()[0];
                method.invoke(target, value instanceof Integer && type == long.class ? Long.valueOf((Integer) value) : value);
                return;
            }
        }
        throw new NoSuchMethodException(name);
    }
}
