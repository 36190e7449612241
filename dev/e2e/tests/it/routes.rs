//! That no spelling of a path passes by the route that is meant for it, with Tomcat as the judge of
//! what a path means: one that refuses escaped slashes, and one that decodes them.

use catamaran_e2e::{Connector, Front, Tomcat};
use catamaran_testkit::Response;

fn front(connector: Connector, routes: &str) -> Front {
    let backend = Tomcat::shared().unwrap().backend_table("app", connector);
    Front::with_tables(&format!("{routes}{backend}")).unwrap()
}

/// Every sequence of one of each.
fn spellings(parts: &[&[&str]]) -> Vec<String> {
    let mut all = vec![String::new()];
    for part in parts {
        let starts = all.iter();
        all = starts
            .flat_map(|start| part.iter().map(move |end| format!("{start}{end}")))
            .collect();
    }
    all
}

fn paths() -> Vec<String> {
    let before = ["/", "//", "/x/../", "/%2F", "/;y/"];
    let after = [
        "", "/", "/x", "%2Fx", "%2fx", "%5Cx", ";a=b/x", "%3Bx", "/%2e/x",
    ];
    let mut paths = spellings(&[
        &before,
        &["adm", "%61dm"],
        &["@", "%40", "%2540"],
        &["in"],
        &after,
    ]);
    paths.extend(spellings(&[
        &before,
        &["manager", "m%61nager", "managers"],
        &after,
    ]));
    paths.extend(spellings(&[
        &["/x", "/x/y%2F", "/z%5C"],
        &[".d", "%2ed"],
        &["@", "%40", "%2540"],
        &["o", "%6f", "o;a=b", "o%2F"],
    ]));
    paths
}

fn is_guarded(response: &Response) -> bool {
    response.status == 200 && response.text().trim_start().starts_with("guarded ")
}

#[test]
fn no_spelling_reaches_what_a_route_hides() {
    let tomcat = Tomcat::shared().unwrap();
    let fronts = [
        (Connector::Http, GUARDS),
        (Connector::HttpDecoding, GUARDS),
        (Connector::AjpDecoding, GUARDS),
        (Connector::HttpDecoding, GUARDS_BY_EXPRESSIONS),
        (Connector::AjpDecoding, GUARDS_BY_EXPRESSIONS),
    ]
    .map(|(connector, guards)| front(connector, guards));
    let (mut hidden, mut hidden_by_decoding) = (0, 0);
    for path in paths() {
        let plain = is_guarded(&tomcat.get(&path).unwrap());
        let decoding = is_guarded(&tomcat.get_decoding(&path).unwrap());
        hidden += u32::from(plain);
        hidden_by_decoding += u32::from(decoding && !plain);
        for front in &fronts {
            let response = front.get(&path).unwrap();
            assert!(!is_guarded(&response), "{path} passes: {}", response.text());
            let status = response.status;
            // What each kind of container hides is hidden; what only one does may be refused.
            let expected = status == 403 || status == 400 && !plain;
            assert!(expected || !decoding, "{path} is answered {status}");
            assert!(decoding || status != 403, "{path} is no hidden path");
        }
    }
    assert!(
        hidden > 50 && hidden_by_decoding > 50,
        "{hidden} {hidden_by_decoding}"
    );
}

#[test]
fn escaped_slashes_that_decide_nothing_are_forwarded_as_received() {
    for connector in [Connector::HttpDecoding, Connector::AjpDecoding] {
        let front = front(connector, GUARDS);
        for (path, info) in [
            ("/open/%2F/queue", "//queue"),
            ("/open/@scope%2fname", "/@scope/name"),
            ("/open/a%5Cb%40", "/a/b@"),
        ] {
            let text = front.get(path).unwrap().text();
            // Tomcat merges slashes after it has decoded them.
            let info = info.replace("//", "/");
            assert_eq!(text.trim(), format!("open {info} of {path}"));
        }
        let response = front.get("/manager%2Fhtml").unwrap();
        assert_eq!(response.status, 400);
        front.wait_for_log("reason=client:path-ambiguous").unwrap();
    }
}

#[test]
fn an_expression_names_the_new_path_and_methods_choose_the_route() {
    for connector in [Connector::Http, Connector::AjpDecoding] {
        let front = front(connector, BY_EXPRESSION);
        for (path, expected) in [
            ("/look/a/b", "open /a/b of /open/a/b"),
            ("//look/./%61%20b", "open /a b of /open/a%20b"),
            ("/look/a;x=1/b@c", "open /a/b@c of /open/a/b@c"),
        ] {
            let response = front.get(path).unwrap();
            assert_eq!(response.text().trim(), expected, "{path}");
            assert!(response.header("x-what").is_some(), "{path}");
        }
        let ask = |method: &str, path: &str| {
            let request = front.head(method, path, "Content-Length: 0\r\n");
            front.ask(request).unwrap()
        };
        let moved = ask("POST", "/look/a%20b");
        let location = moved.header("location");
        assert_eq!((moved.status, location), (307, Some("/new/a%20b")));
        let refused = ask("PUT", "/look/a");
        let allowed = refused.header("allow");
        assert_eq!((refused.status, allowed), (405, Some("GET, HEAD, POST")));
        front.wait_for_log("reason=client:route-method").unwrap();
        assert_eq!(ask("PUT", "/other").status, 404);
    }
}

/// Routes that only their methods and an expression tell apart.
const BY_EXPRESSION: &str = r#"
[[route]]
regex = "^/look/(?<what>.+)$"
methods = "GET"
rewrite = "/open/{what}"
upstream = "app"
[route.response_headers]
set = { X-What = "{1}" }
[[route]]
regex = "^/look/(?<what>.+)$"
methods = "POST"
redirect = "/new/{what}"
status = 307
"#;

/// The same as [`GUARDS`], by expressions.
const GUARDS_BY_EXPRESSIONS: &str = r#"
[[route]]
upstream = "app"
[[route]]
regex = "^/adm@in(/|$)"
status = 403
[[route]]
regex = "^/manager(/|$)|[.]d@o$"
status = 403
"#;

/// The paths of the webapp that the fronts of these tests hide.
const GUARDS: &str = r#"
[[route]]
upstream = "app"
[[route]]
path = "/adm@in"
status = 403
[[route]]
path = "/manager"
status = 403
[[route]]
suffix = ".d%40o"
status = 403
"#;
