//! What an operator sees of real Tomcats that fail: answers 5xx, one that dies and comes back, a drain.

use std::thread;

use catamaran_e2e::{Browser, Connector, Front, Tomcat, catamaran};
use catamaran_testkit::{Deadline, Process, Signal, signal_process};
use serde_json::Value;

use super::run;

/// A front with one upstream `app` of these backends, and admin listeners on a socket and on TCP.
fn front(more: &str, backends: &str) -> Front {
    Front::with_config(&format!(
        "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [admin]\naddress = [\"unix:admin.sock\", \"127.0.0.1:0\"]\n[upstream.app]\n{more}\
         [upstream.app.sticky]\nsession_timeout = \"1h\"\n{backends}"
    ))
    .unwrap()
}

/// Two connectors of one Tomcat as `blue` and `green`.
fn tomcats(more: &str, of_blue: &str) -> Front {
    let tomcat = Tomcat::shared().unwrap();
    let blue = tomcat.backend_table("app", Connector::Ajp);
    let green = tomcat.backend_table("app", Connector::AjpUnix);
    let backends = format!("{blue}name = \"blue\"\n{of_blue}{green}name = \"green\"\n");
    front(more, &backends)
}

/// Asks Tomcat for a status by the session of a backend.
fn visit(front: &Front, backend: &str, status: u16) {
    let cookie = format!("Cookie: JSESSIONID=1.{backend}\r\n");
    let target = format!("/status.jsp?code={status}");
    let request = front.head("GET", &target, &cookie);
    assert_eq!(front.ask(request).unwrap().status, status);
}

fn json(front: &Front, target: &str) -> Value {
    serde_json::from_str(&front.ask_admin(target).unwrap().text()).unwrap()
}

fn backend(front: &Front, name: &str) -> Value {
    json(front, &format!("/api/v1/upstreams/app/backends/{name}"))
}

/// The text of the first event of a kind with these words.
fn event(front: &Front, kind: &str, words: &str) -> String {
    let what = format!("an event {kind} with {words:?}");
    let found = Deadline::default().poll(&what, || {
        let events = json(front, "/api/v1/events");
        let mut events = events["events"].as_array().unwrap().iter();
        let text = |event: &Value| event["text"].as_str().unwrap().to_owned();
        let found = events.find(|it| it["kind"] == kind && text(it).contains(words))?;
        Some(text(found))
    });
    found.unwrap()
}

/// The page of the front, as a browser shows it.
fn page(front: &Front) -> Browser {
    let line = front.wait_for_log("admin on http://").unwrap();
    let (_, page) = line.split_once("admin on ").unwrap();
    let mut browser = Browser::start(&[]).unwrap();
    browser.open(&format!("{}/", page.trim())).unwrap();
    browser
}

#[test]
fn a_tomcat_that_answers_only_500_is_seen() {
    let front = tomcats("", "");
    (0..30).for_each(|_| visit(&front, "blue", 500));
    visit(&front, "green", 200);
    let errors = |name| backend(&front, name)["server_errors"].clone();
    let blue = errors("blue");
    assert_eq!(blue["total"], 30, "{blue}");
    // However many of them a slow machine gave within the last minute.
    assert_eq!(blue["minute"], blue["responses_minute"], "{blue}");
    assert_eq!(errors("green")["total"], 0);
    let said = event(&front, "health", "answers 5xx");
    // As many as came before it was looked.
    assert!(
        said.ends_with(" responses within the last minute"),
        "{said}"
    );
    // Off by default: what clients ask for puts no backend out.
    assert_eq!(backend(&front, "blue")["condition"], "up");
    // A slow machine may have forgotten the first ones.
    let again = || (0..12).for_each(|_| visit(&front, "blue", 500));
    again();
    let (code, said) = run(&front, &["status"]);
    assert_eq!(code, Some(0), "{said}");
    let remark = |name: &str| {
        let start = format!("    {name} answered ");
        let mut lines = said.lines().filter(|line| line.starts_with(&start));
        lines.any(|line| line.ends_with(" with 5xx within the last minute"))
    };
    assert!(remark("blue") && !remark("green"), "{said}");
    assert!(said.contains(" up, 5xx "), "{said}");
    let mut browser = page(&front);
    again();
    let pill = "[...document.querySelectorAll('tr[data-backend=blue] .pill:not([hidden])')].some(it => it.textContent == '5xx')";
    browser.wait(pill).unwrap();
    let cell = |name: &str| {
        format!("document.querySelector('tr[data-backend={name}] [data-label=\"5xx\"]')?.title")
    };
    let is_seen = format!("{}?.includes('54 since the start')", cell("blue"));
    browser.wait(&is_seen).unwrap();
    let green = browser.evaluate(&cell("green")).unwrap();
    assert!(
        green.as_str().unwrap().contains("0 since the start"),
        "{green}"
    );
}

#[test]
fn a_run_of_500_puts_a_tomcat_out_where_that_is_wanted_and_another_answers_well() {
    let front = tomcats("eject_after_5xx = 5\n", "");
    // Nobody answers well yet.
    (0..8).for_each(|_| visit(&front, "blue", 500));
    assert_eq!(backend(&front, "blue")["ejections"], 0);
    visit(&front, "green", 200);
    visit(&front, "blue", 200);
    (0..5).for_each(|_| visit(&front, "blue", 500));
    // A client has its response before the run is judged.
    let is_out = || (backend(&front, "blue")["ejections"] == 1).then_some(());
    Deadline::default().poll("it to be out", is_out).unwrap();
    let line = front.wait_for_log("backend is out").unwrap();
    let cause = "it answered one request after the other with 5xx";
    assert!(line.contains(cause), "{line}");
    // It is out for a second; a busy machine may look at it only when it is back.
    event(&front, "health", "out");
    event(&front, "health", "back");
    visit(&front, "blue", 200);
}

#[test]
fn new_sessions_one_after_the_other_are_spread_by_weight() {
    let front = tomcats("policy = \"least-in-flight\"\n", "weight = 2\n");
    for _ in 0..60 {
        assert_eq!(front.get("/session.jsp").unwrap().status, 200);
    }
    let requests = |name| backend(&front, name)["requests"].as_u64().unwrap();
    let (blue, green) = (requests("blue"), requests("green"));
    assert!(
        blue + green == 60 && (17..=23).contains(&green),
        "{blue}:{green}"
    );
    // A request counts as one in flight until its end was noted.
    let is_at_rest = || {
        let explained = json(&front, "/api/v1/explain?url=http%3A%2F%2Fa%2F");
        let members = explained["members"].as_array().unwrap().iter();
        let shares = members.map(|it| it["share"].as_f64().unwrap().round() as u64);
        shares.eq([67, 33]).then_some(())
    };
    Deadline::default()
        .poll("shares by weight", is_at_rest)
        .unwrap();
}

/// While one is drained the other dies: those without a session get 503, and that is seen everywhere.
#[test]
fn a_tomcat_that_dies_while_the_other_drains_is_seen_and_so_is_its_return() {
    let shared = Tomcat::shared().unwrap();
    let mortal = Tomcat::start("mortal").unwrap();
    let front = front(
        "[upstream.app.probe]\nkind = \"cping\"\ninterval = \"100ms\"\n",
        &format!(
            "{}name = \"drained\"\n{}name = \"mortal\"\n",
            shared.backend_table("app", Connector::Ajp),
            mortal.backend_table("app", Connector::Ajp),
        ),
    );
    visit(&front, "drained", 200);
    assert_eq!(run(&front, &["drain", "app/drained"]).0, Some(0));
    visit(&front, "mortal", 200);
    let ready = || {
        let answer = front.ask_admin("/readyz").unwrap();
        (answer.status, answer.text())
    };
    assert_eq!(ready(), (200, "ready\n".to_owned()));
    let mut browser = page(&front);
    let pill = "document.querySelector('#ready')?.className + ' ' + document.querySelector('#ready')?.textContent";
    let pill_is = |text: &str| format!("({pill}) == {text:?}");
    browser.wait(&pill_is("pill good ready")).unwrap();

    signal_process(mortal.process().id(), Signal::Kill).unwrap();
    event(&front, "health", "out: ");
    let without_session = || front.get("/status.jsp?code=200").unwrap().status;
    assert_eq!(without_session(), 503);
    visit(&front, "drained", 200);
    let text = "not ready\nupstream app accepts no new clients\n";
    assert_eq!(ready(), (503, text.to_owned()));
    let (code, said) = run(&front, &["status"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("not ready; "), "{said}");
    browser
        .wait(&pill_is("pill bad not ready; no new clients: app"))
        .unwrap();

    let _again = Tomcat::start_in_place_of(&mortal, "mortal").unwrap();
    let said = event(&front, "health", "back; ");
    assert!(said.starts_with("back; in all it was out for "), "{said}");
    assert_eq!(without_session(), 200);
    assert_eq!(ready(), (200, "ready\n".to_owned()));
    browser.wait(&pill_is("pill good ready")).unwrap();
}

/// Requests come all the time; what is printed are the deadline, and what comes nearer to the end.
#[test]
fn a_drain_of_a_busy_tomcat_says_its_deadline_and_only_what_changes() {
    let front = tomcats("", "");
    visit(&front, "blue", 200);
    let admin = format!("unix:{}/admin.sock", front.directory().display());
    let drain = [
        "drain",
        "app/blue",
        "--wait",
        "--deadline",
        "5s",
        "--admin",
        &admin,
    ];
    let mut process: Process = catamaran(&drain).unwrap();
    let status = thread::scope(|scope| {
        let client = scope.spawn(|| {
            let is_drained = || backend(&front, "blue")["settings"]["activation"] == "stopped";
            let mut visits = 0;
            while !is_drained() {
                let cookie = "Cookie: JSESSIONID=1.blue\r\n";
                let request = front.head("GET", "/status.jsp?code=200", cookie);
                assert_eq!(front.ask(request).unwrap().status, 200);
                visits += 1;
            }
            visits
        });
        let status = process.wait(Deadline::default()).unwrap();
        let visits: u32 = client.join().unwrap();
        assert!(visits > 1, "{visits} visits");
        status
    });
    let (told, end) = (process.stderr(), process.stdout());
    assert!(status.success(), "{told}{end}");
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines[0].starts_with("app/blue: ") && lines[0].ends_with(" UTC in any case"),
        "{told}"
    );
    assert!(lines.len() <= 3, "{told}");
    assert_eq!(end, "app/blue: stopped\n");
    let said = event(&front, "change", "drained (deadline)");
    assert!(said.contains(": stopped"), "{said}");
}
