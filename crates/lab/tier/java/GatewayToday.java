
/** The gateway with a client of today, too; appended to Gateway. */
class Application extends Gateway {
    private static final long serialVersionUID = 1;

    static javax.servlet.MultipartConfigElement multipart() {
        return new javax.servlet.MultipartConfigElement(System.getProperty("java.io.tmpdir"));
    }

    @Override
    java.util.Map<String, Caller> callers(int calls) {
        java.util.Map<String, Caller> all = super.callers(calls);
        all.put("httpclient", pooled(calls));
        return all;
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
