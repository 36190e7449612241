<%-- Counts the visits of a session, and links to itself as `encodeURL` writes it. --%>
<%@ page contentType="text/plain; charset=UTF-8" trimDirectiveWhitespaces="true" %>
<%
    Integer visits = (Integer) session.getAttribute("visits");
    visits = visits == null ? 1 : visits + 1;
    session.setAttribute("visits", visits);
    out.print("id=" + session.getId() + "\n");
    out.print("visits=" + visits + "\n");
    out.print("from_url=" + request.isRequestedSessionIdFromURL() + "\n");
    out.print("from_cookie=" + request.isRequestedSessionIdFromCookie() + "\n");
    out.print("link=" + response.encodeURL("/session.jsp?again=1") + "\n");
%>
