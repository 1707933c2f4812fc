import java.io.StringReader;
import java.sql.Connection;
import java.sql.DriverManager;
import java.util.Random;
import org.h2.tools.RunScript;

/** Database THREADS: each runs a script of inserts, updates, joins and an index on its own H2 database in memory. */
public final class Database {
    private Database() {}

    private static String script(Random random) {
        StringBuilder text = new StringBuilder("drop all objects;\n");
        text.append("create table customer(id int primary key, name varchar(40), city varchar(20));\n");
        text.append("create table orders(id int primary key, customer int, amount decimal(10,2), note varchar(80));\n");
        for (int id = 0; id < 300; id++) {
            text.append("insert into customer values(" + id + ", 'name " + random.nextInt(1000) + "', 'city " + id % 17 + "');\n");
        }
        for (int id = 0; id < 2_000; id++) {
            text.append("insert into orders values(" + id + ", " + random.nextInt(300) + ", " + random.nextInt(100_000) / 100.0);
            text.append(", 'order ''" + random.nextLong() + "'' from the shop');\n");
        }
        text.append("create index by_customer on orders(customer);\n");
        for (int query = 0; query < 60; query++) {
            text.append("update orders set amount = amount * 1.1 where customer = " + random.nextInt(300) + ";\n");
            text.append("select c.name, sum(o.amount) from customer c join orders o on o.customer = c.id where c.city = 'city ");
            text.append(query % 17 + "' group by c.name having sum(o.amount) > 10 order by 2 desc;\n");
            text.append("select count(*) from orders where upper(note) like '%" + query + "%SHOP' and amount > 100;\n");
        }
        return text.toString();
    }

    public static void main(String[] arguments) throws Exception {
        String[] scripts = new String[8];
        for (int number = 0; number < scripts.length; number++) {
            scripts[number] = script(new Random(number));
        }
        ThreadLocal<Connection> connections = ThreadLocal.withInitial(Database::open);
        Counter.Work work = round -> RunScript.execute(connections.get(), new StringReader(scripts[(int) (round / 1_000) % 8]));
        Counter.serve("script", Integer.parseInt(arguments[0]), work, "");
    }

    private static Connection open() {
        try {
            return DriverManager.getConnection("jdbc:h2:mem:" + Thread.currentThread().getName());
        } catch (Exception error) {
            throw new IllegalStateException(error);
        }
    }
}
