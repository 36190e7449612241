<%--
    Lets tests hold requests at a known point, without any timing.
    `meet=N`  answers when N requests with this `name` are in here at the same time.
    `wait`    answers when somebody opens the gate `name`; `arrived` when somebody waits at it.
    With `flush`, the head and a first line are sent before waiting. With `events`, the lines are events.
--%>
<%@ page contentType="text/plain; charset=UTF-8" session="false" trimDirectiveWhitespaces="true" import="java.util.concurrent.*" %>
<%!
    /** More than any test takes: a hang ends as a failure, not as a hung container. */
    private static final long SECONDS_MAX = 60;
    private static final ConcurrentMap<String, Object> GATES = new ConcurrentHashMap<>();

    private static CountDownLatch latch(String name) {
        return (CountDownLatch) GATES.computeIfAbsent(name, key -> new CountDownLatch(1));
    }

    private static void await(CountDownLatch latch) throws Exception {
        if (!latch.await(SECONDS_MAX, TimeUnit.SECONDS)) {
            throw new TimeoutException("nobody came to the gate");
        }
    }
%>
<%
    String name = request.getParameter("name");
    String meet = request.getParameter("meet");
    String[] around = {"", "\n"};
    if (request.getParameter("events") != null) {
        response.setContentType("text/event-stream; charset=UTF-8");
        around = new String[] {"data: ", "\n\n"};
    }
    if (request.getParameter("flush") != null) {
        out.print(around[0] + "waiting" + around[1]);
        out.flush();
    }
    if (meet != null) {
        int parties = Integer.parseInt(meet);
        CyclicBarrier barrier = (CyclicBarrier) GATES.computeIfAbsent("meet " + name, key -> new CyclicBarrier(parties));
        barrier.await(SECONDS_MAX, TimeUnit.SECONDS);
        out.print("met\n");
    } else if (request.getParameter("wait") != null) {
        latch("arrived " + name).countDown();
        await(latch("open " + name));
        out.print(around[0] + "passed" + around[1]);
    } else if (request.getParameter("arrived") != null) {
        await(latch("arrived " + name));
        out.print("arrived\n");
    } else if (request.getParameter("open") != null) {
        latch("open " + name).countDown();
        out.print("opened\n");
    }
%>
