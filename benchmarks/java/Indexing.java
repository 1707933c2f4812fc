import java.util.Random;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;

/** Indexing THREADS: each indexes 2,000 documents of 60 words with Lucene, in memory, and searches them. */
public final class Indexing {
    private Indexing() {}

    private static String text(Random random) {
        StringBuilder text = new StringBuilder();
        for (int word = 0; word < 60; word++) {
            double rank = Math.exp(random.nextDouble() * Math.log(20_000)); // as in natural language
            text.append("word").append(Integer.toString((int) rank * 7919 % 1_000_003, 36)).append(word % 12 == 11 ? ". " : " ");
        }
        return text.toString();
    }

    private static void once(long round) throws Exception {
        Random random = new Random(round);
        try (ByteBuffersDirectory directory = new ByteBuffersDirectory()) {
            try (IndexWriter writer = new IndexWriter(directory, new IndexWriterConfig(new StandardAnalyzer()))) {
                for (int id = 0; id < 2_000; id++) {
                    Document document = new Document();
                    document.add(new StringField("id", Integer.toString(id), Field.Store.YES));
                    document.add(new TextField("body", text(random), Field.Store.YES));
                    document.add(new NumericDocValuesField("size", random.nextInt(1_000)));
                    writer.addDocument(document);
                }
                writer.forceMerge(1);
            }
            try (DirectoryReader reader = DirectoryReader.open(directory)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                for (int query = 1; query < 200; query++) {
                    BooleanQuery.Builder both = new BooleanQuery.Builder();
                    for (int rank : new int[] {1, query}) {
                        String word = "word" + Integer.toString(rank * 7919 % 1_000_003, 36);
                        both.add(new TermQuery(new Term("body", word)), BooleanClause.Occur.SHOULD);
                    }
                    searcher.search(both.build(), 10);
                }
            }
        }
    }

    public static void main(String[] arguments) throws Exception {
        Counter.serve("index", Integer.parseInt(arguments[0]), Indexing::once, "");
    }
}
