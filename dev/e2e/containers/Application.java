
/**
 * What the application sees of a request, one name=value a line. It is appended to each launcher, so
 * it has no imports; @API@ is javax or jakarta.
 */
class Application extends @API@.servlet.http.HttpServlet {
    private static final long serialVersionUID = 1;

    static @API@.servlet.MultipartConfigElement multipart() {
        return new @API@.servlet.MultipartConfigElement(System.getProperty("java.io.tmpdir"));
    }

    @Override
    protected void service(
            @API@.servlet.http.HttpServletRequest request,
            @API@.servlet.http.HttpServletResponse response) throws java.io.IOException, @API@.servlet.ServletException {
        StringBuilder text = new StringBuilder();
        line(text, "method", request.getMethod());
        line(text, "uri", request.getRequestURI());
        line(text, "query", request.getQueryString());
        for (String name : java.util.Collections.list(request.getHeaderNames())) {
            for (String value : java.util.Collections.list(request.getHeaders(name))) {
                line(text, "header." + name.toLowerCase(java.util.Locale.ROOT), value);
            }
        }
        String path = request.getRequestURI();
        if (path.endsWith("/session")) {
            @API@.servlet.http.HttpSession session = request.getSession();
            Integer before = (Integer) session.getAttribute("visits");
            int visits = before == null ? 1 : before + 1;
            session.setAttribute("visits", visits);
            line(text, "visits", Integer.toString(visits));
        }
        if (path.endsWith("/upload")) {
            digest(text, "body", request.getInputStream());
        } else if (path.endsWith("/parts")) {
            for (@API@.servlet.http.Part part : request.getParts()) {
                digest(text, "part." + part.getName(), part.getInputStream());
            }
        } else if (!path.endsWith("/ignore")) {
            for (var entry : new java.util.TreeMap<>(request.getParameterMap()).entrySet()) {
                for (String value : (String[]) entry.getValue()) {
                    line(text, "parameter." + entry.getKey(), value);
                }
            }
        }
        byte[] body = text.toString().getBytes(java.nio.charset.StandardCharsets.UTF_8);
        response.setContentType("text/plain;charset=UTF-8");
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    private static void line(StringBuilder text, String name, String value) {
        text.append(name).append('=').append(value).append('\n');
    }

    private static void digest(StringBuilder text, String name, java.io.InputStream input) throws java.io.IOException {
        try {
            var digest = java.security.MessageDigest.getInstance("SHA-256");
            byte[] buffer = new byte[10_000];
            long length = 0;
            for (int count = input.read(buffer); count >= 0; count = input.read(buffer)) {
                digest.update(buffer, 0, count);
                length += count;
            }
            line(text, name + ".length", Long.toString(length));
            line(text, name + ".sha256", java.util.HexFormat.of().formatHex(digest.digest()));
        } catch (java.security.NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
