import org.HdrHistogram.*;
import java.util.Random;

/** Writes histograms, each as a line of its facts and cells, then its percentile distribution: tests/fixtures/hdr/distributions.txt.gz. */
public class Distributions {
    public static void main(String[] words) {
        Random random = new Random(20);
        for (int number = 0; number < 14; number++) {
            int digits = 1 + number % 5;
            Histogram all = new Histogram(1L << (20 + number % 20), digits);
            all.setAutoResize(true);
            int size = number == 0 ? 0 : number < 4 ? number : 1 << (number + 1);
            for (int each = 0; each < size; each++) all.recordValue((long) (Math.exp(random.nextGaussian() * 2 + 8)));
            double scale = number % 3 == 0 ? 1 : number % 3 == 1 ? 1e6 : 1e-3;
            StringBuilder cells = new StringBuilder();
            for (HistogramIterationValue each : all.recordedValues())
                cells.append(' ').append(each.getValueIteratedTo()).append(':').append(each.getTotalCountToThisValue());
            java.io.ByteArrayOutputStream out = new java.io.ByteArrayOutputStream();
            all.outputPercentileDistribution(new java.io.PrintStream(out), 5, scale, false);
            String text = out.toString();
            String last = text.trim();
            String buckets = last.substring(last.lastIndexOf("#[Buckets = ") + 12, last.lastIndexOf(",")).trim();
            System.out.println("= " + digits + " " + scale + " " + buckets + " " + all.getTotalCount() + " " + all.getMean() + " " + all.getStdDeviation() + " " + all.getMaxValue() + cells);
            System.out.print(text);
        }
    }
}
