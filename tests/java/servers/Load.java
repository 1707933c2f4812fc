import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URL;

/** Load PORT THREADS PAUSE_MS: each thread asks for http://127.0.0.1:PORT/ again after the pause, until standard input ends. */
public final class Load {
    private Load() {}

    private static void ask(URL url, long pauseMs) {
        byte[] buffer = new byte[8192];
        while (true) {
            try {
                HttpURLConnection connection = (HttpURLConnection) url.openConnection();
                try (InputStream answer = connection.getInputStream()) {
                    while (answer.read(buffer) >= 0) {
                        // The whole answer, so that the connection is used again.
                    }
                }
                Thread.sleep(pauseMs);
            } catch (Exception error) {
                System.err.println(error);
                return;
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        System.setProperty("http.maxConnections", arguments[1]);
        URL url = new URL("http://127.0.0.1:" + arguments[0] + "/");
        for (int number = Integer.parseInt(arguments[1]); number > 0; number--) {
            Thread thread = new Thread(() -> ask(url, Long.parseLong(arguments[2])), "load-" + number);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY");
        while (System.in.read() >= 0) {
            // Runs until the test ends.
        }
    }
}
