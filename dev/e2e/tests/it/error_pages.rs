//! Pages of the operator's own, before a real Tomcat: for its errors, for the front's, for a maintenance.

use std::fs;
use std::path::Path;

use catamaran_e2e::{Connector, Front, Tomcat, curl};
use catamaran_testkit::{Deadline, Signal};
use tempfile::TempDir;

/// The directory with pages.
fn pages() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in [
        ("404.html", "<p>no such page</p>"),
        ("5xx.html", "<p>broken</p>"),
        ("api.json", "{\"error\":\"broken\"}"),
        ("maintenance.html", "<p>back at noon</p>"),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

/// A front to Tomcat by AJP, at `/by-http` by HTTP, and at `/stopped` by a backend that is stopped.
fn front(pages: &Path) -> Front {
    let tomcat = Tomcat::shared().unwrap();
    let backends = tomcat.backend_table("app", Connector::Ajp)
        + &tomcat.backend_table("web", Connector::Http)
        + &tomcat.backend_table("stopped", Connector::Ajp)
        + "activation = \"stopped\"\n";
    let tables = "[[listen]]\naddress = \"127.0.0.1:0\"\nprotocols = [\"http/1.1\", \"h2\"]\n\
        [admin]\naddress = \"127.0.0.1:0\"\n\
        [error_pages]\n404 = \"{pages}/404.html\"\n5xx = \"{pages}/5xx.html\"\n\
        maintenance_page = \"{pages}/maintenance.html\"\nreplace_errors = [\"401\", \"404\", \"500-599\"]\n\
        [[route]]\nupstream = \"app\"\n\
        [[route]]\npath = \"/by-http\"\nrewrite = \"/\"\nupstream = \"web\"\n\
        [[route]]\npath = \"/stopped\"\nrewrite = \"/\"\nupstream = \"stopped\"\n\
        [[route]]\npath = \"/hidden\"\nstatus = 404\n\
        [[route]]\npath = \"/plain\"\nrewrite = \"/\"\nupstream = \"app\"\n\
        [route.error_pages]\nreplace_errors = []\n\
        [[route]]\npath = \"/api\"\nrewrite = \"/\"\nupstream = \"app\"\n\
        [route.error_pages]\n5xx = \"{pages}/api.json\"\n";
    let tables = tables.replace("{pages}", pages.to_str().unwrap());
    Front::with_config(&format!("{tables}{backends}")).unwrap()
}

#[test]
fn errors_of_tomcat_are_replaced_over_either_protocol() {
    let pages = pages();
    let front = front(pages.path());
    let mut client = front.connect().unwrap();
    let mut ask = |method: &str, target: &str| {
        client
            .send(front.head(method, target, "").as_bytes())
            .unwrap();
        match method {
            "HEAD" => client.receive_head().unwrap(),
            _ => client.receive().unwrap(),
        }
    };
    for (target, status, page) in [
        // Tomcat's own page, and one of an application that sets a cookie.
        ("/missing.jsp", 404, "<p>no such page</p>"),
        ("/status.jsp?code=500", 500, "<p>broken</p>"),
        ("/status.jsp?code=503", 503, "<p>broken</p>"),
        ("/by-http/missing.jsp", 404, "<p>no such page</p>"),
        ("/by-http/status.jsp?code=500", 500, "<p>broken</p>"),
        ("/api/status.jsp?code=502", 502, "{\"error\":\"broken\"}"),
        ("/api/missing.jsp", 404, "<p>no such page</p>"),
        // The front's own.
        ("/hidden", 404, "<p>no such page</p>"),
        ("/stopped/page.html", 503, "<p>back at noon</p>"),
    ] {
        let answer = ask("GET", target);
        assert_eq!(
            (answer.status, &answer.text()[..]),
            (status, page),
            "{target}"
        );
        let kind = if page.starts_with('{') {
            "application/json"
        } else {
            "text/html; charset=utf-8"
        };
        assert_eq!(answer.header("content-type"), Some(kind), "{target}");
        let cookies = answer.headers_named("set-cookie").count();
        assert_eq!(cookies, 2 * usize::from(target.contains("status.jsp")));
        let length = page.len().to_string();
        let head = ask("HEAD", target);
        assert_eq!(
            (head.status, head.header("content-length")),
            (status, Some(&length[..]))
        );
    }
    // What has no page is the front's text; what is not named is the application's.
    assert!(
        ask("GET", "/status.jsp?code=401")
            .text()
            .contains("The request was not served.")
    );
    assert_eq!(ask("GET", "/status.jsp?code=403").body, b"");
    let tomcats = ask("GET", "/plain/missing.jsp").text();
    assert!(tomcats.contains("Apache Tomcat"), "{tomcats}");
    let line = front.wait_for_log("\"GET /status.jsp?code=500 ").unwrap();
    assert!(line.contains(" reason=backend:error-replaced"), "{line}");
    let line = front.wait_for_log("\"GET /stopped/page.html ").unwrap();
    assert!(line.contains(" reason=front:maintenance"), "{line}");
    // Every response over AJP was read to its end; Tomcat closes over HTTP after a 500.
    let dialled = front
        .metric("catamaran_backend_connections_dialled_total")
        .unwrap();
    assert_eq!(dialled.first(), Some(&1.0), "{dialled:?}");
}

#[test]
fn a_stream_of_http2_gets_pages_too() {
    let pages = pages();
    let front = front(pages.path());
    for (path, expected) in [
        (
            "/status.jsp?code=500",
            "<p>broken</p> 500 2 text/html; charset=utf-8",
        ),
        (
            "/by-http/missing.jsp",
            "<p>no such page</p> 404 2 text/html; charset=utf-8",
        ),
        (
            "/stopped/",
            "<p>back at noon</p> 503 2 text/html; charset=utf-8",
        ),
    ] {
        let output = curl()
            .arg("--http2-prior-knowledge")
            .args([
                "--write-out",
                " %{http_code} %{http_version} %{content_type}",
            ])
            .arg(format!("http://{}{path}", front.address()))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    }
}

#[test]
fn a_page_that_vanishes_is_served_on_and_replaced_after_a_reload() {
    let pages = pages();
    let mut front = front(pages.path());
    let file = pages.path().join("404.html");
    fs::remove_file(&file).unwrap();
    assert_eq!(front.get("/hidden").unwrap().text(), "<p>no such page</p>");
    front.process().signal(Signal::Hangup).unwrap();
    front.wait_for_log("reloaded; ").unwrap();
    let said = front
        .wait_for_log("404.html, which cannot be read")
        .unwrap();
    assert!(said.contains("warning"), "{said}");
    let answer = front.get("/hidden").unwrap();
    assert_eq!(answer.status, 404);
    assert!(answer.text().contains("There is nothing at this address."));
    let counted = || {
        let page = front.ask_admin("/metrics").ok()?.text();
        page.contains("reason=\"error-page-missing\"} 1")
            .then_some(())
    };
    Deadline::default().poll("the count", counted).unwrap();
    fs::write(&file, "<p>here again</p>").unwrap();
    front.process().signal(Signal::Hangup).unwrap();
    Deadline::default()
        .poll("the new page", || {
            let text = front.get("/hidden").ok()?.text();
            (text == "<p>here again</p>").then_some(())
        })
        .unwrap();
}
