//! `serve --watch`: a front that reloads when files of its configuration change.

use std::ffi::OsStr;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use catamaran_e2e::Front;
use catamaran_testkit::{Deadline, address, replace_file};

/// Replaces the files of a directory as the kubelet does those of a ConfigMap: by another link.
fn mount(directory: &Path, version: &str, text: &str) {
    let at = |name: &str| directory.join(name);
    fs::create_dir(at(version)).unwrap();
    fs::write(at(version).join("routes.toml"), text).unwrap();
    symlink(version, at("..next")).unwrap();
    fs::rename(at("..next"), at("..data")).unwrap();
    if !at("routes.toml").exists() {
        symlink("..data/routes.toml", at("routes.toml")).unwrap();
    }
}

fn answering(text: &str) -> String {
    format!("[[route]]\nstatus = 200\ntext = \"{text}\"\n")
}

fn wait_for(front: &Front, expected: &str) {
    let answers = || (front.get("/").ok()?.text() == expected).then_some(());
    Deadline::default().poll(expected, answers).unwrap();
}

#[test]
fn a_change_of_a_file_an_include_or_a_secret_is_in_force_without_a_command() {
    let files = tempfile::tempdir().unwrap();
    let directory = files.path();
    let secret = directory.join("secret");
    fs::write(&secret, "first secret\n").unwrap();
    mount(directory, "..1", &answering("one"));
    let config = format!(
        "include = \"{0}/*.toml\"\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [upstream.app]\nsecret_file = \"{0}/secret\"\n\
         [[upstream.app.backend]]\nurl = \"ajp://127.0.0.1:1\"\n\
         [[route]]\npath = \"/app/\"\nupstream = \"app\"\n",
        directory.display()
    );
    let front = Front::with_config_and_flags(&config, &["--watch"]).unwrap();
    wait_for(&front, "one");
    mount(directory, "..2", &answering("two"));
    wait_for(&front, "two");
    // A fault changes nothing, and is told once.
    mount(directory, "..3", "[[route]]\nstatuss = 200\n");
    front.wait_for_log("cannot reload").unwrap();
    wait_for(&front, "two");
    mount(directory, "..4", &answering("four"));
    wait_for(&front, "four");
    assert_eq!(front.log().matches("cannot reload").count(), 1);
    let before = applied(&front, 2);
    replace_file(&secret, "second secret\n").unwrap();
    assert!(applied(&front, before + 1) > before, "another secret");
    // Another file that the pattern finds.
    let other = answering("other").replace("status", "path = \"/other\"\nstatus");
    replace_file(&directory.join("other.toml"), other).unwrap();
    let answers = || (front.get("/other").ok()?.text() == "other").then_some(());
    Deadline::default().poll("another file", answers).unwrap();
    let own = front.directory().join("catamaran.toml");
    let text = fs::read_to_string(&own).unwrap();
    let more = answering("own").replace("status", "path = \"/own\"\nstatus");
    replace_file(&own, text + &more).unwrap();
    let answers = || (front.get("/own").ok()?.text() == "own").then_some(());
    Deadline::default()
        .poll("the file itself", answers)
        .unwrap();
}

/// How many reloads were applied, once there are as many as expected: a front serves by another configuration before it
/// logs that it does.
fn applied(front: &Front, expected: usize) -> usize {
    let count = || front.log().matches("reloaded;").count();
    let is_there = || (count() >= expected).then_some(());
    Deadline::default().poll("reloads", is_there).unwrap();
    count()
}

#[test]
fn files_that_say_nothing_new_are_not_applied() {
    // The front writes its state beside the files that it includes.
    let config = format!("{CONFIG}state_file = \"{{directory}}/state.json\"\n");
    let flags = ["--watch", "--log-level", "debug"];
    let front = Front::with_config_and_flags(&config, &flags).unwrap();
    let at = |name: &str| front.directory().join(name);
    replace_file(&at("a.toml"), answering("one")).unwrap();
    // It matches nothing.
    fs::write(at("").join(OsStr::from_bytes(b"\xff.toml")), "[").unwrap();
    wait_for(&front, "one");
    for number in 1..=2 {
        replace_file(&at("a.toml"), answering("one")).unwrap();
        let said = || {
            let text = "were written again as they were";
            (front.log().matches(text).count() >= number).then_some(())
        };
        Deadline::default().poll("the same", said).unwrap();
        assert_eq!(applied(&front, 1), 1, "{}", front.log());
    }
    replace_file(&at("a.toml"), answering("two")).unwrap();
    wait_for(&front, "two");
    assert_eq!(applied(&front, 2), 2, "{}", front.log());
}

#[test]
fn a_file_that_only_a_configuration_with_faults_names_is_watched() {
    let front = Front::with_config_and_flags(CONFIG, &["--watch"]).unwrap();
    let at = |name: &str| front.directory().join(name);
    fs::create_dir(at("more")).unwrap();
    fs::write(at("more/b.toml"), "[[route]]\nstatuss = 200\n").unwrap();
    replace_file(&at("a.toml"), "include = \"more/b.toml\"\n").unwrap();
    front.wait_for_log("cannot reload").unwrap();
    fs::write(at("more/b.toml"), answering("mended")).unwrap();
    wait_for(&front, "mended");
}

#[test]
fn a_reload_that_fails_for_what_is_no_file_is_tried_again() {
    let front = Front::with_config_and_flags(CONFIG, &["--watch"]).unwrap();
    // Nobody else takes it when it is free.
    let address = address::unused().unwrap();
    let taken = TcpListener::bind(address).unwrap();
    let listener = format!("[[listen]]\naddress = \"{address}\"\n");
    replace_file(&front.directory().join("a.toml"), listener).unwrap();
    front.wait_for_log("cannot reload").unwrap();
    let refused = || {
        let name = "catamaran_reloads_total{result=\"refused\"}";
        (*front.metric(name).ok()?.first()? >= 3.0).then_some(())
    };
    Deadline::default().poll("attempts", refused).unwrap();
    assert_eq!(applied(&front, 0), 0);
    assert_eq!(front.log().matches("cannot reload").count(), 1);
    assert_eq!(
        front.log().matches(&format!("listen on {address}")).count(),
        1
    );
    drop(taken);
    front.wait_for_log("reloaded;").unwrap();
    TcpStream::connect(address).unwrap();
}

#[test]
fn files_that_never_settle_are_read_at_last() {
    let front = Front::with_config_and_flags(CONFIG, &["--watch"]).unwrap();
    let file = front.directory().join("a.toml");
    let mut written = 0;
    let is_read = || {
        written += 1;
        let next = file.with_extension("next");
        fs::write(&next, answering(&written.to_string())).unwrap();
        fs::rename(&next, &file).unwrap();
        (front.get("/").ok()?.status == 200).then_some(())
    };
    Deadline::default().poll("a reload", is_read).unwrap();
}

/// A front that includes the other files of its directory.
const CONFIG: &str = "include = \"{directory}/[ab].toml\"\n\
                      [[listen]]\naddress = \"127.0.0.1:0\"\n\
                      [[route]]\npath = \"/none\"\nstatus = 404\n\
                      [admin]\naddress = \"127.0.0.1:0\"\n";
