//! Pages, JSPs, sessions, conditional requests and redirects of a real Tomcat.

use catamaran_e2e::{Connector, Front, Tomcat};

use crate::through::{every_connector, value};

#[test]
fn a_static_page_arrives_whole() {
    every_connector(|front, _| {
        let page = front.get("/page.html").unwrap();
        assert_eq!(page.status, 200);
        assert_eq!(page.text(), include_str!("../../webapp/page.html"));
        assert_eq!(page.header("content-type"), Some("text/html"));
        assert_eq!(
            page.header("content-length"),
            Some(page.body.len().to_string().as_str())
        );
        assert_eq!(page.header("transfer-encoding"), None);
    });
}

#[test]
fn a_jsp_sees_the_query_and_the_cookies() {
    every_connector(|front, _| {
        let target = "/snoop.jsp?a=1&b=%C3%A9&a=2&c=x%26y+z";
        let cookies = "Cookie: first=1; second=two\r\n";
        let text = front
            .ask(front.head("GET", target, cookies))
            .unwrap()
            .text();
        assert_eq!(value(&text, "query"), "a=1&b=%C3%A9&a=2&c=x%26y+z");
        assert_eq!(value(&text, "uri"), "/snoop.jsp");
        assert!(text.contains("\nparameter.a=1\nparameter.a=2\n"), "{text}");
        assert_eq!(value(&text, "parameter.b"), "é");
        assert_eq!(value(&text, "parameter.c"), "x&y z");
        assert_eq!(value(&text, "cookie.first"), "1");
        assert_eq!(value(&text, "cookie.second"), "two");
        assert_eq!(value(&text, "method"), "GET");
        assert_eq!(value(&text, "protocol"), "HTTP/1.1");
    });
}

#[test]
fn a_session_is_kept_by_url_and_by_cookie() {
    every_connector(|front, _| {
        let first = front.get("/session.jsp").unwrap();
        let text = first.text();
        let (id, link) = (value(&text, "id"), value(&text, "link"));
        assert!(id.ends_with(&format!(".{}", Tomcat::ROUTE)), "{id}");
        assert_eq!(link, format!("/session.jsp;jsessionid={id}?again=1"));

        let second = front.get(link).unwrap().text();
        assert_eq!(value(&second, "id"), id);
        assert_eq!(value(&second, "visits"), "2");
        assert_eq!(value(&second, "from_url"), "true");

        let cookie = first.header("set-cookie").unwrap();
        let pair = cookie.split(';').next().unwrap();
        assert_eq!(pair, format!("JSESSIONID={id}"));
        let fields = format!("Cookie: {pair}\r\n");
        let third = front
            .ask(front.head("GET", "/session.jsp", &fields))
            .unwrap()
            .text();
        assert_eq!(value(&third, "visits"), "3");
        assert_eq!(value(&third, "from_cookie"), "true");
        assert_eq!(value(&third, "link"), "/session.jsp?again=1");
    });
}

#[test]
fn head_has_the_fields_of_get_and_no_body() {
    every_connector(|front, _| {
        let mut client = front.connect().unwrap();
        client
            .send(front.head("HEAD", "/page.html", "").as_bytes())
            .unwrap();
        let head = client.receive_head().unwrap();
        // On the same connection: nothing of a body may stand between the two.
        let get = client.ask(front.head("GET", "/page.html", "")).unwrap();
        assert_eq!((head.status, get.status), (200, 200));
        for name in ["content-length", "content-type", "etag", "last-modified"] {
            assert!(head.header(name).is_some(), "{name}");
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
    });
}

#[test]
fn an_unchanged_page_is_not_sent_again() {
    every_connector(|front, _| {
        let mut client = front.connect().unwrap();
        let page = client.ask(front.head("GET", "/page.html", "")).unwrap();
        let since = page.header("last-modified").unwrap();
        let etag = page.header("etag").unwrap();
        for fields in [
            format!("If-Modified-Since: {since}\r\n"),
            format!("If-None-Match: {etag}\r\n"),
        ] {
            let answer = client
                .ask(front.head("GET", "/page.html", &fields))
                .unwrap();
            assert_eq!(answer.status, 304, "{fields}");
            assert_eq!(answer.header("etag"), Some(etag));
        }
        let again = client.ask(front.head("GET", "/page.html", "")).unwrap();
        // All but the date is the same.
        assert_eq!((again.status, &again.body), (page.status, &page.body));
        assert_eq!(again.header("etag"), Some(etag));
        assert_eq!(again.header("last-modified"), Some(since));
    });
}

#[test]
fn statuses_redirects_and_repeated_fields_pass() {
    every_connector(|front, _| {
        let mut client = front.connect().unwrap();
        for code in [
            200, 201, 202, 204, 205, 400, 401, 403, 404, 410, 418, 500, 501, 503,
        ] {
            let target = format!("/status.jsp?code={code}");
            let answer = client.ask(front.head("GET", &target, "")).unwrap();
            assert_eq!(answer.status, code);
            assert_eq!(
                answer.headers_named("set-cookie").collect::<Vec<_>>(),
                ["a=1", "b=2"]
            );
        }
        for (to, location) in [
            ("/page.html", "/page.html".to_owned()),
            (
                "http://elsewhere.example/x",
                "http://elsewhere.example/x".to_owned(),
            ),
        ] {
            let target = format!("/status.jsp?to={to}");
            let answer = client.ask(front.head("GET", &target, "")).unwrap();
            assert_eq!(answer.status, 302);
            assert_eq!(answer.header("location"), Some(location.as_str()));
        }
        let missing = client.ask(front.head("GET", "/no-such-page", "")).unwrap();
        assert_eq!(missing.status, 404);
        assert!(
            missing.text().contains("Apache Tomcat"),
            "the page of Tomcat, not the front's"
        );
    });
}

#[test]
fn methods_pass_known_and_unknown() {
    every_connector(|front, _| {
        for method in [
            "GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "MKCOL", "REPORT",
            "BREW",
        ] {
            let answer = front.ask(front.head(method, "/method.jsp", "Content-Length: 0\r\n"));
            assert_eq!(value(&answer.unwrap().text(), "method"), method);
        }
    });
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    every_connector(|front, _| {
        let mut client = front.connect().unwrap();
        let targets: Vec<String> = (0..20).map(|n| format!("/snoop.jsp?n={n}")).collect();
        let requests: String = targets
            .iter()
            .map(|target| front.head("GET", target, ""))
            .collect();
        client.send(requests.as_bytes()).unwrap();
        for n in 0..20 {
            let text = client.receive().unwrap().text();
            assert_eq!(value(&text, "parameter.n"), n.to_string());
        }
    });
}

#[test]
fn a_client_of_http_1_0_gets_a_close_and_no_chunks() {
    every_connector(|front, _| {
        let mut client = front.connect().unwrap();
        let answer = client
            .ask(b"GET /download.jsp?bytes=20000&framing=chunked HTTP/1.0\r\n\r\n")
            .unwrap();
        assert_eq!(answer.header("transfer-encoding"), None);
        assert_eq!(answer.body.len(), 20_000);
        assert_eq!(client.receive_to_end().unwrap(), b"");
    });
}

#[test]
fn upstreams_can_be_given_without_a_file() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in Connector::ALL {
        // A secret and a packet size need a file.
        if matches!(connector, Connector::AjpSecret | Connector::AjpLarge) {
            continue;
        }
        let front = Front::to(&[&tomcat.url(connector)]).unwrap();
        assert_eq!(
            front.get("/page.html").unwrap().status,
            200,
            "{connector:?}"
        );
    }
    let both = Front::to(&[&tomcat.url(Connector::Ajp), &tomcat.url(Connector::Http)]).unwrap();
    for _ in 0..4 {
        assert_eq!(both.get("/page.html").unwrap().status, 200);
    }
}

#[test]
fn what_no_route_matches_is_not_found() {
    let tomcat = Tomcat::shared().unwrap();
    let front = Front::with_tables(&format!(
        "[[route]]\nhost = \"app.example\"\npath = \"/snoop.jsp\"\nupstream = \"app\"\n{}",
        tomcat.backend_table("app", Connector::Ajp)
    ))
    .unwrap();
    let ask = |host: &str, target: &str| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        front.ask(request).unwrap().status
    };
    assert_eq!(ask("app.example", "/snoop.jsp"), 200);
    assert_eq!(ask("APP.example:8080", "/snoop.jsp;x=y?z"), 200);
    assert_eq!(ask("app.example", "/page.html"), 404);
    assert_eq!(ask("other.example", "/snoop.jsp"), 404);
}
