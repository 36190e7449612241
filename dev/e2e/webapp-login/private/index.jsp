<%@ page contentType="text/html; charset=UTF-8" %>
<!doctype html><title>private</title><p id="user">user <%= request.getRemoteUser() %></p>
