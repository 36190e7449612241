import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Threads that set and get values in memcached. Arguments: HOST:PORT of the HTTP server, HOST:PORT of memcached, client (whalin,
 * spymemcached, xmemcached, ours), sharing (shared, pooled), threads, pairs of set and get of each thread for a request,
 * bytes of a value, and the program that is our client. A get that finds another value than was set fails the request.
 */
class MemcachedClients {
    private static final int POOLED = 50;

    private interface Work {
        void run() throws Exception;
    }

    private interface Cache {
        Object get(String key) throws Exception;

        boolean set(String key, String value) throws Exception;
    }

    public static void main(String[] args) throws Exception {
        int threads = Integer.parseInt(args[4]);
        int pairs = Integer.parseInt(args[5]);
        int connections = args[3].equals("shared") ? 1 : POOLED;
        String value = "v".repeat(Integer.parseInt(args[6]));
        Work work = switch (args[2]) {
            case "ours" -> ours(args[7], args[1], threads, pairs, value.length());
            case "whalin" -> inThreads(List.of(whalin(args[1], connections)), threads, pairs, value);
            case "spymemcached" -> inThreads(spymemcached(args[1], connections), threads, pairs, value);
            case "xmemcached" -> inThreads(List.of(xmemcached(args[1], connections)), threads, pairs, value);
            default -> throw new IllegalArgumentException(args[2]);
        };
        serve(address(args[0]), work);
    }

    /** Each thread does its pairs, on the cache that falls to it. */
    private static Work inThreads(List<Cache> caches, int threads, int pairs, String value) {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        List<Callable<Void>> tasks = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            Cache cache = caches.get(thread % caches.size());
            String key = "thread" + thread + ":";
            tasks.add(() -> {
                for (int pair = 0; pair < pairs; pair++) {
                    if (!cache.set(key + pair, value)) {
                        throw new IOException("memcached did not store " + key + pair);
                    }
                    if (!value.equals(cache.get(key + pair))) {
                        throw new IOException("memcached has another " + key + pair);
                    }
                }
                return null;
            });
        }
        return () -> {
            for (Future<Void> done : pool.invokeAll(tasks)) {
                done.get();
            }
        };
    }

    /** The load generator does as much: operations in turn, a connection for each of its clients. */
    private static Work ours(String program, String at, int threads, int pairs, int valueBytes) {
        String[] command = {
            program, "bench", "--quiet", "-W", "1", "-c", "" + threads, "-n", "" + 2 * pairs, "--mix", "set=1,get=1", "--prefill",
            "--keys", "" + threads, "--value", "" + valueBytes, "memcached://" + at + "/",
        };
        return () -> {
            Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            String said = new String(process.getInputStream().readAllBytes());
            if (process.waitFor() != 0) {
                throw new IOException(said);
            }
        };
    }

    /** Blocking connections from a pool; whoever finds none waits for one. */
    private static Cache whalin(String at, int connections) {
        var pool = com.whalin.MemCached.SockIOPool.getInstance();
        pool.setServers(new String[] {at});
        pool.setInitConn(connections);
        pool.setMinConn(connections);
        pool.setMaxConn(connections);
        pool.setMaxBusyTime(60_000);
        pool.setNagle(false);
        pool.initialize();
        var client = new com.whalin.MemCached.MemCachedClient();
        return new Cache() {
            @Override
            public Object get(String key) {
                return client.get(key);
            }

            @Override
            public boolean set(String key, String value) {
                return client.set(key, value);
            }
        };
    }

    /** Each has one connection, read and written by a thread of its own. */
    private static List<Cache> spymemcached(String at, int connections) throws IOException {
        List<Cache> caches = new ArrayList<>();
        for (int connection = 0; connection < connections; connection++) {
            var factory = new net.spy.memcached.ConnectionFactoryBuilder().setOpTimeout(60_000).setDaemon(true).build();
            var client = new net.spy.memcached.MemcachedClient(factory, List.of(address(at)));
            caches.add(new Cache() {
                @Override
                public Object get(String key) {
                    return client.get(key);
                }

                @Override
                public boolean set(String key, String value) throws Exception {
                    return client.set(key, 0, value).get();
                }
            });
        }
        return caches;
    }

    /** Connections that threads of their own read; a call takes one of them. */
    private static Cache xmemcached(String at, int connections) throws IOException {
        var builder = new net.rubyeye.xmemcached.XMemcachedClientBuilder(List.of(address(at)));
        builder.setConnectionPoolSize(connections);
        builder.setOpTimeout(60_000);
        var client = builder.build();
        return new Cache() {
            @Override
            public Object get(String key) throws Exception {
                return client.get(key);
            }

            @Override
            public boolean set(String key, String value) throws Exception {
                return client.set(key, 0, value);
            }
        };
    }

    private static InetSocketAddress address(String text) {
        String[] parts = text.split(":");
        return new InetSocketAddress(parts[0], Integer.parseInt(parts[1]));
    }

    private static void serve(InetSocketAddress address, Work work) throws IOException {
        var server = HttpServer.create(address, 64);
        server.createContext("/run", exchange -> answer(exchange, work));
        server.start();
    }

    private static void answer(HttpExchange exchange, Work work) throws IOException {
        int status = 200;
        byte[] text = "done\n".getBytes();
        try {
            work.run();
        } catch (Exception error) {
            status = 500;
            text = (error + "\n").getBytes();
            System.err.println("a request failed: " + error);
        }
        exchange.sendResponseHeaders(status, text.length);
        try (var body = exchange.getResponseBody()) {
            body.write(text);
        }
    }
}
