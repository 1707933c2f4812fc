/**
 * Allocation at a steady rate: `Generations MODE MB_PER_SECOND`.
 *
 *   garbage    objects that are dead at the next collection
 *   nepotism   a linked queue of one node: a dead node that is old keeps all later ones alive
 *   live       objects that are kept for ever, up to a quarter of the heap
 */
public class Generations {
    static final int BYTES = 1024;

    static final class Node {
        final byte[] load = new byte[BYTES - 40];
        Node next;
    }

    static Node tail;
    static Object[] kept;

    public static void main(String[] words) throws Exception {
        boolean linked = words[0].equals("nepotism");
        int perStep = Integer.parseInt(words[1]) * 1024 / 100;
        kept = new Object[words[0].equals("live") ? (int) (Runtime.getRuntime().maxMemory() / 4 / BYTES) : 1];
        tail = new Node();
        // The first nodes get old.
        System.gc();
        System.gc();
        System.out.println("READY");
        long began = System.nanoTime();
        int at = 0;
        for (long step = 1; ; step++) {
            for (int i = 0; i < perStep; i++) {
                Node node = new Node();
                if (linked) {
                    tail.next = node;
                }
                tail = node;
                kept[at] = node;
                at = Math.min(at + 1, kept.length - 1);
            }
            long sleep = began + step * 10_000_000L - System.nanoTime();
            if (sleep > 0) {
                Thread.sleep(sleep / 1_000_000, (int) (sleep % 1_000_000));
            }
        }
    }
}
