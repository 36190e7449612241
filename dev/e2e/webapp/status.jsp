<%-- Answers with the status `code`; redirects (302) to `to` when that is given. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" %>
<%
    String to = request.getParameter("to");
    if (to != null) {
        response.sendRedirect(to);
        return;
    }
    response.setStatus(Integer.parseInt(request.getParameter("code")));
    response.addHeader("Set-Cookie", "a=1");
    response.addHeader("Set-Cookie", "b=2");
%>
