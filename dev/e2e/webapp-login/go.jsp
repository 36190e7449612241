<%-- Redirects to where `to` says, and sets a cookie with the path and domain asked for. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" %>
<%
    if (request.getParameter("cookie") != null) {
        response.addHeader("Set-Cookie", request.getParameter("cookie"));
    }
    response.setStatus(302);
    response.setHeader("Location", request.getParameter("to"));
%>
