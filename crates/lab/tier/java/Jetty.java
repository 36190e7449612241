import org.eclipse.jetty.ajp.Ajp13SocketConnector;
import org.eclipse.jetty.server.AbstractConnector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.nio.SelectChannelConnector;
import org.eclipse.jetty.servlet.ServletContextHandler;
import org.eclipse.jetty.servlet.ServletHolder;

/** Jetty 8 with {@link Application}; each argument is "http" or "ajp". */
class JettyLauncher {
    public static void main(String[] protocols) throws Exception {
        var server = new Server();
        for (String protocol : protocols) {
            AbstractConnector connector =
                protocol.equals("ajp") ? new Ajp13SocketConnector() : new SelectChannelConnector();
            connector.setHost("127.0.0.1");
            connector.setPort(0);
            // By default (8 KiB) it fails when it reads a head together with the first packet of a body.
            connector.setRequestHeaderSize(65_536);
            connector.setRequestBufferSize(65_536);
            server.addConnector(connector);
        }
        var context = new ServletContextHandler();
        context.setContextPath("/");
        var holder = new ServletHolder(new Application());
        holder.getRegistration().setMultipartConfig(Application.multipart());
        context.addServlet(holder, "/*");
        server.setHandler(context);
        server.start();
        var ready = new StringBuilder("ready");
        for (var connector : server.getConnectors()) {
            ready.append(' ').append(connector.getLocalPort());
        }
        System.out.println(ready);
        server.join();
    }
}
