<%-- Names the request's method. Error pages alone may be asked with any method. --%>
<%@ page isErrorPage="true" contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" %>
<% out.print("method=" + request.getMethod() + "\n"); %>
