//! A new version on two real Tomcats, by the shell lines of `docs/sessions.md` as they are printed there,
//! while clients come and go; and a Tomcat that stands still.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use catamaran_e2e::{Cluster, Connector, Front, Tomcat, binary};
use catamaran_testkit::{Deadline, HttpClient, Process, Signal, signal_process, write_script};
use tempfile::TempDir;

/// What an operator's shell finds in place of the real commands: `catamaran` asks the front of the test,
/// and the command lines of `ssh` and `scp` are orders to the test, which says when they are done.
struct Desk {
    directory: TempDir,
}

impl Desk {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let desk = Self { directory };
        let at = desk.directory.path().display().to_string();
        fs::create_dir(desk.path("bin")).unwrap();
        for fifo in ["orders", "answers"] {
            let made = Command::new("mkfifo").arg(desk.path(fifo)).status();
            assert!(made.unwrap().success());
        }
        let order = format!(
            "echo \"${{0##*/}} $*\" > {at}/orders; read -r answer < {at}/answers; [ \"$answer\" = done ]"
        );
        let real = binary().unwrap();
        let ours = format!(
            "exec {} \"$@\" --admin unix:{at}/admin.sock",
            real.display()
        );
        for (name, lines) in [("ssh", &order), ("scp", &order), ("catamaran", &ours)] {
            let file = desk.path("bin").join(name);
            write_script(&file, &format!("{lines}\n")).unwrap();
        }
        desk
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Types these lines into a shell.
    fn types(&self, lines: &str) -> Process {
        let first = format!("PATH={}:$PATH\n", self.path("bin").display());
        let mut shell = Command::new("sh");
        Process::spawn(shell.args(["-c", &(first + lines)])).unwrap()
    }

    /// One end of a pipe that never waits for the other.
    fn pipe(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        options.open(self.path(name)).unwrap()
    }

    /// Carries orders out until the last one.
    fn serve(&self, cluster: &mut Cluster) {
        let (orders, mut answers) = (self.pipe("orders"), self.pipe("answers"));
        let mut copied = BTreeSet::new();
        for order in BufReader::new(orders).lines() {
            let order = order.unwrap();
            let words: Vec<&str> = order.split(' ').collect();
            let done = match words[..] {
                ["ssh", host, "systemctl", "stop", "tomcat10"] => cluster.stop(host),
                ["scp", "shop.war", target] => {
                    let (host, _) = target.split_once(':').unwrap();
                    copied.insert(host.to_owned());
                    Ok(())
                }
                ["ssh", host, "systemctl", "start", "tomcat10"] => {
                    cluster.launch(host, 1 + u32::from(copied.contains(host)))
                }
                _ => return,
            };
            let answer = done.map_or_else(|error| format!("{error:#}\n"), |()| "done\n".to_owned());
            answers.write_all(answer.as_bytes()).unwrap();
        }
    }
}

/// Ends the clients and the orders, whatever becomes of the test.
struct End<'s> {
    clients: &'s AtomicBool,
    orders: File,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.clients.store(true, Ordering::Relaxed);
        // Nobody may read it any more.
        self.orders.write_all(b"the last one\n").ok();
    }
}

/// What clients saw.
#[derive(Debug, Default)]
struct Seen {
    served: usize,
    failed: Vec<String>,
    /// Sessions that were not there at the next visit.
    lost: Vec<String>,
    /// Which Tomcat served which version.
    versions: BTreeSet<(String, String)>,
}

/// The front is not there, so the first command fails: that ends the lines, and not the shell they are typed in.
#[test]
fn lines_that_fail_leave_their_reader_the_shell() {
    let desk = Desk::new();
    let mut shell = desk.types(&format!(
        "{}\necho \"still here, after $?\"",
        documented("sh")
    ));
    let status = shell.wait(Deadline::default()).unwrap();
    assert!(status.success(), "{}", shell.stderr());
    assert_eq!(shell.stdout(), "still here, after 1\n");
}

/// Sessions of some visits each, one after the other, until the end.
fn visit_until(end: &AtomicBool, front: SocketAddr, seen: &Mutex<Seen>) {
    while !end.load(Ordering::Relaxed) {
        let mut client = HttpClient::connect(front).unwrap();
        let mut cookie = String::new();
        for visit in 1..=VISITS {
            let text = match ask(&mut client, &cookie) {
                Ok((text, set)) => {
                    cookie = set.unwrap_or(cookie);
                    text
                }
                Err(failure) => {
                    seen.lock().unwrap().failed.push(failure);
                    break;
                }
            };
            let value = |name: &str| {
                let mut lines = text.lines();
                let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
                found.unwrap_or_default().to_owned()
            };
            let mut seen = seen.lock().unwrap();
            seen.served += 1;
            if value("visits") != visit.to_string() {
                seen.lost.push(text.clone());
            }
            let (_, route) = cookie.split_once('.').unwrap_or_default();
            seen.versions.insert((route.to_owned(), value("version")));
        }
    }
}

/// One visit: the page, and the cookie that it sets.
fn ask(client: &mut HttpClient, cookie: &str) -> Result<(String, Option<String>), String> {
    client.set_deadline(Deadline::default());
    let head = format!("GET /plain/shop.jsp HTTP/1.1\r\nHost: shop\r\nCookie: {cookie}\r\n\r\n");
    client
        .send(head.as_bytes())
        .map_err(|error| error.to_string())?;
    let answer = client.receive().map_err(|failure| failure.to_string())?;
    if answer.status != 200 {
        return Err(format!("{answer:?}"));
    }
    let set = answer.header("set-cookie");
    let set = set.and_then(|set| Some(set.split_once(';')?.0.to_owned()));
    Ok((answer.text(), set))
}

#[test]
fn the_documented_loop_brings_a_new_version_and_no_request_fails() {
    let desk = Desk::new();
    let mut cluster = Cluster::start(&["blue", "green"]).unwrap();
    let front = Front::with_config(&file(&cluster, desk.directory.path())).unwrap();
    let (address, seen, end) = (front.address(), Mutex::default(), AtomicBool::new(false));
    thread::scope(|scope| {
        let _end = End {
            clients: &end,
            orders: desk.pipe("orders"),
        };
        for _ in 0..CLIENTS {
            scope.spawn(|| visit_until(&end, address, &seen));
        }
        scope.spawn(|| desk.serve(&mut cluster));
        let mut shell = desk.types(documented("sh"));
        let status = shell
            .wait(Deadline::after(Duration::from_secs(600)))
            .unwrap();
        let said = shell.stdout() + &shell.stderr();
        assert_eq!(status.code(), Some(0), "{said}\n{}", front.log());
        println!("{said}");
        let new = ["blue", "green"].map(|route| (route.to_owned(), "2".to_owned()));
        let served = || {
            let seen = seen.lock().unwrap();
            new.iter()
                .all(|it| seen.versions.contains(it))
                .then_some(())
        };
        Deadline::default().poll("the new version", served).unwrap();
    });
    let seen = seen.into_inner().unwrap();
    println!("{} served", seen.served);
    assert!(seen.failed.is_empty(), "{:?}\n{}", seen.failed, front.log());
    assert!(seen.lost.is_empty(), "{:?}", seen.lost);
}

/// Silence puts a Tomcat out that stands still, and a probe that takes its time does not put that off.
#[test]
fn a_tomcat_that_stands_still_is_out_before_its_probe_has_an_end() {
    let still = Tomcat::start("still").unwrap();
    let other = Tomcat::shared().unwrap();
    let backends = [&still, other].map(|it| it.backend_table("app", Connector::Ajp));
    let front = Front::to_app(&format!(
        "[upstream.app]\nsticky = \"off\"\n\
         [upstream.app.probe]\nkind = \"request\"\npath = \"/page.html\"\ninterval = \"100ms\"\n\
         timeout = \"1m\"\n{}{}[admin]\naddress = \"127.0.0.1:0\"\n",
        backends[0], backends[1]
    ))
    .unwrap();
    let probes = || front.metric("catamaran_backend_probes_total").unwrap();
    let all_probed = || {
        probes()
            .iter()
            .step_by(2)
            .all(|&answered| answered > 1.0)
            .then_some(())
    };
    Deadline::default().poll("probes", all_probed).unwrap();
    signal_process(still.process().id(), Signal::Stop).unwrap();
    let is_out = || {
        assert_eq!(front.get("/page.html").unwrap().status, 200);
        (front.metric("catamaran_backend_up").unwrap() == [0.0, 1.0]).then_some(())
    };
    Deadline::after(Duration::from_secs(50))
        .poll("it to be out before a probe has failed", is_out)
        .unwrap();
    let line = front.wait_for_log("backend is out").unwrap();
    assert!(line.contains("it does not answer CPING"), "{line}");
}

/// The file of the document in front of these Tomcats.
fn file(cluster: &Cluster, directory: &Path) -> String {
    let (_, probe) = DOCUMENT.split_once("[upstream.tomcat.probe]\n").unwrap();
    let (probe, _) = probe.split_once("```").unwrap();
    let tables = documented("toml")
        .replace("10.1.0.11:8009", &cluster.node("blue").ajp().to_string())
        .replace("10.1.0.12:8009", &cluster.node("green").ajp().to_string())
        .replace(
            "[upstream.tomcat.sticky]\n",
            "[upstream.tomcat.sticky]\nsession_timeout = \"8s\"\n",
        );
    let probe = probe.replace("/app/health", "/plain/health");
    format!(
        "[log]\naccess = \"off\"\n[admin]\naddress = \"unix:{}/admin.sock\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"tomcat\"\n{tables}\
         [upstream.tomcat.probe]\n{probe}",
        directory.display()
    )
}

/// The first block of this language.
fn documented(language: &str) -> &'static str {
    let (_, rest) = DOCUMENT.split_once(&format!("```{language}\n")).unwrap();
    rest.split_once("```").unwrap().0
}

const DOCUMENT: &str = include_str!("../../../../docs/sessions.md");

/// At work at a time.
const CLIENTS: usize = 2;

/// Of a session.
const VISITS: usize = 10;
