import java.io.PrintStream;
import java.util.Random;
import org.HdrHistogram.DoubleHistogram;
import org.HdrHistogram.Histogram;
import org.HdrHistogram.HistogramLogWriter;

/** Writes the logs of tests/fixtures/hdr into a directory: throttle.hdr (three tags, ns), before.hdr, double.hdr (seconds). */
public class LatencyLogs {
    static final long BEGIN_MS = 1700000000000L;

    static HistogramLogWriter log(String path, long begin) throws Exception {
        HistogramLogWriter log = new HistogramLogWriter(new PrintStream(path));
        log.outputComment("[Logged with a test]");
        log.outputLogFormatVersion();
        log.outputStartTime(begin);
        log.setBaseTime(begin);
        log.outputLegend();
        return log;
    }

    static void tagged(String path, long begin, double slower) throws Exception {
        HistogramLogWriter log = log(path, begin);
        Random random = new Random(20);
        for (int second = 0; second < 12; second++)
            for (String tag : new String[] {"READ-rt", "READ-st", "WRITE-rt"}) {
                Histogram one = new Histogram(3600L * 1000 * 1000 * 1000, 3);
                double scale = tag.equals("READ-st") ? 80e3 : tag.equals("READ-rt") ? 200e3 * slower : 400e3;
                for (int each = 0; each < 300; each++) {
                    long stall = second == 7 && !tag.equals("READ-st") && each < 20 ? 40L * 1000 * 1000 : 0;
                    one.recordValue((long) (scale * Math.exp(random.nextGaussian() * 0.5)) + stall);
                }
                one.setTag(tag);
                one.setStartTimeStamp(begin + second * 1000);
                one.setEndTimeStamp(begin + second * 1000 + 1000);
                log.outputIntervalHistogram(one);
            }
        log.close();
    }

    public static void main(String[] words) throws Exception {
        tagged(words[0] + "/throttle.hdr", BEGIN_MS, 1);
        tagged(words[0] + "/before.hdr", BEGIN_MS - 86400000, 0.5);
        HistogramLogWriter log = log(words[0] + "/double.hdr", BEGIN_MS);
        Random random = new Random(21);
        for (int second = 0; second < 5; second++) {
            DoubleHistogram one = new DoubleHistogram(3);
            for (int each = 0; each < 200; each++) one.recordValue(0.0002 * Math.exp(random.nextGaussian()));
            log.outputIntervalHistogram(second, second + 1.0, one, 0.001);
        }
        log.close();
    }
}
