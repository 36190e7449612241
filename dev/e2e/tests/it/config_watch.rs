//! `serve --watch`: a front that reloads when files of its configuration change.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use catamaran_e2e::Front;
use catamaran_testkit::Deadline;

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
    let reloads = || front.log().matches("reloaded;").count();
    let before = reloads();
    fs::write(&secret, "second secret\n").unwrap();
    let reloaded = || (reloads() > before).then_some(());
    Deadline::default()
        .poll("another secret", reloaded)
        .unwrap();
    // Another file that the pattern finds.
    let other = answering("other").replace("status", "path = \"/other\"\nstatus");
    fs::write(directory.join("other.toml"), other).unwrap();
    let answers = || (front.get("/other").ok()?.text() == "other").then_some(());
    Deadline::default().poll("another file", answers).unwrap();
    let own = front.directory().join("catamaran.toml");
    let text = fs::read_to_string(&own).unwrap();
    let more = answering("own").replace("status", "path = \"/own\"\nstatus");
    fs::write(&own, text + &more).unwrap();
    let answers = || (front.get("/own").ok()?.text() == "own").then_some(());
    Deadline::default()
        .poll("the file itself", answers)
        .unwrap();
}
