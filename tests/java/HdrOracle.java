import java.io.PrintStream;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Random;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.EncodableHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.HistogramLogWriter;

/**
 * Writes the logs v2.hdr and decimals.hdr of HdrHistogram 2.2.2 into a directory (arguments: directory, seed, values of an interval), and
 * prints of each tag what the library says of the sum of its intervals, added as HistogramLogProcessor does.
 */
public class HdrOracle {
    static final long BEGIN_MS = 1700000000127L;
    static final double[] PERCENTS = {50, 90, 99, 99.9, 99.99};
    static HistogramLogWriter log;
    static Random random;
    static int values;

    static void put(EncodableHistogram histogram, int interval, String tag) {
        histogram.setStartTimeStamp(BEGIN_MS + interval * 1000L);
        histogram.setEndTimeStamp(BEGIN_MS + interval * 1000L + 1000);
        histogram.setTag(tag);
        log.outputIntervalHistogram(histogram);
    }

    static void open(String path) throws Exception {
        log = new HistogramLogWriter(new PrintStream(path));
        log.outputLogFormatVersion();
        log.outputStartTime(BEGIN_MS);
        log.setBaseTime(BEGIN_MS);
        log.outputLegend();
    }

    static long value(double middle, double spread) {
        return (long) (middle * Math.exp(random.nextGaussian() * spread));
    }

    static void integers() {
        for (int interval = 0; interval < 4; interval++) {
            for (int digits = 0; digits <= 5; digits++) {
                Histogram histogram = new Histogram(1L << (20 + digits * 6), digits);
                for (int k = 0; k < values + interval; k++) histogram.recordValue(value(2000, 1.5));
                if (interval == 1) histogram.recordValueWithCount(777, 100000);
                if (interval == 2) histogram.recordValueWithCount(0, 3);
                put(histogram, interval, "digits-" + digits);
            }
            Histogram low = new Histogram(1000, 3600000000000L, 3);
            Histogram high = new Histogram(1, Long.MAX_VALUE, 3);
            Histogram resized = new Histogram(2);
            for (int k = 0; k < values; k++) {
                low.recordValue(value(200000, 2));
                high.recordValue(value(2e6, 5));
                resized.recordValue(value(Math.pow(50, interval), 1));
            }
            high.recordValue(Long.MAX_VALUE / 2 + interval);
            put(low, interval, "from-1000");
            put(high, interval, "high");
            put(resized, interval, "resized");
            put(new Histogram(1000, 3), interval, "empty");
        }
    }

    static void decimals() {
        for (int interval = 0; interval < 4; interval++) {
            DoubleHistogram wide = new DoubleHistogram(1000000000L, 3);
            DoubleHistogram narrow = new DoubleHistogram(2);
            DoubleHistogram rising = new DoubleHistogram(3);
            for (int k = 0; k < values; k++) {
                wide.recordValue(0.02 * Math.exp(random.nextGaussian() * 1.5));
                narrow.recordValue((interval % 2 == 0 ? 0.02 : 3000) * Math.exp(random.nextGaussian() * 1.5));
                rising.recordValue(Math.pow(17, interval) * Math.exp(random.nextGaussian()));
            }
            if (interval == 1) wide.recordValue(0.0);
            if (interval == 2) wide.recordValue(1000.0);
            put(wide, interval, "wide");
            put(narrow, interval, "narrow");
            put(rising, interval, "rising");
        }
    }

    static void answer(String name, String path) throws Exception {
        Map<String, EncodableHistogram> sums = new LinkedHashMap<>();
        HistogramLogReader reader = new HistogramLogReader(path);
        EncodableHistogram next;
        while ((next = reader.nextIntervalHistogram()) != null) {
            if (next instanceof DoubleHistogram) {
                DoubleHistogram sum = (DoubleHistogram) sums.get(next.getTag());
                if (sum == null) {
                    sum = ((DoubleHistogram) next).copy();
                    sum.reset();
                    sum.setAutoResize(true);
                    sums.put(next.getTag(), sum);
                }
                sum.add((DoubleHistogram) next);
            } else {
                Histogram sum = (Histogram) sums.get(next.getTag());
                if (sum == null) {
                    sum = ((Histogram) next).copy();
                    sum.reset();
                    sum.setAutoResize(true);
                    sums.put(next.getTag(), sum);
                }
                sum.add((Histogram) next);
            }
        }
        for (Map.Entry<String, EncodableHistogram> each : sums.entrySet()) {
            StringBuilder line = new StringBuilder(name + "\t" + each.getKey());
            if (each.getValue() instanceof DoubleHistogram) {
                DoubleHistogram sum = (DoubleHistogram) each.getValue();
                line.append("\t" + sum.getTotalCount() + "\t" + sum.getMinValue() + "\t" + sum.getMaxValue());
                line.append("\t" + sum.getMean() + "\t" + sum.getStdDeviation());
                for (double percent : PERCENTS) line.append("\t" + sum.getValueAtPercentile(percent));
            } else {
                Histogram sum = (Histogram) each.getValue();
                line.append("\t" + sum.getTotalCount() + "\t" + sum.getMinValue() + "\t" + sum.getMaxValue());
                line.append("\t" + sum.getMean() + "\t" + sum.getStdDeviation());
                for (double percent : PERCENTS) line.append("\t" + sum.getValueAtPercentile(percent));
            }
            System.out.println(line);
        }
    }

    public static void main(String[] words) throws Exception {
        random = new Random(Long.parseLong(words[1]));
        values = Integer.parseInt(words[2]);
        open(words[0] + "/v2.hdr");
        integers();
        log.close();
        open(words[0] + "/decimals.hdr");
        decimals();
        log.close();
        answer("v2.hdr", words[0] + "/v2.hdr");
        answer("decimals.hdr", words[0] + "/decimals.hdr");
    }
}
