<%@ page contentType="text/html; charset=UTF-8" session="false" %>
<!doctype html><title>welcome</title><p>welcome</p><p><a href="private/">private</a></p>
