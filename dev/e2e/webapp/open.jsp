<%-- What follows `/open` in the path, as the container decoded it. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" %>
open <%= request.getPathInfo() %> of <%= request.getRequestURI() %>
