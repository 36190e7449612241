import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.io.FileInputStream;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Makes requests to the origin `args[0]`, whose certificate is the file `args[1]`; prints versions and lengths. */
class JdkClient {
    public static void main(String[] args) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (FileInputStream chain = new FileInputStream(args[1])) {
            trusted.setCertificateEntry("front", CertificateFactory.getInstance("X.509").generateCertificate(chain));
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        HttpClient client = HttpClient.newBuilder().sslContext(tls).build();
        HttpRequest get = HttpRequest.newBuilder(URI.create(args[0] + "/bytes/30000")).build();
        HttpRequest large = HttpRequest.newBuilder(URI.create(args[0] + "/bytes/3000000")).build();
        HttpRequest post = HttpRequest.newBuilder(URI.create(args[0] + "/echo"))
            .POST(BodyPublishers.ofByteArray(new byte[1000000])).build();
        Stream.of(get, large, post).map(it -> client.sendAsync(it, BodyHandlers.ofByteArray()))
            .forEachOrdered(JdkClient::print);
        Stream.generate(() -> client.sendAsync(get, BodyHandlers.ofByteArray())).limit(50).toList()
            .forEach(JdkClient::print);
    }

    private static void print(CompletableFuture<HttpResponse<byte[]>> sent) {
        HttpResponse<byte[]> response = sent.join();
        System.out.println(response.version() + " " + response.statusCode() + " " + response.body().length);
    }
}
