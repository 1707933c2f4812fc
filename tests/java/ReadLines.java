import java.io.IOException;
import java.io.RandomAccessFile;

/** Reads files line by line, unbuffered, for ever: java ReadLines FILE... Thread csv-import-worker-N reads the file N, from 1. */
public class ReadLines {
    public static void main(String[] files) {
        for (int number = 1; number <= files.length; number++) {
            String path = files[number - 1];
            Thread worker = new Thread(() -> load(path), "csv-import-worker-" + number);
            worker.setDaemon(true);
            worker.start();
        }
        System.out.println("READY");
        try {
            Thread.sleep(Long.MAX_VALUE);
        } catch (InterruptedException e) {
            System.exit(1);
        }
    }

    /** One system call a byte: that is what RandomAccessFile.readLine does. */
    static void load(String path) {
        while (true) {
            try (RandomAccessFile file = new RandomAccessFile(path, "r")) {
                while (file.readLine() != null) {
                }
            } catch (IOException e) {
                throw new RuntimeException(e);
            }
        }
    }
}
