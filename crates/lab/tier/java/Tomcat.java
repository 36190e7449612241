import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;

/**
 * Tomcat 7 to 11 with {@link Application}; each argument is the protocol of one connector, or protocol=host:port.
 * System properties: connector.NAME is an attribute of every connector that has it, context is the path of the
 * application, pages the folder of its files. Java 8 compiles it, too.
 */
class TomcatLauncher {
    public static void main(String[] protocols) throws Exception {
        org.apache.catalina.startup.Tomcat tomcat = new org.apache.catalina.startup.Tomcat();
        String base = System.getProperty("java.io.tmpdir");
        tomcat.setBaseDir(base);
        if (String.join(" ", protocols).contains("Apr")) {
            tomcat.getServer().addLifecycleListener(new org.apache.catalina.core.AprLifecycleListener());
        }
        java.util.List<Connector> connectors = new java.util.ArrayList<Connector>();
        for (String argument : protocols) {
            String[] parts = argument.split("[=:]");
            String protocol = parts[0];
            Connector connector = new Connector(protocol);
            connector.setPort(parts.length > 2 ? Integer.parseInt(parts[2]) : 0);
            connector.setProperty("address", parts.length > 2 ? parts[1] : "127.0.0.1");
            for (String name : System.getProperties().stringPropertyNames()) {
                if (name.startsWith("connector.")) {
                    connector.setProperty(name.substring("connector.".length()), System.getProperty(name));
                }
            }
            if (protocol.contains("ajp")) {
                connector.setProperty("secretRequired", "false");
            } else {
                connector.setProperty("relaxedQueryChars", "\"<>[\\]^`{|}");
            }
            tomcat.getService().addConnector(connector);
            tomcat.setConnector(connector);
            connectors.add(connector);
        }
        Context context = tomcat.addContext(System.getProperty("context", ""), System.getProperty("pages", base));
        context.addMimeMapping("html", "text/html");
        context.addWelcomeFile("index.html");
        Wrapper wrapper = org.apache.catalina.startup.Tomcat.addServlet(context, "application", new Application());
        wrapper.setMultipartConfigElement(Application.multipart());
        wrapper.addMapping("/");
        tomcat.start();
        StringBuilder ready = new StringBuilder("ready");
        for (Connector connector : connectors) {
            ready.append(' ').append(port(connector));
        }
        System.out.println(ready);
        tomcat.getServer().await();
    }

    /** The port that a connector listens at; early releases of Tomcat 7 know only the one that they were told. */
    private static Object port(Connector connector) throws Exception {
        try {
            return Connector.class.getMethod("getLocalPort").invoke(connector);
        } catch (NoSuchMethodException early) {
            return connector.getPort();
        }
    }
}
