import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.function.LongUnaryOperator;
import java.util.zip.CRC32;
import javax.crypto.Cipher;
import javax.crypto.spec.SecretKeySpec;

/** Threads whose stacks are known: each runs Chains.outer, Chains.middle, and then the method that has the thread's name. */
public class Chains {
    static final int DEPTH = 100;
    static volatile long sink;

    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Thread thread = new Thread(() -> outer(name), name);
            thread.setDaemon(true);
            thread.start();
        }
        System.out.println("READY");
        while (System.in.read() >= 0) {}
    }

    static void outer(String name) {
        while (true) middle(name);
    }

    static void middle(String name) {
        switch (name) {
            case "spin": spin(); break;
            case "recurse": sink += recurse(DEPTH); break;
            case "throwing": throwing(); break;
            case "copying": copying(); break;
            case "checksum": checksum(); break;
            case "encrypt": encrypt(); break;
            case "handle": handle(); break;
            case "megamorphic": megamorphic(); break;
            case "nanotime": nanotime(); break;
            case "natives": natives(); break;
            case "locking": locking(); break;
            case "mathematics": mathematics(); break;
            case "deoptimize": deoptimize(); break;
            case "initialize": Initialized.touch(); break;
            default: throw new IllegalArgumentException(name);
        }
    }

    static void spin() {
        long value = sink;
        for (int round = 0; round < 100_000; round++) value = step(value + round);
        sink = value;
    }

    static long step(long value) {
        return (value ^ (value >>> 7)) * 0x9E3779B97F4A7C15L;
    }

    static long recurse(int depth) {
        if (depth > 1) return recurse(depth - 1) + 1;
        long value = 0;
        for (int round = 0; round < 50_000; round++) value += step(round);
        return value;
    }

    static void throwing() {
        for (int round = 0; round < 200; round++) {
            try {
                thrower(round);
            } catch (IllegalStateException thrown) {
                sink += thrown.getMessage().length();
            }
        }
    }

    static void thrower(int round) {
        if (round >= 0) throw new IllegalStateException("thrown");
    }

    static final byte[] FROM = new byte[1 << 16], TO = new byte[1 << 16];

    static void copying() {
        for (int round = 0; round < 100; round++) System.arraycopy(FROM, round, TO, 0, FROM.length - round);
    }

    static void checksum() {
        CRC32 crc = new CRC32();
        for (int round = 0; round < 20; round++) crc.update(FROM, 0, FROM.length);
        sink += crc.getValue();
    }

    static Cipher cipher;

    static void encrypt() {
        try {
            if (cipher == null) {
                cipher = Cipher.getInstance("AES/CBC/NoPadding");
                cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(new byte[16], "AES"));
            }
            for (int round = 0; round < 4; round++) cipher.update(FROM, 0, FROM.length, TO);
        } catch (Exception wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    static MethodHandle step;
    static final LongUnaryOperator LAMBDA = value -> step(value);

    static void handle() {
        try {
            if (step == null) {
                MethodType type = MethodType.methodType(long.class, long.class);
                step = MethodHandles.lookup().findStatic(Chains.class, "step", type);
            }
            long value = sink;
            for (int round = 0; round < 10_000; round++) value = LAMBDA.applyAsLong((long) step.invokeExact(value));
            sink = value;
        } catch (Throwable wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    interface Shape { long area(long side); }
    abstract static class Base { abstract long next(long value); }
    static class One extends Base implements Shape {
        public long area(long side) { return side * side; }
        long next(long value) { return value + 1; }
    }
    static class Two extends Base implements Shape {
        public long area(long side) { return side * 3; }
        long next(long value) { return value + 2; }
    }
    static class Three extends Base implements Shape {
        public long area(long side) { return side ^ 5; }
        long next(long value) { return value + 3; }
    }
    static class Four extends Base implements Shape {
        public long area(long side) { return side - 9; }
        long next(long value) { return value + 4; }
    }
    static final Shape[] SHAPES = {new One(), new Two(), new Three(), new Four()};

    static void megamorphic() {
        long value = sink;
        for (int round = 0; round < 50_000; round++) {
            Shape shape = SHAPES[round & 3];
            value = ((Base) shape).next(shape.area(value));
        }
        sink = value;
    }

    static void nanotime() {
        long value = 0;
        for (int round = 0; round < 1_000; round++) value += System.nanoTime();
        sink += value;
        try {
            Thread.sleep(0, 1);
        } catch (InterruptedException ignored) {
            return;
        }
    }

    static void natives() {
        long value = 0;
        for (int round = 0; round < 1_000; round++) {
            value += Thread.holdsLock(FROM) ? 1 : 2;
            value += java.lang.reflect.Array.getLength(FROM) + Runtime.getRuntime().freeMemory();
        }
        sink += value;
    }

    static void locking() {
        long value = 0;
        for (int round = 0; round < 10_000; round++) {
            synchronized (TO) {
                value += step(round);
            }
        }
        sink += value;
    }

    static void mathematics() {
        double value = sink;
        for (int round = 0; round < 10_000; round++) value += Math.sin(value + round) + Math.pow(1.5, round & 63) + Math.log(round + 1);
        sink += (long) value;
    }

    abstract static class Guess { abstract long next(long value); }
    static class First extends Guess { long next(long value) { return value + 1; } }
    static class Second extends Guess { long next(long value) { return value + 2; } }
    static Guess guess = new First();
    static boolean guessed;

    static void deoptimize() {
        if (!guessed) {
            for (int round = 0; round < 50_000; round++) sink += invalid(false);
        }
        guessed = true;
        sink += invalid(true);
    }

    /** Compiled for the only subclass of Guess there is; the second one is loaded while this method waits for its callee. */
    static long invalid(boolean load) {
        return guess.next(callee(load)) + guess.next(1);
    }

    static long callee(boolean load) {
        if (!load) return 1;
        new Second();
        long value = 0;
        for (int round = 0; round < 400_000_000; round++) value += step(round);
        return value;
    }

    static class Initialized {
        static {
            while (sink != Long.MIN_VALUE) spin();  // called by the JVM, from native code
        }

        static void touch() {}
    }
}
