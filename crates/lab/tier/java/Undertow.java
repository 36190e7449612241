import io.undertow.servlet.Servlets;
import java.net.InetSocketAddress;

/**
 * Undertow with {@link Application}; each argument is "http" or "ajp", in this order, or such a name=host:port.
 * System properties: threads is how many requests are served at once, backlog how many connections may wait to be
 * accepted, pages the folder of the application's files, route the jvmRoute behind session ids, as WildFly's
 * instance-id sets it; without one they have none.
 */
class UndertowLauncher {
    public static void main(String[] protocols) throws Exception {
        var servlet = Servlets.servlet("application", Application.class)
            .addMapping("/*")
            .setMultipartConfig(Application.multipart());
        var deployment = Servlets.deployment()
            .setClassLoader(UndertowLauncher.class.getClassLoader())
            .setContextPath("/")
            .setResourceManager(new io.undertow.server.handlers.resource.PathResourceManager(
                java.nio.file.Path.of(System.getProperty("pages", System.getProperty("java.io.tmpdir")))))
            .setDeploymentName("application")
            .addServlet(servlet);
        var manager = Servlets.defaultContainer().addDeployment(deployment);
        manager.deploy();
        io.undertow.server.HttpHandler handler = manager.start();
        String route = System.getProperty("route");
        if (route != null) {
            handler = new io.undertow.server.JvmRouteHandler(handler, "JSESSIONID", route);
        }
        var builder = io.undertow.Undertow.builder()
            .setIoThreads(2)
            .setWorkerThreads(Integer.getInteger("threads", 8))
            .setSocketOption(org.xnio.Options.BACKLOG, Integer.getInteger("backlog", 1000))
            .setHandler(handler);
        for (String argument : protocols) {
            String[] parts = argument.split("[=:]");
            String host = parts.length > 2 ? parts[1] : "127.0.0.1";
            int port = parts.length > 2 ? Integer.parseInt(parts[2]) : 0;
            if (parts[0].equals("ajp")) {
                builder.addAjpListener(port, host);
            } else {
                builder.addHttpListener(port, host);
            }
        }
        var server = builder.build();
        server.start();
        var ready = new StringBuilder("ready");
        for (var listener : server.getListenerInfo()) {
            ready.append(' ').append(((InetSocketAddress) listener.getAddress()).getPort());
        }
        System.out.println(ready);
    }
}
