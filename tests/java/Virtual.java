import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * java Virtual [MODE=N]...: N virtual threads each that burn CPU time on deep stacks, on JDK 21 and later. Prints READY; ends with its input.
 *
 * lazy=N: recurse, then sleep and burn in turn: the frames below the sleep stay in the heap. named=N: the same with names. flat=N: burn
 * without ever sleeping. nested=N: burn as deep, from a frame that returned through the barrier. yield=N: sleep only. paths=N: take one
 * of two ways down to the same method, which sleeps, and then burns in a method of that way. platform=N: platform threads, on any JDK,
 * with inlined methods, maps, strings, natives and recursion. collect=N: collect garbage, 100 ms after what was begun before it.
 */
public final class Virtual {
    static final List<Object> KEPT = new ArrayList<>();
    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] pair = argument.split("=");
            int count = Integer.parseInt(pair[1]);
            switch (pair[0]) {
                case "lazy": each(count, null, () -> first(70)); break;
                case "named": each(count, "request-", () -> first(70)); break;
                case "flat": each(count, null, () -> burnForever()); break;
                case "nested": each(count, null, () -> unwinding(90)); break;
                case "paths": each(count, null, () -> paths()); break;
                case "platform": platform(count); break;
                case "yield": each(count, null, () -> sleepForever()); break;
                case "collect": collect(count); break;
                default: throw new IllegalArgumentException(argument);
            }
        }
        Thread.sleep(400);
        System.out.println("READY");
        while (System.in.read() >= 0) {
            continue;
        }
        Runtime.getRuntime().halt(0);
    }

    static void collect(int times) throws InterruptedException {
        Thread.sleep(100);
        for (int i = 0; i < times; i++) {
            System.gc();
        }
    }

    /** Two methods that call each other: an order of frames that a test can check. */
    static long first(int depth) {
        long mixed = depth * 31L;
        return depth == 0 ? sleepAndBurn() : second(depth - 1) + mixed;
    }

    static long second(int depth) {
        long mixed = depth * 17L;
        return depth == 0 ? sleepAndBurn() : first(depth - 1) + mixed;
    }

    static long sleepAndBurn() {
        while (true) {
            pause(2);
            sink += burn(20_000_000L);
        }
    }

    /** Sleeps at the deepest frame, and burns in each frame on the way back: they are taken from the heap one by one. */
    static long unwinding(int depth) {
        while (true) {
            sink += descend(depth);
        }
    }

    static long descend(int depth) {
        if (depth == 0) {
            pause(2);
            return 1;
        }
        long below = descend(depth - 1);
        return below + burn(1_000_000L);
    }

    static void paths() {
        for (int turn = 0; ; turn++) {
            sink += turn % 3 == 0 ? left(70) : right(50);
        }
    }

    static long left(int depth) {
        long mixed = depth * 31L;
        return (depth == 0 ? shared(true) : left(depth - 1)) + mixed;
    }

    static long right(int depth) {
        long mixed = depth * 17L;
        return (depth == 0 ? shared(false) : right(depth - 1)) + mixed * 3;
    }

    static long shared(boolean isLeft) {
        pause(1);
        return isLeft ? burnLeft() : burnRight();
    }

    static long burnLeft() {
        return burn(7_000_000L) + 1;
    }

    static long burnRight() {
        return burn(3_000_000L) + 2;
    }

    static void platform(int count) {
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(Virtual::mixture, "a platform thread with a long name: " + i);
            thread.setDaemon(true);
            thread.start();
        }
    }

    static void mixture() {
        Map<String, Integer> words = new HashMap<>();
        for (int turn = 0; ; turn++) {
            words.merge("word " + turn % 1000, 1, Integer::sum);
            sink += down(turn % 40) + words.values().stream().mapToInt(each -> each & 7).sum();
            if (turn % 64 == 0) {
                words.clear();
            }
        }
    }

    static long down(int depth) {
        return depth == 0 ? System.nanoTime() & 1 : down(depth - 1) + new StringBuilder("x").append(depth).length();
    }

    static void burnForever() {
        while (true) {
            sink += burn(10_000_000L);
        }
    }

    static void sleepForever() {
        while (true) {
            pause(1);
        }
    }

    static long burn(long nanos) {
        long value = nanos;
        for (long end = System.nanoTime() + nanos; System.nanoTime() < end; ) {
            for (int i = 0; i < 10_000; i++) {
                value = value * 6364136223846793005L + 1442695040888963407L;
            }
        }
        return value;
    }

    static void pause(long millis) {
        try {
            Thread.sleep(millis);
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    /** Virtual threads, reached by reflection: release 8 does not know them. */
    static void each(int count, String name, Runnable body) throws Exception {
        Object builder = Thread.class.getMethod("ofVirtual").invoke(null);
        Class<?> type = Class.forName("java.lang.Thread$Builder$OfVirtual");
        if (name != null) {
            builder = type.getMethod("name", String.class, long.class).invoke(builder, name, 0L);
        }
        Method start = type.getMethod("start", Runnable.class);
        for (int i = 0; i < count; i++) {
            KEPT.add(start.invoke(builder, body));
        }
    }
}
