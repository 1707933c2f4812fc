import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Paths;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.TabularData;

/**
 * A client of its own platform MBean server. Each line of its input is answered by one line: `b` every MBean as JSON, `g` runs a
 * collection, `r` resets the peaks. It holds direct and mapped buffers. Prints READY; ends with its input.
 */
public final class Beans {
    private static final List<Object> HELD = new ArrayList<>();

    private Beans() {}

    public static void main(String[] arguments) throws Exception {
        for (int number = 1; number <= 3; number++) {
            HELD.add(ByteBuffer.allocateDirect(number * 100_001));
        }
        if (arguments.length > 0) {
            FileChannel file = FileChannel.open(Paths.get(arguments[0]), StandardOpenOption.READ);
            HELD.add(file.map(FileChannel.MapMode.READ_ONLY, 0, 5000));
            HELD.add(file.map(FileChannel.MapMode.READ_ONLY, 100, 20));
        }
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        for (int number = 0; number < 2; number++) {
            all(server); // what that loads and compiles, it has loaded then
        }
        System.out.println("READY");
        for (int command = System.in.read(); command >= 0; command = System.in.read()) {
            if (command == 'b') {
                System.out.println("BEANS " + all(server));
            } else if (command == 'g') {
                System.gc();
                System.out.println("DONE");
            } else if (command == 'r') {
                ManagementFactory.getThreadMXBean().resetPeakThreadCount();
                ManagementFactory.getMemoryPoolMXBeans().forEach(pool -> pool.resetPeakUsage());
                System.out.println("DONE");
            }
        }
        Runtime.getRuntime().halt(0);
    }

    private static String all(MBeanServer server) throws Exception {
        StringBuilder out = new StringBuilder("{");
        String next = "";
        for (ObjectName name : new TreeSet<>(server.queryNames(null, null))) {
            if (!name.getDomain().startsWith("java.") && !name.toString().contains("HotSpotDiagnostic")) {
                continue;
            }
            out.append(next);
            next = ",";
            text(name.toString(), out);
            out.append(":{");
            String separator = "";
            for (MBeanAttributeInfo each : server.getMBeanInfo(name).getAttributes()) {
                out.append(separator);
                separator = ",";
                text(each.getName(), out);
                out.append(':');
                Object value;
                try {
                    value = server.getAttribute(name, each.getName());
                } catch (Exception error) {
                    value = "ERROR";
                }
                json(value, out);
            }
            out.append('}');
        }
        return out.append('}').toString();
    }

    private static void json(Object value, StringBuilder out) {
        if (value == null || value instanceof Boolean || value instanceof Number) {
            out.append(value instanceof Double && ((Double) value).isNaN() ? null : value);
        } else if (value instanceof CompositeData) {
            CompositeData data = (CompositeData) value;
            String next = "{";
            for (String key : data.getCompositeType().keySet()) {
                out.append(next);
                next = ",";
                text(key, out);
                out.append(':');
                json(data.get(key), out);
            }
            out.append('}');
        } else if (value instanceof TabularData) {
            String next = "";
            out.append('{');
            for (Object row : ((TabularData) value).values()) {
                CompositeData data = (CompositeData) row;
                out.append(next);
                next = ",";
                text(String.valueOf(data.get("key")), out);
                out.append(':');
                json(data.get("value"), out);
            }
            out.append('}');
        } else if (value.getClass().isArray() || value instanceof Collection) {
            Object array = value instanceof Collection ? ((Collection<?>) value).toArray() : value;
            out.append('[');
            for (int number = 0; number < Array.getLength(array); number++) {
                out.append(number == 0 ? "" : ",");
                json(Array.get(array, number), out);
            }
            out.append(']');
        } else {
            text(String.valueOf(value), out);
        }
    }

    private static void text(String text, StringBuilder out) {
        out.append('"');
        for (char each : text.toCharArray()) {
            if (each < ' ' || each == '"' || each == '\\' || each > '~') {
                out.append(String.format("\\u%04x", (int) each));
            } else {
                out.append(each);
            }
        }
        out.append('"');
    }
}
