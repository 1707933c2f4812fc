import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.Random;
import java.util.zip.CRC32;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Leaves MODE THREADS FILE: methods whose time is in native code: clock, inflate, files, jni, spin (none). */
public final class Leaves {
    private static final ThreadLocal<byte[]> DATA = ThreadLocal.withInitial(Leaves::data);
    private static volatile long result;

    private Leaves() {}

    private static byte[] data() {
        byte[] data = new byte[64 << 10];
        Random random = new Random(1);
        for (int at = 0; at < data.length; at++) {
            data[at] = (byte) (random.nextInt(8) + (at >> 8));
        }
        return data;
    }

    /** Read the clock for 20 ms in a loop, then sleep. */
    private static void clock(long round) throws Exception {
        Thread.sleep(2);
        for (long end = System.nanoTime() + 20_000_000; System.nanoTime() < end; ) {
            result++;
        }
    }

    private static void inflate(long round) throws Exception {
        byte[] packed = new byte[80 << 10];
        Deflater deflater = new Deflater(1);
        deflater.setInput(DATA.get());
        deflater.finish();
        int size = deflater.deflate(packed);
        deflater.end();
        byte[] unpacked = new byte[64 << 10];
        for (int times = 0; times < 8; times++) {
            Inflater inflater = new Inflater();
            inflater.setInput(packed, 0, size);
            result += inflater.inflate(unpacked);
            inflater.end();
        }
    }

    private static Counter.Work files(String path) {
        return round -> {
            try (RandomAccessFile file = new RandomAccessFile(path + "-" + Thread.currentThread().getName(), "rw")) {
                for (int part = 0; part < 16; part++) {
                    file.write(DATA.get());
                }
                FileChannel channel = file.getChannel();
                ByteBuffer buffer = ByteBuffer.allocateDirect(64 << 10);
                for (int part = 0; part < 64; part++) {
                    buffer.clear();
                    channel.read(buffer, (part * 7919L) % 16 << 16);
                }
            }
        };
    }

    /** Calls into the JVM with a deep Java stack below: stack traces, class data, interned strings; and critical sections. */
    private static int jni(long round, int depth) throws Exception {
        if (depth > 0) {
            return jni(round, depth - 1) + 1;
        }
        CRC32 sum = new CRC32();
        for (int times = 0; times < 20; times++) {
            result += new Throwable().getStackTrace().length;
            result += ("text" + round % 512).intern().length();
            sum.update(DATA.get());
            result += Class.forName("java.util.ArrayDeque").getModifiers();
        }
        return (int) sum.getValue();
    }

    private static void spin(long round) {
        long value = round;
        for (int times = 0; times < 1_000_000; times++) {
            value = value * 6364136223846793005L + 1442695040888963407L;
        }
        result = value;
    }

    public static void main(String[] arguments) throws Exception {
        Counter.Work work;
        switch (arguments[0]) {
            case "clock": work = Leaves::clock; break;
            case "inflate": work = Leaves::inflate; break;
            case "files": work = files(arguments[2]); break;
            case "jni": work = round -> jni(round, 40); break;
            default: work = Leaves::spin;
        }
        Counter.serve("work", Integer.parseInt(arguments[1]), work, "");
    }
}
