import org.eclipse.jetty.util.thread.QueuedThreadPool;
import org.eclipse.jetty.util.thread.ReservedThreadExecutor;

/** Jetty's reserved threads, which wait for work on a Semaphore (12) or a SynchronousQueue (9 to 11). Prints READY; ends with its input. */
public final class Reserved {
    private Reserved() {}

    public static void main(String[] arguments) throws Exception {
        QueuedThreadPool pool = new QueuedThreadPool(20);
        pool.start();
        ReservedThreadExecutor reserved = new ReservedThreadExecutor(pool, 6);
        reserved.start();
        while (reserved.getAvailable() < 2) {
            for (int number = 0; number < 6; number++) {
                reserved.tryExecute(() -> {}); // starts a reserved thread where none is free
            }
            Thread.sleep(50);
        }
        System.out.println("READY");
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }
}
