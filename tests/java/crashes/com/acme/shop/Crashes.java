package com.acme.shop;

import java.io.RandomAccessFile;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32;
import sun.misc.Unsafe;

/**
 * Ends its own JVM in the way that its first argument names; tests/support/crashes.py has the list. Where a signal is to come from
 * outside, or a compiler is to be at work, it prints READY and goes on.
 */
public final class Crashes {
    private static Unsafe unsafe;
    private static volatile long sink;
    Object held = new Object();

    private Crashes() {}

    public static void main(String[] words) throws Exception {
        Field field = Unsafe.class.getDeclaredField("theUnsafe");
        field.setAccessible(true);
        unsafe = (Unsafe) field.get(null);
        Thread.currentThread().setName("order-worker-7");
        switch (words[0]) {
            case "unsafe": Prices.store(0); break;
            case "hot": hot(); break;
            case "truncated": truncated(words[1]); break;
            case "crc": crc(words[1]); break;
            case "heap": fillHeap(); break;
            case "gc": corrupt(); break;
            case "threads": threads(); break;
            case "direct": direct(); break;
            case "compile": compile(); break;
            case "wait": System.out.println("READY"); Thread.sleep(600_000); break;
            case "exit": System.exit(3); break;
            default: Native.run(words[0], words[1], words.length > 2 ? words[2] : "");
        }
    }

    /** Writes prices to memory that the application manages itself. */
    static final class Prices {
        static void store(long address) {
            unsafe.putLong(address, 42L);
        }

        static long total(long[] prices, long address) {
            long sum = 0;
            for (long price : prices) {
                sum += price;
            }
            return sum + unsafe.getLong(address);
        }
    }

    /** The library's functions. */
    static final class Native {
        static native void nullWrite(byte[] header);
        static native void recurse(long depth);
        static native void abort();
        static native void doubleFree();
        static native void divide(int by);
        static native void trap();
        static native void splitMaps();
        static native void read(ByteBuffer file);
        static native void write(ByteBuffer file);
        static native void inThread();

        static void run(String mode, String library, String file) throws Exception {
            System.load(library);
            switch (mode) {
                case "null": nullWrite(new byte[16]); break;
                case "stack": recurse(1L << 40); break;
                case "abort": abort(); break;
                case "free": doubleFree(); break;
                case "divide": divide(0); break;
                case "trap": trap(); break;
                case "inthread": inThread(); break;
                case "maps": splitMaps(); threads(); break;
                case "tmpfs": write(mapped(file)); break;
                case "buffer": read(mappedAndTruncated(file)); break;
                default: throw new IllegalArgumentException(mode);
            }
        }
    }

    private static void hot() {
        long at = unsafe.allocateMemory(8);
        long[] prices = new long[64];
        for (int round = 0; round < 200_000; round++) {
            sink += Prices.total(prices, at);
        }
        sink += Prices.total(prices, 16);
    }

    private static MappedByteBuffer mappedAndTruncated(String name) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            file.setLength(1 << 20);
            MappedByteBuffer mapped = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 1 << 20);
            mapped.put(1 << 19, (byte) 1);
            file.setLength(4096);
            return mapped;
        }
    }

    private static void truncated(String name) throws Exception {
        Field address = java.nio.Buffer.class.getDeclaredField("address");
        long at = unsafe.getLong(mappedAndTruncated(name), unsafe.objectFieldOffset(address));
        Prices.store(at + (1 << 19));
    }

    private static void crc(String name) throws Exception {
        CRC32 sum = new CRC32();
        sum.update(mappedAndTruncated(name));
        sink = sum.getValue();
    }

    private static MappedByteBuffer mapped(String name) throws Exception {
        try (RandomAccessFile file = new RandomAccessFile(name, "rw")) {
            file.setLength(64 << 20);
            return file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 64 << 20);
        }
    }

    private static void fillHeap() {
        List<byte[]> kept = new ArrayList<>();
        while (true) {
            kept.add(new byte[1 << 20]);
        }
    }

    private static void corrupt() throws Exception {
        Crashes broken = new Crashes();
        long offset = unsafe.objectFieldOffset(Crashes.class.getDeclaredField("held"));
        unsafe.putInt(broken, offset, 0x12345671);
        System.gc();
        sink += broken.held.hashCode();
    }

    private static void threads() {
        for (int number = 0; ; number++) {
            Thread thread = new Thread(() -> {
                try {
                    Thread.sleep(600_000);
                } catch (InterruptedException stop) {
                    sink++;
                }
            }, "filler-" + number);
            thread.setDaemon(true);
            thread.start();
        }
    }

    private static void direct() {
        List<ByteBuffer> kept = new ArrayList<>();
        while (true) {
            kept.add(ByteBuffer.allocateDirect(16 << 20));
        }
    }

    private static void compile() {
        System.out.println("READY");
        for (int round = 0; ; round++) {
            List<Integer> numbers = new ArrayList<>();
            for (int each = 0; each < 1000; each++) {
                numbers.add(each ^ round);
            }
            sink += numbers.stream().filter(each -> each % 3 == 0).mapToInt(Integer::intValue).sum();
        }
    }
}
