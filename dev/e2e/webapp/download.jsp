<%-- Sends the first `bytes` bytes of the test pattern; with a Content-Length unless `framing=chunked`. --%>
<%@ page contentType="application/octet-stream" session="false" trimDirectiveWhitespaces="true" import="java.io.OutputStream" %>
<%!
    /** One period of the pattern, as testkit's Pattern makes it. */
    private static final byte[] BLOCK = new byte[65521];
    static {
        for (int i = 0; i < BLOCK.length; i++) {
            long mixed = Long.rotateRight(i * 0x9e3779b1L, 13);
            BLOCK[i] = (byte) (mixed ^ (mixed >>> 8));
        }
    }
%>
<%
    long left = Long.parseLong(request.getParameter("bytes"));
    if (!"chunked".equals(request.getParameter("framing"))) {
        response.setContentLengthLong(left);
    }
    response.setHeader("X-Bytes", Long.toString(left));
    OutputStream stream = response.getOutputStream();
    while (left > 0) {
        int count = (int) Math.min(left, BLOCK.length);
        stream.write(BLOCK, 0, count);
        left -= count;
    }
    stream.flush();
    // The page's own writer must not touch the response any more.
    out.clear();
    out = pageContext.pushBody();
%>
