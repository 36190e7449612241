
/** The files of the application's folder, as Tomcat's own servlet serves them; appended to Tomcat's launcher. */
class Application extends org.apache.catalina.servlets.DefaultServlet {
    private static final long serialVersionUID = 1;

    static javax.servlet.MultipartConfigElement multipart() {
        return new javax.servlet.MultipartConfigElement(System.getProperty("java.io.tmpdir"));
    }
}
