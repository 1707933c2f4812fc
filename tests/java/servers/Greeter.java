import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.ReentrantLock;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.VirtualThreads;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** A server on Jetty that runs each request in a virtual thread, where there are such. Prints READY and its port. */
public final class Greeter extends Handler.Abstract {
    private final Map<Integer, String> sessions = new ConcurrentHashMap<>();
    private final ReentrantLock lock = new ReentrantLock();
    private long requests;

    @Override
    public boolean handle(Request request, Response response, Callback callback) throws InterruptedException {
        lock.lock();
        try {
            requests++;
        } finally {
            lock.unlock();
        }
        Thread.sleep(2); // as for the answer of another server
        int session = ThreadLocalRandom.current().nextInt(10_000);
        String greeting = sessions.merge(session, "hello ", (old, more) -> old.length() > 500 ? more : old + more);
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/plain");
        Content.Sink.write(response, true, greeting, callback);
        return true;
    }

    public static void main(String[] arguments) throws Exception {
        QueuedThreadPool threads = new QueuedThreadPool(50);
        threads.setVirtualThreadsExecutor(VirtualThreads.getDefaultVirtualThreadsExecutor());
        Server server = new Server(threads);
        ServerConnector connector = new ServerConnector(server);
        server.addConnector(connector);
        server.setHandler(new Greeter());
        server.start();
        System.out.println("READY " + connector.getLocalPort());
        server.join();
    }
}
