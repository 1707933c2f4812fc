import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.Deflater;

/**
 * Leaks outside of the Java heap: java Leaks MODE=N..., N a second, kept for ever.
 *
 * loaders: class loaders, each with this program's classes. direct: direct buffers of 64 KiB. deflaters: Deflaters that are not ended.
 * churn: direct buffers and Deflaters that are released at once. It prints READY, and ends with its standard input.
 * Compiled for release 8, so that every JVM runs it.
 */
public final class Leaks {
    static final List<Object> KEPT = new ArrayList<>();
    static volatile Object last;

    interface Maker {
        Object make() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            int perSecond = Integer.parseInt(pair[1]);
            switch (pair[0]) {
                case "loaders": leak(perSecond, Leaks::loader); break;
                case "direct": leak(perSecond, () -> ByteBuffer.allocateDirect(64 << 10)); break;
                case "deflaters": leak(perSecond, Leaks::deflater); break;
                case "churn": churn(perSecond); break;
                default: throw new IllegalArgumentException(argument);
            }
        }
        System.out.println("READY");
        System.out.flush();
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }

    static Object loader() throws Exception {
        URL place = Leaks.class.getProtectionDomain().getCodeSource().getLocation();
        URLClassLoader loader = new URLClassLoader(new URL[] {place}, null);
        loader.loadClass("Leaks");
        loader.loadClass("Leaks$Maker");
        return loader;
    }

    static Object deflater() {
        Deflater deflater = new Deflater();
        deflater.setInput(new byte[1000]);
        deflater.deflate(new byte[2000]);
        return deflater;
    }

    /** A steady rate in steps of 20 ms; it stops when the memory is full. */
    static void leak(int perSecond, Maker maker) {
        start(() -> {
            long begun = System.nanoTime();
            for (long made = 0; ; ) {
                long due = (long) ((System.nanoTime() - begun) * 1e-9 * perSecond);
                for (; made < due; made++) {
                    Object one = maker.make();
                    synchronized (KEPT) {
                        KEPT.add(one);
                    }
                }
                Thread.sleep(20);
            }
        });
    }

    static void churn(int perSecond) {
        start(() -> {
            while (true) {
                for (int i = 0; i < Math.max(1, perSecond / 50); i++) {
                    last = ByteBuffer.allocateDirect(4096);
                    ((Deflater) deflater()).end();
                }
                Thread.sleep(20);
            }
        });
    }

    interface Body {
        void run() throws Exception;
    }

    static void start(Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception failed) {
                throw new IllegalStateException(failed);
            } catch (OutOfMemoryError full) {
                System.out.println("FULL " + full.getMessage());
            }
        }, "leak");
        thread.setDaemon(true);
        thread.start();
    }
}
