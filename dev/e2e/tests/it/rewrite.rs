//! Rewritten routes before a real Tomcat: its application `/app`, which clients know by another path.

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::Response;

/// A front that has Tomcat's `/app` at `path`, and what else the route says.
fn front(connector: Connector, path: &str, more: &str) -> Front {
    let backend = Tomcat::shared().unwrap().backend_table("app", connector);
    let route = format!("[[route]]\npath = \"{path}\"\nrewrite = \"/app\"\nupstream = \"app\"\n");
    Front::with_tables(&format!("{route}{more}\n{backend}")).unwrap()
}

fn location(response: &Response) -> &str {
    response.header("location").unwrap_or_default()
}

/// The session cookie that a response sets: its pair, and its path.
fn session(response: &Response) -> (String, String) {
    let cookie = response.header("set-cookie").expect("a cookie");
    let mut parts = cookie.split("; ");
    let pair = parts.next().unwrap().to_owned();
    let path = parts.find_map(|part| part.strip_prefix("Path="));
    (pair, path.expect("a path").to_owned())
}

/// The classic failure of a rewriting front: the session cookie has a path that the browser is never
/// at, and each request begins a new session.
#[test]
fn a_form_login_works_at_another_path() {
    for connector in CONNECTORS {
        for (at, root) in [("/", ""), ("/shop", "/shop")] {
            let front = front(connector, at, "");
            let asked = front.get(&format!("{root}/private/")).unwrap();
            assert!(
                asked.text().contains("j_security_check"),
                "{}",
                asked.text()
            );
            let (cookie, path) = session(&asked);
            assert_eq!(path, if root.is_empty() { "/" } else { root });
            let form = "j_username=ann&j_password=a+password+of+the+tests";
            let fields = format!(
                "Cookie: {cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
                 Content-Length: {}\r\n",
                form.len()
            );
            let check = format!("{root}/private/j_security_check");
            let request = front.head("POST", &check, &fields) + form;
            let checked = front.ask(request).unwrap();
            assert_eq!(checked.status, 303, "{}", checked.text());
            let to = location(&checked);
            let host = format!("http://{}", front.address());
            let to = to.strip_prefix(&host).unwrap_or(to);
            assert_eq!(to, format!("{root}/private/"));
            let changed = checked.header("set-cookie").map(|_| session(&checked).0);
            let cookie = changed.unwrap_or(cookie);
            let fields = format!("Cookie: {cookie}\r\n");
            let shown = front.ask(front.head("GET", to, &fields)).unwrap();
            assert!(shown.text().contains("user ann"), "{}", shown.text());
        }
    }
}

#[test]
fn redirects_lead_to_where_clients_are() {
    for connector in CONNECTORS {
        let front = front(connector, "/shop", "internal_hosts = [\"app.internal\"]");
        // Tomcat's own, of a context without its closing slash.
        let own = front.get("/shop").unwrap();
        let host = format!("http://{}", front.address());
        assert_eq!(location(&own).trim_start_matches(&host), "/shop/");
        for (to, expected) in [
            ("/app/x?a=b", "/shop/x?a=b".to_owned()),
            ("/other", "/other".to_owned()),
            ("http://app.internal:8080/app/y", format!("{host}/shop/y")),
            (
                "https://example.org/app",
                "https://example.org/app".to_owned(),
            ),
        ] {
            let escaped = to
                .replace(':', "%3A")
                .replace('?', "%3F")
                .replace('=', "%3D");
            let response = front.get(&format!("/shop/go.jsp?to={escaped}")).unwrap();
            assert_eq!((response.status, location(&response)), (302, &*expected));
        }
    }
}

#[test]
fn without_reverse_responses_stay_as_they_are() {
    let front = front(Connector::Ajp, "/shop", "reverse = false");
    let response = front.get("/shop/go.jsp?to=/app/x&cookie=a%3Db%3BPath%3D/app");
    let response = response.unwrap();
    assert_eq!(location(&response), "/app/x");
    assert_eq!(response.header("set-cookie"), Some("a=b;Path=/app"));
}

/// The path that is forwarded never leaves the new prefix: Tomcat's other application is out of
/// reach.
#[test]
fn no_path_leaves_the_new_prefix() {
    for connector in [
        Connector::Ajp,
        Connector::HttpDecoding,
        Connector::AjpDecoding,
    ] {
        let front = front(connector, "/shop", "");
        for path in [
            "/shop/../snoop.jsp",
            "/shop/..;/snoop.jsp",
            "/shop/..%2fsnoop.jsp",
            "/shop/%2e%2e/snoop.jsp",
            "/shop/x/..%5c..%5csnoop.jsp",
            "/shop/..%5csnoop.jsp",
            "/shop%2f..%2fsnoop.jsp",
        ] {
            let response = front.get(path).unwrap();
            assert!(
                matches!(response.status, 400 | 404),
                "{path}: {}",
                response.status
            );
        }
    }
}

const CONNECTORS: [Connector; 2] = [Connector::Ajp, Connector::Http];
