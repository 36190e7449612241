//! What holds on one route alone: networks, limits, fields, redirects.

use catamaran_e2e::{App, Connector, Front, Tomcat};
use catamaran_testkit::Response;

/// A front with these routes to our own application, as upstream `app` with the backend `a`.
fn front(app: &App, routes: &str) -> Front {
    let (ajp, http) = (app.ajp(), app.http());
    let upstreams = format!(
        "[upstream.app]\n[[upstream.app.backend]]\nname = \"a\"\nurl = \"ajp://{ajp}\"\n\
         [upstream.web]\n[[upstream.web.backend]]\nname = \"w\"\nurl = \"http://{http}\"\n"
    );
    Front::with_tables(&format!("{routes}\n{upstreams}")).unwrap()
}

fn app() -> App {
    App::start("epoll", &[]).unwrap()
}

/// GET with these fields.
fn get(front: &Front, target: &str, fields: &str) -> Response {
    front.ask(front.head("GET", target, fields)).unwrap()
}

#[test]
fn only_networks_that_are_named_are_served() {
    let app = app();
    let front = front(
        &app,
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n\
         [[route]]\nupstream = \"app\"\n[[route]]\npath = \"/snoop\"\nupstream = \"web\"\n\
         allow = [\"192.0.2.0/24\"]\n",
    );
    let from = |address: &str| get(&front, "/snoop", &format!("X-Forwarded-For: {address}\r\n"));
    assert_eq!(from("192.0.2.7").status, 200);
    assert_eq!(from("192.0.3.7").status, 403);
    front.wait_for_log("reason=client:route-denied").unwrap();
    // Not an answer of the client's making: the connection is kept.
    let mut client = front.connect().unwrap();
    for _ in 0..2 {
        let request = front.head("GET", "/snoop", "");
        assert_eq!(client.ask(request).unwrap().status, 403);
    }
    assert_eq!(get(&front, "/", "").status, 200);
}

#[test]
fn limits_hold_on_their_route_alone() {
    let app = app();
    let front = front(
        &app,
        "[[route]]\nupstream = \"app\"\nbody_max = 10\n\
         [[route]]\npath = \"/delay\"\nupstream = \"app\"\nfirst_byte_timeout = \"200ms\"\nretries = 0\n\
         [[route]]\npath = \"/echo\"\nupstream = \"app\"\nbody_max = \"off\"\n\
         [[route]]\npath = \"/small\"\nrewrite = \"/echo\"\nupstream = \"app\"\nbody_max = 10\n\
         [[route]]\npath = \"/stopped\"\nrewrite = \"/\"\nupstream = \"app\"\n\
         activation = { a = \"stopped\" }\n",
    );
    assert_eq!(get(&front, "/delay/60000", "").status, 504);
    front
        .wait_for_log("reason=backend:first-byte-timeout")
        .unwrap();
    let post = |path: &str, fields: &str, body: &str| {
        let request = front.head("POST", path, fields) + body;
        front.ask(request).unwrap().status
    };
    let length = "Content-Length: 11\r\n";
    assert_eq!(post("/echo", length, "hello world"), 200);
    assert_eq!(post("/snoop", length, "hello world"), 413);
    let chunked = "Transfer-Encoding: chunked\r\n";
    assert_eq!(post("/echo", chunked, "b\r\nhello world\r\n0\r\n\r\n"), 200);
    // The echo may have begun when the limit is reached; then it is cut.
    let request = front.head("POST", "/small", chunked) + "b\r\nhello world\r\n0\r\n\r\n";
    assert!(!matches!(front.ask(request), Ok(response) if response.status == 200));
    let line = front.wait_for_log("\"POST /small ").unwrap();
    assert!(line.contains("reason=client:body-too-large"), "{line}");
    assert_eq!(get(&front, "/stopped", "").status, 503);
    assert_eq!(get(&front, "/", "").status, 200);
}

#[test]
fn fields_are_changed_on_the_way() {
    let app = app();
    let front = front(
        &app,
        "[[route]]\nupstream = \"app\"\n\
         [route.request_headers]\nremove = [\"X-Gone\"]\n\
         set = { X-Client = \"{client_ip}\", X-Site = \"{scheme}://{host}\" }\nadd = { X-More = \"2\" }\n\
         [route.response_headers]\nset = { X-Frame-Options = \"DENY\", X-Content-Type-Options = \"x\" }\n\
         remove = [\"Cache-Control\"]\n",
    );
    let fields = "X-Gone: 1\r\nX-Client: forged\r\nX-More: 1\r\n";
    let response = get(&front, "/snoop", fields);
    let text = response.text().to_ascii_lowercase().replace(' ', "");
    assert!(
        !text.contains("x-gone") && !text.contains("forged"),
        "{text}"
    );
    assert!(text.contains("[\"x-client\",\"127.0.0.1\"]"), "{text}");
    assert!(text.contains("[\"x-site\",\"http://127.0.0.1\"]"), "{text}");
    assert!(
        text.contains("[\"x-more\",\"1\"]") && text.contains("[\"x-more\",\"2\"]"),
        "{text}"
    );
    assert_eq!(response.header("x-frame-options"), Some("DENY"));
    let options: Vec<_> = response.headers_named("x-content-type-options").collect();
    assert_eq!(options, ["x"]);
    assert_eq!(response.header("cache-control"), None);
    // Pages of the front's own, too.
    let page = front.ask(front.head("TRACE", "/", "")).unwrap();
    assert_eq!(page.header("x-frame-options"), None, "it has no route");
    let page = front
        .ask("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\nx");
    assert_eq!(page.unwrap().header("x-frame-options"), Some("DENY"));
}

#[test]
fn clients_are_redirected_and_never_in_a_circle() {
    let app = app();
    let front = front(
        &app,
        "[server]\ntrusted_proxies = [\"127.0.0.1\"]\n\
         [[route]]\nscheme = \"http\"\nredirect = \"https://{host}{path_query}\"\n\
         [[route]]\nscheme = \"https\"\nupstream = \"app\"\n\
         [[route]]\npath = \"/old\"\nredirect = \"/new?{query}\"\nstatus = 301\n\
         [[route]]\npath = \"/circle\"\nredirect = \"http://www.test:8080{path_query}\"\n",
    );
    let fields = "X-Forwarded-Host: www.example.org:8080\r\n";
    let response = get(&front, "/a%20b/../c?d=e", fields);
    let to = response.header("location");
    assert_eq!(
        (response.status, to),
        (308, Some("https://www.example.org/c?d=e"))
    );
    assert_eq!(response.header("cache-control"), None);
    front.wait_for_log("reason=client:route-redirect").unwrap();
    assert_eq!(get(&front, "/", "X-Forwarded-Proto: https\r\n").status, 200);
    let old = get(&front, "/old/x?a", "");
    assert_eq!((old.status, old.header("location")), (301, Some("/new?a")));
    // Whether a port leads here no file says, so that `check` cannot know it.
    let there = "X-Forwarded-Host: www.test:8080\r\n";
    assert_eq!(get(&front, "/circle?x", there).status, 500);
    front.wait_for_log("reason=front:redirect-loop").unwrap();
}

#[test]
fn what_is_behind_a_path_goes_into_a_redirect() {
    let app = app();
    let front = front(
        &app,
        "[[route]]\npath = \"/old\"\nredirect = \"https://new.test/app{rest}\"\n\
         [[route]]\npath = \"/q\"\nredirect = \"/new{rest_query}\"\nstatus = 301\n\
         [[route]]\npath = \"/all\"\nredirect = \"https://new.test{rest_query}\"\n\
         [[route]]\npath = \"/circle\"\nredirect = \"http://www.test:8080/circle{rest_query}\"\n",
    );
    for (target, expected) in [
        ("/old/x%20y/z?a=b", "https://new.test/app/x%20y/z"),
        ("/old", "https://new.test/app"),
        ("/old/", "https://new.test/app/"),
        ("/old//x/../y", "https://new.test/app/y"),
        ("/q/x?a=b", "/new/x?a=b"),
        ("/q?a=b", "/new?a=b"),
        // Nothing that a client writes becomes a part of the host.
        ("/all;@evil.test", "https://new.test"),
        ("/all//evil.test?x", "https://new.test/evil.test?x"),
    ] {
        let answer = get(&front, target, "");
        assert_eq!(answer.header("location"), Some(expected), "{target}");
    }
    let circle = b"GET /circle/x?y HTTP/1.1\r\nHost: www.test:8080\r\n\r\n";
    assert_eq!(front.ask(circle).unwrap().status, 500);
}

#[test]
fn cookies_get_flags_that_they_lack() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in [Connector::Ajp, Connector::Http] {
        let table = tomcat.backend_table("app", connector);
        let front = Front::with_tables(&format!(
            "[[route]]\nupstream = \"app\"\ncookie_flags = [\"Secure\", \"HttpOnly\", \"SameSite=Lax\"]\n\
             [[route]]\npath = \"/plain\"\nrewrite = \"/\"\nupstream = \"app\"\n{table}"
        ));
        let front = front.unwrap();
        let cookie = |path: &str| {
            let answer = front.get(path).unwrap();
            let cookie = answer.header("set-cookie").unwrap().to_owned();
            cookie.split_once(';').unwrap().1.to_owned()
        };
        let plain = cookie("/plain/session.jsp");
        assert!(
            !plain.contains("Secure") && !plain.contains("SameSite"),
            "{plain}"
        );
        let flagged = cookie("/session.jsp");
        assert_eq!(
            flagged, " Path=/; HttpOnly; Secure; SameSite=Lax",
            "{connector:?}"
        );
    }
}

/// A canary gets its share, keeps its sessions, and is reached by those who ask for it; operators get through
/// maintenance.
#[test]
fn requests_are_split_chosen_by_fields_and_let_through() {
    let app = app();
    let upstream = |name: &str| {
        format!(
            "[upstream.{name}.sticky]\nset_cookie = \"{name}\"\n\
             [[upstream.{name}.backend]]\nurl = \"ajp://{}\"\njvm_route = \"{name}\"\n",
            app.ajp()
        )
    };
    let front = Front::with_tables(&format!(
        "{}{}[[route]]\nsplit = {{ stable = 9, canary = 1 }}\n\
         [[route]]\nmatch_headers = {{ X-Beta = \"yes\" }}\nupstream = \"canary\"\n\
         [[route]]\npath = \"/status\"\nstatus = 503\n\
         [route.unless]\naddress = \"192.0.2.0/24\"\ncookie = \"operator=let-me-in\"\n\
         [[route]]\npath = \"/status\"\nupstream = \"stable\"\n",
        upstream("stable"),
        upstream("canary")
    ))
    .unwrap();
    let given = |response: &Response| response.header("set-cookie").map(str::to_owned);
    let mut cookies: Vec<String> = (0..200)
        .filter_map(|_| given(&get(&front, "/", "")))
        .collect();
    assert_eq!(cookies.len(), 200, "each has no session yet");
    cookies.retain(|it| it.starts_with("canary="));
    assert!((18..=22).contains(&cookies.len()), "{cookies:?}");
    let cookie = cookies[0].split(';').next().unwrap_or_default();
    for _ in 0..20 {
        let kept = get(&front, "/", &format!("Cookie: {cookie}\r\n"));
        assert_eq!(kept.header("set-cookie"), None);
    }
    let asked = get(&front, "/", "X-Beta: yes\r\n");
    assert!(given(&asked).is_some_and(|it| it.starts_with("canary=")));
    let other = "X-Beta: yes\r\nX-Beta: yes\r\nCookie: stable=x\r\n";
    assert_eq!(get(&front, "/", other).status, 200);
    assert_eq!(get(&front, "/status/204", "").status, 503);
    assert_eq!(
        get(&front, "/status/204", "Cookie: operator=x\r\n").status,
        503
    );
    let operator = "Cookie: a=b; operator=let-me-in\r\n";
    assert_eq!(get(&front, "/status/204", operator).status, 204);
}
