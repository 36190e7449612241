
/** The files of the application's folder, as Undertow's own servlet serves them; appended to its launcher. */
class Application extends io.undertow.servlet.handlers.DefaultServlet {
    private static final long serialVersionUID = 1;

    static jakarta.servlet.MultipartConfigElement multipart() {
        return new jakarta.servlet.MultipartConfigElement(System.getProperty("java.io.tmpdir"));
    }
}
