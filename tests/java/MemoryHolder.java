import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.zip.Deflater;

/**
 * Holds memory of one kind: java MemoryHolder MODE=N... Sizes in MiB. All of it is in memory when READY is printed, and stays.
 *
 * heap, direct (buffers of 1 MiB), small (direct buffers of 16 KiB), deflaters=N (not ended), threads=N, loaders=N (class loaders, each with
 * three classes), classes=N (of one loader, each with 100 methods), mapped=FILE, fragments=N (threads that end seven of eight Deflaters).
 *
 * Standard input: d and h keep one MiB more, direct or in the heap, and answer GREW; ? answers BUFFERS and what the platform's MXBeans count.
 * It ends with its input. Compiled for release 8, so that every JVM runs it.
 */
public final class MemoryHolder {
    static final int MIB = 1 << 20;
    static final int METHODS = 100;
    static final List<Object> KEPT = new ArrayList<>();
    static final byte[] INPUT = new byte[200_000];

    public static void main(String[] arguments) throws Exception {
        new Random(1).nextBytes(INPUT);
        for (String argument : arguments) {
            String[] pair = argument.split("=", 2);
            if (pair[0].equals("mapped")) {
                map(pair[1]);
                continue;
            }
            int size = Integer.parseInt(pair[1]);
            switch (pair[0]) {
                case "heap": heap(size); break;
                case "direct": direct(size, MIB); break;
                case "small": direct(size * 64, MIB / 64); break;
                case "deflaters": deflaters(size); break;
                case "threads": threads(size); break;
                case "loaders": loaders(size); break;
                case "classes": classes(size); break;
                case "fragments": fragments(size); break;
                default: throw new IllegalArgumentException(argument);
            }
        }
        say("READY");
        answer();
        Runtime.getRuntime().halt(0);
    }

    static void answer() throws IOException {
        for (int asked; (asked = System.in.read()) >= 0; ) {
            switch (asked) {
                case 'd': direct(1, MIB); say("GREW"); break;
                case 'h': heap(1); say("GREW"); break;
                case '?': say("BUFFERS " + buffers("direct") + " " + buffers("mapped")); break;
                default: break;
            }
        }
    }

    static void say(String line) {
        System.out.println(line);
        System.out.flush();
    }

    static long buffers(String pool) {
        for (BufferPoolMXBean one : ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class)) {
            if (one.getName().equals(pool)) {
                return one.getMemoryUsed();
            }
        }
        return -1;
    }

    static void heap(int size) {
        for (int i = 0; i < size * 16; i++) {
            KEPT.add(new byte[(MIB >> 4) - 16]); // with its header it fills 64 KiB
        }
    }

    static void direct(int number, int bytes) {
        for (int i = 0; i < number; i++) {
            KEPT.add(ByteBuffer.allocateDirect(bytes)); // the JDK fills it with zeros
        }
    }

    static Deflater deflater() {
        Deflater deflater = new Deflater();
        deflater.setInput(INPUT);
        deflater.deflate(new byte[50_000]);
        return deflater;
    }

    static void deflaters(int number) {
        for (int i = 0; i < number; i++) {
            KEPT.add(deflater());
        }
    }

    /** Each thread has its own arena as long as there are not too many of them. */
    static void fragments(int number) throws Exception {
        threads(number, () -> {
            List<Deflater> made = new ArrayList<>();
            for (int i = 0; i < 48; i++) {
                made.add(deflater());
            }
            for (int i = 0; i < made.size(); i++) {
                if (i % 8 == 7) {
                    keep(made.get(i));
                } else {
                    made.get(i).end();
                }
            }
        });
    }

    static synchronized void keep(Object one) {
        KEPT.add(one);
    }

    static void threads(int number) throws Exception {
        threads(number, () -> deep(200));
    }

    static int deep(int left) {
        return left == 0 ? 0 : deep(left - 1) + 1;
    }

    static void threads(int number, Runnable body) throws Exception {
        CountDownLatch done = new CountDownLatch(number);
        for (int i = 0; i < number; i++) {
            Thread thread = new Thread(() -> {
                body.run();
                done.countDown();
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
            }, "holder-" + i);
            thread.setDaemon(true);
            thread.start();
        }
        done.await();
    }

    static void loaders(int number) throws Exception {
        URL place = MemoryHolder.class.getProtectionDomain().getCodeSource().getLocation();
        for (int i = 0; i < number; i++) {
            URLClassLoader loader = new URLClassLoader(new URL[] {place}, null);
            for (String name : new String[] {"Leaks", "Leaks$Maker", "Leaks$Body"}) {
                KEPT.add(Class.forName(name, true, loader));
            }
        }
    }

    static void map(String file) throws IOException {
        try (FileChannel channel = FileChannel.open(Paths.get(file))) {
            MappedByteBuffer pages = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            KEPT.add(pages.load());
        }
    }

    static void classes(int number) throws IOException {
        Generated loader = new Generated();
        for (int i = 0; i < number; i++) {
            KEPT.add(loader.define("Generated" + i));
        }
    }

    /** Defines classes that no file has, such as libraries for proxies and templates make. */
    static final class Generated extends ClassLoader {
        Class<?> define(String name) throws IOException {
            byte[] content = content(name);
            Class<?> made = defineClass(name, content, 0, content.length);
            resolveClass(made);
            return made;
        }

        /** A class file of version 50: static methods m0 to m99, each of which returns at once. */
        static byte[] content(String name) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(0xCAFEBABE);
            out.writeInt(50);
            out.writeShort(7 + METHODS);
            text(out, name);
            reference(out, 1);
            text(out, "java/lang/Object");
            reference(out, 3);
            text(out, "()V");
            text(out, "Code");
            for (int i = 0; i < METHODS; i++) {
                text(out, "m" + i);
            }
            for (int word : new int[] {0x21, 2, 4, 0, 0, METHODS}) { // public; this class, its super class; no interfaces, no fields
                out.writeShort(word);
            }
            for (int i = 0; i < METHODS; i++) {
                for (int word : new int[] {9, 7 + i, 5, 1, 6}) { // public static; name, type, one attribute: Code
                    out.writeShort(word);
                }
                out.writeInt(13);
                out.writeInt(0); // no stack, no variables
                out.writeInt(1);
                out.writeByte(0xB1); // return
                out.writeInt(0); // no exceptions, no attributes
            }
            out.writeShort(0);
            return bytes.toByteArray();
        }

        static void text(DataOutputStream out, String text) throws IOException {
            out.writeByte(1);
            out.writeUTF(text);
        }

        static void reference(DataOutputStream out, int name) throws IOException {
            out.writeByte(7);
            out.writeShort(name);
        }
    }
}
