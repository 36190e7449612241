//! Sessions of real Tomcats, and of Undertow, behind the front: each client keeps its own, over AJP and HTTP, by
//! cookie and by URL; those of a Tomcat that is killed move, and only those.

use catamaran_e2e::{Connector, Container, Embedded, Front, Tomcat};
use catamaran_testkit::{HttpClient, Response, Signal};

/// A client that keeps its cookies, or the links it is given.
struct Client {
    cookie: String,
    link: String,
    id: String,
}

impl Client {
    fn new(front: &Front, by_url: bool) -> Self {
        let answer = front.get("/session.jsp").unwrap();
        let cookie = answer.header("set-cookie").expect("a session");
        let cookie = cookie.split(';').next().unwrap_or_default();
        Self {
            cookie: if by_url { "" } else { cookie }.to_owned(),
            link: if by_url {
                value(&answer, "link")
            } else {
                "/session.jsp".to_owned()
            },
            id: value(&answer, "id"),
        }
    }

    fn route(&self) -> &str {
        self.id.split_once('.').expect("a jvmRoute").1
    }

    fn visit(&self, front: &Front, method: &str) -> Response {
        let mut fields = "Content-Length: 0\r\n".to_owned();
        if !self.cookie.is_empty() {
            fields += &format!("Cookie: {}\r\n", self.cookie);
        }
        let mut client = HttpClient::connect(front.address()).unwrap();
        client.ask(front.head(method, &self.link, &fields)).unwrap()
    }
}

/// What the page says of something.
fn value(answer: &Response, name: &str) -> String {
    let text = answer.text();
    let start = format!("{name}=");
    let mut lines = text.lines();
    let found = lines.find_map(|line| line.strip_prefix(&start));
    found
        .unwrap_or_else(|| panic!("{name} in {text}"))
        .to_owned()
}

fn front(tomcats: &[(&str, &Tomcat)], connector: Connector) -> Front {
    let mut tables = "[upstream.app.sticky]\n".to_owned();
    for (route, tomcat) in tomcats {
        tables += &tomcat.backend_table("app", connector);
        tables += &format!("name = \"{route}\"\n");
    }
    Front::to_app(&tables).unwrap()
}

#[test]
fn each_client_keeps_its_session_until_its_tomcat_is_killed() {
    let (one, two) = (Tomcat::start("one").unwrap(), Tomcat::start("two").unwrap());
    let tomcats = [("one", &one), ("two", &two)];
    let fronts = [Connector::Ajp, Connector::Http].map(|connector| front(&tomcats, connector));
    let clients: Vec<(&Front, Client)> = (0..24)
        .map(|number| (&fronts[number % 2], number % 4 < 2))
        .map(|(front, by_url)| (front, Client::new(front, by_url)))
        .collect();
    for route in ["one", "two"] {
        let here = clients.iter().filter(|(_, client)| client.route() == route);
        assert!(here.count() > 0, "new sessions are spread");
    }
    for visits in 2..6 {
        for (front, client) in &clients {
            let answer = client.visit(front, "GET");
            assert_eq!(value(&answer, "id"), client.id);
            assert_eq!(value(&answer, "visits"), visits.to_string());
        }
    }
    catamaran_testkit::signal_process(one.process().id(), Signal::Kill).unwrap();
    for (front, client) in &clients {
        // A POST is sent once: it fails, or it is served by a Tomcat that never saw it.
        let posted = client.visit(front, "POST");
        let next = client.visit(front, "GET");
        assert_eq!(next.status, 200);
        if client.route() == "two" {
            assert_eq!(value(&posted, "visits"), "6");
            assert_eq!(value(&next, "visits"), "7", "not sent twice");
            assert_eq!(value(&next, "id"), client.id);
        } else {
            assert!(matches!(posted.status, 200 | 502 | 503), "{posted:?}");
            assert_eq!(
                value(&next, "visits"),
                "1",
                "without replication it is lost"
            );
            assert!(value(&next, "id").ends_with(".two"));
        }
    }
    for front in &fronts {
        let log = front
            .wait_for_log("sticky=moved session_route=\"one\"")
            .unwrap();
        assert!(log.contains("backend=two"), "{log}");
    }
}

/// WildFly is made of Undertow: its `JvmRouteHandler` writes the route into the cookie and takes it out
/// of the one that comes back.
#[test]
fn each_client_keeps_its_session_of_undertow() {
    let started = |route| Container::Undertow.start_with_route(route).unwrap();
    let (one, two) = std::thread::scope(|scope| {
        let other = scope.spawn(|| started("two"));
        (started("one"), other.join().unwrap())
    });
    let urls = |container: &Embedded| container.urls().map(str::to_owned).collect::<Vec<_>>();
    for (one, two) in urls(&one).iter().zip(urls(&two)) {
        let front = Front::to_app(&format!(
            "[upstream.app.sticky]\n\
             [[upstream.app.backend]]\nname = \"one\"\nurl = \"{one}\"\n\
             [[upstream.app.backend]]\nname = \"two\"\nurl = \"{two}\"\n"
        ))
        .unwrap();
        let begin = |_| {
            let answer = front.get("/session").unwrap();
            let cookie = answer.header("set-cookie").expect("a session");
            let cookie = cookie.split(';').next().unwrap_or_default().to_owned();
            assert!(
                cookie.ends_with(".one") || cookie.ends_with(".two"),
                "{cookie}"
            );
            cookie
        };
        let cookies: Vec<String> = (0..10).map(begin).collect();
        for route in [".one", ".two"] {
            assert!(cookies.iter().any(|cookie| cookie.ends_with(route)));
        }
        for visits in 2..5 {
            for cookie in &cookies {
                let field = format!("Cookie: {cookie}\r\n");
                let answer = front.ask(front.head("GET", "/session", &field)).unwrap();
                assert_eq!(value(&answer, "visits"), visits.to_string(), "{cookie}");
            }
        }
    }
}
