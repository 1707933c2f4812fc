import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Collection;
import java.util.Iterator;
import java.util.LinkedList;
import java.util.List;
import java.util.Map;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.MBeanServerFactory;
import javax.management.ObjectName;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.TabularData;

/**
 * Writes attributes of MBeans to a file, for opskit/actions/load_agent.py. Options: `1 DIRECTORY`, with the protocol's number.
 *
 * <p>DIRECTORY/ask has lines: milliseconds an attribute may take, milliseconds in all, bytes in all, a regular expression of wanted
 * MBeans (`NAME, newline, CANONICAL NAME`), and one of wanted attributes (the same, newline, ATTRIBUTE). DIRECTORY/out gets JSON: `[1`,
 * then a line each: `,[name, attribute, value]`, `,[name, attribute, null, why]`, and at the end `,attributes left]` or `,"why"]`.
 *
 * <p>Values are read by a thread that ends with the last one. A getter that hangs keeps it; another thread goes on, at most twice.
 * The class stays loaded: a change of what it reads or writes needs another number here and in load_agent.py. A jar of this class
 * has at most 4 KiB, which is why it uses few classes of the JDK.
 */
public final class OpskitJmx implements Runnable {
    private static final int LARGEST = 2 << 20;
    private static final String BOUNDS = "larger than 2 MiB, or nested deeper than 32 levels";

    private final LinkedList<Object[]> todo = new LinkedList<>(); // server, ObjectName, attribute or null for all
    private final PrintStream out;
    private final List<String> ask;
    private Thread worker;
    private Object[] doing;
    private long since, left;

    public static void agentmain(String options) {
        try {
            String place = options.substring(2);
            PrintStream out = new PrintStream(place + "/out", "UTF-8");
            out.print("[1");
            if (options.startsWith("1 ")) {
                StringBuilder line = new StringBuilder("\n,");
                try {
                    value(line, new OpskitJmx(out, Files.readAllLines(Paths.get(place, "ask"))).read(), 0);
                } catch (Throwable error) {
                    string(line, why(error));
                }
                out.print(line.append(']'));
            }
            out.close();
        } catch (Throwable error) {
            return; // the reader misses the end
        }
    }

    private OpskitJmx(PrintStream out, List<String> ask) {
        this.out = out;
        this.ask = ask;
        left = Long.parseLong(ask.get(2));
        ManagementFactory.getPlatformMBeanServer();
        for (MBeanServer server : MBeanServerFactory.findMBeanServer(null)) {
            for (ObjectName name : server.queryNames(null, null)) {
                if (text(name).matches(ask.get(3))) {
                    todo.add(new Object[] {server, name, null});
                }
            }
        }
    }

    private synchronized Object read() throws Exception {
        long end = now() + Long.parseLong(ask.get(1));
        start();
        for (int hanging = 0; worker != null; ) {
            long wait = Math.min(end, since + Long.parseLong(ask.get(0))) - now();
            if (wait > 0) {
                wait(wait);
            } else {
                worker = null; // what it still gets is dropped
                if (doing != null) {
                    emit(doing, "null,\"no value in time\"");
                }
                if (now() < end && ++hanging < 3) {
                    start();
                }
            }
        }
        return left < 0 ? "size" : (Object) todo.size();
    }

    private void start() {
        since = now();
        doing = null;
        worker = new Thread(this, "opskit-jmx");
        worker.setDaemon(true);
        worker.start();
    }

    @Override
    public void run() {
        LinkedList<Object[]> more = new LinkedList<>();
        StringBuilder text = new StringBuilder();
        Object[] task = null;
        while (true) {
            synchronized (this) {
                if (worker != Thread.currentThread()) {
                    return;
                }
                todo.addAll(more);
                if (text.length() > 0) {
                    emit(task, text.toString());
                }
                doing = task = left < 0 ? null : todo.poll();
                since = now();
                if (task == null) {
                    worker = null;
                    notify();
                    return;
                }
            }
            more.clear();
            text.setLength(0);
            try {
                MBeanServer server = (MBeanServer) task[0];
                ObjectName name = (ObjectName) task[1];
                if (task[2] != null) {
                    value(text, server.getAttribute(name, (String) task[2]), 0);
                } else {
                    for (MBeanAttributeInfo each : server.getMBeanInfo(name).getAttributes()) {
                        if (each.isReadable() && (text(name) + '\n' + each.getName()).matches(ask.get(4))) {
                            more.add(new Object[] {server, name, each.getName()});
                        }
                    }
                }
            } catch (Throwable error) {
                text.setLength(0);
                string(text.append("null,"), why(error));
            }
        }
    }

    private void emit(Object[] task, String text) {
        StringBuilder line = new StringBuilder("\n,[");
        string(line, task[1].toString());
        line.append(',');
        string(line, (String) task[2]);
        line.append(',').append(text).append(']');
        left -= line.length();
        if (left >= 0) {
            out.print(line);
        }
    }

    private static long now() {
        return System.nanoTime() / 1000000;
    }

    private static String text(ObjectName name) {
        return name.toString() + '\n' + name.getCanonicalName();
    }

    /** It, and its cause, which is what an attribute threw. */
    private static String why(Throwable error) {
        try {
            return error.toString() + '\0' + error.getCause();
        } catch (Throwable again) {
            return error.getClass().getName();
        }
    }

    /** A table is an object with its keys under the empty name, and its rows. */
    private static void value(StringBuilder b, Object o, int depth) {
        if (++depth > 32 || b.length() > LARGEST) {
            throw new IllegalStateException(BOUNDS);
        }
        Iterator<?> items = null;
        boolean named = false;
        if (o == null || o instanceof Boolean || (o instanceof Number && o.getClass().getName().startsWith("java."))) {
            b.append(o);
            return;
        }
        if (o instanceof TabularData) {
            TabularData table = (TabularData) o;
            value(b.append("{\"\":"), table.getTabularType().getIndexNames(), depth);
            value(b.append(",\"rows\":"), table.values(), depth);
            b.append('}');
            return;
        }
        if (o instanceof CompositeData) {
            named = true;
            items = ((CompositeData) o).getCompositeType().keySet().iterator();
        } else if (o instanceof Map) {
            named = true;
            items = ((Map<?, ?>) o).keySet().iterator();
        } else if (o instanceof Collection) {
            items = ((Collection<?>) o).iterator();
        } else if (!o.getClass().isArray()) {
            string(b, o.toString());
            return;
        }
        b.append(named ? '{' : '[');
        for (int i = 0; items == null ? i < Array.getLength(o) : items.hasNext(); i++) {
            Object each = items == null ? Array.get(o, i) : items.next();
            if (i > 0) {
                b.append(',');
            }
            if (named) {
                string(b, String.valueOf(each));
                b.append(':');
                each = o instanceof Map ? ((Map<?, ?>) o).get(each) : ((CompositeData) o).get((String) each);
            }
            value(b, each, depth);
        }
        b.append(named ? '}' : ']');
    }

    private static void string(StringBuilder b, String text) {
        if (text == null) {
            b.append(text);
            return;
        }
        b.append('"');
        for (int i = 0; i < text.length() && b.length() <= LARGEST; i++) {
            char each = text.charAt(i);
            if (each < ' ' || each > '~' || each == '"' || each == '\\') {
                b.append("\\u").append(Integer.toHexString(each | 0x10000).substring(1));
            } else {
                b.append(each);
            }
        }
        if (b.append('"').length() > LARGEST) {
            throw new IllegalStateException(BOUNDS);
        }
    }
}
