import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;

/**
 * TCP connections of the tests: java Sockets MODE[=VALUE:VALUE]...
 *
 * It prints READY, or READY and a port where it listens, and ends with its standard input. Each mode is a method below.
 */
public final class Sockets {
    static final List<Object> KEPT = new ArrayList<>();
    static final int REQUEST = 200, ANSWER = 1000;

    public static void main(String[] arguments) throws Exception {
        String ready = "READY";
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            Object value = Sockets.class.getDeclaredMethod(pair[0], String[].class).invoke(null, (Object) pair[1].split(","));
            ready += value == null ? "" : " " + value;
        }
        System.out.println(ready);
        while (System.in.read() >= 0) {
            // Runs until the test ends.
        }
    }

    /** serve=PORT,THINK_MS: a thread for each connection answers requests of 200 bytes with 1000. */
    static Object serve(String[] words) throws Exception {
        ServerSocket server = new ServerSocket(Integer.parseInt(words[0]), 1024);
        thread("acceptor", () -> {
            for (int number = 0; true; number++) {
                Socket socket = server.accept();
                thread("worker-" + number, () -> answer(socket, Long.parseLong(words[1])));
            }
        });
        return server.getLocalPort();
    }

    static void answer(Socket socket, long thinkMs) throws Exception {
        socket.setTcpNoDelay(true);
        while (socket.getInputStream().readNBytes(REQUEST).length == REQUEST) {
            Thread.sleep(thinkMs);
            socket.getOutputStream().write(new byte[ANSWER]);
        }
    }

    /** ask=HOST,PORT,THINK_MS,CONNECTIONS: a thread for each connection. */
    static Object ask(String[] words) throws Exception {
        for (int number = 0; number < Integer.parseInt(words[3]); number++) {
            Socket socket = connected(words);
            thread("asker-" + number, () -> question(socket, Long.parseLong(words[2])));
        }
        return null;
    }

    static void question(Socket socket, long thinkMs) throws Exception {
        socket.setTcpNoDelay(true);
        OutputStream out = socket.getOutputStream();
        InputStream in = socket.getInputStream();
        while (true) {
            out.write(new byte[REQUEST]);
            if (in.readNBytes(ANSWER).length < ANSWER) {
                return;
            }
            Thread.sleep(thinkMs);
        }
    }

    /** select=HOST,PORT,CONNECTIONS: one thread with a Selector asks on each connection as soon as it has the answer. */
    static Object select(String[] words) throws Exception {
        Selector selector = Selector.open();
        for (int number = 0; number < Integer.parseInt(words[2]); number++) {
            SocketChannel channel = SocketChannel.open(address(words));
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            channel.configureBlocking(false);
            channel.register(selector, SelectionKey.OP_READ, new int[] {0});
            channel.write(ByteBuffer.allocate(REQUEST));
        }
        thread("selector", () -> dispatch(selector));
        return null;
    }

    static void dispatch(Selector selector) throws Exception {
        ByteBuffer buffer = ByteBuffer.allocateDirect(ANSWER);
        while (true) {
            selector.select();
            for (SelectionKey key : selector.selectedKeys()) {
                SocketChannel channel = (SocketChannel) key.channel();
                int[] received = (int[]) key.attachment();
                buffer.clear();
                received[0] += Math.max(0, channel.read(buffer));
                if (received[0] >= ANSWER) {
                    received[0] -= ANSWER;
                    channel.write(ByteBuffer.allocate(REQUEST));
                }
            }
            selector.selectedKeys().clear();
        }
    }

    /** read=PORT,BYTES,PAUSE_MS: one connection, of which so much is read, again after the pause. */
    static Object read(String[] words) throws Exception {
        ServerSocket server = new ServerSocket(Integer.parseInt(words[0]));
        thread("consumer", () -> consume(server.accept(), Integer.parseInt(words[1]), Long.parseLong(words[2])));
        return server.getLocalPort();
    }

    static void consume(Socket socket, int bytes, long pauseMs) throws Exception {
        while (socket.getInputStream().readNBytes(bytes).length == bytes) {
            Thread.sleep(pauseMs);
        }
    }

    /** write=HOST,PORT: as fast as it can. */
    static Object write(String[] words) throws Exception {
        Socket socket = connected(words);
        thread("producer", () -> produce(socket));
        return null;
    }

    static void produce(Socket socket) throws Exception {
        byte[] data = new byte[65536];
        while (true) {
            socket.getOutputStream().write(data);
        }
    }

    /** leak=PORT: reads each connection to its end, and never closes it. */
    static Object leak(String[] words) throws Exception {
        ServerSocket server = new ServerSocket(Integer.parseInt(words[0]), 1024);
        thread("leaking-acceptor", () -> {
            while (true) {
                Socket socket = server.accept();
                KEPT.add(socket);
                while (socket.getInputStream().read() >= 0) {
                    // To the end.
                }
            }
        });
        return server.getLocalPort();
    }

    static Socket connected(String[] words) throws Exception {
        Socket socket = new Socket();
        socket.connect(address(words));
        KEPT.add(socket);
        return socket;
    }

    static InetSocketAddress address(String[] words) throws Exception {
        return new InetSocketAddress(InetAddress.getByName(words[0]), Integer.parseInt(words[1]));
    }

    interface Work {
        void run() throws Exception;
    }

    static void thread(String name, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (Exception error) {
                // The other end has closed.
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
    }
}
