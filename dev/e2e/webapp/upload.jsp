<%-- Reads the whole body and answers its length and SHA-256, and how it was announced. --%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" import="java.io.*,java.security.*" %>
<%
    MessageDigest digest = MessageDigest.getInstance("SHA-256");
    InputStream body = request.getInputStream();
    byte[] buffer = new byte[65536];
    long length = 0;
    for (int count = body.read(buffer); count >= 0; count = body.read(buffer)) {
        digest.update(buffer, 0, count);
        length += count;
    }
    StringBuilder hex = new StringBuilder();
    for (byte b : digest.digest()) {
        hex.append(String.format("%02x", b));
    }
    out.print("method=" + request.getMethod() + "\n");
    out.print("length=" + length + "\n");
    out.print("sha256=" + hex + "\n");
    out.print("content_length=" + request.getContentLengthLong() + "\n");
%>
