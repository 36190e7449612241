//! `catamaran import` as it is used: Debian's files, the page, secrets, exit codes. `import_beside` compares what it
//! writes with the servers.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use catamaran_e2e::{Connector, Front, Tomcat, binary};

/// Runs `catamaran import` in a directory.
pub(crate) fn import(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(binary().unwrap());
    command.current_dir(directory).arg("import").args(arguments);
    command.output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Debian's own files, with the worker that they have mounted, before a Tomcat.
#[test]
fn the_files_of_debian_are_converted_checked_and_served() {
    let tomcat = Tomcat::shared().unwrap();
    let url = tomcat.url(Connector::Ajp);
    let (_, port) = url.rsplit_once(':').unwrap();
    let (host, _) = url.trim_start_matches("ajp://").rsplit_once(':').unwrap();
    let debian = fs::read_to_string("/etc/libapache2-mod-jk/workers.properties").unwrap();
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    // Debian's ports: those of this Tomcat.
    let debian = debian
        .replace("8009", port)
        .replace("host=localhost", &format!("host={host}"));
    fs::write(place.join("workers.properties"), debian).unwrap();
    let jk = fs::read_to_string("/etc/libapache2-mod-jk/httpd-jk.conf").unwrap();
    let ours = "/etc/libapache2-mod-jk/workers.properties";
    let jk = jk.replace(ours, &place.join("workers.properties").to_string_lossy());
    fs::write(place.join("jk.conf"), jk + "\nJkMount /* ajp13_worker\n").unwrap();
    let arguments = ["--listen", "127.0.0.1:0", "--out", "out.toml", "jk.conf"];
    let output = import(place, &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let mut check = Command::new(binary().unwrap());
    let checked = check
        .arg("check")
        .arg(place.join("out.toml"))
        .output()
        .unwrap();
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let front = Front::with_file(&place.join("out.toml"), &[]).unwrap();
    assert_eq!(
        front.get("/").unwrap().status,
        tomcat.get("/").unwrap().status
    );
    assert_eq!(front.get("/jk-status").unwrap().status, 404, "{said}");
}

/// A text of docs/import.md, by the language of its block.
fn block(language: &str) -> String {
    let page = include_str!("../../../../docs/import.md");
    let start = format!("```{language}\n");
    let (_, rest) = page.split_once(&start).unwrap();
    rest.split("```").next().unwrap().to_owned()
}

#[test]
fn the_page_says_what_happens() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::write(place.join("workers.properties"), block("properties")).unwrap();
    fs::write(place.join("httpd.conf"), block("apache")).unwrap();
    let page = include_str!("../../../../docs/import.md");
    let commands = page
        .lines()
        .filter_map(|it| it.strip_prefix("catamaran import "))
        .filter(|it| !it.starts_with("--replay"));
    let commands: Vec<Vec<&str>> = commands.map(|it| it.split_whitespace().collect()).collect();
    let [plain, kept] = &commands[..] else {
        panic!("two commands: {commands:?}")
    };
    let output = import(place, plain);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert_eq!(said, block("text"));
    let output = import(place, kept);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(place.join("catamaran.toml")).unwrap();
    assert!(written.contains("upstream = \"kept\""), "{written}");
}

#[test]
fn secrets_lie_beside_the_file_and_nothing_is_overwritten() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let workers =
        "worker.list=a\nworker.a.type=ajp13\nworker.a.secret=hush hush\nworker.a.mount=/*\n";
    fs::write(place.join("workers.properties"), workers).unwrap();
    let arguments = ["--out", "out.toml", "workers.properties"];
    let output = import(place, &arguments);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let written = fs::read_to_string(place.join("out.toml")).unwrap();
    assert!(!written.contains("hush"), "{written}");
    let secret = place.join("out.a.secret");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "hush hush\n");
    let mode = fs::metadata(&secret).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(import(place, &arguments).status.code(), Some(2));
    let forced = import(
        place,
        &["--force", "--out", "out.toml", "workers.properties"],
    );
    assert_eq!(forced.status.code(), Some(0));
    // Another conversion in the same directory has a file of its own.
    let other = import(place, &["--out", "other.toml", "workers.properties"]);
    assert_eq!(other.status.code(), Some(0), "{}", text(&other.stderr));
    assert!(place.join("other.a.secret").exists());
}

/// Debian's files as they are mount nothing.
#[test]
fn a_source_that_serves_nothing_needs_a_decision() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    for source in ["httpd-jk.conf", "workers.properties"] {
        let source = format!("/etc/libapache2-mod-jk/{source}");
        let output = import(place, &["--force", "--out", "out.toml", &source]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("RISK nothing that was read leads to a backend"),
            "{said}"
        );
        assert!(
            said.contains("no mount uses the worker ajp13_worker"),
            "{said}"
        );
        let mut check = Command::new(binary().unwrap());
        let checked = check.arg("check").arg(place.join("out.toml")).output();
        let checked = text(&checked.unwrap().stdout);
        assert!(
            checked.contains("each request is answered with an error"),
            "{checked}"
        );
    }
}

#[test]
fn a_log_without_a_request_compares_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::write(place.join("access.log"), "no request\n").unwrap();
    let servers = ["--old", "http://127.0.0.1:9", "--new", "http://127.0.0.1:9"];
    let arguments = [&["--replay", "access.log"], &servers[..]].concat();
    let output = import(place, &arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("nothing was compared: access.log has no GET or HEAD"),
        "{said}"
    );
}

#[test]
fn exit_codes_say_whether_a_decision_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::write(place.join("httpd.conf"), "Listen 80\nFrobnicate on\n").unwrap();
    let output = import(
        place,
        &["--report", "json", "--out", "out.toml", "httpd.conf"],
    );
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let sum = ["mapped", "dropped", "decided", "kept"].map(|it| document[it].as_u64().unwrap());
    assert_eq!(Some(sum.iter().sum()), document["directives"].as_u64());
    assert_eq!(import(place, &["none.conf"]).status.code(), Some(2));
}
