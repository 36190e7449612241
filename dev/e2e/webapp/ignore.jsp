<%-- Answers without looking at the request's body. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" %>
<% out.print("ignored"); %>
