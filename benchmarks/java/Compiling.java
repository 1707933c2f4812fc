import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import javax.tools.JavaCompiler;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.StandardLocation;
import javax.tools.ToolProvider;

/** Compiling THREADS: each compiles 60 generated classes with javac, again and again. Needs a JDK. */
public final class Compiling {
    private Compiling() {}

    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(int number) {
            super(URI.create("string:///Shape" + number + ".java"), Kind.SOURCE);
            StringBuilder code = new StringBuilder("import java.util.*;\nimport java.util.function.*;\nimport java.util.stream.*;\n");
            code.append("public class Shape" + number + "<T extends Comparable<T>> {\n  private final Map<String, List<T>> known = new TreeMap<>();\n");
            for (int method = 0; method < 12; method++) {
                code.append("  public <R> List<R> map" + method + "(Function<? super T, ? extends R> how, Predicate<String> which) {\n");
                code.append("    int total = " + method + ";\n    for (String key : known.keySet()) { if (which.test(key)) total += key.length(); }\n");
                code.append("    String text = switched(total % 5) + total;\n    known.computeIfAbsent(text, key -> new ArrayList<>());\n");
                code.append("    return known.entrySet().stream().filter(each -> which.test(each.getKey()))");
                code.append(".flatMap(each -> each.getValue().stream()).sorted().<R>map(how).collect(Collectors.toList());\n  }\n");
            }
            code.append("  private static String switched(int n) { switch (n) { case 0: return \"none\"; case 1: return \"one\"; default: return \"many\"; } }\n}\n");
            text = code.toString();
        }

        @Override
        public CharSequence getCharContent(boolean ignore) {
            return text;
        }
    }

    public static void main(String[] arguments) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        List<JavaFileObject> sources = new ArrayList<>();
        for (int number = 0; number < 60; number++) {
            sources.add(new Source(number));
        }
        Path place = Path.of(arguments[1]);
        Counter.Work work = round -> {
            Path mine = Files.createDirectories(place.resolve(Thread.currentThread().getName()));
            try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, null)) {
                files.setLocation(StandardLocation.CLASS_OUTPUT, List.of(mine.toFile()));
                if (!compiler.getTask(null, files, null, null, null, sources).call()) {
                    throw new IllegalStateException("the sources do not compile");
                }
            }
        };
        Counter.serve("javac", Integer.parseInt(arguments[0]), work, "");
    }
}
