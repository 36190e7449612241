<%-- What the container knows of the client's TLS, one `name=value` a line. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" import="java.security.cert.X509Certificate, java.util.*" %>
<%
    StringBuilder text = new StringBuilder();
    text.append("secure=").append(request.isSecure()).append('\n');
    text.append("scheme=").append(request.getScheme()).append('\n');
    text.append("server_port=").append(request.getServerPort()).append('\n');
    for (String name : List.of("cipher_suite", "key_size", "ssl_session_id")) {
        text.append(name).append('=').append(request.getAttribute("jakarta.servlet.request." + name)).append('\n');
    }
    text.append("protocol=").append(request.getAttribute("org.apache.tomcat.util.net.secure_protocol_version")).append('\n');
    Object shown = request.getAttribute("jakarta.servlet.request.X509Certificate");
    X509Certificate[] chain = shown == null ? new X509Certificate[0] : (X509Certificate[]) shown;
    text.append("certificates=").append(chain.length).append('\n');
    for (X509Certificate certificate : chain) {
        text.append("subject=").append(certificate.getSubjectX500Principal().getName()).append('\n');
        text.append("sha256=").append(HexFormat.of().formatHex(
            java.security.MessageDigest.getInstance("SHA-256").digest(certificate.getEncoded()))).append('\n');
    }
    for (String name : new TreeSet<>(Collections.list(request.getHeaderNames()))) {
        text.append("header.").append(name.toLowerCase()).append('=').append(request.getHeader(name)).append('\n');
    }
    out.print(text);
%>
