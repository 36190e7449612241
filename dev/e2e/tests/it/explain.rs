//! What `explain` says of a request is what happens to it.

use catamaran_e2e::{Front, catamaran};
use catamaran_testkit::{Deadline, Process};
use serde_json::Value;

use crate::reload::application;

struct Tier {
    front: Front,
    _applications: [Process; 3],
}

impl Tier {
    /// Upstream `shop` of three backends, of which `c` is a standby; `keyed` of the same two by hash.
    fn start() -> Self {
        let started = [application(), application(), application()];
        let [a, b, c] = [&started[0].1, &started[1].1, &started[2].1];
        let front = Front::with_config(&format!(
            "[server]\nworkers = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
             [admin]\naddress = [\"unix:{{directory}}/admin.sock\", \"127.0.0.1:0\"]\n\
             [[route]]\npath = \"/app\"\nupstream = \"shop\"\n\
             [[route]]\npath = \"/app/admin\"\nstatus = 403\n\
             [[route]]\nhost = \"*.example.org\"\nupstream = \"keyed\"\n\
             [[route]]\nhost = \"www.example.org\"\npath = \"/app\"\nsuffix = \".jsp\"\nupstream = \"keyed\"\n\
             [upstream.shop.sticky]\nset_cookie = \"OWN\"\n\
             [[upstream.shop.backend]]\nname = \"a\"\nurl = \"{a}\"\nfallback = \"c\"\n\
             [[upstream.shop.backend]]\nname = \"b\"\nurl = \"{b}\"\nweight = 3\n\
             [[upstream.shop.backend]]\nname = \"c\"\nurl = \"{c}\"\ndistance = 1\n\
             [upstream.keyed]\npolicy = \"hash\"\nhash_by = \"path\"\nsticky = \"off\"\n\
             [[upstream.keyed.backend]]\nname = \"d\"\nurl = \"{a}\"\n\
             [[upstream.keyed.backend]]\nname = \"e\"\nurl = \"{b}\"\n"
        ));
        Self {
            front: front.unwrap(),
            _applications: started.map(|it| it.0),
        }
    }

    fn run(&self, arguments: &[&str]) -> String {
        let mut process = catamaran(arguments).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        let said = process.stdout();
        assert_eq!(
            status.code(),
            Some(0),
            "{arguments:?}: {said}{}",
            process.stderr()
        );
        said
    }

    fn explain(&self, url: &str, cookie: &str, offline: bool) -> Value {
        let directory = self.front.directory();
        let (file, socket) = (
            directory.join("catamaran.toml"),
            directory.join("admin.sock"),
        );
        let place = if offline {
            ["--config".to_owned(), file.display().to_string()]
        } else {
            ["--admin".to_owned(), format!("unix:{}", socket.display())]
        };
        let cookie = format!("Cookie: {cookie}");
        let [flag, place] = &place;
        let said = self.run(&["explain", url, "--header", &cookie, "--json", flag, place]);
        serde_json::from_str(&said).unwrap()
    }

    fn steer(&self, arguments: &[&str]) {
        let file = self.front.directory().join("catamaran.toml");
        self.run(&[arguments, &["--config", file.to_str().unwrap()]].concat());
    }

    /// Sends the request; gives the status, and the upstream and backend that the log names.
    fn serve(&self, url: &str, cookie: &str, mark: usize) -> (u16, String, String) {
        let rest = url.strip_prefix("http://").unwrap();
        let at = rest.find('/').unwrap();
        let (host, path) = rest.split_at(at);
        let target = format!("{path}?n={mark}");
        let head = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nCookie: {cookie}\r\n\r\n");
        let status = self.front.ask(head).unwrap().status;
        let line = self.front.wait_for_log(&format!("?n={mark} ")).unwrap();
        let named = |key: &str| {
            let (_, rest) = line.split_once(&format!(" {key}=")).unwrap();
            rest.split(' ').next().unwrap().to_owned()
        };
        (status, named("upstream"), named("backend"))
    }
}

#[test]
fn what_is_explained_is_what_is_served() {
    let tier = Tier::start();
    let requests = [
        ("http://any/app", ""),
        ("http://any/app/x;jsessionid=1.b", ""),
        ("http://any/app/%61/../y", "JSESSIONID=1.a"),
        ("http://any/app", "JSESSIONID=1.nobody"),
        ("http://any/app//admin/", "JSESSIONID=1.a"),
        ("http://any/other", ""),
        ("http://www.example.org/app/x.jsp", "JSESSIONID=1.a"),
        ("http://a.example.org/k1", ""),
        ("http://a.example.org/k2", ""),
        ("http://a.example.org/k3", ""),
        ("http://any/app/..%2fx", ""),
    ];
    let mut mark = 0;
    for steering in [
        &["weight", "shop/b", "2"][..],
        &["stop", "shop/a"],
        &["drain", "shop/b"],
    ] {
        tier.steer(steering);
        for (url, cookie) in requests {
            let explained = tier.explain(url, cookie, false);
            mark += 1;
            let (status, upstream, backend) = tier.serve(url, cookie, mark);
            let words = format!("{steering:?} {url} {cookie}: {upstream} {backend}, {explained:#}");
            if explained["outcome"] != "forward" {
                assert_eq!(explained["answer"]["status"], status, "{words}");
                assert_eq!(backend, "-", "{words}");
                continue;
            }
            assert_eq!(explained["upstream"]["name"], *upstream, "{words}");
            let members = explained["members"].as_array().unwrap();
            let member = members.iter().find(|it| it["backend"] == *backend).unwrap();
            assert!(member["share"].as_f64().unwrap() > 0.0, "{words}");
            if !explained["backend"].is_null() {
                assert_eq!(explained["backend"], *backend, "{words}");
            }
        }
    }
}

#[test]
fn explaining_takes_no_turn_and_the_file_alone_is_enough() {
    let tier = Tier::start();
    let requests = || tier.front.metric("catamaran_requests_total").unwrap();
    let before = requests();
    for _ in 0..8 {
        tier.explain("http://any/app", "JSESSIONID=1.a; OWN=x", false);
    }
    assert_eq!(requests(), before);
    let mut online = tier.explain("http://any/app", "", false);
    let offline = tier.explain("http://any/app", "", true);
    online["generation"] = offline["generation"].clone();
    assert_eq!(online, offline);
    let shares = |it: &Value| {
        it["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["share"].clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(shares(&offline), [25.0, 75.0, 0.0]);
    let place = offline["route"]["place"].as_str().unwrap();
    assert!(place.ends_with("catamaran.toml:7"), "{place}");
    let text = tier.run(&[
        "explain",
        "/app/admin",
        "--config",
        &place[..place.len() - 2],
    ]);
    assert!(text.starts_with("403: the route says so\n"), "{text}");
}
