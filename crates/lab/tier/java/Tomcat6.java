import org.apache.catalina.Engine;
import org.apache.catalina.Host;
import org.apache.catalina.Wrapper;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Embedded;

/**
 * Tomcat 6 with {@link Application}; each argument is protocol=host:port of one connector. The system properties are
 * those of the launcher of Tomcat 7. Java 8 compiles it, too.
 */
class TomcatLauncher {
    public static void main(String[] protocols) throws Exception {
        String base = System.getProperty("java.io.tmpdir");
        Embedded tomcat = new Embedded();
        tomcat.setCatalinaHome(base);
        tomcat.setCatalinaBase(base);
        Engine engine = tomcat.createEngine();
        engine.setName("tomcat");
        Host host = tomcat.createHost("localhost", base);
        engine.addChild(host);
        engine.setDefaultHost("localhost");
        org.apache.catalina.core.StandardContext context = new org.apache.catalina.core.StandardContext();
        context.setPath(System.getProperty("context", ""));
        context.setDocBase(System.getProperty("pages", base));
        context.setParentClassLoader(TomcatLauncher.class.getClassLoader());
        // Otherwise a context reads web.xml, and waits to be configured by what it says.
        context.addLifecycleListener(event -> {
            if (org.apache.catalina.Lifecycle.START_EVENT.equals(event.getType())) {
                context.setConfigured(true);
            }
        });
        host.addChild(context);
        Wrapper wrapper = context.createWrapper();
        wrapper.setName("application");
        wrapper.setServletClass("Application");
        wrapper.setLoadOnStartup(1);
        context.addChild(wrapper);
        context.addServletMapping("/", "application");
        tomcat.addEngine(engine);
        // Connectors on the native library take it as it is: a listener of the server's file loads it otherwise.
        if (String.join(" ", protocols).contains("Apr")) {
            org.apache.tomcat.jni.Library.initialize(null);
        }
        for (String argument : protocols) {
            String[] parts = argument.split("[=:]");
            Connector connector = new Connector(parts[0]);
            connector.setPort(Integer.parseInt(parts[2]));
            connector.setProperty("address", parts[1]);
            for (String name : System.getProperties().stringPropertyNames()) {
                if (name.startsWith("connector.")) {
                    connector.setProperty(name.substring("connector.".length()), System.getProperty(name));
                }
            }
            tomcat.addConnector(connector);
        }
        tomcat.start();
        System.out.println("ready");
        Thread.currentThread().join();
    }
}
