import java.util.ArrayList;
import java.util.List;

/**
 * Threads that use the CPU: java CpuLoad MODE=N...
 *
 * spin=N: N threads that never wait. full=N: a heap of which N percent are reachable, and a thread that allocates: collections
 * have little to free. busy=N: N threads of a healthy server, which allocate, compute and wait for a moment. turns=N: N pairs of
 * threads that take turns by wait and notify. Ends with its input.
 */
public final class CpuLoad {
    static final List<byte[][]> KEPT = new ArrayList<>();
    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        for (String argument : arguments) {
            String[] pair = argument.split("=");
            int number = Integer.parseInt(pair[1]);
            switch (pair[0]) {
                case "spin": start("spin", number, CpuLoad::spin); break;
                case "full": fill(number); start("allocate", 1, CpuLoad::replace); break;
                case "busy": fill(20); start("request", number, CpuLoad::serve); break;
                case "turns": for (int i = 0; i < number; i++) takeTurns(); break;
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

    static void start(String name, int count, Runnable body) {
        for (int i = 0; i < count; i++) {
            Thread thread = new Thread(body, name + "-" + i);
            thread.setDaemon(true);
            thread.start();
        }
    }

    static void takeTurns() {
        boolean[] first = {true};
        start("turn-a", 1, () -> take(first, true));
        start("turn-b", 1, () -> take(first, false));
    }

    static void take(boolean[] first, boolean mine) {
        synchronized (first) {
            while (true) {
                while (first[0] != mine) {
                    try {
                        first.wait();
                    } catch (InterruptedException end) {
                        return;
                    }
                }
                first[0] = !mine;
                first.notify();
            }
        }
    }

    static void fill(int percent) {
        long bytes = Runtime.getRuntime().maxMemory() / 100 * percent;
        for (long made = 0; made < bytes; made += 64 * 1024) {
            KEPT.add(new byte[400][144]);
        }
    }

    static void spin() {
        long value = 1;
        while (true) {
            for (int i = 0; i < 1_000_000; i++) {
                value = value * 6364136223846793005L + i;
            }
            sink = value;
        }
    }

    static void replace() {
        for (int i = 0; ; i = (i + 1) % KEPT.size()) {
            KEPT.set(i, new byte[400][144]);
        }
    }

    static void serve() {
        while (true) {
            long value = 1;
            for (int i = 0; i < 200; i++) {
                byte[] answer = new byte[4096];
                for (int at = 0; at < answer.length; at += 4) {
                    value = value * 31 + (answer[at] = (byte) (value >> 7));
                }
            }
            sink = value;
            try {
                Thread.sleep(2);
            } catch (InterruptedException interrupted) {
                throw new IllegalStateException(interrupted);
            }
        }
    }
}
