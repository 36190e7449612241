//! Three real Tomcats with a thousand clients: drained, deployed to and brought back, stopped and
//! killed. No session is lost that need not be, no order is taken twice, and the commands are those
//! that `docs/sessions.md` prints.
//!
//! One test, since Tomcats need long to start: each step begins where the last one ended.

mod crowd;
mod operator;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use catamaran_e2e::{Cluster, Front};
use catamaran_testkit::{Deadline, Signal, signal_process};
use crowd::Crowd;
use operator::{Operator, configuration, done};
use tempfile::TempDir;

use crate::reload::nth_line;

/// What the steps share.
struct Shop {
    cluster: Cluster,
    front: Front,
    /// The process that serves: that of `front`, or the one that took over from it.
    serving: u32,
    crowd: Crowd,
    operator: Operator,
    /// Of the admin socket and the state file, which outlive a front.
    directory: TempDir,
}

#[test]
fn a_thousand_clients_keep_their_sessions() {
    let mut shop = Shop::open();
    shop.a_drain_is_taken_back();
    shop.one_is_drained_while_the_front_is_replaced();
    shop.a_new_version_is_deployed_and_brought_back();
    shop.replicated_sessions_outlive_a_stop();
    shop.versions_are_deployed_beside_one_another();
    shop.the_file_and_the_state_file_have_their_say();
    shop.one_stands_still();
    shop.one_is_killed();
    shop.no_order_was_taken_twice();
    shop.operator.is_through();
}

impl Shop {
    fn open() -> Self {
        let cluster = Cluster::start(&ROUTES).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut front = Front::with_config(&file(&cluster, directory.path(), "")).unwrap();
        let crowd = Crowd::come(front.address(), &ALL);
        let mut operator = Operator::at(&directory.path().join("admin.sock"));
        crowd.another_round();
        let status = operator.types("catamaran status");
        for route in ROUTES {
            assert!(
                crowd.sessions(route) > 200,
                "new sessions are spread: {status}"
            );
            assert!(status.contains(route), "{status}");
        }
        let serving = front.process().id();
        let shop = Self {
            cluster,
            front,
            serving,
            crowd,
            operator,
            directory,
        };
        shop.nothing_went_wrong();
        shop
    }

    /// All requests were served by the sessions that they named.
    fn nothing_went_wrong(&self) {
        let seen = self.crowd.seen();
        println!("{seen:?}");
        assert!(
            seen.lost.is_empty() && seen.failed.is_empty(),
            "{seen:?}\n{}",
            self.front.log()
        );
    }

    fn a_drain_is_taken_back(&mut self) {
        let said = self
            .operator
            .types("catamaran drain tomcat/blue --deadline 2h");
        assert!(said.contains("tomcat/blue: drain: "), "{said}");
        let drain = self.operator.asks("blue")["drain"].clone();
        assert!(drain["deadline"].is_string(), "{drain}");
        let said = self.operator.types("catamaran reset tomcat/blue");
        assert!(said.contains("active"), "{said}");
        // Who leaves blue begins anew there: while it drains, its Tomcat sends them to others. Who leaves another one may
        // never come to blue, since requests of sessions count as turns.
        self.crowd.forget();
        self.new_sessions_from("blue");
        let seen = self.crowd.seen();
        assert!(seen.begun.contains_key("blue"), "{seen:?}");
        self.nothing_went_wrong();
    }

    /// As [`Self::new_sessions_from`], until a client has begun a session at `other`. Most of those that leave keep the
    /// cookie of a session that is over, which leads them back; only the few others are dealt anew.
    fn new_sessions_reach(&self, route: &str, other: &str) {
        for _ in 0..10 {
            self.new_sessions_from(route);
            if self.crowd.seen().begun.contains_key(other) {
                return;
            }
        }
        panic!("nobody began at {other}: {:?}", self.crowd.seen());
    }

    /// Clients with a session at `route` end it, and begin another one.
    fn new_sessions_from(&self, route: &str) {
        self.crowd.leave(Some(route));
        self.crowd.another_round();
        self.crowd.leave(None);
        self.crowd.another_round();
    }

    /// The drain outlives a reload, an upgrade under load and a restart.
    fn one_is_drained_while_the_front_is_replaced(&mut self) {
        let drain = "catamaran drain tomcat/blue --reason deployment --wait";
        let draining = self.operator.begin(drain);
        let is_progress = |line: &str| line.contains(" sessions left").then_some(());
        draining.wait_for_line("progress", is_progress).unwrap();
        // Requests of before the drain have ended then.
        self.crowd.another_round();
        self.crowd.forget();
        let said = self.operator.types("catamaran reload");
        assert!(said.starts_with("reloaded"), "{said}");
        self.upgrade();
        self.crowd.another_round();
        let seen = self.crowd.seen();
        assert!(
            !seen.begun.contains_key("blue"),
            "blue is draining: {seen:?}"
        );
        assert!(self.crowd.sessions("blue") > 200, "its sessions stay");
        self.crowd.leave(Some("blue"));
        let said = done(drain, draining);
        assert!(said.contains("tomcat/blue: stopped"), "{said}");
        self.crowd.leave(None);
        self.crowd.another_round();
        let seen = self.crowd.seen();
        assert!(!seen.begun.contains_key("blue"), "{seen:?}");
        assert!(
            seen.sent_on > 0,
            "Tomcat's valve sends them to others: {seen:?}"
        );
        assert_eq!(self.crowd.sessions("blue"), 0);
        self.nothing_went_wrong();
        let said = self.operator.types("catamaran status tomcat/blue");
        assert!(
            said.contains("stopped") && said.contains("deployment"),
            "{said}"
        );
        self.restart("");
        assert_eq!(
            self.operator.asks("blue")["settings"]["activation"],
            "stopped"
        );
        self.crowd.another_round();
        self.nothing_went_wrong();
    }

    /// Another process takes over, while the clients are at work.
    fn upgrade(&mut self) {
        signal_process(self.serving, Signal::User2).unwrap();
        let said = nth_line(self.front.process(), "another process has taken over", 1);
        let (_, id) = said.rsplit_once("process=").unwrap();
        self.serving = id.parse().unwrap();
    }

    /// Ends the front and starts one, with `more` in its file.
    fn restart(&mut self, more: &str) {
        self.crowd.pause();
        signal_process(self.serving, Signal::Terminate).unwrap();
        let process = Path::new("/proc").join(self.serving.to_string());
        let ended = || (!process.exists() || is_dead(&process)).then_some(());
        Deadline::default().poll("the front's end", ended).unwrap();
        let text = file(&self.cluster, self.directory.path(), more);
        self.front = Front::with_config(&text).unwrap();
        self.serving = self.front.process().id();
        self.crowd.resume(self.front.address());
    }

    fn a_new_version_is_deployed_and_brought_back(&mut self) {
        self.cluster.redeploy("blue", 2).unwrap();
        let said = self.operator.types("catamaran probe tomcat/blue");
        assert!(said.contains("CPING was answered"), "{said}");
        self.operator.types("catamaran activate tomcat/blue --wait");
        self.crowd.forget();
        self.new_sessions_from("green");
        let seen = self.crowd.seen();
        assert!(seen.begun["blue"] > 20, "{seen:?}");
        let new = ("blue".to_owned(), "2".to_owned());
        assert!(seen.versions.contains_key(&new), "{seen:?}");
        self.nothing_went_wrong();
    }

    fn replicated_sessions_outlive_a_stop(&mut self) {
        self.crowd.only(&["shared"]);
        self.crowd.another_round();
        self.crowd.forget();
        let said = self
            .operator
            .types_also("catamaran drain tomcat/red --deadline 1s --wait");
        assert!(said.contains("tomcat/red: stopped"), "{said}");
        self.crowd.another_round();
        let seen = self.crowd.seen();
        assert!(seen.moved > 50, "{seen:?}");
        self.operator
            .types_also("catamaran activate tomcat/red --wait");
        self.operator.types("catamaran stop tomcat/blue --until 1h");
        self.crowd.another_round();
        self.operator.types("catamaran reset tomcat/blue");
        self.nothing_went_wrong();
        self.operator.types("catamaran stop tomcat/blue");
        self.operator.types_also("catamaran stop tomcat/red");
        // No backend is left but those that must not be used.
        self.operator.types("catamaran stop tomcat/green --force");
        self.crowd.pause();
        for route in ROUTES {
            self.operator
                .types_also(&format!("catamaran activate tomcat/{route} --wait"));
        }
        let seen = self.crowd.forget();
        assert!(seen.lost.is_empty(), "{seen:?}");
        let all_503 = seen.failed.keys().all(|(_, _, outcome)| outcome == "503");
        assert!(all_503, "{seen:?}");
        self.crowd.resume(self.front.address());
        self.crowd.another_round();
        self.nothing_went_wrong();
    }

    /// `app##2` beside `app##1`: each session stays with the version that began it.
    fn versions_are_deployed_beside_one_another(&self) {
        self.crowd.only(&["app"]);
        self.crowd.another_round();
        self.crowd.forget();
        self.cluster.deploy_beside(2).unwrap();
        self.crowd.another_round();
        let before = self.crowd.forget();
        assert_eq!(before.changed, 0, "{before:?}");
        self.crowd.another_round();
        let old = self.crowd.seen();
        assert!(
            old.versions.keys().all(|(_, version)| version == "1"),
            "{old:?}"
        );
        self.new_sessions_from("green");
        let seen = self.crowd.seen();
        assert!(
            seen.versions.keys().any(|(_, version)| version == "2"),
            "{seen:?}"
        );
        assert_eq!(seen.changed, 0, "{seen:?}");
        self.nothing_went_wrong();
    }

    fn the_file_and_the_state_file_have_their_say(&mut self) {
        let said = self.operator.types("catamaran weight tomcat/blue 3");
        assert!(said.contains("weight 3"), "{said}");
        self.restart("");
        assert_eq!(self.operator.asks("blue")["settings"]["weight"], 3);
        let text = file(&self.cluster, self.directory.path(), "weight = 2\n");
        fs::write(self.front.directory().join("catamaran.toml"), text).unwrap();
        signal_process(self.serving, Signal::Hangup).unwrap();
        self.front.wait_for_log("and the file wins").unwrap();
        assert_eq!(self.operator.asks("blue")["settings"]["weight"], 2);
        fs::write(self.directory.path().join("state.json"), "{\"version").unwrap();
        self.restart("");
        assert!(self.directory.path().join("state.json.corrupt").exists());
        assert_eq!(self.operator.asks("blue")["settings"]["weight"], 1);
        self.crowd.another_round();
        self.nothing_went_wrong();
    }

    /// A process that neither ends nor answers: its clients are served by others, and by it again when
    /// it goes on.
    fn one_stands_still(&self) {
        self.crowd.only(&["plain"]);
        self.crowd.another_round();
        self.crowd.forget();
        let stopped = self.cluster.node("green").process().id();
        signal_process(stopped, Signal::Stop).unwrap();
        let is_out = |operator: &Operator| {
            let green = operator.asks("green");
            green["state"].as_str().unwrap().starts_with("out")
        };
        let mut deadline = Deadline::default();
        deadline
            .poll("green to be out", || is_out(&self.operator).then_some(()))
            .unwrap();
        let served = self.crowd.seen().served;
        let more = || (self.crowd.seen().served > served + 300).then_some(());
        deadline.poll("others to serve", more).unwrap();
        signal_process(stopped, Signal::Continue).unwrap();
        deadline = Deadline::default();
        deadline
            .poll("green to be up", || (!is_out(&self.operator)).then_some(()))
            .unwrap();
        self.crowd.another_round();
        let seen = self.crowd.forget();
        let greens = ("plain".to_owned(), "green".to_owned());
        assert!(seen.lost.keys().all(|lost| *lost == greens), "{seen:?}");
        assert!(seen.failed.is_empty(), "{seen:?}\n{}", self.front.log());
        self.new_sessions_reach("red", "green");
        self.nothing_went_wrong();
    }

    /// Of the one that is killed, only sessions that nobody else has are lost.
    fn one_is_killed(&self) {
        self.crowd.only(&["plain", "shared"]);
        self.new_sessions_from("blue");
        self.crowd.forget();
        let killed = self.cluster.node("green").process().id();
        signal_process(killed, Signal::Kill).unwrap();
        self.crowd.another_round();
        self.crowd.another_round();
        let seen = self.crowd.seen();
        let greens = ("plain".to_owned(), "green".to_owned());
        assert!(seen.lost.keys().all(|lost| *lost == greens), "{seen:?}");
        assert!(
            seen.lost.contains_key(&greens) && seen.moved > 0,
            "{seen:?}"
        );
        println!("{seen:?}");
        // Neither an order nor a response whose head is out may be asked for again.
        let may_fail = |method: &str, why: &str| method == "POST" || why.contains("was cut short");
        let mut failed = seen.failed.keys();
        let is_expected = failed.all(|(method, _, why)| may_fail(method, why));
        assert!(is_expected, "{seen:?}\n{}", self.front.log());
    }

    fn no_order_was_taken_twice(&self) {
        self.crowd.pause();
        let orders = self.cluster.orders().unwrap();
        let twice: BTreeSet<_> = orders.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{twice:?}");
        let confirmed = self.crowd.confirmed();
        assert!(confirmed.len() > 500, "{}", confirmed.len());
        for order in confirmed {
            assert!(
                orders.contains_key(&order),
                "{order} was confirmed, but not taken"
            );
        }
    }
}

/// The file that the document begins with, in front of these Tomcats; `blue` stands for further keys
/// of that backend.
fn file(cluster: &Cluster, directory: &Path, blue: &str) -> String {
    let url = |route| format!("{}", cluster.node(route).ajp());
    let directory = directory.display();
    let tables = configuration()
        .replace("10.1.0.11:8009\"\n", &format!("{}\"\n{blue}", url("blue")))
        .replace("10.1.0.12:8009", &url("green"))
        .replace(
            "[upstream.tomcat.sticky]\n",
            "[upstream.tomcat.sticky]\nsession_timeout = \"15s\"\n",
        );
    format!(
        "[server]\nworkers = 2\n[log]\naccess = \"off\"\n\
         [admin]\naddress = \"unix:{directory}/admin.sock\"\n\
         state_file = \"{directory}/state.json\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"tomcat\"\n{tables}\
         [[upstream.tomcat.backend]]\nname = \"red\"\nurl = \"ajp://{}\"\n",
        url("red")
    )
}

/// A process that has ended and that nobody has waited for.
fn is_dead(process: &Path) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_none_or(|(_, rest)| rest.starts_with('Z'))
}

const ROUTES: [&str; 3] = ["blue", "green", "red"];
const ALL: [&str; 3] = ["plain", "shared", "app"];
