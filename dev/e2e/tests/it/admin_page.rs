//! The admin page in headless Chromium, as an operator uses it: by clicks and keys, beside colleagues, and
//! with names that others chose.

use std::fs;
use std::net::TcpListener;
use std::thread;

use catamaran_e2e::{App, Browser, Front, catamaran};
use catamaran_testkit::{Deadline, HttpClient, Process, address};
use serde_json::{Value, json};

use crate::reload::application;

/// A front with the backends `blue`, `green` and one that nobody listens at, whose name is markup; an admin
/// listener with a token on TCP, and one on a Unix socket for colleagues.
struct Tier {
    front: Front,
    _applications: [Process; 2],
    page: String,
    browser: Browser,
}

impl Tier {
    fn start() -> Self {
        let (blue, green) = (application(), application());
        let nobody = address::refusing().unwrap();
        let tokens = tempfile::NamedTempFile::new().unwrap();
        fs::write(tokens.path(), TOKEN).unwrap();
        let front = Front::with_config(&format!(
            "[server]\nworkers = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
             [admin]\naddress = [\"127.0.0.1:0\", \"unix:{{directory}}/admin.sock\"]\n\
             token_file = \"{}\"\n[upstream.app.sticky]\nsession_timeout = \"1h\"\n\
             [[upstream.app.backend]]\nname = \"blue\"\nurl = \"{}\"\n\
             [[upstream.app.backend]]\nname = \"green\"\nurl = \"{}\"\n\
             [[upstream.app.backend]]\nname = \"{HOSTILE}\"\nurl = \"ajp://{nobody}\"\n",
            tokens.path().display(),
            blue.1,
            green.1,
        ))
        .unwrap();
        let line = front.wait_for_log("admin on http://").unwrap();
        let (_, page) = line.split_once("admin on ").unwrap();
        let mut browser = Browser::start(&["evil.example"]).unwrap();
        browser.open(&format!("{}/", page.trim())).unwrap();
        browser.wait(&shows("blue", "up")).unwrap();
        Self {
            page: page.trim().to_owned(),
            front,
            _applications: [blue.0, green.0],
            browser,
        }
    }

    /// Runs a command by the Unix socket, as a colleague does.
    fn colleague(&self, words: &[&str]) {
        let socket = format!("unix:{}/admin.sock", self.front.directory().display());
        let mut process = catamaran(&[words, &["--admin", &socket]].concat()).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        assert!(status.success(), "{}", process.stderr());
    }

    /// Asks the API, with the token.
    fn status(&self) -> Value {
        let address = self.page.strip_prefix("http://").unwrap();
        let mut client =
            HttpClient::connect(address.parse::<std::net::SocketAddr>().unwrap()).unwrap();
        let request = format!("GET /api/v1/status HTTP/1.1\r\nHost: {address}\r\n\r\n");
        client.send(request.as_bytes()).unwrap();
        serde_json::from_str(&client.receive().unwrap().text()).unwrap()
    }

    fn activation(&self, at: usize) -> String {
        let status = self.status();
        let backend = &status["upstreams"][0]["backends"][at];
        backend["settings"]["activation"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn visit(&self, session: &str) -> u16 {
        let fields = format!("Cookie: JSESSIONID={session}\r\n");
        self.front
            .ask(self.front.head("GET", "/", &fields))
            .unwrap()
            .status
    }

    /// Gives the page the token, as it asks for it.
    fn give_token(&mut self) {
        let browser = &mut self.browser;
        browser
            .wait("document.querySelector('#token').open")
            .unwrap();
        browser.type_into("#token-text", TOKEN).unwrap();
        browser.press("Enter").unwrap();
        browser
            .wait("!document.querySelector('#token').open")
            .unwrap();
    }

    /// Nothing was executed that came as a name, and the page's policy had nothing to forbid.
    fn assert_clean(&mut self) {
        assert_eq!(
            self.browser.evaluate("typeof window.hacked").unwrap(),
            "undefined"
        );
        let markup = "document.querySelectorAll('main svg[onload], main b, main script').length";
        assert_eq!(self.browser.evaluate(markup).unwrap(), 0);
        let complaints = self.browser.complaints();
        // Refusals of the API, which the page shows.
        let other = |it: &&String| !it.contains("status of 4");
        assert_eq!(
            complaints.iter().filter(other).collect::<Vec<_>>(),
            Vec::<&String>::new()
        );
    }
}

fn row(backend: &str) -> String {
    format!(
        "[...document.querySelectorAll('tr.one')].find(it => it.dataset.backend == {backend:?})"
    )
}

/// Whether the row of this backend has a pill with this word.
fn shows(backend: &str, word: &str) -> String {
    let row = row(backend);
    format!(
        "[...({row}?.querySelectorAll('.pill:not([hidden])') || [])].some(it => it.textContent == {word:?})"
    )
}

/// Whether the line below the row of `blue` has this text.
fn reason_shown(text: &str) -> String {
    let row = row("blue");
    format!("{row}.nextElementSibling.textContent.includes({text:?})")
}

/// Chooses an action from the menu of a backend.
fn choose(browser: &mut Browser, backend: &str, action: &str) {
    let menu = format!("tr[data-backend=\"{backend}\"] [data-action=menu]");
    browser.click(&menu).unwrap();
    let item = format!("#menu[data-backend=\"{backend}\"]:popover-open [data-action={action}]");
    browser
        .wait(&format!("document.querySelector({item:?}) != null"))
        .unwrap();
    browser.click(&item).unwrap();
}

#[test]
fn a_backend_is_drained_and_brought_back_by_clicks() {
    let mut tier = Tier::start();
    assert_eq!(tier.visit("1.blue"), 200);
    let browser = &mut tier.browser;
    browser
        .wait(&format!(
            "{}.cells?.length || {0}.textContent.includes('1')",
            row("blue")
        ))
        .unwrap();
    choose(browser, "blue", "drain");
    let effect = browser.wait(EFFECT).unwrap();
    let effect = effect.as_str().unwrap();
    assert!(
        effect.starts_with("blue gets no new sessions from now on."),
        "{effect}"
    );
    browser
        .type_into("#change [name=reason]", "<b>new</b> disk")
        .unwrap();
    browser.click("#change-go").unwrap();
    // It has no token yet, and asks for it. Nothing was changed.
    tier.give_token();
    assert_eq!(tier.activation(0), "active");

    let browser = &mut tier.browser;
    choose(browser, "blue", "drain");
    browser
        .type_into("#change [name=reason]", "<b>new</b> disk")
        .unwrap();
    browser.click("#change-go").unwrap();
    browser.wait(CLOSED).unwrap();
    browser.wait(&shows("blue", "draining")).unwrap();
    let progress = "document.querySelector('tr.drain-row:not([hidden])')?.textContent";
    let progress = browser.wait(progress).unwrap();
    let progress = progress.as_str().unwrap();
    assert!(
        progress.starts_with("1 of 1 session left; 0 requests in flight"),
        "{progress}"
    );
    browser.wait(&reason_shown("<b>new</b> disk")).unwrap();
    assert_eq!(tier.activation(0), "drain");

    // By keys only: cancel.
    let browser = &mut tier.browser;
    browser
        .evaluate("document.querySelector('[data-action=cancel]').focus()")
        .unwrap();
    browser.press("Enter").unwrap();
    assert_eq!(
        browser.wait(EFFECT).unwrap(),
        "blue takes new sessions again."
    );
    browser
        .evaluate("document.querySelector('#change-go').focus()")
        .unwrap();
    browser.press("Enter").unwrap();
    browser
        .wait(&format!("{CLOSED} && !{}", shows("blue", "draining")))
        .unwrap();
    assert_eq!(tier.activation(0), "active");

    // A drain that its deadline ends.
    let browser = &mut tier.browser;
    choose(browser, "blue", "drain");
    browser.type_into("#change [name=deadline]", "1s").unwrap();
    browser.press("Enter").unwrap();
    browser.wait(&shows("blue", "stopped")).unwrap();
    choose(browser, "blue", "reset");
    browser.click("#change-go").unwrap();
    browser
        .wait(&format!("{CLOSED} && !{}", shows("blue", "stopped")))
        .unwrap();
    let events = "document.querySelector('#events-rows').textContent.includes('drained (deadline): stopped')";
    browser.wait(events).unwrap();
    tier.assert_clean();
}

/// As `activate --wait` does.
#[test]
fn a_backend_is_activated_when_a_check_is_answered() {
    let mut tier = Tier::start();
    tier.browser.click("#token-open").unwrap();
    tier.give_token();
    tier.colleague(&["stop", "app/green"]);
    tier.browser.wait(&shows("green", "stopped")).unwrap();
    choose(&mut tier.browser, "green", "activate");
    let effect = tier.browser.wait(EFFECT).unwrap();
    let effect = effect.as_str().unwrap();
    assert!(
        effect.starts_with("The front checks green first."),
        "{effect}"
    );
    tier.browser.click("#change-go").unwrap();
    tier.browser.wait(CLOSED).unwrap();
    assert_eq!(tier.activation(1), "active");
    let checked = "document.querySelector('tr[data-backend=green] [data-label=\"Last check\"]')?.textContent.includes('✓')";
    tier.browser.wait(checked).unwrap();

    // Nobody listens at this one.
    tier.colleague(&["stop", &format!("app/{HOSTILE}")]);
    tier.browser.wait(&shows(HOSTILE, "stopped")).unwrap();
    choose(&mut tier.browser, HOSTILE, "activate");
    tier.browser.click("#change-go").unwrap();
    let error = tier.browser.wait(ERROR).unwrap();
    let error = error.as_str().unwrap();
    assert!(
        error.starts_with("Not activated yet: the check failed (cping: "),
        "{error}"
    );
    assert_eq!(tier.activation(2), "stopped");
    // Whoever closes the dialog does not want it any more.
    tier.browser.click("#change-cancel").unwrap();
    tier.browser.wait(CLOSED).unwrap();
    choose(&mut tier.browser, HOSTILE, "activate");
    tier.browser.click("#change [name=unchecked]").unwrap();
    tier.browser.click("#change-go").unwrap();
    tier.browser.wait(CLOSED).unwrap();
    assert_eq!(tier.activation(2), "active");
    tier.assert_clean();
}

#[test]
fn a_colleague_who_was_faster_is_shown_and_not_overwritten() {
    let mut tier = Tier::start();
    tier.browser.click("#token-open").unwrap();
    tier.give_token();
    choose(&mut tier.browser, "green", "weight");
    tier.browser
        .type_into("#change [name=weight]", "7")
        .unwrap();
    tier.colleague(&["weight", "app/green", "3"]);
    tier.colleague(&["activate", "app/green", "--reason", "<i>mine</i>"]);
    tier.browser.click("#change-go").unwrap();
    let error = tier.browser.wait(ERROR).unwrap();
    let error = error.as_str().unwrap();
    assert!(
        error.contains("Somebody changed green meanwhile"),
        "{error}"
    );
    assert!(
        error.contains("<i>mine</i>") && error.contains("weight 3"),
        "{error}"
    );
    let weight =
        |tier: &Tier| tier.status()["upstreams"][0]["backends"][1]["settings"]["weight"].clone();
    assert_eq!(weight(&tier), 3, "nothing was overwritten");
    // Confirmed again, it is meant.
    tier.browser.click("#change-go").unwrap();
    tier.browser.wait(CLOSED).unwrap();
    assert_eq!(weight(&tier), 7);

    // The last backend is not taken out before that is said.
    tier.colleague(&["stop", "app/blue"]);
    tier.browser.wait(&shows("blue", "stopped")).unwrap();
    tier.colleague(&["stop", &format!("app/{HOSTILE}")]);
    choose(&mut tier.browser, "green", "stop");
    tier.browser.click("#change-go").unwrap();
    let error = tier.browser.wait(ERROR).unwrap();
    assert!(error.as_str().unwrap().contains("last backend"), "{error}");
    assert_eq!(tier.activation(1), "active");
    tier.browser.click("#change [name=force]").unwrap();
    tier.browser.click("#change-go").unwrap();
    tier.browser.wait(CLOSED).unwrap();
    assert_eq!(tier.activation(1), "stopped");
    tier.assert_clean();
}

#[test]
fn hostile_names_are_text_and_failures_are_told() {
    let mut tier = Tier::start();
    // Its own session leads to the backend that is not there, and so to another one.
    assert_eq!(tier.visit(&format!("1.{HOSTILE}")), 200);
    let browser = &mut tier.browser;
    browser.wait(&shows(HOSTILE, "out")).unwrap();
    browser
        .click(&format!("tr[data-backend=\"{HOSTILE}\"] .name"))
        .unwrap();
    let detail = "[...document.querySelectorAll('tr.extra:not([hidden]) .detail')].at(-1)?.textContent.includes('backend:connect-failed (not-sent)')";
    browser.wait(detail).unwrap();
    let event = format!(
        "document.querySelector('#events-rows').textContent.includes({:?})",
        format!("app/{HOSTILE}: backend:connect-failed")
    );
    browser.wait(&event).unwrap();

    // What takes so long, without what may be secret.
    let mut slow = tier.front.connect().unwrap();
    let target = "/delay/600000;x=<b>?password=SECRET";
    let head = tier.front.head("GET", target, "");
    slow.send(head.as_bytes()).unwrap();
    let flight =
        "document.querySelector('#flight-rows').textContent.includes('GET /delay/600000app/')";
    let browser = &mut tier.browser;
    browser.wait(flight).unwrap();
    assert!(!browser.text().unwrap().contains("SECRET"));
    tier.assert_clean();
}

#[test]
fn it_explains_what_a_request_would_become() {
    let mut tier = Tier::start();
    let browser = &mut tier.browser;
    // What a request would become, with fields of a client's.
    browser
        .type_into("#explain-url", "http://shop.example/<b>x</b>")
        .unwrap();
    browser
        .type_into(
            "#explain-form [name=header]",
            &format!("Cookie: JSESSIONID=1.{HOSTILE}"),
        )
        .unwrap();
    browser.click("#explain-form button").unwrap();
    let explained = browser
        .wait("document.querySelector('#explained').textContent")
        .unwrap();
    let explained = explained.as_str().unwrap();
    assert!(explained.contains(HOSTILE), "{explained}");
    assert!(
        explained.contains("Backends of app (round-robin)"),
        "{explained}"
    );
    assert!(explained.contains("Session: kept"), "{explained}");
    tier.assert_clean();
}

#[test]
fn a_cache_shows_its_keys_to_whoever_has_the_token() {
    let (_application, url) = application();
    let tokens = tempfile::NamedTempFile::new().unwrap();
    fs::write(tokens.path(), TOKEN).unwrap();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\ncache = \"pages\"\n\
         [cache.pages]\nttl = {{ 200 = \"1m\" }}\n[admin]\naddress = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n",
        tokens.path().display()
    ))
    .unwrap();
    for _ in 0..3 {
        assert_eq!(front.get("/bytes/100").unwrap().status, 200);
    }
    let line = front.wait_for_log("admin on http://").unwrap();
    let (_, page) = line.split_once("admin on ").unwrap();
    let mut browser = Browser::start(&[]).unwrap();
    browser.open(&format!("{}/", page.trim())).unwrap();
    let row = "document.querySelector('#caches-rows tr')?.textContent.includes('66.6 %')";
    browser.wait(row).unwrap();
    browser.click("#caches-rows button").unwrap();
    // Without the token nothing is named.
    browser
        .wait("document.querySelector('#token').open")
        .unwrap();
    browser.type_into("#token-text", TOKEN).unwrap();
    browser.click("#token [type=submit]").unwrap();
    browser
        .wait("!document.querySelector('#token').open")
        .unwrap();
    browser.click("#caches-rows button").unwrap();
    let key = "document.querySelector('#keys-rows')?.textContent.includes('/bytes/100')";
    browser.wait(key).unwrap();
}

#[test]
fn a_user_of_the_sign_on_reads_and_changes_without_the_token() {
    let (_application, url) = application();
    let users = tempfile::NamedTempFile::new().unwrap();
    fs::write(users.path(), USERS).unwrap();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\nauth = \"operators\"\n\
         [auth.operators]\nusers_file = \"{}\"\n\
         [[upstream.app.backend]]\nname = \"blue\"\nurl = \"{url}\"\n",
        users.path().display()
    ))
    .unwrap();
    let line = front.wait_for_log("admin on http://").unwrap();
    let (_, page) = line.split_once("admin on http://").unwrap();
    let mut browser = Browser::start(&[]).unwrap();
    browser
        .open(&format!("http://ann:secret@{}/", page.trim()))
        .unwrap();
    browser.wait(&shows("blue", "up")).unwrap();
    choose(&mut browser, "blue", "weight");
    browser.type_into("#change [name=weight]", "7").unwrap();
    browser.click("#change-go").unwrap();
    browser.wait(CLOSED).unwrap();
    front.wait_for_log("ann at 127.0.0.1:").unwrap();
    let asked = browser
        .evaluate("document.querySelector('#token').open")
        .unwrap();
    assert_eq!(asked, false);
}

#[test]
fn it_fits_a_telephone_in_light_and_dark() {
    let mut tier = Tier::start();
    tier.colleague(&["drain", "app/green", "--reason", &"x".repeat(150)]);
    let browser = &mut tier.browser;
    browser.wait(&shows("green", "draining")).unwrap();
    browser.click("tr[data-backend=green] .name").unwrap();
    browser
        .type_into(
            "#explain-url",
            &format!("http://shop.example/{}", "y".repeat(300)),
        )
        .unwrap();
    browser.click("#explain-form button").unwrap();
    browser
        .wait("document.querySelector('#explained').textContent")
        .unwrap();
    let mut colours = Vec::new();
    for (width, scheme) in [
        (360, "light"),
        (360, "dark"),
        (1280, "light"),
        (1280, "dark"),
    ] {
        browser.look(width, 800, scheme).unwrap();
        let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
        assert_eq!(browser.evaluate(wide).unwrap(), 0, "{width} {scheme}");
        // Whatever can be clicked is within the window.
        let cut = "[...document.querySelectorAll('button, input, select, textarea')].filter(it => it.offsetParent)
            .map(it => it.getBoundingClientRect()).filter(at => at.left < 0 || at.right > innerWidth + 0.5).length";
        assert_eq!(browser.evaluate(cut).unwrap(), 0, "{width} {scheme}");
        colours.push(
            browser
                .evaluate("getComputedStyle(document.body).backgroundColor")
                .unwrap(),
        );
    }
    assert_ne!(colours[0], colours[1]);
    browser.look(360, 800, "light").unwrap();
    choose(browser, "blue", "stop");
    let within = "(at => at.left >= 0 && at.right <= innerWidth)(document.querySelector('#change').getBoundingClientRect())";
    assert_eq!(browser.evaluate(within).unwrap(), json!(true));
    browser.press("Escape").unwrap();
    browser.wait(CLOSED).unwrap();
    tier.assert_clean();
}

/// Forty backends of five upstreams. In `u2` and `u4` one is out: nobody listens at its address.
fn forty(backends: &[TcpListener]) -> String {
    let nobody = address::refusing().unwrap();
    let mut file = String::from(
        "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\nname = \"inside\"\n\
         [[route]]\nupstream = \"u0\"\n[[route]]\npath = \"/shop\"\nupstream = \"u1\"\n\
         [admin]\naddress = [\"127.0.0.1:0\", \"unix:{directory}/admin.sock\"]\n",
    );
    for upstream in 0..5 {
        file += &format!("[upstream.u{upstream}.sticky]\nsession_timeout = \"1h\"\n");
        for (number, backend) in backends.iter().enumerate() {
            let is_dead = number == 5 && (upstream == 2 || upstream == 4);
            let address = if is_dead {
                nobody
            } else {
                backend.local_addr().unwrap()
            };
            file += &format!(
                "[[upstream.u{upstream}.backend]]\nname = \"tomcat-{number}\"\nurl = \"http://{address}\"\n\
                 jvm_route = \"r{number}\"\n"
            );
        }
        file += &format!("[upstream.u{upstream}.probe]\nkind = \"connect\"\ninterval = \"1s\"\n");
    }
    file
}

/// The menu opens, arrows move in it, Escape leads back to its button.
fn use_keys_alone(browser: &mut Browser) {
    let menu = "[data-upstream=u2] tr[data-backend=tomcat-0] [data-action=menu]";
    browser
        .evaluate(&format!("document.querySelector({menu:?}).focus()"))
        .unwrap();
    browser.press("Enter").unwrap();
    let focused = "document.activeElement.dataset.action";
    browser.wait(&format!("{focused} == 'drain'")).unwrap();
    browser.press("ArrowDown").unwrap();
    browser.wait(&format!("{focused} == 'stop'")).unwrap();
    browser.press("Escape").unwrap();
    browser.wait(&format!("{focused} == 'menu'")).unwrap();
}

/// The page has what is known of a backend that is out, of listeners and of routes.
fn read_configuration(browser: &mut Browser) {
    let out = "document.querySelector('[data-upstream=u2] tr[data-backend=tomcat-5]').textContent";
    let text = browser.evaluate(out).unwrap();
    assert!(text.as_str().unwrap().contains("✕"), "{text}");
    browser.click("#configuration summary").unwrap();
    let listeners = browser
        .evaluate("document.querySelector('#listeners-rows').textContent")
        .unwrap();
    assert!(
        listeners.as_str().unwrap().contains("inside"),
        "{listeners}"
    );
    let routes = browser
        .evaluate("document.querySelector('#routes-rows').textContent")
        .unwrap();
    assert!(
        routes.as_str().unwrap().contains("/shopupstream u1"),
        "{routes}"
    );
}

/// Forty backends of five upstreams: in two of these one backend is out, in another one is drained.
#[test]
fn forty_backends_are_seen_at_once() {
    let listener = |_| TcpListener::bind("127.0.0.1:0").unwrap();
    let backends: Vec<TcpListener> = (0..8).map(listener).collect();
    for backend in &backends {
        // Whoever accepts no probes is out as soon as its backlog is full.
        let accepting = backend.try_clone().unwrap();
        thread::spawn(move || accepting.incoming().for_each(drop));
    }
    let file = forty(&backends);
    let front = Front::with_config(&file).unwrap();
    let line = front.wait_for_log("admin on http://").unwrap();
    let (_, page) = line.split_once("admin on ").unwrap();
    let socket = format!("unix:{}/admin.sock", front.directory().display());
    let drain = [
        "drain",
        "u3/tomcat-2",
        "--reason",
        "new disk",
        "--admin",
        &socket,
    ];
    let mut process = catamaran(&drain).unwrap();
    assert!(process.wait(Deadline::default()).unwrap().success());

    let mut browser = Browser::start(&[]).unwrap();
    browser.look(1280, 900, "light").unwrap();
    browser.open(&format!("{}/", page.trim())).unwrap();
    let states = "[...document.querySelectorAll('.upstream[data-upstream] .head > .pill:first-of-type')].map(it => it.textContent).join()";
    // Upstreams with backends that are out come first, then those with others that do not serve; only they are open.
    browser
        .wait(&format!(
            "{states} == '7 of 8 up,7 of 8 up,8 of 8 up, 1 draining,8 of 8 up,8 of 8 up'"
        ))
        .unwrap();
    let names = "[...document.querySelectorAll('.upstream[data-upstream]')].map(it => it.dataset.upstream + (it.querySelector('table').hidden ? '' : ' open')).join()";
    assert_eq!(
        browser.evaluate(names).unwrap(),
        "u2 open,u4 open,u3 open,u0,u1"
    );
    let first = "document.querySelector('[data-upstream=u2] tr.one').dataset.backend";
    assert_eq!(browser.evaluate(first).unwrap(), "tomcat-5");
    browser.click("#open-all").unwrap();
    let shown = "[...document.querySelectorAll('tr.one')].filter(it => it.offsetParent).length";
    browser.wait(&format!("{shown} == 40")).unwrap();
    for width in [1280, 1920] {
        browser.look(width, 900, "light").unwrap();
        let tallest =
            "Math.max(...[...document.querySelectorAll('tr.one')].map(it => it.offsetHeight))";
        let tallest = browser.evaluate(tallest).unwrap();
        assert!(tallest.as_f64().unwrap() <= 32.0, "{width}: {tallest}");
        let list = "document.querySelector('#list').offsetHeight";
        let list = browser.evaluate(list).unwrap();
        assert!(list.as_f64().unwrap() < 1800.0, "{width}: {list}");
    }
    browser.look(360, 800, "light").unwrap();
    let wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth";
    assert_eq!(browser.evaluate(wide).unwrap(), 0);
    browser.look(1280, 900, "light").unwrap();

    use_keys_alone(&mut browser);
    read_configuration(&mut browser);
    // A reload of the page keeps the charts, and what was opened.
    let samples =
        "[...document.querySelectorAll('.spark .strip')].map(it => it.children.length)[0]";
    browser.wait(&format!("{samples} >= 4")).unwrap();
    browser.open(&format!("{}/", page.trim())).unwrap();
    browser.wait(&format!("{samples} >= 4")).unwrap();
    browser.wait(&format!("{shown} == 40")).unwrap();
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn names_are_never_cut_and_reasons_wrap() {
    let nobody = address::refusing().unwrap();
    let name = "ajp://tomcat-17.customers.frankfurt.example.org:8009";
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n[admin]\naddress = \"127.0.0.1:0\"\n\
         [[upstream.app.backend]]\nname = \"{name}\"\nurl = \"ajp://{nobody}\"\n"
    ))
    .unwrap();
    assert_eq!(front.get("/").unwrap().status, 503);
    let line = front.wait_for_log("admin on http://").unwrap();
    let (_, page) = line.split_once("admin on ").unwrap();
    let mut browser = Browser::start(&[]).unwrap();
    browser.look(1280, 900, "light").unwrap();
    browser.open(&format!("{}/", page.trim())).unwrap();
    let reason = "document.querySelector('tr.why-row:not([hidden]) .words')";
    browser
        .wait(&format!(
            "{reason}?.textContent.includes('Connection refused')"
        ))
        .unwrap();
    for width in [1280, 360] {
        browser.look(width, 900, "light").unwrap();
        let cut = format!(
            "[...document.querySelectorAll('.name'), {reason}.parentElement].filter(it => \
             it.scrollWidth > it.clientWidth || it.parentElement.scrollWidth > it.parentElement.clientWidth).length"
        );
        assert_eq!(browser.evaluate(&cut).unwrap(), 0, "{width}");
        let shown = "document.querySelector('.name').textContent";
        assert_eq!(browser.evaluate(shown).unwrap(), name);
    }
}

#[test]
fn pages_of_others_can_neither_read_nor_change() {
    let mut tier = Tier::start();
    let address = tier.page.strip_prefix("http://").unwrap().to_owned();
    let (_, port) = address.rsplit_once(':').unwrap();
    let rebound = format!("http://evil.example:{port}/");
    tier.browser.open(&rebound).unwrap();
    let said = tier.browser.text().unwrap();
    assert!(said.contains("\"token\":\"host\""), "{said}");
    let asked = "fetch('/api/v1/status').then(it => it.status)";
    assert_eq!(tier.browser.evaluate(asked).unwrap(), 421);

    // A page of another origin, with the token in its hands.
    let other = App::start("epoll", &[]).unwrap();
    tier.browser
        .open(&format!("http://{}/", other.http()))
        .unwrap();
    let backend = format!("{}/api/v1/upstreams/app/backends/blue", tier.page);
    let asks = |mode: &str, kind: &str, method: &str| {
        let simple = mode == "no-cors";
        let token = if simple {
            String::new()
        } else {
            format!("Authorization: 'Bearer {TOKEN}', 'If-Match': '*',")
        };
        format!(
            "fetch('{backend}{}', {{method: '{method}', mode: '{mode}', body: '{{\"activation\":\"stopped\"}}',
              headers: {{{token} 'Content-Type': '{kind}'}}}}).then(it => it.type + it.status, it => 'refused')",
            if simple { "/reset" } else { "" }
        )
    };
    let refused = tier
        .browser
        .evaluate(&asks("cors", "application/json", "PATCH"))
        .unwrap();
    assert_eq!(refused, "refused");
    let opaque = tier
        .browser
        .evaluate(&asks("no-cors", "text/plain", "POST"))
        .unwrap();
    assert_eq!(opaque, "opaque0", "sent, and refused by the front");
    let read = format!(
        "fetch('{}/api/v1/status').then(it => it.type, it => 'refused')",
        tier.page
    );
    assert_eq!(tier.browser.evaluate(&read).unwrap(), "refused");
    assert_eq!(tier.activation(0), "active");
    assert!(
        !tier.front.log().contains("change:"),
        "{}",
        tier.front.log()
    );
}

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// Made by: htpasswd -nbBC 4 ann secret
const USERS: &str = "ann:$2y$04$BDsctodQR/lVgkBWw8Wue.7UqFJZ1OUfa1MHqRqRBxBImKQbgf.e.\n";

/// A name that the configuration allows.
const HOSTILE: &str = "<svg/onload=window.hacked=1>";

const EFFECT: &str = "document.querySelector('#change-effect').textContent";
const ERROR: &str = "document.querySelector('#change-error').hidden ? '' : document.querySelector('#change-error').textContent";
const CLOSED: &str = "!document.querySelector('#change').open";
