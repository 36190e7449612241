//! Members that a file lists, as an operator meets them.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use catamaran_e2e::{Front, catamaran};
use catamaran_testkit::{Deadline, Process, replace_file};
use serde_json::Value;

use crate::kubernetes::OnDrop;
use crate::reload::application;

fn member(name: &str, url: &str) -> String {
    format!("[[member]]\nname = \"{name}\"\nurl = \"{url}\"\n")
}

/// Runs a command; gives its exit code and what it said on both outputs.
fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let mut process = catamaran(arguments).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    (status.code(), process.stdout() + &process.stderr())
}

fn at(front: &Front) -> String {
    format!("unix:{}/admin.sock", front.directory().display())
}

/// A front whose members file is `list`, and the directory with that file.
fn finding(list: &str) -> (Front, tempfile::TempDir) {
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("members.toml");
    fs::write(&path, list).unwrap();
    let config = CONFIG.replace("members.toml", path.to_str().unwrap());
    (Front::with_config(&config).unwrap(), files)
}

/// How a member stands, as the status tells it; `None` if it is none.
fn standing(front: &Front, name: &str) -> Option<String> {
    let (_, said) = run(&["status", "--json", "--admin", &at(front)]);
    let status: Value = serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}"));
    let members = status["upstreams"][0]["backends"].as_array()?;
    let member = members.iter().find(|it| it["name"] == name)?;
    member["found"]["state"].as_str().map(str::to_owned)
}

fn wait_for(front: &Front, name: &str, expected: &str) {
    let stands = || (standing(front, name)? == expected).then_some(());
    Deadline::default().poll(expected, stands).unwrap();
}

struct Fleet {
    front: Front,
    list: std::path::PathBuf,
    _files: tempfile::TempDir,
    _applications: [Process; 2],
    urls: [String; 2],
}

impl Fleet {
    fn start() -> Self {
        let (one, two) = (application(), application());
        let urls = [one.1, two.1];
        let files = tempfile::tempdir().unwrap();
        let list = files.path().join("members.toml");
        fs::write(&list, member("blue", &urls[0]) + &member("green", &urls[1])).unwrap();
        let config = CONFIG.replace("members.toml", list.to_str().unwrap());
        Self {
            front: Front::with_config(&config).unwrap(),
            list,
            _files: files,
            _applications: [one.0, two.0],
            urls,
        }
    }
}

#[test]
fn members_of_a_file_serve_drain_and_are_shown() {
    let fleet = Fleet::start();
    let front = &fleet.front;
    assert_eq!(front.get("/").unwrap().status, 200);
    assert_eq!(front.ask_admin("/readyz").unwrap().text(), "ready\n");
    let (code, said) = run(&["status", "--admin", &at(front)]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("members from file: the last good answer came"),
        "{said}"
    );
    // Half of them vanish, and one drains.
    replace_file(&fleet.list, member("blue", &fleet.urls[0])).unwrap();
    wait_for(front, "green", "leaving");
    replace_file(&fleet.list, member("blue", &fleet.urls[0]) + "[[membr]]\n").unwrap();
    let line = front
        .wait_for_log("is no table of a file of members")
        .unwrap();
    assert!(line.contains("did you mean `[[member]]`?"), "{line}");
    assert_eq!(front.get("/").unwrap().status, 200);
    replace_file(
        &fleet.list,
        member("blue", &fleet.urls[0]) + &member("green", &fleet.urls[1]) + "state = \"drain\"\n",
    )
    .unwrap();
    wait_for(front, "green", "drain");
}

/// Asks the front again and again until `is_over`; gives the statuses that were not 200.
fn failures(front: &Front, is_over: &AtomicBool) -> Vec<u16> {
    let mut failed = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let status = front.get("/").unwrap().status;
        failed.extend(Some(status).filter(|status| *status != 200));
    }
    failed
}

fn wait_for_held(front: &Front, expected: f64) {
    let held = || {
        let waiting = front.metric("catamaran_upstream_held_requests").ok()?;
        (waiting == [expected]).then_some(())
    };
    Deadline::default()
        .poll("requests that wait", held)
        .unwrap();
}

#[test]
fn no_request_is_lost_while_there_is_no_member_yet_or_the_only_one_is_replaced() {
    let ((old, old_url), (_new, new_url)) = (application(), application());
    let files = tempfile::tempdir().unwrap();
    let list = files.path().join("members.toml");
    fs::write(&list, "").unwrap();
    let config = CONFIG.replace("members.toml", list.to_str().unwrap());
    let config = config.replace("[upstream.app.sticky]", "[upstream.app]\nhold = \"60s\"");
    let front = Front::with_config(&config).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = [(); 8].map(|()| scope.spawn(|| failures(&front, &is_over)));
        let end = OnDrop(&is_over);
        wait_for_held(&front, 8.0);
        replace_file(&list, member("old", &old_url)).unwrap();
        wait_for_held(&front, 0.0);
        // Its connections break, and nobody listens at its address any more.
        drop(old);
        wait_for_held(&front, 8.0);
        replace_file(&list, member("new", &new_url)).unwrap();
        wait_for_held(&front, 0.0);
        drop(end);
        for asked in asking {
            assert_eq!(asked.join().unwrap(), [0_u16; 0], "no request may fail");
        }
    });
}

#[test]
fn check_says_the_faults_of_a_file_of_members_at_their_lines() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("catamaran.toml");
    let list = directory.path().join("members.toml");
    fs::write(&path, CONFIG).unwrap();
    let path = path.to_str().unwrap();
    let (code, said) = run(&["check", path]);
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("the upstream has no members from it until it is there"),
        "{said}"
    );
    fs::write(
        &list,
        member("a", "ajp://10.0.0.1") + &member("a", "ajp://10.0.0.2:8009"),
    )
    .unwrap();
    let (code, said) = run(&["check", path]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("members.toml:3:7: fault: `url` has no port"),
        "{said}"
    );
    fs::write(&list, member("a", "ajp://10.0.0.1:8009")).unwrap();
    let (_, said) = run(&["explain", "--config", path, "http://localhost/"]);
    assert!(said.contains("backend a of upstream app"), "{said}");
}

#[test]
fn a_reload_and_an_upgrade_keep_members() {
    let fleet = Fleet::start();
    let admin = at(&fleet.front);
    let (code, said) = run(&["reload", "--admin", &admin]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("backends: 2 kept"), "{said}");
    assert_eq!(fleet.front.get("/").unwrap().status, 200);
    // The next process cannot read it.
    fs::remove_file(&fleet.list).unwrap();
    fleet.front.wait_for_log("No such file").unwrap();
    let (code, said) = run(&["upgrade", "--admin", &admin]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fleet.front.get("/").unwrap().status, 200);
    assert_eq!(standing(&fleet.front, "green").as_deref(), Some("active"));
}

#[test]
fn commands_change_every_front_or_say_where_not() {
    let (_application, url) = application();
    let list = member("blue", &url) + &member("green", "ajp://127.0.0.1:1");
    let fronts = [finding(&list), finding(&list)];
    let [one, two] = [at(&fronts[0].0), at(&fronts[1].0)];
    let both = |words: &[&str]| run(&[words, &["--admin", &one, "--admin", &two]].concat());
    let (code, said) = both(&["weight", "app/blue", "7"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said,
        format!("{one}: app/blue: weight 7\n{two}: app/blue: weight 7\n")
    );
    let (code, said) = both(&["drain", "app/blue", "--force", "--deadline", "1s", "--wait"]);
    assert_eq!(code, Some(0), "{said}");
    for admin in [&one, &two] {
        assert!(
            said.contains(&format!("{admin}: app/blue: stopped")),
            "{said}"
        );
    }
    let (code, said) = both(&["status"]);
    assert_eq!(
        (code, said.contains("give --admin once")),
        (Some(2), true),
        "{said}"
    );
    // One of them is not there.
    let gone = "unix:/nowhere/admin.sock";
    let (code, said) = run(&["activate", "app/blue", "--admin", &one, "--admin", gone]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&format!("not changed at {gone}: ")), "{said}");
    assert!(said.contains(&format!("it was changed at {one}")), "{said}");
}

/// A front that finds its members in `members.toml`.
const CONFIG: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"app\"\n\
                      [upstream.app.sticky]\n[upstream.app.members]\nfrom = \"file\"\n\
                      path = \"members.toml\"\nleave = \"1h\"\n\
                      [admin]\naddress = [\"unix:admin.sock\", \"127.0.0.1:0\"]\n";
