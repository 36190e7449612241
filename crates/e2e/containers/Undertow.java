import io.undertow.servlet.Servlets;
import java.net.InetSocketAddress;

/** Undertow with {@link Application}; each argument is "http" or "ajp", in this order. */
class UndertowLauncher {
    public static void main(String[] protocols) throws Exception {
        var servlet = Servlets.servlet("application", Application.class)
            .addMapping("/*")
            .setMultipartConfig(Application.multipart());
        var deployment = Servlets.deployment()
            .setClassLoader(UndertowLauncher.class.getClassLoader())
            .setContextPath("/")
            .setDeploymentName("application")
            .addServlet(servlet);
        var manager = Servlets.defaultContainer().addDeployment(deployment);
        manager.deploy();
        var builder = io.undertow.Undertow.builder().setIoThreads(2).setWorkerThreads(8).setHandler(manager.start());
        for (String protocol : protocols) {
            if (protocol.equals("ajp")) {
                builder.addAjpListener(0, "127.0.0.1");
            } else {
                builder.addHttpListener(0, "127.0.0.1");
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
