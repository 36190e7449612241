<%-- What the container sees of a request, one `name=value` a line. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" import="java.util.*" %>
<%!
    /** The certificates, cipher and the like are set by the connector; the names are fixed. */
    private static final String[] ATTRIBUTES = {
        "jakarta.servlet.request.cipher_suite", "jakarta.servlet.request.key_size", "JK_LB_ACTIVATION"
    };
%>
<%
    StringBuilder text = new StringBuilder();
    text.append("method=").append(request.getMethod()).append('\n');
    text.append("protocol=").append(request.getProtocol()).append('\n');
    text.append("uri=").append(request.getRequestURI()).append('\n');
    text.append("query=").append(request.getQueryString()).append('\n');
    text.append("remote_addr=").append(request.getRemoteAddr()).append('\n');
    text.append("remote_port=").append(request.getRemotePort()).append('\n');
    text.append("local_addr=").append(request.getLocalAddr()).append('\n');
    text.append("scheme=").append(request.getScheme()).append('\n');
    text.append("secure=").append(request.isSecure()).append('\n');
    text.append("server_name=").append(request.getServerName()).append('\n');
    text.append("server_port=").append(request.getServerPort()).append('\n');
    text.append("url=").append(request.getRequestURL()).append('\n');
    text.append("remote_user=").append(request.getRemoteUser()).append('\n');
    text.append("content_length=").append(request.getContentLengthLong()).append('\n');
    for (String name : ATTRIBUTES) {
        text.append("attribute.").append(name).append('=').append(request.getAttribute(name)).append('\n');
    }
    for (Map.Entry<String, String[]> entry : new TreeMap<>(request.getParameterMap()).entrySet()) {
        for (String value : entry.getValue()) {
            text.append("parameter.").append(entry.getKey()).append('=').append(value).append('\n');
        }
    }
    if (request.getCookies() != null) {
        for (Cookie cookie : request.getCookies()) {
            text.append("cookie.").append(cookie.getName()).append('=').append(cookie.getValue()).append('\n');
        }
    }
    for (String name : new TreeSet<>(Collections.list(request.getHeaderNames()))) {
        for (String value : Collections.list(request.getHeaders(name))) {
            text.append("header.").append(name.toLowerCase()).append('=').append(value).append('\n');
        }
    }
    out.print(text);
%>
