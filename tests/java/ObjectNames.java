import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/**
 * Answers of ObjectName: arguments are a file of names and one of patterns, a line each. Prints the canonical name of each name, then
 * for each pattern the numbers of the names that it matches, or null. Made tests/fixtures/jmx/object-names.json.
 */
public final class ObjectNames {
    private ObjectNames() {}

    public static void main(String[] arguments) throws Exception {
        List<ObjectName> names = new ArrayList<>();
        for (String line : Files.readAllLines(Paths.get(arguments[0]))) {
            names.add(new ObjectName(line));
            System.out.println(names.get(names.size() - 1).getCanonicalName());
        }
        for (String line : Files.readAllLines(Paths.get(arguments[1]))) {
            List<Integer> matching = new ArrayList<>();
            try {
                ObjectName pattern = new ObjectName(line);
                for (int number = 0; number < names.size(); number++) {
                    if (pattern.apply(names.get(number))) {
                        matching.add(number);
                    }
                }
                System.out.println(matching);
            } catch (MalformedObjectNameException error) {
                System.out.println("null");
            }
        }
    }
}
