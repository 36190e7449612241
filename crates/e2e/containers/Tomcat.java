import org.apache.catalina.Context;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;

/** Tomcat 7 to 11 with {@link Application}; each argument is the protocol of one connector. */
class TomcatLauncher {
    public static void main(String[] protocols) throws Exception {
        var tomcat = new org.apache.catalina.startup.Tomcat();
        String base = System.getProperty("java.io.tmpdir");
        tomcat.setBaseDir(base);
        var connectors = new java.util.ArrayList<Connector>();
        for (String protocol : protocols) {
            var connector = new Connector(protocol);
            connector.setPort(0);
            connector.setProperty("address", "127.0.0.1");
            if (protocol.contains("ajp")) {
                connector.setProperty("secretRequired", "false");
            } else {
                connector.setProperty("relaxedQueryChars", "\"<>[\\]^`{|}");
            }
            tomcat.getService().addConnector(connector);
            tomcat.setConnector(connector);
            connectors.add(connector);
        }
        Context context = tomcat.addContext("", base);
        Wrapper wrapper = org.apache.catalina.startup.Tomcat.addServlet(context, "application", new Application());
        wrapper.setMultipartConfigElement(Application.multipart());
        wrapper.addMapping("/");
        tomcat.start();
        var ready = new StringBuilder("ready");
        for (Connector connector : connectors) {
            ready.append(' ').append(connector.getLocalPort());
        }
        System.out.println(ready);
        tomcat.getServer().await();
    }
}
