import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.charset.StandardCharsets;

/** Requests PORT CONNECTIONS: each sends ten HTTP requests at a time to 127.0.0.1, and reads the ten answers. */
public final class Requests {
    private static final int AT_ONCE = 10;

    private Requests() {}

    private static void talk(int port) {
        byte[] answers = new byte[1 << 16];
        try (Socket socket = new Socket("127.0.0.1", port)) {
            InputStream in = socket.getInputStream();
            OutputStream out = socket.getOutputStream();
            for (int round = 0; ; round++) {
                StringBuilder asked = new StringBuilder();
                for (int each = 0; each < AT_ONCE; each++) {
                    asked.append("GET /shop/" + (round + each) % 100 + " HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n");
                }
                out.write(asked.toString().getBytes(StandardCharsets.US_ASCII));
                for (int seen = 0; seen < AT_ONCE; ) {
                    int size = in.read(answers);
                    if (size < 0) {
                        return;
                    }
                    for (int at = 0; at < size; at++) {
                        seen += answers[at] == ']' ? 1 : 0; // the last byte of each answer
                    }
                }
                Counter.DONE.add(AT_ONCE);
            }
        } catch (Exception error) {
            System.err.println(error);
        }
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Counter.serve("client", Integer.parseInt(arguments[1]), round -> talk(port), "");
    }
}
