import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.file.Files;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.ThreadLocalRandom;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** A web shop on Tomcat, HikariCP and an H2 database in memory. Prints READY and its port. */
public final class Shop extends HttpServlet {
    private static final int ITEMS = 20_000;
    private final HikariDataSource pool;

    private Shop(HikariDataSource pool) {
        this.pool = pool;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        int item = ThreadLocalRandom.current().nextInt(ITEMS);
        try (Connection connection = pool.getConnection()) {
            if (item % 10 == 0) {
                order(connection, item);
            }
            response.setContentType("text/plain");
            response.getWriter().write(describe(connection, item));
        } catch (SQLException error) {
            throw new IOException(error);
        }
    }

    private static void order(Connection connection, int item) throws SQLException {
        try (PreparedStatement order = connection.prepareStatement("update item set sold = sold + 1 where id = ?")) {
            order.setInt(1, item);
            order.executeUpdate();
        }
    }

    private static String describe(Connection connection, int item) throws SQLException {
        StringBuilder page = new StringBuilder();
        try (PreparedStatement query = connection.prepareStatement("select id, name, sold from item where id between ? and ?")) {
            query.setInt(1, item);
            query.setInt(2, item + 50);
            try (ResultSet rows = query.executeQuery()) {
                while (rows.next()) {
                    page.append(rows.getInt(1)).append(' ').append(rows.getString(2)).append(' ').append(rows.getInt(3)).append('\n');
                }
            }
        }
        return page.toString();
    }

    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:h2:mem:shop;DB_CLOSE_DELAY=-1");
        config.setMaximumPoolSize(20);
        HikariDataSource pool = new HikariDataSource(config);
        try (Connection connection = pool.getConnection()) {
            connection.createStatement().execute("create table item(id int primary key, name varchar(40), sold int)");
            connection.createStatement().execute("insert into item select x, 'item ' || x, 0 from system_range(0, " + ITEMS + ")");
        }
        Tomcat tomcat = new Tomcat();
        String base = Files.createTempDirectory("shop").toString();
        tomcat.setBaseDir(base);
        tomcat.setPort(0);
        Context context = tomcat.addContext("", base);
        Tomcat.addServlet(context, "shop", new Shop(pool));
        context.addServletMappingDecoded("/", "shop");
        tomcat.getConnector();
        tomcat.start();
        System.out.println("READY " + tomcat.getConnector().getLocalPort());
        tomcat.getServer().await();
    }
}
