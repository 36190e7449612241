//! What the front answers by itself, and what of a request's head it settles on the way.

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::HttpClient;

use crate::through::{has, value};

#[test]
fn an_answer_of_the_front_keeps_the_connection() {
    let front = Front::with_tables("[[route]]\npath = \"/gone\"\nstatus = 410\n").unwrap();
    let mut client = front.connect().unwrap();
    for (method, target, fields, status) in [
        ("GET", "/gone", "", 410),
        ("GET", "/no-route", "", 404),
        ("TRACE", "/gone", "", 405),
        ("TRACK", "/gone", "", 405),
        ("TRACE", "/gone", "Max-Forwards: 0\r\n", 405),
        ("OPTIONS", "/gone", "Max-Forwards: 1\r\n", 410),
        ("OPTIONS", "/gone", "Max-Forwards: 0\r\n", 204),
        ("OPTIONS", "*", "Max-Forwards: 0\r\n", 204),
        ("GET", "/gone", "Max-Forwards: 0\r\n", 410),
    ] {
        let answer = client.ask(front.head(method, target, fields)).unwrap();
        assert_eq!(answer.status, status, "{method} {target} {fields}");
        assert_eq!(answer.header("connection"), None, "{method} {target}");
        let allow = answer.header("allow").unwrap_or_default();
        assert_eq!(allow.contains("OPTIONS"), matches!(status, 204 | 405));
        assert!(!allow.contains("TRACE"));
    }
}

#[test]
fn a_text_of_a_route_is_sent_as_it_is_written() {
    let front = Front::with_tables(
        "[error_pages]\n404 = \"{directory}/none.html\"\n\
         [[route]]\npath = \"/health\"\nstatus = 200\ntext = '{\"status\": \"up\"}'\n\
         text_type = \"application/json\"\n\
         [[route]]\npath = \"/gone\"\nstatus = 404\ntext = \"gone {host} {hots} {path_query}\\n\"\n\
         [route.response_headers]\nset = { X-Frame-Options = \"DENY\" }\n\
         [[route]]\npath = \"/empty\"\nstatus = 200\ntext = \"\"\n",
    )
    .unwrap();
    let mut client = front.connect().unwrap();
    for (target, status, media_type, text) in [
        ("/health", 200, "application/json", "{\"status\": \"up\"}"),
        (
            "/gone",
            404,
            "text/plain; charset=utf-8",
            "gone 127.0.0.1 {hots} /gone\n",
        ),
        ("/empty", 200, "text/plain; charset=utf-8", ""),
    ] {
        for method in ["GET", "POST", "HEAD"] {
            let request = front.head(method, target, "");
            client.send(request.as_bytes()).unwrap();
            let answer = if method == "HEAD" {
                client.receive_head().unwrap()
            } else {
                let answer = client.receive().unwrap();
                assert_eq!(answer.text(), text);
                answer
            };
            assert_eq!(answer.status, status);
            assert_eq!(answer.header("content-type"), Some(media_type));
            let length = text.len().to_string();
            assert_eq!(answer.header("content-length"), Some(&length[..]));
            let is_framed = answer.header("x-frame-options").is_some();
            assert_eq!(is_framed, target == "/gone");
        }
    }
}

#[test]
fn what_a_client_sent_stays_a_text() {
    let front = Front::with_tables(
        "[server.response_headers]\nset = { Content-Type = \"text/html\", X-All = \"1\" }\n\
         [[route]]\npath = \"/t\"\nstatus = 200\ntext = '{\"asked\": \"{path_query}\"}'\n\
         text_type = \"application/json\"\n",
    )
    .unwrap();
    let answer = front
        .get("/t?<script>\",\"admin\":true,\"x\":\"'\\")
        .unwrap();
    let types: Vec<&str> = answer.headers_named("content-type").collect();
    assert_eq!(types, ["application/json"]);
    assert_eq!(answer.header("x-all"), Some("1"));
    assert_eq!(
        answer.text(),
        "{\"asked\": \"/t?%3Cscript%3E%22,%22admin%22:true,%22x%22:%22%27%5C\"}"
    );
}

#[test]
fn a_path_that_is_too_long_for_expressions_is_refused() {
    let routes =
        "[[route]]\nregex = \"^/x(.*)$\"\nstatus = 404\n[[route]]\nstatus = 200\ntext = \"fine\"\n";
    let front = Front::with_tables(routes).unwrap();
    let status = |length: usize| {
        let path = format!("/{}", "a".repeat(length - 1));
        front.get(&path).unwrap().status
    };
    assert_eq!((status(4096), status(4097)), (200, 414));
    front.wait_for_log("reason=client:path-long").unwrap();
}

#[test]
fn fields_are_changed_by_the_status_of_the_response() {
    let front = Front::with_tables(
        "[server.response_headers]\nstatuses = [\"2xx\"]\nset = { X-All = \"{host}\" }\n\
         [[route]]\npath = \"/fine\"\nstatus = 200\ntext = \"fine\"\n\
         [[route.response_headers]]\nstatuses = [\"200-299\", \"304\"]\n\
         set = { Cache-Control = \"public, max-age=60\", X-A = \"{scheme}\" }\n\
         [[route.response_headers]]\nset = { X-B = \"{host}\" }\n\
         [[route]]\npath = \"/gone\"\nstatus = 410\n\
         [[route.response_headers]]\nstatuses = [\"2xx\"]\n\
         set = { Cache-Control = \"public, max-age=60\", X-A = \"{scheme}\" }\n\
         [[route.response_headers]]\nset = { X-B = \"{host}\" }\n",
    )
    .unwrap();
    let answer = |target| {
        let answer = front.get(target).unwrap();
        let value = |name: &str| answer.header(name).unwrap_or("-").to_owned();
        ["x-all", "x-a", "x-b", "cache-control"]
            .map(value)
            .join(" ")
    };
    assert_eq!(
        answer("/fine"),
        "127.0.0.1 http 127.0.0.1 public, max-age=60"
    );
    assert_eq!(answer("/gone"), "- - 127.0.0.1 no-store");
}

#[test]
fn a_request_without_host_on_a_unix_socket_is_for_localhost() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in [Connector::Ajp, Connector::Http] {
        let front = Front::with_config(&format!(
            "[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [[listen]]\naddress = \"unix:{{directory}}/front.sock\"\n\
             [[route]]\nupstream = \"app\"\n{}",
            tomcat.backend_table("app", connector)
        ))
        .unwrap();
        let socket = front.directory().join("front.sock");
        let mut client = HttpClient::connect(socket).unwrap();
        let text = client
            .ask(b"GET /snoop.jsp HTTP/1.0\r\n\r\n")
            .unwrap()
            .text();
        assert_eq!(value(&text, "header.host"), "localhost", "{connector:?}");
        assert_eq!(value(&text, "url"), "http://localhost/snoop.jsp");
    }
}

#[test]
fn as_many_fields_as_are_allowed_reach_the_container() {
    let tomcat = Tomcat::shared().unwrap();
    for connector in [Connector::Ajp, Connector::Http] {
        let front = Front::to_app(&tomcat.backend_table("app", connector)).unwrap();
        let with = |count: usize| {
            // `Host` is one of them.
            let fields: String = (1..count).map(|at| format!("X-{at}: y\r\n")).collect();
            front.ask(front.head("GET", "/page.html", &fields)).unwrap()
        };
        assert_eq!(with(94).status, 200, "{connector:?}");
        assert_eq!(with(95).status, 431, "{connector:?}");
    }
}

#[test]
fn listed_fields_with_an_underscore_pass() {
    let tomcat = Tomcat::shared().unwrap();
    let front = Front::with_tables(&format!(
        "[server]\nunderscore_fields = [\"SM_USER\"]\n[[route]]\nupstream = \"app\"\n{}",
        tomcat.backend_table("app", Connector::Ajp)
    ))
    .unwrap();
    let head = front.head("GET", "/snoop.jsp", "SM_USER: jo\r\nX_Real_IP: 6.6.6.6\r\n");
    let text = front.ask(head).unwrap().text();
    assert_eq!(value(&text, "header.sm_user"), "jo");
    assert!(!has(&text, "header.x_real_ip"), "{text}");
}
