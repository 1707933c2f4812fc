import java.io.PrintStream;
import java.util.Random;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogReader;
import org.HdrHistogram.HistogramLogWriter;

/**
 * The same for HdrHistogram 1.2.1 (writes V0), 2.0.3 and 2.1.0 (read V0, write V1): `write FILE DIGITS` or `read FILE...`. They need
 * javax.xml.bind.DatatypeConverter, which JDK 11 and later have not.
 */
public class OldHdrOracle {
    public static void main(String[] words) throws Exception {
        if (words[0].equals("write")) {
            write(words[1], Integer.parseInt(words[2]));
            return;
        }
        for (int file = 1; file < words.length; file++) {
            Histogram sum = null;
            HistogramLogReader reader = new HistogramLogReader(words[file]);
            Histogram next;
            while ((next = (Histogram) reader.nextIntervalHistogram()) != null) {
                if (sum == null) {
                    sum = next.copy();
                    sum.reset();
                }
                sum.add(next);
            }
            StringBuilder line = new StringBuilder(words[file].replaceAll(".*/", "") + "\tnull");
            line.append("\t" + sum.getTotalCount() + "\t" + sum.getMinValue() + "\t" + sum.getMaxValue());
            line.append("\t" + sum.getMean() + "\t" + sum.getStdDeviation());
            for (double percent : new double[] {50, 90, 99, 99.9, 99.99}) {
                line.append("\t" + sum.getValueAtPercentile(percent));
            }
            System.out.println(line);
        }
    }

    static void write(String path, int digits) throws Exception {
        Random random = new Random(7);
        HistogramLogWriter log = new HistogramLogWriter(new PrintStream(path));
        log.outputLogFormatVersion();
        log.outputStartTime(1700000000127L);
        log.outputLegend();
        for (int interval = 0; interval < 4; interval++) {
            Histogram histogram = new Histogram(1L << (20 + digits * 4), digits);
            for (int k = 0; k < 37 + interval; k++) histogram.recordValue((long) (2000 * Math.exp(random.nextGaussian() * 1.5)));
            if (interval == 2) histogram.recordValueWithCount(777, 10000);
            histogram.setStartTimeStamp(1700000000127L + interval * 1000L);
            histogram.setEndTimeStamp(1700000000127L + interval * 1000L + 1000);
            log.outputIntervalHistogram(histogram);
        }
    }
}
