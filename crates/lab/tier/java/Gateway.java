
/**
 * A gateway of services: looks values up in memcached, calls a provider, answers; appended to Tomcat's launcher, and with
 * a class Application after it, which may have further callers. Java 8 compiles it, too.
 * A request says how often: gets and sets of the cache, path of the provider (without one it is not called), caller
 * (url, httpclient, httpclient3 or httpclient3-two). System properties: cache is memcached's HOST:PORT, client whalin or
 * spymemcached, provider the URL that paths are appended to, calls how many calls of the provider may be under way,
 * page.bytes the length of the answer.
 */
class Gateway extends javax.servlet.http.HttpServlet {
    private static final long serialVersionUID = 1;
    private static final int KEYS = 16;
    /** How many connections Commons HttpClient 3.1 has to a host unless it is told otherwise. */
    private static final int DEFAULT_OF_OLD = 2;

    private transient Cache cache;
    private transient java.util.Map<String, Caller> callers;
    private byte[] page;

    @Override
    public void init() throws javax.servlet.ServletException {
        try {
            String at = System.getProperty("cache");
            cache = System.getProperty("client").equals("whalin") ? whalin(at) : spymemcached(at);
            for (int key = 0; key < KEYS; key++) {
                cache.set("key" + key, text('x', 100));
            }
            callers = callers(Integer.getInteger("calls", 1024));
            page = text('x', Integer.getInteger("page.bytes", 347)).getBytes();
        } catch (Exception error) {
            throw new javax.servlet.ServletException(error);
        }
    }

    @Override
    protected void doGet(
        javax.servlet.http.HttpServletRequest request, javax.servlet.http.HttpServletResponse response
    ) throws javax.servlet.ServletException, java.io.IOException {
        try {
            for (int key = 0; key < number(request, "sets"); key++) {
                cache.set("key" + key % KEYS, text('y', 100));
            }
            for (int key = 0; key < number(request, "gets"); key++) {
                if (cache.get("key" + key % KEYS) == null) {
                    throw new java.io.IOException("memcached has no key" + key % KEYS);
                }
            }
            String path = request.getParameter("path");
            if (path != null && !path.isEmpty()) {
                String caller = request.getParameter("caller");
                callers.get(caller == null ? "url" : caller).call(System.getProperty("provider") + path);
            }
        } catch (java.io.IOException error) {
            throw error;
        } catch (Exception error) {
            throw new javax.servlet.ServletException(error);
        }
        response.setContentType("text/plain");
        response.setContentLength(page.length);
        response.getOutputStream().write(page);
    }

    /** The ways to call the provider, by name; so many calls may be under way. */
    java.util.Map<String, Caller> callers(int calls) {
        java.util.Map<String, Caller> all = new java.util.HashMap<String, Caller>();
        all.put("url", Gateway::byUrl);
        all.put("httpclient3", pooledByOld(calls));
        all.put("httpclient3-two", pooledByOld(DEFAULT_OF_OLD));
        return all;
    }

    private static String text(char letter, int length) {
        char[] letters = new char[length];
        java.util.Arrays.fill(letters, letter);
        return new String(letters);
    }

    private static int number(javax.servlet.http.HttpServletRequest request, String name) {
        String text = request.getParameter(name);
        return text == null ? 0 : Integer.parseInt(text);
    }

    interface Cache {
        Object get(String key) throws Exception;

        void set(String key, String value) throws Exception;
    }

    interface Caller {
        void call(String url) throws java.io.IOException;
    }

    /** Blocking connections from a pool, one for each operation under way. */
    private static Cache whalin(String at) {
        com.whalin.MemCached.SockIOPool pool = com.whalin.MemCached.SockIOPool.getInstance();
        pool.setServers(new String[] {at});
        pool.setInitConn(16);
        pool.setMinConn(16);
        pool.setMaxConn(1024);
        pool.setNagle(false);
        pool.initialize();
        com.whalin.MemCached.MemCachedClient client = new com.whalin.MemCached.MemCachedClient();
        return new Cache() {
            @Override
            public Object get(String key) {
                return client.get(key);
            }

            @Override
            public void set(String key, String value) throws java.io.IOException {
                if (!client.set(key, value)) {
                    throw new java.io.IOException("memcached did not store " + key);
                }
            }
        };
    }

    /** One connection for all operations, read and written by a thread of its own. */
    private static Cache spymemcached(String at) throws java.io.IOException {
        String[] parts = at.split(":");
        java.net.InetSocketAddress address = new java.net.InetSocketAddress(parts[0], Integer.parseInt(parts[1]));
        net.spy.memcached.MemcachedClient client = new net.spy.memcached.MemcachedClient(address);
        return new Cache() {
            @Override
            public Object get(String key) {
                return client.get(key);
            }

            @Override
            public void set(String key, String value) throws Exception {
                if (!client.set(key, 0, value).get()) {
                    throw new java.io.IOException("memcached did not store " + key);
                }
            }
        };
    }

    /** HttpURLConnection as it is: it keeps at most five idle connections to a host. */
    private static void byUrl(String url) throws java.io.IOException {
        java.net.HttpURLConnection connection = (java.net.HttpURLConnection) new java.net.URL(url).openConnection();
        if (connection.getResponseCode() != 200) {
            throw new java.io.IOException(url + " answers " + connection.getResponseCode());
        }
        byte[] part = new byte[8192];
        try (java.io.InputStream body = connection.getInputStream()) {
            while (body.read(part) >= 0) {
                continue;
            }
        }
    }

    /** Commons HttpClient 3.1, with so many connections to a host. */
    private static Caller pooledByOld(int calls) {
        org.apache.commons.httpclient.MultiThreadedHttpConnectionManager manager =
            new org.apache.commons.httpclient.MultiThreadedHttpConnectionManager();
        manager.getParams().setDefaultMaxConnectionsPerHost(calls);
        manager.getParams().setMaxTotalConnections(calls);
        org.apache.commons.httpclient.HttpClient client = new org.apache.commons.httpclient.HttpClient(manager);
        return url -> {
            org.apache.commons.httpclient.methods.GetMethod get =
                new org.apache.commons.httpclient.methods.GetMethod(url);
            try {
                int status = client.executeMethod(get);
                get.getResponseBody();
                if (status != 200) {
                    throw new java.io.IOException(url + " answers " + status);
                }
            } finally {
                get.releaseConnection();
            }
        };
    }
}
