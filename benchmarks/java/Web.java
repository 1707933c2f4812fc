import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.handler.AbstractHandler;
import org.eclipse.jetty.util.VirtualThreads;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/** Web pool|virtual: a server on Jetty, which answers in threads of its pool or in virtual threads. Prints READY and its port. */
public final class Web extends AbstractHandler {
    @Override
    public void handle(String target, Request base, HttpServletRequest request, HttpServletResponse response) throws IOException {
        base.setHandled(true);
        Random random = new Random(target.hashCode());
        List<String> items = new ArrayList<>();
        for (int item = 0; item < 40; item++) {
            items.add("{\"id\":" + random.nextInt(100_000) + ",\"name\":\"item " + item + "\"}");
        }
        items.sort(String::compareTo);
        String body = "[" + String.join(",\n", items) + "]";
        CRC32 sum = new CRC32();
        sum.update(body.getBytes("UTF-8"));
        response.setHeader("ETag", Long.toHexString(sum.getValue()));
        response.setContentType("application/json");
        response.getWriter().write(body);
        Counter.DONE.increment();
    }

    public static void main(String[] arguments) throws Exception {
        QueuedThreadPool threads = new QueuedThreadPool(30);
        if (arguments[0].equals("virtual")) {
            threads.setVirtualThreadsExecutor(VirtualThreads.getDefaultVirtualThreadsExecutor());
        }
        Server server = new Server(threads);
        ServerConnector connector = new ServerConnector(server, 1, 1);
        connector.setHost("127.0.0.1");
        server.addConnector(connector);
        server.setHandler(new Web());
        server.start();
        Counter.serve("", 0, null, Integer.toString(connector.getLocalPort()));
    }
}
