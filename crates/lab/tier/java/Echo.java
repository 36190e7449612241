import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** Sends back what it receives, in one of four ways: arguments are tcp or udp, bio or nio, HOST:PORT. */
class Echo {
    private static final int BUFFER = 64 * 1024;

    public static void main(String[] args) throws Exception {
        String[] parts = args[2].split(":");
        var address = new InetSocketAddress(parts[0], Integer.parseInt(parts[1]));
        switch (args[0] + " " + args[1]) {
            case "tcp bio" -> blocking(address);
            case "tcp nio" -> ready(address);
            case "udp bio" -> blockingDatagrams(address);
            case "udp nio" -> readyDatagrams(address);
            default -> throw new IllegalArgumentException(args[0] + " " + args[1]);
        }
    }

    /** A thread for each connection. */
    private static void blocking(InetSocketAddress address) throws IOException {
        try (var server = new ServerSocket()) {
            server.bind(address, 4096);
            while (true) {
                Socket client = server.accept();
                new Thread(() -> serve(client)).start();
            }
        }
    }

    private static void serve(Socket client) {
        try (client) {
            client.setTcpNoDelay(true);
            var input = client.getInputStream();
            var output = client.getOutputStream();
            byte[] buffer = new byte[BUFFER];
            for (int count = input.read(buffer); count > 0; count = input.read(buffer)) {
                output.write(buffer, 0, count);
            }
        } catch (IOException error) {
            // The client has gone.
        }
    }

    /** One thread for all connections that have something to read. */
    private static void ready(InetSocketAddress address) throws IOException {
        var selector = Selector.open();
        var server = ServerSocketChannel.open();
        server.bind(address, 4096);
        server.configureBlocking(false);
        server.register(selector, SelectionKey.OP_ACCEPT);
        var buffer = ByteBuffer.allocateDirect(BUFFER);
        while (true) {
            selector.select(key -> {
                try {
                    if (key.isAcceptable()) {
                        SocketChannel client = server.accept();
                        client.configureBlocking(false);
                        client.socket().setTcpNoDelay(true);
                        client.register(selector, SelectionKey.OP_READ);
                    } else {
                        serve(key, buffer);
                    }
                } catch (IOException error) {
                    key.cancel();
                }
            });
        }
    }

    private static void serve(SelectionKey key, ByteBuffer buffer) throws IOException {
        var client = (SocketChannel) key.channel();
        buffer.clear();
        if (client.read(buffer) < 0) {
            client.close();
            return;
        }
        buffer.flip();
        // A client has one message under way, for which there is room.
        while (buffer.hasRemaining()) {
            client.write(buffer);
        }
    }

    /** One thread that waits for the next datagram. */
    private static void blockingDatagrams(InetSocketAddress address) throws IOException {
        try (var proof = new ServerSocket(); var socket = new DatagramSocket(address)) {
            listening(proof, address);
            var packet = new DatagramPacket(new byte[BUFFER], BUFFER);
            while (true) {
                packet.setLength(BUFFER);
                socket.receive(packet);
                socket.send(packet);
            }
        }
    }

    /** One thread that waits until the socket has datagrams. */
    private static void readyDatagrams(InetSocketAddress address) throws IOException {
        try (var proof = new ServerSocket(); var channel = DatagramChannel.open()) {
            channel.bind(address);
            channel.configureBlocking(false);
            listening(proof, address);
            var selector = Selector.open();
            channel.register(selector, SelectionKey.OP_READ);
            var buffer = ByteBuffer.allocateDirect(BUFFER);
            while (true) {
                selector.select();
                selector.selectedKeys().clear();
                buffer.clear();
                var client = channel.receive(buffer);
                while (client != null) {
                    buffer.flip();
                    channel.send(buffer, client);
                    buffer.clear();
                    client = channel.receive(buffer);
                }
            }
        }
    }

    /** Shows by TCP that the datagrams' socket is there. */
    private static void listening(ServerSocket proof, InetSocketAddress address) throws IOException {
        proof.bind(address);
    }
}
