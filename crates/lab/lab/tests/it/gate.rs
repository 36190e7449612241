//! Each gate is fired by what it is there for, on real servers, and fires alone but for what comes with it.
//!
//! What a text or a file alone can be guilty of is beside the gates themselves: `lines`, `published`; `files` is
//! tried with the binary.

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use catamaran_lab::facts::{LevelChange, MachineFacts};
use catamaran_lab::gate::{Effect, check_pair, check_run};
use catamaran_lab::run::Run;
use catamaran_testkit::{Deadline, timely};

use crate::scene::{MANY, OF_THE_MACHINE, Scene, alone, fires, only, space};

#[test]
fn nothing_fires_on_a_quiet_pair() {
    let (one, other) = (Scene::quiet(), Scene::quiet());
    for run in [&one, &other] {
        assert!(run.facts.completed > MANY, "{run:?}");
        let of_machine = |gate: &str| OF_THE_MACHINE.contains(&gate);
        let fired: Vec<&str> = run.gates.iter().map(|fired| &fired.gate[..]).collect();
        assert!(fired.iter().all(|gate| of_machine(gate)), "{fired:?}");
    }
    let fired = check_pair(&one.facts, &other.facts);
    let of_machine = |gate: &str| ["foreign", "maximum"].contains(&gate);
    assert!(fired.iter().all(|it| of_machine(&it.gate)), "{fired:?}");
}

#[test]
fn a_redirect_instead_of_the_page() {
    let scene = Scene {
        url: "{{ server.app.http }}/status/302",
        expect: "status = 200",
        ..Scene::QUIET
    };
    void(
        scene,
        "status",
        &[],
        "answers were 302 and not 200: a redirect",
    );
}

#[test]
fn a_page_of_another_length() {
    let scene = Scene {
        url: "{{ server.app.http }}/bytes/351",
        ..Scene::QUIET
    };
    let words = "Bodies had 351.0 bytes on average, 347 were expected.";
    void(scene, "body", &[], words);
}

#[test]
fn connections_that_a_server_does_not_keep() {
    let scene = Scene {
        servers: "[[server]]\nname = 'httpd'\ntarget = 'httpd'\ncore = 1\n\
                  set = { keep_alive = 'off', start_workers = 30, max_workers = 30 }",
        url: "{{ server.httpd.http }}/",
        ..Scene::QUIET
    };
    let words = "Keep-alive was asked for, and 0 of";
    void(scene, "keep-alive", &[], words);
}

#[test]
fn requests_without_an_answer() {
    // It ends a connection on which more than a page's request arrives.
    let scene = Scene {
        servers: BARE,
        url: "{{ server.bare.http }}/",
        load: "post_bytes = 100_000",
        expect: "status = 200",
        ..Scene::QUIET
    };
    void(
        scene,
        "failed",
        &["littles-law"],
        "requests had no good answer.",
    );
}

/// A front that answers with a page of its own, of the same length, has an application behind it that nobody asks.
#[test]
fn a_server_that_answers_in_the_place_of_another() {
    for (has_bpf, companions, words) in [
        (
            true,
            &[][..],
            "The server app was asked 0.00 times for each answer, at least 1 expected: another server",
        ),
        (
            false,
            &["uncounted-requests"],
            "µs of CPU time for each answer, too little to be asked 1 times: another server",
        ),
    ] {
        let scene = Scene {
            servers: OWN_PAGE,
            url: "{{ server.front.http }}/",
            has_bpf,
            ..Scene::QUIET
        };
        void(scene, "path", companions, words);
    }
}

#[test]
fn a_server_that_a_load_passes_by() {
    let scene = Scene {
        servers: REUSES,
        url: "{{ server.app.http }}/",
        ..Scene::QUIET
    };
    let words = "The server front was asked 0.00 times for each answer";
    void(scene, "path", &[], words);
}

#[test]
fn servers_that_share_requests() {
    let scene = Scene {
        servers: TWO_APPLICATIONS,
        url: "{{ server.front.http }}/",
        ..Scene::QUIET
    };
    let words = " times for each answer, at least 1 expected: another server";
    void(scene, "path", &[], words);
    let scene = Scene {
        expect: "status = 200\nbody_bytes = 347\nkept = 'on'\nasked = { app = '0.49', other = '0.49' }",
        ..scene
    };
    let run = scene.run_until(Run::is_valid);
    assert!(run.is_valid(), "{:?}", run.gates);
    let asked = &run.facts.asked;
    let counted: f64 = asked.values().filter_map(|asked| asked.counted).sum();
    // Each answer takes the front one request, and one of the two another.
    assert!((1.99..2.1).contains(&counted), "{asked:?}");
}

/// Two pages of the same length.
#[test]
fn bodies_that_differ() {
    let scene = Scene {
        servers: TWO_PAGES,
        url: "{{ server.front.http }}/",
        expect: "status = 200\nbody_bytes = 347\nkept = 'on'\nasked = { app = '0.49', other = '0.49' }",
        ..Scene::QUIET
    };
    void(
        scene,
        "body",
        &[],
        " bodies had other bytes than the first one: not one page",
    );
    let scene = Scene {
        expect: "status = 200\nbody_bytes = 347\nkept = 'on'\nvaries = 'on'\n\
                 asked = { app = '0.49', other = '0.49' }",
        ..scene
    };
    let run = scene.run_until(Run::is_valid);
    assert!(run.is_valid(), "{:?}", run.gates);
}

#[test]
fn figures_of_a_tool_that_do_not_fit_each_other() {
    let mut facts = Scene::quiet().facts;
    // As a tool's text that does not judge itself, with a rate that was made up.
    facts.judges_itself = false;
    facts.rate = facts.rate.map(|rate| rate * 1.5);
    let words = "20 clients are said, rate times latency is ";
    let fired = only(&check_run(&facts), "littles-law", &[]);
    assert!(fired.words.starts_with(words), "{}", fired.words);
    assert_eq!(fired.effect, Effect::Void);
}

#[test]
fn a_load_that_shares_its_core() {
    let scene = Scene {
        servers: BARE_BESIDE_THE_LOAD,
        url: "{{ server.bare.http }}/",
        ..Scene::QUIET
    };
    let fired = only(
        &scene.run_until(|run| fires(run, "generator", &[])).gates,
        "generator",
        &[],
    );
    let words = "The load generator waited ";
    assert!(fired.words.starts_with(words), "{}", fired.words);
    assert_eq!(fired.effect, Effect::Time);
}

#[test]
fn a_load_that_goes_first_waits_for_nobody() {
    let scene = Scene {
        servers: BARE_BESIDE_THE_LOAD,
        url: "{{ server.bare.http }}/",
        load: "preempts = true",
        ..Scene::QUIET
    };
    let has_answers = |run: &Run| run.facts.completed > MANY;
    let waits = |run: &Run| run.gates.iter().any(|fired| fired.gate == "generator");
    let run = scene.run_until(|run| has_answers(run) && !waits(run));
    assert!(has_answers(&run), "{run:?}");
    let waits = run.gates.iter().find(|fired| fired.gate == "generator");
    assert!(waits.is_none(), "{waits:?}");
}

/// How busy cores were depends on what else goes on: that it is measured is tried with real ones, what follows from it
/// with planted shares.
#[test]
fn a_server_that_waits_for_others() {
    // A backend on the load's core takes several times what the server on its own core takes.
    let scene = Scene {
        servers: "[[server]]\nname = 'back'\ntarget = 'bare'\ncore = 0\nset = { spin = '100us' }\n\
                  [[server]]\nname = 'front'\ntarget = 'bare'\ncore = 1\n\
                  set = { backend = '{{ server.back.http }}' }",
        url: "{{ server.front.http }}/",
        ..Scene::QUIET
    };
    let mut facts = scene.run_until(|run| run.facts.completed > MANY).facts;
    let machine = facts.machine.as_mut().unwrap();
    for core in [&mut machine.load_core, &mut machine.server_core] {
        assert!(core.is_some_and(|busy| busy > 0.0), "{core:?}");
    }
    (machine.load_core, machine.server_core) = (Some(0.99), Some(0.4));
    let fired = only(&check_run(&facts), "idle-server", &[]);
    let words = "The server's core was busy 40 % of the time, the load's 99 %";
    assert!(fired.words.starts_with(words), "{}", fired.words);
    assert_eq!(fired.effect, Effect::Time);
}

#[test]
fn a_load_behind_its_schedule() {
    let scene = Scene {
        load: "rate = 3_000_000",
        ..Scene::QUIET
    };
    // What was never sent has no answer either.
    let words = "The load generator says: ";
    void(scene, "late", &["failed"], words);
}

#[test]
fn a_virtual_machine_that_has_just_started() {
    let scene = Scene {
        servers: "[[server]]\nname = 'app'\ntarget = 'tomcat10'\ncore = 1",
        url: "{{ server.app.http }}/page.html",
        measure: "jvm = ['app']",
        times: ["500ms", "1s"],
        ..Scene::QUIET
    };
    let fired = only(
        &scene.run_until(|run| fires(run, "unsteady", &[])).gates,
        "unsteady",
        &[],
    );
    assert!(fired.words.ends_with("it was not warm."), "{}", fired.words);
    assert_eq!(fired.effect, Effect::Machine);
}

/// How much others take is theirs to say: that they are counted is tried with real ones, from where on they
/// count with planted shares.
#[test]
fn somebody_else_on_the_machine() {
    let _alone = alone();
    let _spinning = Spinning::start();
    let run = Scene::QUIET.run_beside();
    let machine = run.facts.machine.clone().unwrap();
    assert!(machine.foreign > 0.0, "{machine:?}");
    for (foreign, steal, words) in [
        (0.04, 0.0, None),
        (0.06, 0.0, Some("Other processes took 6 % ")),
        (0.0, 0.02, Some("A hypervisor gave 2 % ")),
    ] {
        let mut facts = run.facts.clone();
        facts.machine = Some(MachineFacts {
            foreign,
            steal,
            ..machine.clone()
        });
        let fired = check_run(&facts);
        let fired = fired.iter().find(|fired| fired.gate == "foreign");
        let said = fired.map(|fired| &fired.words[..]);
        assert_eq!(said.is_some(), words.is_some(), "{said:?}");
        let begins = words
            .zip(said)
            .is_none_or(|(words, said)| said.starts_with(words));
        assert!(begins, "{said:?}");
    }
}

/// Whether a change is found depends on what else goes on: it is planted. What finds it is tried beside it.
#[test]
fn something_that_begins_within_a_run() {
    let mut facts = Scene::quiet().facts;
    let machine = facts.machine.as_mut().unwrap();
    machine.changed = Some(LevelChange {
        what: "rate".to_owned(),
        after_s: 1.5,
        shift: -0.5,
        others: None,
    });
    let fired = check_run(&facts);
    let fired = fired.iter().find(|fired| fired.gate == "unsteady").unwrap();
    let words = "Within the run, 1.5 s after its beginning, the rate fell by 50 %.";
    assert_eq!((&fired.words[..], fired.effect), (words, Effect::Note));
}

#[test]
fn calls_and_bytes_of_a_span_of_their_own() {
    let scene = Scene {
        measure: "syscalls = ['app']\nbytes = ['app.http']",
        ..Scene::QUIET
    };
    let run = scene.run_until(|run| run.facts.completed > MANY);
    let machine = run.facts.machine.unwrap();
    assert!(machine.uncounted.is_empty(), "{machine:?}");
    // A read and a write; a page and its head, the request, and segments' headers.
    for (name, expected) in [("syscalls", 1.9..4.0), ("bytes.app.http", 500.0..1500.0)] {
        let value = run.measures[name];
        assert!(expected.contains(&value), "{name} {value}");
    }
    assert!(run.measures["cpu"] > 0.0);
    assert!(run.calls["app"].contains_key("recvfrom"), "{:?}", run.calls);
}

#[test]
fn ports_that_wait() {
    // Over AJP13 it is the client that closes, and waits.
    let scene = Scene {
        top: "sysctl.'net.ipv4.ip_local_port_range' = '30000 30099'",
        url: "{{ server.app.ajp }}/",
        keep: "off",
        expect: "status = 200\nkept = 'off'",
        ..Scene::QUIET
    };
    let companions = ["failed", "littles-law"];
    let words = " of the local ports wait in TIME_WAIT";
    void(scene, "ports", &companions, words);
}

#[test]
fn connections_that_wait_are_counted_once() {
    // With room for all of them, and for a hundred.
    for top in ["", "sysctl.'net.ipv4.tcp_max_tw_buckets' = '100'"] {
        let scene = Scene {
            top,
            keep: "off",
            expect: "status = 200\nkept = 'off'",
            ..Scene::QUIET
        };
        let run = scene.run_until(|run| run.facts.completed > MANY);
        let each = run.measures["time_wait"];
        assert!((0.95..1.1).contains(&each), "{each} {top}");
    }
}

#[test]
fn a_queue_that_is_too_short() {
    let scene = Scene {
        servers: "[[server]]\nname = 'nginx'\ntarget = 'nginx'\ncore = 1\nset = { backlog = 1 }",
        url: "{{ server.nginx.http }}/",
        clients: 500,
        keep: "off",
        expect: "status = 200\nkept = 'off'",
        ..Scene::QUIET
    };
    let companions = ["failed", "littles-law"];
    let words = " handshakes were dropped because a listening queue was full";
    void(scene, "backlog", &companions, words);
}

#[test]
fn a_delay_that_did_not_take_place() {
    let scene = Scene {
        url: "{{ server.app.http }}/delay/20",
        expect: "status = 200\ndelay = '100ms'",
        ..Scene::QUIET
    };
    let run = void(scene, "ceiling", &[], "the delay did not take place.");
    // Some 400 requests: too few for a 99th percentile, and little beside what measuring takes.
    only(&run.gates, "few-samples", &["ceiling"]);
    let fired = only(&run.gates, "own-cost", &["ceiling"]);
    assert_eq!(fired.effect, Effect::Machine);
}

#[test]
fn a_maximum_of_a_server() {
    let scene = Scene {
        servers: "[[server]]\nname = 'app'\ntarget = 'app'\ncore = 0\n\
                  [[server]]\nname = 'httpd'\ntarget = 'httpd'\ncore = 1\n\
                  set = { mpm = 'prefork', start_workers = 4, max_workers = 4, ready_path = '/', \
                  backend = '{{ server.app.http }}' }",
        url: "{{ server.httpd.http }}/delay/20",
        keep: "off",
        expect: "status = 200\nkept = 'off'",
        times: ["2s", "500ms"],
        ..Scene::QUIET
    };
    let fired = only(
        &scene.run_until(|run| fires(run, "capped", &[])).gates,
        "capped",
        &[],
    );
    assert!(fired.words.contains("MaxRequestWorkers"), "{fired:?}");
    assert_eq!(fired.effect, Effect::Note);
}

#[test]
fn a_quota_that_stops_the_experiment() {
    let _alone = alone();
    let quota = Quota::begin();
    let run = Scene::QUIET.run_beside();
    drop(quota);
    let companions = ["failed", "littles-law"];
    let words = "A CPU quota stopped the experiment in ";
    is_void(&run, "throttled", &companions, words);
}

/// Of a server of known capacity: 1 ms of CPU time for a request.
#[test]
fn a_declared_quota_is_no_accident() {
    let scene = Scene {
        servers: "[[server]]\nname = 'bare'\ntarget = 'bare'\ncore = 1\ncore_share = 0.5\nset = { work = '1ms' }",
        url: "{{ server.bare.http }}/",
        expect: "status = 200\nbody_bytes = 347",
        times: ["200ms", "1s"],
        ..Scene::QUIET
    };
    let run = scene.run_until(Run::is_valid);
    let fired: Vec<&str> = run.gates.iter().map(|fired| &fired.gate[..]).collect();
    assert!(!fired.contains(&"throttled"), "{:?}", run.gates);
    assert!(run.is_valid(), "{:?}", run.gates);
    let machine = run.facts.machine.as_ref().unwrap();
    let share = machine.shares["bare"];
    // A server that others keep from its core does not use up its quota.
    let is_busy = run.gates.iter().any(|fired| fired.gate == "foreign");
    assert!(share.stopped > 0 || is_busy, "{share:?}");
    assert!(share.is_tested, "{share:?}");
    assert_eq!((share.declared, machine.throttled), (0.5, 0));
    // 1 ms of CPU time for each.
    let capacity = run.measures["capacity"];
    assert!((900.0..1050.0).contains(&capacity), "{capacity}");
}

#[test]
fn a_worker_that_dies() {
    let scene = Scene {
        servers: NGINX,
        url: "{{ server.nginx.http }}/",
        times: ["500ms", "1s"],
        ..Scene::QUIET
    };
    let companions = ["failed", "littles-law", "keep-alive"];
    let run = while_a_worker_has(scene, "kill -KILL $0", |run| {
        fires(run, "died", &companions)
    });
    is_void(&run, "died", &companions, "exited on signal 9");
}

#[test]
fn a_request_that_took_much_longer_than_most() {
    let scene = Scene {
        servers: NGINX,
        url: "{{ server.nginx.http }}/",
        times: ["200ms", "2s"],
        ..Scene::QUIET
    };
    let stop = "kill -STOP $0; sleep 0.4; kill -CONT $0";
    let run = while_a_worker_has(scene, stop, |run| fires(run, "maximum", &[]));
    let fired = only(&run.gates, "maximum", &[]);
    assert!(fired.words.starts_with("The longest request took "));
}

#[test]
fn what_the_kernel_may_not_count() {
    let scene = Scene {
        measure: "syscalls = ['app']\nbytes = ['app.http']",
        has_bpf: false,
        ..Scene::QUIET
    };
    let run = scene
        .run_until(|run| run.facts.completed > MANY && fires(run, "strace", &["uncounted-bytes"]));
    for (gate, other) in [("strace", "uncounted-bytes"), ("uncounted-bytes", "strace")] {
        assert_eq!(only(&run.gates, gate, &[other]).effect, Effect::Note);
    }
    // A read and a write of each request, and what else is called now and then.
    let calls = run.measures["syscalls"];
    assert!((1.9..6.0).contains(&calls), "{calls}");
    // A hop of clients alone has a figure of theirs.
    assert!(run.measures["bytes.app.http"] > 400.0);
}

#[test]
fn answers_with_other_heads() {
    let bare = Scene {
        servers: BARE,
        url: "{{ server.bare.http }}/",
        ..Scene::QUIET
    };
    let bare = bare.run_until(|run| run.facts.completed > MANY);
    let fired = check_pair(&Scene::quiet().facts, &bare.facts);
    let fired = only(&fired, "unequal-answers", &[]);
    assert!(
        fired
            .words
            .starts_with("Beside the body, answers differ by ")
    );
}

#[test]
fn connections_that_one_of_two_uses_again() {
    let reuse = |servers| Scene {
        servers,
        url: "{{ server.front.http }}/",
        ..Scene::QUIET
    };
    let [on, off] = [REUSES, REUSES_NOT]
        .map(|servers| reuse(servers).run_until(|run| run.facts.completed > MANY));
    let fired = only(&check_pair(&on.facts, &off.facts), "confounded", &[]);
    assert!(fired.words.starts_with("Confounded with reuse: "));
    assert_eq!(fired.effect, Effect::Note);
}

/// Makes the run. Fails unless `gate` makes it void by `words`, with no other gate but `companions` and the machine's.
#[track_caller]
fn void(scene: Scene, gate: &str, companions: &[&str], words: &str) -> Run {
    let run = scene.run_until(|run| fires(run, gate, companions));
    is_void(&run, gate, companions, words);
    run
}

/// Fails unless `gate` made the run void by `words`, with no other gate but `companions` and the machine's.
#[track_caller]
fn is_void(run: &Run, gate: &str, companions: &[&str], words: &str) {
    let fired = only(&run.gates, gate, companions);
    assert!(fired.words.contains(words), "{}", fired.words);
    assert_eq!(fired.effect, Effect::Void);
    assert!(!run.is_valid());
}

/// Processes that compute until this is dropped.
struct Spinning(Vec<Child>);

impl Spinning {
    /// Two, at once.
    fn start() -> Self {
        let spin = |_| {
            // Should this process be killed, it ends by itself.
            let mut command = Command::new("timeout");
            command.args(["60", "sh", "-c", "while :; do :; done"]);
            command.spawn().unwrap()
        };
        Self((0..2).map(spin).collect())
    }
}

impl Drop for Spinning {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // `timeout` hands SIGTERM on to what it started.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

/// This process and its children in a cgroup that has a tenth of a core, until this is dropped.
struct Quota {
    group: PathBuf,
    before: PathBuf,
}

impl Quota {
    fn begin() -> Self {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap();
        let path = |wanted: fn(&str) -> bool| {
            let of = |line: &str| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?);
                wanted(controllers).then(|| path.trim_start_matches('/').to_owned())
            };
            groups.lines().find_map(of)
        };
        // A mount of its own (version 1), or one for all controllers (version 2).
        let root = Path::new("/sys/fs/cgroup");
        let of_cpu = path(|controllers| controllers.split(',').any(|it| it == "cpu"));
        let is_first = of_cpu.is_some();
        let (mount, path) = match of_cpu {
            Some(path) => (root.join("cpu"), path),
            None => (root.to_owned(), path(str::is_empty).unwrap()),
        };
        let group = mount.join(format!("{}.quota", space()));
        fs::create_dir(&group).unwrap();
        let quota = Self {
            before: mount.join(path).join("cgroup.procs"),
            group,
        };
        if is_first {
            fs::write(quota.group.join("cpu.cfs_quota_us"), "10000").unwrap();
        } else {
            fs::write(mount.join("cgroup.subtree_control"), "+cpu").unwrap();
            fs::write(quota.group.join("cpu.max"), "10000 100000").unwrap();
        }
        let own = std::process::id().to_string();
        fs::write(quota.group.join("cgroup.procs"), own).unwrap();
        quota
    }
}

impl Drop for Quota {
    fn drop(&mut self) {
        let own = std::process::id().to_string();
        fs::write(&self.before, own).unwrap();
        let _ = fs::remove_dir(&self.group);
    }
}

/// Makes the run until it is as `is_so` says, and meanwhile does `this`, words of the shell, to the worker of nginx when
/// it serves.
fn while_a_worker_has(scene: Scene, this: &str, is_so: impl Fn(&Run) -> bool) -> Run {
    let _alone = alone();
    let act = |over: &AtomicBool| {
        let found = Deadline::default().poll("a busy worker of nginx", || {
            worker().or_else(|| over.load(Ordering::Relaxed).then(String::new))
        });
        // The run may be over: then nothing comes of it.
        let _ = Command::new("sh")
            .args(["-c", this, &found.unwrap()])
            .status();
    };
    let run = || {
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| act(&over));
            let run = scene.run_beside();
            over.store(true, Ordering::Relaxed);
            run
        })
    };
    timely(run, is_so)
}

/// A process whose title says that it is a worker of nginx, whose cgroup that it is ours, and which has had some
/// CPU time.
fn worker() -> Option<String> {
    let text = |id: &str, file: &str| {
        let text = fs::read(Path::new("/proc").join(id).join(file));
        String::from_utf8_lossy(&text.unwrap_or_default()).into_owned()
    };
    // Ticks of CPU time in user space and the kernel, the 14th and 15th field of proc_pid_stat(5); a name may
    // have spaces in it.
    let ticks = |stat: &str| {
        let (_, fields) = stat.rsplit_once(") ")?;
        let times = fields.split(' ').skip(11).take(2);
        times
            .map(|time| time.parse::<u64>().ok())
            .sum::<Option<u64>>()
    };
    let processes = fs::read_dir("/proc").ok()?;
    let mut ids = processes.filter_map(|it| it.ok()?.file_name().into_string().ok());
    ids.find(|id| {
        text(id, "cmdline").starts_with("nginx: worker process")
            && text(id, "cgroup").contains(&space())
            && ticks(&text(id, "stat")).is_some_and(|ticks| ticks >= BUSY_TICKS)
    })
}

/// A twentieth of a second.
const BUSY_TICKS: u64 = 5;

/// What moves bytes alone, with a core of its own.
const BARE: &str = "[[server]]\nname = 'bare'\ntarget = 'bare'\ncore = 1";
/// The same on the load's core.
const BARE_BESIDE_THE_LOAD: &str = "[[server]]\nname = 'bare'\ntarget = 'bare'\ncore = 0";
const NGINX: &str = "[[server]]\nname = 'nginx'\ntarget = 'nginx'\ncore = 1";
const REUSES: &str = "[[server]]\nname = 'app'\ntarget = 'app'\n\
                      [[server]]\nname = 'front'\ntarget = 'nginx'\ncore = 1\n\
                      set = { backend = '{{ server.app.http }}', ready_path = '/', reuse = 'on' }";
const OWN_PAGE: &str = "[[server]]\nname = 'app'\ntarget = 'app'\n\
                        [[server]]\nname = 'front'\ntarget = 'nginx'\ncore = 1\n\
                        set = { page_bytes = 347 }";
const TWO_APPLICATIONS: &str = "[[server]]\nname = 'app'\ntarget = 'app'\n\
                                [[server]]\nname = 'other'\ntarget = 'app'\n\
                                [[server]]\nname = 'front'\ntarget = 'nginx'\ncore = 1\n\
                                set = { backend = '{{ server.app.http }} {{ server.other.http }}', \
                                ready_path = '/' }";
const TWO_PAGES: &str = "[[server]]\nname = 'app'\ntarget = 'app'\n\
                         [[server]]\nname = 'other'\ntarget = 'bare'\n\
                         [[server]]\nname = 'front'\ntarget = 'nginx'\ncore = 1\n\
                         set = { backend = '{{ server.app.http }} {{ server.other.http }}', \
                         ready_path = '/' }";
const REUSES_NOT: &str = "[[server]]\nname = 'app'\ntarget = 'app'\n\
                          [[server]]\nname = 'front'\ntarget = 'nginx'\ncore = 1\n\
                          set = { backend = '{{ server.app.http }}', ready_path = '/', reuse = 'off' }";
