//! Files beside an application, below a rewritten path, and behind the guards of their route.

use std::fs;
use std::sync::Arc;

use catamaran_proxy::config::{FilesConfig, RouteConfig, RouteRules, RouteTarget, UpstreamConfig};
use catamaran_testkit::Deadline;
use http::HeaderValue;

use super::{Client, Tree, address, front, pattern, route};
use crate::{backend, to, wait_for_reason};

fn app() -> RouteTarget {
    RouteTarget::Upstream("app".to_owned())
}

/// What is no file, and what no file answers, goes to the application as it came.
#[test]
fn an_application_gets_what_is_no_file() {
    let tree = Tree::new();
    fs::write(tree.root().join("page.jsp"), "source").unwrap();
    let peer = backend("application");
    let running = front(FilesConfig::new(tree.root()), |config| {
        config.upstreams = vec![UpstreamConfig::new("app", vec![to(&peer)])];
        config.routes = vec![route("/", app(), FilesConfig::new(tree.root()))];
    });
    let address = address(&running);
    for client in Client::BOTH {
        for (method, path, expected) in [
            ("GET", "/page.html", pattern(1456)),
            ("GET", "/dir2/", pattern(400)),
            ("GET", "/orders/7", b"application".to_vec()),
            ("GET", "/page.jsp", b"application".to_vec()),
            ("GET", "/WEB-INF/web.xml", b"application".to_vec()),
            ("GET", "/page.html;jsessionid=1.a", b"application".to_vec()),
            ("GET", "/.secret", b"application".to_vec()),
            ("GET", "/link-out", b"application".to_vec()),
            ("GET", "/dir", b"application".to_vec()),
            ("POST", "/page.html", b"application".to_vec()),
            ("OPTIONS", "/page.html", b"application".to_vec()),
        ] {
            let got = client.ask(address, method, path, &[]);
            assert_eq!(got.status, 200, "{client:?} {method} {path}");
            assert!(got.body == expected, "{client:?} {method} {path}");
        }
    }
}

/// The directory of a release may be missing for a moment: the application still serves.
#[test]
fn an_application_serves_without_the_directory() {
    let tree = Tree::new();
    let peer = backend("application");
    let files = FilesConfig::new(tree.root().join("none"));
    let running = front(files.clone(), |config| {
        config.upstreams = vec![UpstreamConfig::new("app", vec![to(&peer)])];
        config.routes = vec![
            route("/app", app(), files.clone()),
            route("/", RouteTarget::Files, files.clone()),
        ];
    });
    let address = address(&running);
    assert_eq!(Client::Http1.get(address, "/app/x").body, b"application");
    assert_eq!(Client::Http1.get(address, "/x").status, 503);
    wait_for_reason(&running, "front:files-root");
}

#[test]
fn guards_come_before_any_file() {
    let tree = Tree::new();
    let files = Some(Arc::new(FilesConfig::new(tree.root())));
    let running = front(FilesConfig::new(tree.root()), |config| {
        config.routes = vec![
            RouteConfig {
                rules: Some(Arc::new(RouteRules {
                    files: files.clone(),
                    deny: vec!["127.0.0.0/8".parse().unwrap()],
                    ..RouteRules::default()
                })),
                ..RouteConfig::new("/dir", RouteTarget::Files)
            },
            RouteConfig {
                rules: Some(Arc::new(RouteRules {
                    files: files.clone(),
                    client_certificate: true,
                    ..RouteRules::default()
                })),
                ..RouteConfig::new("/dir2", RouteTarget::Files)
            },
            route("/", RouteTarget::Files, FilesConfig::new(tree.root())),
        ];
    });
    let address = address(&running);
    for (path, status) in [
        ("/page.html", 200),
        ("/dir/x.txt", 403),
        ("/%64ir/x.txt", 403),
        ("//dir/x.txt", 403),
        ("/dir2/../dir/x.txt", 403),
        ("/dir;a/x.txt", 403),
        ("/dir2/", 403),
        ("/dir2", 403),
        ("/dir2/none", 403),
    ] {
        let got = Client::Http1.get(address, path);
        assert_eq!(got.status, status, "{path}");
    }
}

#[test]
fn a_rewritten_path_is_looked_up_and_the_clients_is_redirected() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |config| {
        config.routes = vec![RouteConfig {
            rules: Some(Arc::new(RouteRules {
                files: Some(Arc::new(FilesConfig::new(tree.root()))),
                rewrite: Some(catamaran_proxy::config::Rewrite {
                    to: "/".to_owned(),
                    reverse: true,
                    internal_hosts: Vec::new(),
                }),
                ..RouteRules::default()
            })),
            ..RouteConfig::new("/static", RouteTarget::Files)
        }];
    });
    let address = address(&running);
    for client in Client::BOTH {
        assert_eq!(client.get(address, "/static/page.html").body, pattern(1456));
        assert_eq!(client.get(address, "/static/").body, pattern(300));
        assert_eq!(client.get(address, "/page.html").status, 404);
        for (path, location) in [
            ("/static", "/static/"),
            ("/static?a=b", "/static/?a=b"),
            ("/static/dir2", "/static/dir2/"),
        ] {
            let got = client.get(address, path);
            assert_eq!(got.status, 308, "{path}");
            assert_eq!(got.header("location"), location, "{path}");
        }
    }
}

#[test]
fn a_page_of_a_browser_has_a_fallback_and_a_missing_script_has_none() {
    let tree = Tree::new();
    let mut files = FilesConfig::new(tree.root());
    files.fallback = Some("index.html".to_owned());
    files.cache_control = Some(HeaderValue::from_static("max-age=60"));
    let running = front(files, |_| {});
    let address = address(&running);
    let html = [("accept", "text/html,*/*;q=0.8".to_owned())];
    let any = [("accept", "*/*".to_owned())];
    for client in Client::BOTH {
        let got = client.ask(address, "GET", "/orders/7", &html);
        assert_eq!((got.status, got.body), (200, pattern(300)));
        let got = client.ask(address, "GET", "/orders/7", &html);
        assert_eq!(got.header("vary"), "Accept");
        assert_eq!(got.header("cache-control"), "max-age=60");
        for (path, fields) in [
            ("/orders/7", &any[..]),
            ("/orders/7", &[]),
            ("/gone.js", &html),
            ("/.git/config", &html),
        ] {
            let got = client.ask(address, "GET", path, fields);
            assert_eq!(got.status, 404, "{path}");
            assert_eq!(got.header("cache-control"), "no-store", "{path}");
        }
    }
}

/// What the front counts of files, and what the log says.
#[test]
fn files_are_counted() {
    let tree = Tree::new();
    let running = front(FilesConfig::new(tree.root()), |_| {});
    let address = address(&running);
    for path in ["/page.html", "/none", "/.secret", "/link-out"] {
        Client::Http1.get(address, path);
    }
    wait_for_reason(&running, "client:file-missing");
    wait_for_reason(&running, "client:file-hidden");
    wait_for_reason(&running, "front:files-outside");
    Deadline::default()
        .poll("the counters", || {
            let counters = running.counters();
            let [hit, open, thread, missing, failed] = counters.files;
            (hit + open + thread == 1 && missing == 3 && failed == 0 && counters.files_open == 0)
                .then_some(())
        })
        .unwrap();
}

/// A release is a link that is swapped: within a second every page is of the new one, and none is of both.
#[test]
fn a_release_by_the_swap_of_a_link_is_seen_within_a_second() {
    let top = tempfile::tempdir().unwrap();
    let releases = ["one", "two"].map(|name| {
        let release = top.path().join(name);
        fs::create_dir(&release).unwrap();
        fs::write(release.join("page"), name.repeat(10_000)).unwrap();
        release
    });
    let current = top.path().join("current");
    std::os::unix::fs::symlink(&releases[0], &current).unwrap();
    let running = front(FilesConfig::new(&current), |_| {});
    let address = address(&running);
    let page = || Client::Http1.get(address, "/page").body;
    assert_eq!(page(), "one".repeat(10_000).into_bytes());
    let next = top.path().join("next");
    std::os::unix::fs::symlink(&releases[1], &next).unwrap();
    fs::rename(&next, &current).unwrap();
    Deadline::default()
        .poll("the new release", || {
            let page = page();
            let text = String::from_utf8(page).unwrap();
            let is_new = text == "two".repeat(10_000);
            assert!(is_new || text == "one".repeat(10_000), "a mixed page");
            is_new.then_some(())
        })
        .unwrap();
}
