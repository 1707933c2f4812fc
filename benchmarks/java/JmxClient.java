import com.sun.tools.attach.VirtualMachine;
import java.lang.management.ManagementFactory;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** What a monitoring script does today: attach to a PID, start its management agent, read every platform MBean. */
public final class JmxClient {
    private JmxClient() {}

    public static void main(String[] arguments) throws Exception {
        VirtualMachine target = VirtualMachine.attach(arguments[0]);
        String address = target.startLocalManagementAgent();
        target.detach();
        int values = 0;
        try (JMXConnector connector = JMXConnectorFactory.connect(new JMXServiceURL(address))) {
            MBeanServerConnection server = connector.getMBeanServerConnection();
            for (String pattern : new String[] {"java.lang:*", "java.nio:*"}) {
                for (ObjectName name : server.queryNames(new ObjectName(pattern), null)) {
                    MBeanAttributeInfo[] attributes = server.getMBeanInfo(name).getAttributes();
                    String[] names = new String[attributes.length];
                    for (int number = 0; number < names.length; number++) {
                        names[number] = attributes[number].getName();
                    }
                    values += server.getAttributes(name, names).size();
                }
            }
        }
        System.out.println(values + " values");
    }
}
