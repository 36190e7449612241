//! The commands that steer a front that runs, as an operator types them.

use std::fs;
use std::path::Path;

use catamaran_e2e::{Front, catamaran};
use catamaran_testkit::{Deadline, Process, Signal, signal_process};

use crate::reload::{application, nth_line};

/// A front with two backends, `blue` and `green`, and an admin socket.
struct Tier {
    front: Front,
    applications: [Process; 2],
    urls: [String; 2],
}

impl Tier {
    fn start(session_timeout: &'static str) -> Self {
        let (one, two) = (application(), application());
        let urls = [one.1, two.1];
        let front = Front::with_config(&file("{directory}", session_timeout, &urls, 1)).unwrap();
        Self {
            front,
            applications: [one.0, two.0],
            urls,
        }
    }

    /// Runs a command; gives its exit code and what it said on both outputs.
    fn run(&self, arguments: &str) -> (Option<i32>, String) {
        let config = self.front.directory().join("catamaran.toml");
        let config = config.to_str().unwrap();
        let words = arguments.split(' ').chain(["--config", config]);
        let mut process = catamaran(&words.collect::<Vec<_>>()).unwrap();
        let status = process.wait(Deadline::default()).unwrap();
        (status.code(), process.stdout() + &process.stderr())
    }

    fn ok(&self, arguments: &str) -> String {
        let (code, said) = self.run(arguments);
        assert_eq!(code, Some(0), "{arguments}: {said}");
        said
    }

    fn refused(&self, arguments: &str, code: i32, words: &str) {
        let (exit, said) = self.run(arguments);
        assert_eq!(exit, Some(code), "{arguments}: {said}");
        assert!(said.contains(words), "{arguments}: {said}");
    }

    /// Visits with this cookie; gives the backend that the log names.
    fn visit(&self, cookie: &str) -> String {
        let id = path_of_its_own(cookie, self.front.log().len());
        let request = self
            .front
            .head("GET", &format!("/{id}"), &format!("Cookie: {cookie}\r\n"));
        self.front.ask(request).unwrap();
        let line = self.front.wait_for_log(&format!("GET /{id} ")).unwrap();
        let (_, rest) = line.split_once(" backend=").unwrap();
        rest.split(' ').next().unwrap().to_owned()
    }

    fn rewrite(&self, text: &str) {
        fs::write(self.front.directory().join("catamaran.toml"), text).unwrap();
    }
}

/// A path of its own for each visit.
fn path_of_its_own(cookie: &str, length: usize) -> String {
    let cookie = cookie.replace(|it: char| !it.is_ascii_alphanumeric(), "");
    format!("{cookie}-{length}")
}

fn file(directory: &str, session_timeout: &str, urls: &[String; 2], weight: u32) -> String {
    let [blue, green] = urls;
    format!(
        "[server]\nworkers = 2\n[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
         [admin]\naddress = \"unix:{directory}/admin.sock\"\nstate_file = \"state.json\"\n\
         [upstream.app.sticky]\nsession_timeout = \"{session_timeout}\"\n\
         [[upstream.app.backend]]\nname = \"blue\"\nurl = \"{blue}\"\n\
         [[upstream.app.backend]]\nname = \"green\"\nurl = \"{green}\"\nweight = {weight}\n"
    )
}

#[test]
fn a_backend_is_drained_deployed_and_brought_back() {
    let tier = Tier::start("1s");
    let status = tier.ok("status");
    assert!(
        status.contains("upstream app (round-robin, sticky)"),
        "{status}"
    );
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "blue");
    let said = tier.ok("drain app/blue --reason deployment");
    assert!(said.starts_with("app/blue: drain: "), "{said}");
    assert_eq!(tier.visit("x=new"), "green");
    tier.refused("drain app/green", 1, "is the last backend");
    // No session is left once the timeout has passed.
    let said = tier.ok("drain app/blue --wait --timeout 30s");
    assert!(said.contains("app/blue: stopped"), "{said}");
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "green");
    let status = tier.ok("status app/blue");
    assert!(status.contains("stopped"), "{status}");
    tier.ok("activate app/blue --wait");
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "blue");
    for line in [
        "change: activation=drain then=stopped until=none reason=\"deployment\"",
        "drained (nothing is left): stopped",
    ] {
        tier.front.wait_for_log(line).unwrap();
    }
}

#[test]
fn a_drain_ends_at_its_deadline_or_when_it_is_taken_back() {
    let tier = Tier::start("1h");
    let waiting = "app/blue --wait --timeout 1ms";
    tier.refused(
        &format!("drain {waiting}"),
        1,
        "not done within --timeout; the change stays",
    );
    tier.ok("reset app/blue");
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "blue");
    let said = tier.ok("drain app/blue --deadline 1s --wait");
    assert!(said.contains("stopped"), "{said}");
    tier.ok("activate app/blue");
    let said = tier.ok("stop app/blue --until 5s --wait");
    assert!(said.contains("stopped"), "{said}");
    tier.front
        .wait_for_log("its time is over: the file's settings hold")
        .unwrap();
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "blue");
}

#[test]
fn a_backend_that_does_not_answer_now_is_not_activated() {
    let mut tier = Tier::start("1s");
    let said = tier.ok("probe app/blue");
    assert!(
        said.starts_with("app/blue: CPING was answered after "),
        "{said}"
    );
    assert!(said.contains("note: CPING does not tell"), "{said}");
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "blue");
    tier.ok("stop app/blue --wait");
    // What was known of it was that it is up.
    tier.applications[0].signal(Signal::Kill).unwrap();
    tier.applications[0].wait(Deadline::default()).unwrap();
    tier.refused("probe app/blue", 1, "CPING failed: ");
    let said = tier.run("probe app/blue --json");
    assert_eq!(said.0, Some(1), "{said:?}");
    let probe: serde_json::Value = serde_json::from_str(&said.1).unwrap();
    assert_eq!(probe["answered"], false, "{probe}");
    tier.refused(
        "activate app/blue --wait --timeout 1ms",
        1,
        "nothing was changed, it is stopped",
    );
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "green");
    tier.refused("probe app/red", 1, "has no backend \"red\"");
}

#[test]
fn what_was_changed_outlives_reloads_and_upgrades() {
    let mut tier = Tier::start("1s");
    tier.ok("weight app/blue 7");
    tier.ok("stop app/blue");
    let path = tier.front.directory().display().to_string();
    tier.rewrite(&file(&path, "1s", &tier.urls, 3));
    let said = tier.ok("reload");
    assert!(said.starts_with("reloaded; listeners: 1 kept"), "{said}");
    let weights = |tier: &Tier| {
        let said = tier.ok("status --json");
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        let backends = &status["upstreams"][0]["backends"];
        [0, 1].map(|index| backends[index]["settings"]["weight"].as_u64().unwrap())
    };
    assert_eq!(weights(&tier), [7, 3]);
    let good = fs::read_to_string(config(tier.front.directory())).unwrap();
    tier.rewrite(&good.replace("weight", "wieght"));
    let socket = format!("--admin unix:{path}/admin.sock");
    let mut refused =
        catamaran(&format!("reload {socket}").split(' ').collect::<Vec<_>>()).unwrap();
    assert_eq!(refused.wait(Deadline::default()).unwrap().code(), Some(1));
    assert!(
        refused.stderr().contains("did you mean `weight`?"),
        "{}",
        refused.stderr()
    );
    tier.rewrite(&good);

    let id = tier.front.process().id();
    signal_process(id, Signal::User2).unwrap();
    let said = nth_line(tier.front.process(), "another process has taken over", 1);
    assert_eq!(weights(&tier), [7, 3], "the new process knows");
    assert_eq!(tier.visit("JSESSIONID=1.blue"), "green");
    let (_, id) = said.rsplit_once("process=").unwrap();
    signal_process(id.parse().unwrap(), Signal::Terminate).unwrap();
    let state = fs::read_to_string(tier.front.directory().join("state.json")).unwrap();
    assert!(state.contains("\"blue\""), "{state}");
}

#[test]
fn what_cannot_be_asked_is_said() {
    let tier = Tier::start("1s");
    tier.refused("stop", 2, "the server itself is ended by SIGTERM");
    tier.refused("drain app", 2, "write UPSTREAM/BACKEND");
    tier.refused(
        "weight app/red 2",
        1,
        "upstream \"app\" has no backend \"red\"",
    );
    tier.refused("weight shop/red 2", 1, "there is no upstream \"shop\"");
    tier.refused("status nobody", 1, "there is no nobody");
    let mut process = catamaran(&["status", "--admin", "unix:/nowhere/admin.sock"]).unwrap();
    assert_eq!(process.wait(Deadline::default()).unwrap().code(), Some(1));
    let said = process.stderr();
    assert!(
        said.contains("cannot ask the front at unix:/nowhere/admin.sock"),
        "{said}"
    );
}

fn config(directory: &Path) -> std::path::PathBuf {
    directory.join("catamaran.toml")
}
