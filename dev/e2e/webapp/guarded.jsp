<%-- What the container serves and a route of the front is to hide. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" %>
guarded <%= request.getServletPath() %>
