<%-- May be kept for a minute; each answer of its own is another. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" %>
<%
    response.setHeader("Cache-Control", "public, max-age=60");
    out.print("made=" + java.util.UUID.randomUUID() + "\n");
%>
