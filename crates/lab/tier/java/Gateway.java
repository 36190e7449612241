
/**
 * A gateway of services: looks values up in memcached, calls a provider, answers; appended to Tomcat's launcher.
 * A request says how often: gets and sets of the cache, path of the provider (without one it is not called), caller
 * (url or httpclient). System properties: cache is memcached's HOST:PORT, client whalin or spymemcached, provider the
 * URL that paths are appended to, calls how many calls of the provider may be under way, page.bytes the length of
 * the answer.
 */
class Application extends javax.servlet.http.HttpServlet {
    private static final long serialVersionUID = 1;
    private static final int KEYS = 16;

    private transient Cache cache;
    private transient Caller url;
    private transient Caller httpClient;
    private byte[] page;

    static javax.servlet.MultipartConfigElement multipart() {
        return new javax.servlet.MultipartConfigElement(System.getProperty("java.io.tmpdir"));
    }

    @Override
    public void init() throws javax.servlet.ServletException {
        try {
            String at = System.getProperty("cache");
            cache = System.getProperty("client").equals("whalin") ? whalin(at) : spymemcached(at);
            for (int key = 0; key < KEYS; key++) {
                cache.set("key" + key, "x".repeat(100));
            }
            url = Application::byUrl;
            httpClient = pooled(Integer.getInteger("calls", 1024));
            page = "x".repeat(Integer.getInteger("page.bytes", 347)).getBytes();
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
                cache.set("key" + key % KEYS, "y".repeat(100));
            }
            for (int key = 0; key < number(request, "gets"); key++) {
                if (cache.get("key" + key % KEYS) == null) {
                    throw new java.io.IOException("memcached has no key" + key % KEYS);
                }
            }
            String path = request.getParameter("path");
            if (path != null && !path.isEmpty()) {
                boolean isPooled = "httpclient".equals(request.getParameter("caller"));
                (isPooled ? httpClient : url).call(System.getProperty("provider") + path);
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
        var pool = com.whalin.MemCached.SockIOPool.getInstance();
        pool.setServers(new String[] {at});
        pool.setInitConn(16);
        pool.setMinConn(16);
        pool.setMaxConn(1024);
        pool.setNagle(false);
        pool.initialize();
        var client = new com.whalin.MemCached.MemCachedClient();
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
        var address = new java.net.InetSocketAddress(parts[0], Integer.parseInt(parts[1]));
        var client = new net.spy.memcached.MemcachedClient(address);
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
        var connection = (java.net.HttpURLConnection) new java.net.URL(url).openConnection();
        if (connection.getResponseCode() != 200) {
            throw new java.io.IOException(url + " answers " + connection.getResponseCode());
        }
        try (var body = connection.getInputStream()) {
            body.readAllBytes();
        }
    }

    /** Apache HttpClient with a pool that is as large as needed. */
    private static Caller pooled(int calls) {
        var client = org.apache.http.impl.client.HttpClients.custom()
            .setMaxConnTotal(calls)
            .setMaxConnPerRoute(calls)
            .build();
        return url -> {
            try (var response = client.execute(new org.apache.http.client.methods.HttpGet(url))) {
                int status = response.getStatusLine().getStatusCode();
                org.apache.http.util.EntityUtils.consume(response.getEntity());
                if (status != 200) {
                    throw new java.io.IOException(url + " answers " + status);
                }
            }
        };
    }
}
