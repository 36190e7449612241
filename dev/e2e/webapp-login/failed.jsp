<%@ page contentType="text/html; charset=UTF-8" session="false" %>
<!doctype html><title>failed</title><p>failed</p>
