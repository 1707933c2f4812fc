import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.lang.reflect.Array;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.StandardMBean;
import javax.management.openmbean.CompositeData;
import javax.management.openmbean.CompositeType;
import javax.management.openmbean.CompositeDataSupport;
import javax.management.openmbean.OpenType;
import javax.management.openmbean.SimpleType;
import javax.management.openmbean.TabularData;
import javax.management.openmbean.TabularDataSupport;
import javax.management.openmbean.TabularType;

/**
 * MBeans with attributes of every kind, and a JMX client beside them. A line on standard input is answered:
 * `values NAME-PATTERN` by lines `NAME tab PATH tab VALUE`, then END; `threads` by THREADS and their number and names;
 * `release` lets the hanging getters return.
 */
public final class AppBeans {
    static final CountDownLatch RELEASED = new CountDownLatch(1);

    public enum Colour { RED { @Override public String toString() { return "crimson"; } }, GREEN }

    public static class Gauge {
        public long getUsed() { return 357826560L; }
        public double getShare() { return 0.25; }
        public String getUnit() { return "bytes"; }
    }

    public interface KindsMXBean {
        boolean isRunning(); int getCount(); long getLargest(); double getRatio(); float getFloat(); double getNotANumber();
        double getInfinite(); double getMinusInfinite(); char getLetter(); byte getByte(); short getShort(); String getNothing();
        String getText(); String getHostile(); String getLoneSurrogate(); String getPair(); Colour getColour(); Gauge getGauge();
        Gauge[] getGauges(); long[] getLongs(); String[] getTexts(); List<String> getListed(); Map<String, Gauge> getByName();
        Map<String, Integer> getCounts(); Map<Integer, String> getNumbered(); BigInteger getBig(); BigDecimal getDecimal();
        Integer getNull(); boolean[][] getGrid(); ObjectName getPartner(); int getWritable(); void setWritable(int value);
        int getThrowing() throws Exception; void setWriteOnly(int value); Date getDate(); AtomicHolder getHolder();
    }

    public static class AtomicHolder { public int getInner() { return 7; } }

    public static final class Kinds implements KindsMXBean {
        public boolean isRunning() { return true; }
        public int getCount() { return -42; }
        public long getLargest() { return Long.MAX_VALUE; }
        public double getRatio() { return 1.5e-7; }
        public float getFloat() { return 3.25f; }
        public double getNotANumber() { return Double.NaN; }
        public double getInfinite() { return Double.POSITIVE_INFINITY; }
        public double getMinusInfinite() { return Double.NEGATIVE_INFINITY; }
        public char getLetter() { return 'x'; }
        public byte getByte() { return -128; }
        public short getShort() { return 32767; }
        public String getNothing() { return ""; }
        public String getText() { return "zwei Wörter, 漢字"; }
        public String getHostile() { return "\u001b[31mred\u001b[0m \"quoted\" back\\slash\ttab\nline\u0000nul\u202ebidi\u007f]},["; }
        public String getLoneSurrogate() { return "a\ud800b"; }
        public String getPair() { return "\ud83d\ude00"; }
        public Colour getColour() { return Colour.RED; }
        public Gauge getGauge() { return new Gauge(); }
        public Gauge[] getGauges() { return new Gauge[] {new Gauge(), null, new Gauge()}; }
        public long[] getLongs() { return new long[] {1, -2, Long.MIN_VALUE}; }
        public String[] getTexts() { return new String[] {"a", null, "b,c"}; }
        public List<String> getListed() { return Arrays.asList("one", "two"); }
        public Map<String, Gauge> getByName() { return new TreeMap<>(Map.of("G1 Eden Space", new Gauge(), "a.b", new Gauge())); }
        public Map<String, Integer> getCounts() { return new TreeMap<>(Map.of("x", 1, "y", 2)); }
        public Map<Integer, String> getNumbered() { return new TreeMap<>(Map.of(3, "three", 4, "four")); }
        public BigInteger getBig() { return BigInteger.TEN.pow(30); }
        public BigDecimal getDecimal() { return new BigDecimal("1E+400"); }
        public Integer getNull() { return null; }
        public boolean[][] getGrid() { return new boolean[][] {{true, false}, {}}; }
        public ObjectName getPartner() { try { return new ObjectName("app:type=Other"); } catch (Exception e) { return null; } }
        public int getWritable() { return 5; }
        public void setWritable(int value) { }
        public int getThrowing() throws Exception { throw new java.io.IOException("connection \"db\" closed"); }
        public void setWriteOnly(int value) { }
        public Date getDate() { return new Date(0); }
        public AtomicHolder getHolder() { return new AtomicHolder(); }
    }

    public interface PlainMBean {
        Object getCycle(); Object getDeep(); Map<String, Object> getMap(); Colour getColour(); AtomicLong getAtomic();
        Object getBadToString(); int getUnchecked(); int getFatal(); int[] getHuge(); TabularData getTable() throws Exception;
        TabularData getTwoKeys() throws Exception; Object getCustom(); Class<?> getType(); Object getBadError(); String getLong();
    }

    static final class Endless extends RuntimeException {
        @Override public String toString() { throw new IllegalStateException("no text"); }
    }

    public static final class Plain implements PlainMBean {
        public Object getCycle() { Object[] self = new Object[1]; self[0] = self; return self; }
        public Object getDeep() { List<Object> list = new ArrayList<>(); for (int i = 0; i < 100; i++) list = new ArrayList<>(List.of(list)); return list; }
        public Map<String, Object> getMap() { return new TreeMap<>(Map.of("a", 1, "b", List.of(true, "x"))); }
        public Colour getColour() { return Colour.RED; }
        public AtomicLong getAtomic() { return new AtomicLong(12); }
        public Object getBadToString() { return new Object() { @Override public String toString() { throw new IllegalStateException("no text"); } }; }
        public int getUnchecked() { throw new IllegalArgumentException("bad \u001b[0m state"); }
        public int getFatal() { throw new StackOverflowError("deep"); }
        public int[] getHuge() { int[] huge = new int[3000000]; Arrays.fill(huge, Integer.MIN_VALUE); return huge; }
        public TabularData getTable() throws Exception { return table("id"); }
        public TabularData getTwoKeys() throws Exception { return table("id", "name"); }
        public Object getCustom() { return new Number() {
            public int intValue() { return 1; } public long longValue() { return 1; } public float floatValue() { return 1; }
            public double doubleValue() { return 1; } @Override public String toString() { return "1; not JSON"; } }; }
        public Class<?> getType() { return AppBeans.class; }
        public Object getBadError() { throw new Endless(); }
        public String getLong() { return "x".repeat(3 << 20); }

        static TabularData table(String... keys) throws Exception {
            String[] columns = {"id", "name"};
            CompositeType row = new CompositeType("row", "row", columns, columns, new OpenType<?>[] {SimpleType.INTEGER, SimpleType.STRING});
            TabularDataSupport table = new TabularDataSupport(new TabularType("table", "table", row, keys));
            table.put(new CompositeDataSupport(row, columns, new Object[] {1, "first"}));
            table.put(new CompositeDataSupport(row, columns, new Object[] {2, "second"}));
            return table;
        }
    }

    public interface SlowMBean { int getAfter(); int getBefore(); int getStuck() throws Exception; }

    public static final class Slow implements SlowMBean {
        public int getAfter() { return 2; }
        public int getBefore() { return 1; }
        public int getStuck() throws Exception { RELEASED.await(600, TimeUnit.SECONDS); return 3; }
    }

    public static void main(String[] words) throws Exception {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        server.registerMBean(new Kinds(), new ObjectName("app.kinds:type=Kinds,name=all"));
        server.registerMBean(new StandardMBean(new Plain(), PlainMBean.class), new ObjectName("app.plain:type=Plain"));
        server.registerMBean(new StandardMBean(new Slow(), SlowMBean.class), new ObjectName("app.slow:type=Slow"));
        String[] hostile = {"a \"quoted\", name", "esc\u001b[31m*?", "new\nline", "back\\slash"};
        for (int i = 0; i < hostile.length; i++) {
            server.registerMBean(new Kinds(), new ObjectName("app.hostile:type=Kinds,name=" + ObjectName.quote(hostile[i])));
        }
        for (int i = 0; i < 20; i++) {
            server.registerMBean(new Kinds(), new ObjectName("app.many:type=Kinds,name=n" + i + ",area=east"));
        }
        PrintStream out = new PrintStream(System.out, true, "UTF-8");
        out.println("READY");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line; (line = in.readLine()) != null; ) {
            if (line.equals("release")) {
                RELEASED.countDown();
                out.println("RELEASED");
            } else if (line.equals("threads")) {
                out.println("THREADS " + new TreeSet<>(names()));
            } else {
                print(out, server, new ObjectName(line.substring("values ".length())));
                out.println("END");
            }
        }
    }

    static List<String> names() {
        List<String> names = new ArrayList<>();
        for (Thread each : Thread.getAllStackTraces().keySet()) names.add(each.getName());
        return names;
    }

    static void print(PrintStream out, MBeanServer server, ObjectName pattern) throws Exception {
        for (ObjectName name : new TreeSet<>(server.queryNames(pattern, null))) {
            for (MBeanAttributeInfo each : server.getMBeanInfo(name).getAttributes()) {
                if (!each.isReadable()) continue;
                String at = name + "\t" + each.getName();
                try {
                    leaves(out, at, server.getAttribute(name, each.getName()));
                } catch (Exception | Error error) {
                    out.println(escaped(at) + "\tTHROWS");
                }
            }
        }
    }

    static void leaves(PrintStream out, String at, Object value) {
        if (value instanceof CompositeData) {
            CompositeData data = (CompositeData) value;
            for (String key : data.getCompositeType().keySet()) leaves(out, at + "." + key, data.get(key));
        } else if (value instanceof TabularData) {
            for (Object row : ((TabularData) value).values()) {
                CompositeData data = (CompositeData) row;
                leaves(out, at + "." + data.get("key"), data.get("value"));
            }
        } else if (value instanceof Collection) {
            leaves(out, at, ((Collection<?>) value).toArray());
        } else if (value != null && value.getClass().isArray()) {
            for (int i = 0; i < Array.getLength(value); i++) leaves(out, at + "." + i, Array.get(value, i));
        } else {
            out.println(escaped(at) + "\t" + (value instanceof String ? escaped("'" + value) : String.valueOf(value)));
        }
    }

    static String escaped(String text) {
        StringBuilder b = new StringBuilder();
        for (char c : text.toCharArray()) b.append(c == '\t' || c >= ' ' && c <= '~' && c != '\\' ? "" + c : String.format("\\u%04x", (int) c));
        return b.toString().replace("\t", "\t");
    }
}
