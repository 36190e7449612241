//! SIGHUP: the file is read again, and put in force whole or not at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use catamaran_e2e::{Front, catamaran};
use catamaran_testkit::{Address, Deadline, HttpClient, Process, Signal};

/// A connector with the built-in application, and its URL.
pub(crate) fn application() -> (Process, String) {
    let process = catamaran(&["app", "--ajp", "127.0.0.1:0"]).unwrap();
    let url = process
        .wait_for_line("an address", |line| {
            line.strip_prefix("listening on ").map(str::to_owned)
        })
        .unwrap();
    (process, url)
}

/// A whole file: one listener on a free port, every request to `url`.
pub(crate) fn file(url: &str, more: &str) -> String {
    format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"{url}\"\n[log]\naccess = \"off\"\n{more}"
    )
}

/// Asks for the page at least ten times, and then until `stopped`; each must be answered.
pub(crate) fn ask_until(stopped: &AtomicBool, address: &Address, keep_alive: bool) {
    let connect = || HttpClient::connect(address).unwrap();
    let mut client = connect();
    for asked in 0..100_000 {
        if asked >= 10 && stopped.load(Ordering::Relaxed) {
            return;
        }
        let answer = client.ask(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        assert_eq!((answer.status, answer.body.len()), (200, 347));
        if !keep_alive || answer.header("connection") == Some("close") {
            client = connect();
        }
    }
}

pub(crate) fn rewrite(front: &Front, text: &str) {
    fs::write(front.directory().join("catamaran.toml"), text).unwrap();
}

/// Sends SIGHUP and waits for the answer, which has `text` in it and comes for the `nth` time.
pub(crate) fn reload(front: &mut Front, text: &str, nth: usize) -> String {
    front.process().signal(Signal::Hangup).unwrap();
    nth_line(front.process(), text, nth)
}

/// The `nth` line of all output with `text` in it, from 1.
pub(crate) fn nth_line(process: &Process, text: &str, nth: usize) -> String {
    let mut seen = Vec::new();
    process
        .wait_for_line(&format!("{text:?} for the {nth}th time"), |line| {
            if line.contains(text) && !seen.contains(&line.to_owned()) {
                seen.push(line.to_owned());
            }
            (seen.len() == nth).then(|| line.to_owned())
        })
        .unwrap()
}

#[test]
fn twenty_reloads_under_load_fail_no_request() {
    let (_application, url) = application();
    let mut front = Front::with_config(&file(&url, "")).unwrap();
    let address = Address::from(front.address());
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        for keep_alive in [true, true, false] {
            let (stopped, address) = (&stopped, &address);
            scope.spawn(move || ask_until(stopped, address, keep_alive));
        }
        for turn in 1..=20 {
            // A listener comes with every second reload, and goes with the next.
            let extra = format!("[[listen]]\naddress = \"unix:{turn}.sock\"\n");
            let path = front.directory().join(format!("{turn}.sock"));
            let extra = extra.replace(&format!("{turn}.sock"), path.to_str().unwrap());
            let more = if turn % 2 == 1 { extra.as_str() } else { "" };
            rewrite(&front, &file(&url, more));
            let said = reload(&mut front, "reloaded; listeners: 1 kept", turn);
            assert!(said.contains("backends: 1 kept"), "{said}");
            assert_eq!(said.contains("added"), turn % 2 == 1, "{said}");
        }
        stopped.store(true, Ordering::Relaxed);
    });
    front.process().signal(Signal::Terminate).unwrap();
    let status = front.process().wait(Deadline::default()).unwrap();
    assert_eq!(status.code(), Some(0), "{}", front.process().stderr());
}

#[test]
fn a_faulty_file_changes_nothing() {
    let (_application, url) = application();
    let admin = "[admin]\naddress = \"127.0.0.1:0\"\n";
    let file = |more: &str| file(&url, &format!("{admin}{more}"));
    let mut front = Front::with_config(&file("")).unwrap();
    rewrite(&front, &file("[server]\nworkers = 0\n"));
    reload(&mut front, "cannot reload", 1);
    let said = front.process().stderr();
    assert!(said.contains("fault: `workers` must be"), "{said}");
    assert_eq!(front.get("/").unwrap().status, 200);
    // The file's lines are for those who may read it.
    let status = front.ask_admin("/api/v1/status").unwrap().text();
    let told = "the last reload was refused: `catamaran check` shows what is wrong";
    assert!(
        status.contains(told) && !status.contains("workers = 0"),
        "{status}"
    );
    // A file that cannot be put in force is refused as well.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap();
    let more = format!("[[listen]]\naddress = \"{taken}\"\n[server]\nvia = \"other\"\n");
    rewrite(&front, &file(&more));
    reload(&mut front, "cannot reload", 2);
    let said = front.process().stderr();
    assert!(said.contains("already in use"), "{said}");
    assert_eq!(front.get("/").unwrap().status, 200);
    drop(listener);
    rewrite(&front, &file("[server]\nworkers = 7\n"));
    let said = reload(&mut front, "reloaded;", 1);
    assert!(
        said.contains("`workers` takes effect at the next start"),
        "{said}"
    );
}

#[test]
fn a_reload_does_not_bring_dead_backends_back() {
    let more = "[[upstream.app.backend]]\nurl = \"ajp+unix:{directory}/b.sock\"\n\
                [admin]\naddress = \"127.0.0.1:0\"\n";
    let url = "ajp+unix:{directory}/a.sock";
    let mut front = Front::with_config(&file(url, more)).unwrap();
    let up = |front: &Front| front.metric("catamaran_backend_up").unwrap();
    assert_eq!(up(&front), [1.0, 1.0], "nobody has tried them yet");
    assert_eq!(front.get("/").unwrap().status, 503);
    assert_eq!(up(&front), [0.0, 0.0]);
    let text = fs::read_to_string(front.directory().join("catamaran.toml")).unwrap();
    rewrite(
        &front,
        &format!("{text}[upstream.app]\nfirst_byte_timeout = \"7s\"\n"),
    );
    let said = reload(&mut front, "reloaded;", 1);
    assert!(said.contains("backends: 2 kept, changed "), "{said}");
    assert_eq!(up(&front), [0.0, 0.0]);
}

#[test]
fn routes_and_listeners_follow_the_file() {
    let (_application, url) = application();
    let mut front = Front::with_config(&file(&url, "")).unwrap();
    let socket = Address::Unix(front.directory().join("front.sock"));
    let ask = |address: &Address, path: &str| {
        let mut client = HttpClient::connect(address.clone()).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
        client.send(request.as_bytes()).ok()?;
        client.receive().ok().map(|answer| answer.status)
    };
    assert_eq!(ask(&socket, "/"), None);
    assert_eq!(front.get("/gone").unwrap().status, 404);
    let path = front.directory().join("front.sock");
    let more = format!(
        "[[listen]]\naddress = \"unix:{}\"\n[[route]]\npath = \"/gone\"\nstatus = 410\n",
        path.display()
    );
    rewrite(&front, &file(&url, &more));
    reload(&mut front, "reloaded;", 1);
    assert_eq!(ask(&socket, "/gone"), Some(410));
    assert_eq!(front.get("/gone").unwrap().status, 410);
    rewrite(&front, &file(&url, ""));
    reload(&mut front, "reloaded;", 2);
    assert_eq!(front.get("/gone").unwrap().status, 404);
    Deadline::default()
        .poll("the listener to go", || {
            ask(&socket, "/").is_none().then_some(())
        })
        .unwrap();
}

#[test]
fn included_files_are_read_again() {
    let (_application, url) = application();
    let main = format!("include = \"conf.d/*.toml\"\n{}", file(&url, ""));
    let mut front = Front::with_config(&main).unwrap();
    assert_eq!(front.get("/gone").unwrap().status, 404);
    let included = front.directory().join("conf.d");
    fs::create_dir(&included).unwrap();
    let route = "[[route]]\npath = \"/gone\"\nstatus = ";
    fs::write(included.join("a.toml"), format!("{route}410\n")).unwrap();
    reload(&mut front, "reloaded;", 1);
    assert_eq!(front.get("/gone").unwrap().status, 410);
    fs::write(included.join("b.toml"), format!("# same\n{route}418\n")).unwrap();
    reload(&mut front, "cannot reload", 1);
    let said = front.process().stderr();
    let fault = "conf.d/b.toml:2:1: fault: ";
    assert!(said.contains(fault), "{said}");
    assert!(said.contains("conf.d/a.toml:1 has a route for the same requests"));
    assert_eq!(front.get("/gone").unwrap().status, 410);
    fs::remove_file(included.join("a.toml")).unwrap();
    reload(&mut front, "reloaded;", 2);
    assert_eq!(front.get("/gone").unwrap().status, 418);
}
