<%-- Who the user is and what attributes a request has, one `name=value` a line. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" import="java.util.*" %>
<%
    StringBuilder text = new StringBuilder();
    text.append("remote_user=").append(request.getRemoteUser()).append('\n');
    text.append("principal=").append(request.getUserPrincipal()).append('\n');
    text.append("auth_type=").append(request.getAuthType()).append('\n');
    for (String name : List.of("TENANT", "SITE", "CLIENT", "ASKED", "VERSION", "CIPHER")) {
        text.append("attribute.").append(name).append('=').append(request.getAttribute(name)).append('\n');
    }
    for (String name : new TreeSet<>(Collections.list(request.getHeaderNames()))) {
        text.append("header.").append(name.toLowerCase()).append('=').append(request.getHeader(name)).append('\n');
    }
    out.print(text);
%>
