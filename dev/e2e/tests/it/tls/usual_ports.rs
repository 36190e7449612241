//! Certificates at the ports 80 and 443, where authorities ask, by a name that leads to them.
//!
//! No other test may have these ports, so each of these runs itself again in a network namespace with a file of names.

use std::fs;
use std::process::Command;

use catamaran_e2e::{Front, Pebble, PebbleSettings, binary, curl};
use catamaran_testkit::Deadline;

use crate::namespace::has_namespaces;
use crate::reload::application;

/// Whether this process has the ports, and the name `www.example.org`. If not, it has run the test with this name in a
/// process that has.
fn has_ports(test: &str) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let hosts = folder.path().join("hosts");
    fs::write(&hosts, "127.0.0.1 localhost www.example.org example.org\n").unwrap();
    let script = "ip link set lo up; mount --bind \"$0\" /etc/hosts; exec \"$@\"";
    let path = format!("tls::usual_ports::{test}");
    has_namespaces(&["--net", "--mount"], script, &hosts, &path)
}

/// An authority that asks at the usual ports.
fn pebble() -> Pebble {
    let settings = PebbleSettings {
        asks_at_usual_ports: true,
        ..PebbleSettings::default()
    };
    Pebble::start_with(&[], &settings).unwrap()
}

/// The status of the answer at a URL and where it leads, to a client that trusts anybody.
fn fetched(url: &str) -> String {
    let written = "%{stderr}%{http_code} %{redirect_url}";
    let output = curl()
        .args(["--insecure", "--write-out", written, url])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until names are served, and checks that the front found itself by them at port 80 before it ordered.
fn wait_for(names: &[&str], front: &Front, pebble: &Pebble) {
    for name in names {
        let url = format!("https://{name}/");
        let is_served = || (fetched(&url) == "200 ").then_some(());
        let served = Deadline::default().poll(*name, is_served);
        assert!(served.is_ok(), "{}\n{}", front.log(), pebble.log());
    }
    front.wait_for_log("challenge=\"http-01\"").unwrap();
    let log = front.log();
    assert!(!log.contains("step=\"preflight\""), "{log}");
    assert_eq!(
        fetched("http://www.example.org/a"),
        "308 https://www.example.org/a"
    );
}

#[test]
fn a_name_alone_is_served() {
    if !has_ports("a_name_alone_is_served") {
        return;
    }
    let pebble = pebble();
    let home = tempfile::tempdir().unwrap();
    let (_application, url) = application();
    let (directory, ca_file) = (pebble.directory_url(), pebble.ca_file());
    let ca_file = ca_file.to_string_lossy();
    let arguments = [
        ["--tls", "www.example.org"],
        ["--upstream", &url],
        ["--acme-directory", &directory],
        ["--acme-ca-file", &ca_file],
    ];
    let mut arguments = arguments.concat();
    arguments.push("--agree-terms");
    let front = Front::with_arguments(&arguments, &[("HOME", home.path())]).unwrap();
    wait_for(&["www.example.org"], &front, &pebble);
    assert!(home.path().join(".local/state/catamaran/acme").exists());
}

/// The file of docs/tls.md, checked and served by a user as the packaged unit makes it: with ports below 1024, a
/// directory for its state, and nothing else that only root may do.
#[test]
fn the_file_of_the_page_is_served_as_the_unit_does() {
    if !has_ports("the_file_of_the_page_is_served_as_the_unit_does") {
        return;
    }
    let pebble = pebble();
    let (_application, url) = application();
    let page = include_str!("../../../../../docs/tls.md");
    let (_, section) = page.split_once("## Certificates by ACME").unwrap();
    let (_, block) = section.split_once("```toml\n").unwrap();
    let (file, _) = block.split_once("```").unwrap();
    let keys = format!(
        "directory = \"{}\"\nca_file = \"/var/lib/ca.pem\"\nterms_agreed",
        pebble.directory_url()
    );
    let config = file
        .replace("terms_agreed", &keys)
        .replace("ajp://127.0.0.1:8009", &url)
        .replace("secret = \"change me\"", "policy = \"round-robin\"");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catamaran.toml"), config).unwrap();
    let script = "mount -t tmpfs tmpfs /var/lib; cd /var/lib; chmod 755 .; touch front; \
                  mount --bind \"$0\" front; install -m 644 \"$1\" ca.pem; \
                  install -m 644 \"$2\" catamaran.toml; install -d -m 700 -o 65534 -g 65534 catamaran; \
                  as=\"setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
                  --inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service \
                  --bounding-set=-all,+net_bind_service\"; \
                  $as ./front check --config catamaran.toml; \
                  exec $as ./front serve --config catamaran.toml";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec", script])
        .arg(binary().unwrap())
        .arg(pebble.ca_file())
        .arg(folder.path().join("catamaran.toml"));
    let front = Front::with_command(&mut command, folder).unwrap();
    wait_for(&["www.example.org", "example.org"], &front, &pebble);
    let state = front.seen("/var/lib/catamaran/acme".as_ref());
    assert!(state.exists(), "{}", state.display());
}
