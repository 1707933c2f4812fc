import java.io.PrintStream;
import java.util.Random;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogWriter;

/** Writes a log of latencies in ns: arguments FILE INTERVALS VALUES (of an interval). */
public class LatencyLog {
    public static void main(String[] words) throws Exception {
        int intervals = Integer.parseInt(words[1]), values = Integer.parseInt(words[2]);
        long begin = 1700000000000L;
        HistogramLogWriter log = new HistogramLogWriter(new PrintStream(words[0]));
        log.outputLogFormatVersion();
        log.outputStartTime(begin);
        log.setBaseTime(begin);
        log.outputLegend();
        Random random = new Random(7);
        for (int interval = 0; interval < intervals; interval++) {
            Histogram histogram = new Histogram(3600000000000L, 3);
            for (int k = 0; k < values; k++) {
                long stall = random.nextInt(1000) == 0 ? 50000000L : 0;
                histogram.recordValue((long) (200000 * Math.exp(random.nextGaussian() * 1.2)) + stall);
            }
            histogram.setStartTimeStamp(begin + interval * 1000L);
            histogram.setEndTimeStamp(begin + interval * 1000L + 1000);
            log.outputIntervalHistogram(histogram);
        }
        log.close();
    }
}
