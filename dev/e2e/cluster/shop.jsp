<%--
  A shop. Each request counts as a visit of the session. `order=N` appends N to `orders.txt` in the
  base directory before it is answered; `leave` ends the session.
--%>
<%@ page contentType="text/plain; charset=UTF-8" trimDirectiveWhitespaces="true"
         import="java.nio.file.Files,java.nio.file.Path,java.nio.file.StandardOpenOption" %>
<%
    String order = request.getParameter("order");
    if (order != null) {
        Path orders = Path.of(System.getProperty("catalina.base"), "orders.txt");
        Files.writeString(orders, order + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
    Integer visits = (Integer) session.getAttribute("visits");
    visits = visits == null ? 1 : visits + 1;
    session.setAttribute("visits", visits);
    out.print("id=" + session.getId() + "\n");
    out.print("visits=" + visits + "\n");
    out.print("version=" + application.getInitParameter("version") + "\n");
    if (request.getParameter("leave") != null) {
        session.invalidate();
    }
%>
