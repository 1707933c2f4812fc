import java.util.concurrent.atomic.LongAdder;

/** Counts a program's operations. Prints READY, then OPS and the count for each byte on standard input, until that ends. */
final class Counter {
    static final LongAdder DONE = new LongAdder();

    private Counter() {}

    /** Run the work in daemon threads, and answer. `ready`: what comes after READY. */
    static void serve(String name, int threads, Work work, String ready) throws Exception {
        for (int number = 0; number < threads; number++) {
            int seed = number;
            Thread thread = new Thread(() -> repeat(work, seed), name + "-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY " + ready);
        while (System.in.read() >= 0) {
            System.out.println("OPS " + DONE.sum() + " " + System.nanoTime());
        }
    }

    private static void repeat(Work work, int seed) {
        try {
            for (long round = seed; ; round += 1_000) {
                work.once(round);
                DONE.increment();
            }
        } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
        }
    }

    /** One operation. */
    interface Work {
        void once(long round) throws Exception;
    }
}
