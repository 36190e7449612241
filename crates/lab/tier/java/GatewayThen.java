/** The gateway, which Tomcat 6 makes by its name: a file of its own. */
public class Application extends Gateway {
    private static final long serialVersionUID = 1;
}
