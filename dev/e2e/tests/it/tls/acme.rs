//! Certificates that the front gets by itself, from Pebble.

mod fleet;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use catamaran_e2e::{Front, Pebble, PebbleSettings, binary, curl};
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, HttpClient, Process, Signal, write_script};
use serde_json::Value;

use crate::reload::application;

/// A front that orders certificates, its application, and the authority.
struct Site {
    front: Front,
    config: String,
    pebble: Pebble,
    state: tempfile::TempDir,
    _application: Process,
}

/// A front that gets certificates for `names`, a list in TOML.
fn site(names: &str, environment: &[(&str, &str)]) -> Site {
    site_with(environment, |pebble, state, url| {
        config(pebble, state, names, url)
    })
}

/// A front with the configuration that is made of the authority, the directory for state and the URL of a backend.
fn site_with(
    environment: &[(&str, &str)],
    config: impl FnOnce(&Pebble, &Path, &str) -> String,
) -> Site {
    site_of(Pebble::start(environment).unwrap(), config)
}

/// As [`site_with`], of this authority.
fn site_of(pebble: Pebble, config: impl FnOnce(&Pebble, &Path, &str) -> String) -> Site {
    let state = tempfile::tempdir().unwrap();
    let (application, url) = application();
    let config = config(&pebble, state.path(), &url);
    Site {
        front: Front::with_config(&config).unwrap(),
        config,
        pebble,
        state,
        _application: application,
    }
}

/// The listener with TLS is the first one.
fn config(pebble: &Pebble, state: &Path, names: &str, backend: &str) -> String {
    let listeners = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [[listen]]\naddress = \"{}\"\nredirect_https = true\n",
        pebble.challenges(),
    );
    listeners + &without_listeners(pebble, state, names, backend)
}

/// The configuration but for its listeners; keys of `[admin]` may follow it.
fn without_listeners(pebble: &Pebble, state: &Path, names: &str, backend: &str) -> String {
    format!(
        "[[route]]\nupstream = \"app\"\nallow = [\"127.0.0.1\"]\n\
         [[upstream.app.backend]]\nurl = \"{backend}\"\n\
         [tls.www.acme]\nnames = {names}\nterms_agreed = true\npreflight = false\n\
         directory = \"{}\"\nca_file = \"{}\"\nstate_dir = \"{}\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n",
        pebble.directory_url(),
        pebble.ca_file().display(),
        state.join("acme").display(),
    )
}

impl Site {
    /// Ends the front, and starts it again.
    fn restarted(self) -> Self {
        self.restarted_after(|| {})
    }

    /// Ends the front, changes what it has stored, and starts it again.
    fn restarted_after(self, change: impl FnOnce()) -> Self {
        let Self {
            front,
            config,
            pebble,
            state,
            _application,
        } = self;
        drop(front);
        change();
        Self {
            front: Front::with_config(&config).unwrap(),
            config,
            pebble,
            state,
            _application,
        }
    }

    /// The folder with the certificates of this authority: its host, with a digest of its directory's URL.
    fn folder(&self) -> PathBuf {
        let url = self.pebble.directory_url();
        let host = url.trim_start_matches("https://").trim_end_matches("/dir");
        let prefix = format!("{}-", host.replace(':', "_"));
        let entries = fs::read_dir(self.state.path().join("acme")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let is_of_authority = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&prefix)
        };
        paths.find(is_of_authority).expect("a folder")
    }

    /// The status of a request in clear text where the authority asks.
    fn challenge(&self, token: &str) -> u16 {
        let mut client = HttpClient::connect(self.pebble.challenges()).unwrap();
        let line = format!("GET /.well-known/acme-challenge/{token} HTTP/1.1");
        client
            .ask(format!("{line}\r\nHost: a.test\r\n\r\n"))
            .unwrap()
            .status
    }

    /// The status of a request to a name, or how the handshake failed.
    fn status(&self, name: &str) -> String {
        let SocketAddr::V4(address) = self.front.address() else {
            panic!("an address of IPv4");
        };
        let (ip, port) = (address.ip(), address.port());
        let output = curl()
            .args(["--insecure", "--resolve", &format!("{name}:{port}:{ip}")])
            .args(["--write-out", "%{stderr}%{http_code}"])
            .arg(format!("https://{name}:{port}/"))
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Waits until a name has its certificate.
    fn wait_for(&self, name: &str) {
        let is_served = || (self.status(name) == "200").then_some(());
        let served = Deadline::default().poll(name, is_served);
        assert!(
            served.is_ok(),
            "{name}: {}\n{}",
            self.front.log(),
            self.pebble.log()
        );
    }

    /// The digest of the first certificate that is served, and its file.
    fn served(&self) -> [String; 2] {
        let shown: Value =
            serde_json::from_slice(&self.front.ask_admin("/tls").unwrap().body).unwrap();
        let certificate = &shown["profiles"][0]["certificates"][0];
        ["sha256", "file"].map(|key| certificate[key].as_str().unwrap_or_default().to_owned())
    }

    /// What the admin listener tells of a name.
    fn told(&self, name: &str) -> Value {
        let shown: Value =
            serde_json::from_slice(&self.front.ask_admin("/tls").unwrap().body).unwrap();
        let names = shown["profiles"][0]["acme"].as_array().unwrap().clone();
        names
            .into_iter()
            .find(|it| it["name"] == name)
            .unwrap_or_default()
    }
}

#[test]
fn a_name_gets_its_certificate_which_a_restart_keeps() {
    let mut site = site(
        "[\"a.test\", \"b.test\"]",
        &[("PEBBLE_WFE_NONCEREJECT", "20")],
    );
    for name in ["a.test", "b.test"] {
        site.wait_for(name);
        let told = site.told(name);
        assert_eq!(
            (&told["state"], &told["failures"]),
            (&"served".into(), &0.into())
        );
    }
    assert_eq!(site.front.ask_admin("/readyz").unwrap().status, 200);
    let refused = site.status("other.test");
    assert!(
        refused.contains("(35)"),
        "an issued certificate is no default: {refused}"
    );
    for step in ["account", "order", "challenge", "finalize", "issued"] {
        site.front
            .wait_for_log(&format!("step=\"{step}\""))
            .unwrap();
    }
    let attempts = "catamaran_acme_attempts_total";
    assert_eq!(site.front.metric(attempts).unwrap(), [1.0, 0.0, 1.0, 0.0]);

    // Nobody but the owner may read a key, nothing is pending, and a path is no token.
    let key = site.folder().join("a.test/current/key.pem");
    assert_eq!(
        fs::metadata(key).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let pending = site.state.path().join("acme/pending");
    assert_eq!(fs::read_dir(pending).unwrap().count(), 0);
    for token in ["nobody", "..", ""] {
        assert_eq!(site.challenge(token), 404, "{token:?}");
    }

    // A certificate whose files are away, or cannot be read, is served on by a reload.
    let key_file = site.folder().join("a.test/current/key.pem");
    let key_elsewhere = site.state.path().join("key.pem");
    fs::rename(&key_file, &key_elsewhere).unwrap();
    fs::create_dir(&key_file).unwrap();
    site.front.process().signal(Signal::Hangup).unwrap();
    site.front.wait_for_log("reloaded; ").unwrap();
    assert_eq!(site.status("a.test"), "200");
    site.front
        .wait_for_log("what is stored of a name cannot be read")
        .unwrap();
    assert_eq!(site.status("a.test"), "200");
    assert_eq!(site.front.metric(attempts).unwrap(), [1.0, 0.0, 1.0, 0.0]);
    fs::remove_dir(&key_file).unwrap();
    fs::rename(&key_elsewhere, &key_file).unwrap();

    // What is stored serves at once, and nothing is ordered again.
    let chain_file = site.folder().join("a.test/current/chain.pem");
    let chain = fs::read(&chain_file).unwrap();
    let again = site.restarted();
    assert_eq!(again.status("a.test"), "200");
    let is_known = || (again.told("a.test")["state"] == "served").then_some(());
    Deadline::default()
        .poll("the thread that orders", is_known)
        .unwrap();
    assert_eq!(
        again.front.metric(attempts).unwrap().iter().sum::<f64>(),
        0.0
    );
    assert_eq!(fs::read(&chain_file).unwrap(), chain);
}

#[test]
fn a_name_that_fails_keeps_no_other_back_and_waits_across_a_restart() {
    let mut site = site(&format!("[\"{}\", \"a.test\"]", Pebble::BLOCKED), &[]);
    site.wait_for("a.test");
    let bad = Pebble::BLOCKED;
    let line = site
        .front
        .wait_for_log("problem=\"urn:ietf:params:acme:error:")
        .unwrap();
    assert!(line.contains(bad) && line.contains("attempt=1"), "{line}");
    let refused = site.status(bad);
    assert!(refused.contains("(35)"), "{refused}");
    site.front
        .wait_for_log("client:tls-no-certificate-yet")
        .unwrap();
    let told = site.told(bad);
    assert_eq!(
        (&told["state"], &told["failures"]),
        (&"awaited".into(), &1.into())
    );
    // A reload does not begin the pause anew.
    site.front.process().signal(Signal::Hangup).unwrap();
    site.front.wait_for_log("reloaded; ").unwrap();
    assert_eq!(site.told(bad)["next_attempt"], told["next_attempt"]);
    assert_eq!(
        site.front.ask_admin("/readyz").unwrap().status,
        200,
        "another name is served"
    );
}

#[test]
fn without_a_certificate_the_front_is_not_ready() {
    let state = tempfile::tempdir().unwrap();
    let (_application, url) = application();
    let pebble = Pebble::start(&[("PEBBLE_WFE_NONCEREJECT", "100")]).unwrap();
    let front = Front::with_config(&config(&pebble, state.path(), "\"a.test\"", &url)).unwrap();
    front.wait_for_log("step=\"account\"").unwrap();
    let ready = front.ask_admin("/readyz").unwrap();
    let text = ready.text();
    assert_eq!(ready.status, 503);
    assert!(
        text.contains("TLS profile www has no certificate yet"),
        "{text}"
    );
}

#[test]
fn by_tls_alpn_01_a_handshake_of_the_profile_is_the_answer() {
    let site = site_with(&[], |pebble, state, url| {
        format!(
            "[[listen]]\naddress = \"{}\"\ntls = \"www\"\nprotocols = [\"h2\", \"http/1.1\"]\n{}",
            pebble.tls_challenges(),
            without_listeners(pebble, state, "\"a.test\"", url),
        )
    });
    site.wait_for("a.test");
    let line = site.front.wait_for_log("step=\"challenge\"").unwrap();
    assert!(line.contains("challenge=\"tls-alpn-01\""), "{line}");
    // Nothing is pending any more: neither the served certificate nor another is shown.
    let openssl = |protocol: &str| {
        let address = site.front.address().to_string();
        let mut command = Command::new("openssl");
        command.args(["s_client", "-connect", &address, "-servername", "a.test"]);
        let output = command
            .args(["-alpn", protocol])
            .stdin(Stdio::null())
            .output();
        String::from_utf8_lossy(&output.unwrap().stdout).into_owned()
    };
    assert!(openssl("http/1.1").contains("BEGIN CERTIFICATE"));
    let refused = openssl("acme-tls/1");
    assert!(
        refused.contains("no peer certificate available"),
        "{refused}"
    );
    site.front.wait_for_log("client:tls-unknown-name").unwrap();
}

#[test]
fn after_two_failures_the_other_challenge_is_tried() {
    let site = site_with(&[], |pebble, state, url| {
        // The authority asks at another port in clear text.
        format!(
            "[[listen]]\naddress = \"{}\"\ntls = \"www\"\n\
             [[listen]]\naddress = \"127.0.0.1:0\"\n{}",
            pebble.tls_challenges(),
            without_listeners(pebble, state, "\"a.test\"", url),
        )
    });
    let line = site
        .front
        .wait_for_log("problem=\"urn:ietf:params:acme:error:connection\"")
        .unwrap();
    assert!(line.contains("challenge=\"http-01\""), "{line}");
    let state_file = site.folder().join("a.test/state.json");
    // The second attempt would begin in a minute, the third ten minutes later.
    let restarted = site.restarted_after(|| {
        let text = fs::read(&state_file).unwrap();
        let mut state: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(state["failures"], 1);
        state["failures"] = 2.into();
        state["next_attempt"] = 0.into();
        fs::write(&state_file, state.to_string()).unwrap();
    });
    restarted.wait_for("a.test");
    restarted
        .front
        .wait_for_log("challenge=\"tls-alpn-01\"")
        .unwrap();
}

#[test]
fn an_administrator_gets_a_new_certificate_once_an_hour() {
    let site = site_with(&[], |pebble, state, url| {
        let socket = state.join("admin.sock");
        let both = format!("[\"127.0.0.1:0\", \"unix:{}\"]\n", socket.display());
        let config = config(pebble, state, "\"a.test\"", url);
        let (tables, _) = config.rsplit_once("\"127.0.0.1:0\"").unwrap();
        format!("{tables}{both}")
    });
    site.wait_for("a.test");
    let served = || {
        let shown: Value =
            serde_json::from_slice(&site.front.ask_admin("/tls").unwrap().body).unwrap();
        shown["profiles"][0]["certificates"][0]["sha256"].clone()
    };
    let before = served();
    let renew = || {
        let admin = format!("unix:{}", site.state.path().join("admin.sock").display());
        let mut command = Command::new(binary().unwrap());
        command.args(["certificates", "--renew", "A.test", "--admin", &admin]);
        command.output().unwrap()
    };
    let first = renew();
    assert!(first.status.success(), "{first:?}");
    let is_new = || (served() != before).then_some(());
    let renewed = Deadline::default().poll("another certificate", is_new);
    assert!(renewed.is_ok(), "{}", site.front.log());
    assert_eq!(site.status("a.test"), "200");
    let second = renew();
    let said = String::from_utf8_lossy(&second.stderr);
    assert!(said.contains("within the last hour"), "{said}");
}

/// A front whose `state_dir` is a disk of its own.
fn site_on_a_small_disk() -> Site {
    let state = tempfile::tempdir().unwrap();
    let (application, url) = application();
    let pebble = Pebble::start(&[]).unwrap();
    let socket = format!("unix:{}", state.path().join("admin.sock").display());
    let config = config(&pebble, state.path(), "\"a.test\"", &url);
    let (tables, _) = config.rsplit_once("\"127.0.0.1:0\"").unwrap();
    let config = format!("{tables}[\"127.0.0.1:0\", \"{socket}\"]\n");
    let disk = state.path().join("acme");
    fs::create_dir(&disk).unwrap();
    Site {
        front: Front::with_small_disk(&config, &disk, 128).unwrap(),
        config,
        pebble,
        state,
        _application: application,
    }
}

/// Runs a script in the front's namespace of mounts, with the path of its `state_dir` as `$0`.
fn change_mounts(site: &mut Site, script: &str) {
    let id = site.front.process().id().to_string();
    let mut command = Command::new("nsenter");
    command
        .args(["--mount", "--target", &id, "sh", "-ec", script])
        .arg(site.state.path().join("acme"));
    assert!(command.status().unwrap().success(), "{script}");
}

#[test]
fn on_a_full_disk_a_renewed_certificate_is_served_from_memory_and_stored_later() {
    let site = site_on_a_small_disk();
    let disk = site.front.seen(&site.state.path().join("acme"));
    let filler = disk.join("filler");
    let fill = |_: &mut Site| {
        let full = fs::write(&filler, vec![0; 1 << 20]).unwrap_err();
        assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    };
    check_unwritable(site, fill, |_| fs::remove_file(&filler).unwrap());
}

#[test]
fn on_a_read_only_disk_a_renewed_certificate_is_served_from_memory_and_stored_later() {
    let read_only = "mount --bind \"$0\" \"$0\"; mount -o remount,bind,ro \"$0\"";
    check_unwritable(
        site_on_a_small_disk(),
        |site| change_mounts(site, read_only),
        |site| change_mounts(site, "umount --lazy \"$0\""),
    );
}

/// Renews a certificate while `state_dir` cannot be written, which `begin` does and `end` ends.
fn check_unwritable(mut site: Site, begin: impl FnOnce(&mut Site), end: impl FnOnce(&mut Site)) {
    site.wait_for("a.test");
    let [before, file] = site.served();
    begin(&mut site);
    let admin = format!("unix:{}", site.state.path().join("admin.sock").display());
    let mut renew = Command::new(binary().unwrap());
    renew.args(["certificates", "--renew", "a.test", "--admin", &admin]);
    assert!(renew.status().unwrap().success());
    let renewed = Deadline::default().poll("another certificate", || {
        let [sha256, file] = site.served();
        (sha256 != before).then_some((sha256, file))
    });
    let (renewed, in_memory) = renewed.unwrap_or_else(|_| panic!("{}", site.front.log()));
    assert_eq!(in_memory, "(memory)");
    let is_unstored = || (site.told("a.test")["unstored"] == true).then_some(());
    Deadline::default()
        .poll("what is told", is_unstored)
        .unwrap();
    assert_eq!(site.front.metric("catamaran_acme_unstored").unwrap(), [1.0]);
    let status = site.front.ask_admin("/api/v1/status").unwrap().text();
    assert!(status.contains("is in memory alone"), "{status}");
    let mut shown = Command::new(binary().unwrap());
    let shown = shown.args(["certificates", "--admin", &admin]).output();
    let said = String::from_utf8_lossy(&shown.unwrap().stdout).into_owned();
    assert!(said.contains("IN MEMORY ALONE"), "{said}");
    // The older one on the disk does not take its place.
    site.front.process().signal(Signal::Hangup).unwrap();
    site.front.wait_for_log("reloaded; ").unwrap();
    assert_eq!(site.served()[0], renewed);
    assert_eq!(site.status("a.test"), "200");

    end(&mut site);
    site.front
        .wait_for_log("what `state_dir` did not take is stored")
        .unwrap();
    let is_stored = || (site.told("a.test")["unstored"] == false).then_some(());
    Deadline::default().poll("the disk", is_stored).unwrap();
    let [sha256, stored] = site.served();
    assert_eq!((sha256, stored), (renewed, file.replace("/1/", "/2/")));
    assert_eq!(orders_and_certificates(&site.pebble, 2), (2, 2));
}

#[test]
fn from_a_read_only_directory_a_start_serves_and_orders_nothing() {
    let mut site = site("\"a.test\"", &[]);
    site.wait_for("a.test");
    let [before, _] = site.served();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catamaran.toml"), &site.config).unwrap();
    let script = "mount --bind \"$1\" \"$1\"; mount -o remount,bind,ro \"$1\"; \
                  exec \"$0\" serve --config catamaran.toml";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec", script])
        .arg(binary().unwrap())
        .arg(site.state.path().join("acme"))
        .current_dir(folder.path());
    // The listener of the authority's questions is free once the first one has ended.
    site.front.process().signal(Signal::Kill).unwrap();
    site.front.process().wait(Deadline::default()).unwrap();
    site.front = Front::with_command(&mut command, folder).unwrap();
    let line = site
        .front
        .wait_for_log("no certificate can be ordered, as `state_dir` cannot be used")
        .unwrap();
    assert!(line.contains("Read-only file system"), "{line}");
    assert_eq!(site.status("a.test"), "200");
    assert_eq!(site.served()[0], before);
    assert_eq!(orders_and_certificates(&site.pebble, 1), (1, 1));
}

#[test]
fn a_directory_for_everybody_is_narrowed_and_a_foreign_one_refused() {
    let site = site_with(&[], |pebble, state, url| {
        let acme = state.join("acme");
        fs::create_dir(&acme).unwrap();
        fs::set_permissions(&acme, fs::Permissions::from_mode(0o777)).unwrap();
        config(pebble, state, "\"a.test\"", url)
    });
    site.wait_for("a.test");
    let line = site
        .front
        .wait_for_log("their rights were removed")
        .unwrap();
    assert!(line.contains("others could read"), "{line}");
    let acme = site.state.path().join("acme");
    let mode = fs::metadata(&acme).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);

    let foreign = site.folder().join("a.test/state.json");
    let next = site.restarted_after(|| {
        // The name is due, and nothing may be ordered.
        fs::remove_dir_all(foreign.with_file_name("1")).unwrap();
        std::os::unix::fs::chown(&foreign, Some(1), None).unwrap();
    });
    next.front
        .wait_for_log("no certificate can be ordered")
        .unwrap();
    let problem = next.told("a.test")["problem"].to_string();
    assert!(
        problem.contains("belongs to the user 1, not to 0"),
        "{problem}"
    );
    assert_eq!(orders_and_certificates(&next.pebble, 1), (1, 1));
}

#[test]
fn an_account_is_bound_to_one_that_the_authority_knows() {
    let settings = PebbleSettings {
        binds_accounts: true,
        ..PebbleSettings::default()
    };
    let site = site_of(
        Pebble::start_with(&[], &settings).unwrap(),
        |pebble, state, url| {
            let file = state.join("eab.key");
            fs::write(&file, Pebble::EAB_HMAC_KEY).unwrap();
            let (id, file) = (Pebble::EAB_KEY_ID, file.display());
            let keys = format!("eab_key_id = \"{id}\"\neab_hmac_file = \"{file}\"\nterms_agreed");
            config(pebble, state, "\"a.test\"", url).replace("terms_agreed", &keys)
        },
    );
    site.wait_for("a.test");
}

/// A hook that tells Pebble's DNS server of records, and appends its words to the file `said` of its directory.
fn dns_hook(pebble: &Pebble, folder: &Path) -> PathBuf {
    let path = folder.join("dns-hook");
    let (said, dns) = (folder.join("said"), pebble.dns_management());
    let lines = format!(
        "echo \"$*\" >> {}\n\
         case $2 in present) verb=set-txt ;; *) verb=clear-txt ;; esac\n\
         /usr/bin/curl --silent --fail --data \"{{\\\"host\\\": \\\"$3.\\\", \\\"value\\\": \\\"$4\\\"}}\" http://{dns}/$verb\n",
        said.display(),
    );
    write_script(&path, &lines).unwrap();
    path
}

/// As [`dns_hook`], but each record is reported as present only when the directory has a file `go`, or after two minutes.
/// Both are run by `/bin/sh`, which may read what another test's child has open to write.
fn dns_hook_that_waits(pebble: &Pebble, folder: &Path) -> PathBuf {
    let hook = dns_hook(pebble, folder);
    let path = folder.join("dns-hook-that-waits");
    let lines = format!(
        "/bin/sh {} \"$@\"\nlooks=0\n\
         until [ $2 = cleanup ] || [ -e {} ] || [ $looks = 1200 ]; do\n\
         looks=$((looks + 1)); /bin/sleep 0.1\ndone\n",
        hook.display(),
        folder.join("go").display(),
    );
    fs::write(&path, lines).unwrap();
    path
}

/// The value of the first record that a hook has put into the DNS.
fn wait_for_record(state: &Path) -> String {
    let presented = || {
        let said = fs::read_to_string(state.join("said")).unwrap_or_default();
        values(&said, " present ").pop()
    };
    Deadline::default().poll("the hook", presented).unwrap()
}

/// Waits until no record of a name is stored, in the name's folder.
fn wait_for_no_records(folder: &Path) {
    let has_none = || {
        let mut entries = fs::read_dir(folder).unwrap();
        let has_record = entries.any(|entry| {
            let name = entry.unwrap().file_name();
            name.to_string_lossy().starts_with("record-")
        });
        (!has_record).then_some(())
    };
    Deadline::default().poll("the records", has_none).unwrap();
}

#[test]
fn a_wildcard_gets_its_certificate_by_the_hook() {
    let site = site_with(&[], |pebble, state, url| {
        let hook = dns_hook(pebble, state);
        let keys = format!("dns_hook = [\"{}\", \"own\"]\nterms_agreed", hook.display());
        config(pebble, state, "[\"*.w.test\"]", url).replace("terms_agreed", &keys)
    });
    site.wait_for("x.w.test");
    assert!(
        site.status("w.test").contains("(35)"),
        "it is not the wildcard's"
    );
    assert!(site.folder().join("_.w.test/current/key.pem").exists());
    let cleaned = || {
        let said = fs::read_to_string(site.state.path().join("said")).ok()?;
        (said.lines().count() == 2).then_some(said)
    };
    let said = Deadline::default().poll("the cleanup", cleaned).unwrap();
    let words: Vec<Vec<&str>> = said.lines().map(|line| line.split(' ').collect()).collect();
    let [present, cleanup] = &words[..] else {
        panic!("{said}")
    };
    assert_eq!(present[..3], ["own", "present", "_acme-challenge.w.test"]);
    assert_eq!(cleanup[..2], ["own", "cleanup"]);
    assert_eq!(present[2..], cleanup[2..]);
}

#[test]
fn names_together_have_one_certificate_by_two_challenges() {
    let mut site = site_with(&[], |pebble, state, url| {
        let hook = dns_hook(pebble, state);
        let keys = format!(
            "together = true\ndns_hook = [\"{}\", \"own\"]\nterms_agreed",
            hook.display()
        );
        let names = "[\"w.test\", \"*.w.test\", \"b.test\"]";
        config(pebble, state, names, url).replace("terms_agreed", &keys)
    });
    for name in ["w.test", "x.w.test", "b.test"] {
        site.wait_for(name);
        assert_eq!(orders_and_certificates(&site.pebble, 1), (1, 1));
    }
    for name in ["w.test", "*.w.test", "b.test"] {
        let told = site.told(name);
        assert_eq!(told["state"], "served", "{name}: {told}");
    }
    assert_eq!(site.front.metric("catamaran_acme_failures").unwrap(), [0.0]);
    // With another name one more is ordered, and the names that it had are served meanwhile, though one is refused.
    site.config = site.config.replace(
        "\"b.test\"]",
        &format!("\"b.test\", \"{}\"]", Pebble::BLOCKED),
    );
    let next = site.restarted();
    let line = next.front.wait_for_log("problem=\"urn:").unwrap();
    assert!(line.contains(Pebble::BLOCKED), "{line}");
    for name in ["w.test", "x.w.test", "b.test"] {
        assert_eq!(next.status(name), "200", "{name}");
    }
    assert_eq!(next.told(Pebble::BLOCKED)["state"], "awaited");
}

/// The values of records that a hook has got with a verb, in order.
fn values(said: &str, verb: &str) -> Vec<String> {
    let calls = said.lines().filter_map(|line| line.split_once(verb));
    let values = calls.filter_map(|(_, words)| words.rsplit(' ').next());
    let mut values: Vec<String> = values.map(str::to_owned).collect();
    values.sort();
    values.dedup();
    values
}

#[test]
fn a_record_that_a_killed_process_left_is_taken_out_by_the_next() {
    for knows_its_order in [true, false] {
        let site = site_with(&[], |pebble, state, url| {
            let hook = dns_hook(pebble, state);
            let keys = format!("dns_hook = [\"{}\", \"own\"]\nterms_agreed", hook.display());
            config(pebble, state, "\"*.w.test\"", url).replace("terms_agreed", &keys)
        });
        let said_file = site.state.path().join("said");
        let said = || fs::read_to_string(&said_file).unwrap_or_default();
        let first = wait_for_record(site.state.path());
        let state_file = site.folder().join("_.w.test/state.json");
        let next = site.restarted_after(|| {
            let text = fs::read(&state_file).unwrap();
            let mut state: Value = serde_json::from_slice(&text).unwrap();
            state["next_attempt"] = 0.into();
            if !knows_its_order {
                state["order"] = Value::Null;
            }
            fs::write(&state_file, state.to_string()).unwrap();
        });
        next.wait_for("x.w.test");
        let are_taken_out = || {
            let said = said();
            (values(&said, " cleanup ") == values(&said, " present ")).then_some(said)
        };
        let said = Deadline::default().poll("the cleanup", are_taken_out);
        let said = said.unwrap_or_else(|_| panic!("{}", next.front.log()));
        assert!(values(&said, " cleanup ").contains(&first), "{said}");
        wait_for_no_records(state_file.parent().unwrap());
    }
}

#[test]
fn a_record_of_a_name_that_was_removed_is_taken_out() {
    let mut site = site_with(&[], |pebble, state, url| {
        let hook = dns_hook_that_waits(pebble, state);
        let keys = format!(
            "dns_hook = [\"/bin/sh\", \"{}\", \"own\"]\nterms_agreed",
            hook.display()
        );
        config(pebble, state, "\"*.w.test\"", url).replace("terms_agreed", &keys)
    });
    let first = wait_for_record(site.state.path());
    let folder = site.folder().join("_.w.test");
    site.config = site.config.replace("\"*.w.test\"", "\"b.test\"");
    let next = site.restarted();
    next.wait_for("b.test");
    let line = next
        .front
        .wait_for_log("a record of a challenge was left in the DNS")
        .unwrap();
    assert!(line.contains(&first), "{line}");
    wait_for_no_records(&folder);
    let said = fs::read_to_string(next.state.path().join("said")).unwrap();
    assert_eq!(values(&said, " cleanup "), [first]);
    let is_free = || (!folder.join("owner.json").exists()).then_some(());
    Deadline::default().poll("the lock", is_free).unwrap();
    fs::write(next.state.path().join("go"), "").unwrap();
}

/// Has the next attempt begin at once, which would wait for a minute after the one that was killed.
fn forget_pause(state_file: &Path) {
    let text = fs::read(state_file).unwrap();
    let mut state: Value = serde_json::from_slice(&text).unwrap();
    state["next_attempt"] = 0.into();
    fs::write(state_file, state.to_string()).unwrap();
}

/// How many orders the authority got, and how many certificates it issued, once its log has so many certificates.
fn orders_and_certificates(pebble: &Pebble, expected: usize) -> (usize, usize) {
    let count = |text: &str| pebble.log().matches(text).count();
    let issued = || count("Issued certificate serial ");
    let is_there = || (issued() >= expected).then_some(());
    Deadline::default()
        .poll("lines of certificates", is_there)
        .unwrap();
    (count("Added order "), issued())
}

#[test]
fn a_process_that_is_killed_at_any_step_leaves_its_order_to_the_next() {
    for step in ["account", "order", "challenge", "finalize", "issued"] {
        let site = site("\"a.test\"", &[]);
        site.front
            .wait_for_log(&format!("step=\"{step}\""))
            .unwrap();
        let state_file = site.folder().join("a.test/state.json");
        let next = site.restarted_after(|| forget_pause(&state_file));
        next.wait_for("a.test");
        let (orders, certificates) = orders_and_certificates(&next.pebble, 1);
        let log = next.pebble.log();
        assert_eq!(certificates, 1, "{step}: {log}");
        // What was killed while it ordered cannot know its order. An order ends if nobody answers the authority, which a
        // process whose line is "order" may have asked to come when it is killed.
        let may_order_again = ["account", "order", "challenge"].contains(&step);
        assert!(orders == 1 || may_order_again, "{step}: {log}");
    }
}

#[test]
fn an_upgrade_while_the_authority_validates_goes_on_with_the_order() {
    let slow = [("PEBBLE_VA_NOSLEEP", "0"), ("PEBBLE_VA_SLEEPTIME", "4")];
    let mut site = site("\"a.test\"", &slow);
    site.front.wait_for_log("step=\"challenge\"").unwrap();
    site.front.process().signal(Signal::User2).unwrap();
    site.front
        .wait_for_log("another process has taken over")
        .unwrap();
    site.wait_for("a.test");
    assert_eq!(
        orders_and_certificates(&site.pebble, 1),
        (1, 1),
        "{}",
        site.pebble.log()
    );
}

#[test]
fn a_second_front_with_the_same_directory_orders_for_its_other_names() {
    let mut site = site("\"a.test\"", &[]);
    site.wait_for("a.test");
    let account_file = site.folder().join("account.json");
    let account = fs::read(&account_file).unwrap();
    // The authority asks the first front, which answers for the second.
    let asked = format!("\"{}\"", site.pebble.challenges());
    let with_both = site
        .config
        .replace("names = \"a.test\"", "names = [\"a.test\", \"b.test\"]")
        .replace(&asked, "\"127.0.0.1:0\"");
    let second = Front::with_config(&with_both).unwrap();
    let first = std::mem::replace(&mut site.front, second);
    site.wait_for("b.test");
    assert_eq!(site.status("a.test"), "200");
    let line = site.front.wait_for_log("another process orders").unwrap();
    assert!(line.contains("names=\"a.test\""), "{line}");
    assert_eq!(site.told("a.test")["next_attempt"], Value::Null);
    let counted = orders_and_certificates(&site.pebble, 2);
    assert_eq!(counted, (2, 2), "{}", site.pebble.log());
    assert_eq!(fs::read(&account_file).unwrap(), account);
    // The end of the first one frees its name.
    drop(first);
    let is_taken_over = || site.told("a.test")["next_attempt"].as_str().map(drop);
    Deadline::default()
        .poll("the lock of a.test", is_taken_over)
        .unwrap();
}

/// What a process of another machine says of itself.
fn claim_of_another(until: u64) -> String {
    let claim = serde_json::json!({"host": "elsewhere", "boot": "b", "claim": "c", "until": until});
    claim.to_string()
}

#[test]
fn a_machine_that_shares_the_directory_is_followed_until_its_claim_ends() {
    for is_over in [false, true] {
        let site = site("\"a.test\"", &[]);
        site.wait_for("a.test");
        let owner_file = site.folder().join("a.test/owner.json");
        assert!(owner_file.exists());
        let next = site.restarted_after(|| {
            // The name is due.
            fs::remove_dir_all(owner_file.with_file_name("1")).unwrap();
            fs::remove_file(owner_file.with_file_name("state.json")).unwrap();
            let until = if is_over { 0 } else { u64::MAX };
            fs::write(&owner_file, claim_of_another(until)).unwrap();
        });
        if !is_over {
            let line = next.front.wait_for_log("another process orders").unwrap();
            assert!(line.contains("hosts=\"elsewhere\""), "{line}");
            assert_eq!(next.told("a.test")["state"], "followed");
            assert_eq!(orders_and_certificates(&next.pebble, 1), (1, 1));
            fs::remove_file(&owner_file).unwrap();
        }
        next.wait_for("a.test");
        assert_eq!(orders_and_certificates(&next.pebble, 2), (2, 2));
        let own = fs::read_to_string(&owner_file).unwrap();
        assert!(!own.contains("elsewhere"), "{own}");
    }
}

#[test]
fn a_stored_certificate_that_has_ended_is_served_and_told_of() {
    let site = site("\"a.test\"", &[]);
    site.wait_for("a.test");
    let served = site.folder().join("a.test/current");
    let files = site.state.path().to_owned();
    let site = site.restarted_after(|| {
        let authority = Authority::new("of-the-past").unwrap();
        authority.issue_expired(&files, "old", &["a.test"]).unwrap();
        fs::copy(files.join("old.pem"), served.join("chain.pem")).unwrap();
        fs::copy(files.join("old.key"), served.join("key.pem")).unwrap();
    });
    assert_eq!(site.status("a.test"), "200");
    let line = site
        .front
        .wait_for_log("a certificate that is served has ended")
        .unwrap();
    assert!(line.contains("name=\"a.test\""), "{line}");
}

#[test]
fn a_name_that_leads_elsewhere_is_ordered_at_each_third_attempt() {
    let site = site_with(&[], |pebble, state, url| {
        let keys = "preflight = true\nchallenge = \"http-01\"";
        config(pebble, state, "\"a.test\"", url).replace("preflight = false", keys)
    });
    let line = site.front.wait_for_log("step=\"preflight\"").unwrap();
    assert!(line.contains("a.test cannot be looked up"), "{line}");
    assert_eq!(orders_and_certificates(&site.pebble, 0), (0, 0));
    let state_file = site.folder().join("a.test/state.json");
    let next = site.restarted_after(|| {
        let text = fs::read(&state_file).unwrap();
        let mut state: Value = serde_json::from_slice(&text).unwrap();
        state["failures"] = 2.into();
        state["next_attempt"] = 0.into();
        fs::write(&state_file, state.to_string()).unwrap();
    });
    next.wait_for("a.test");
}

#[test]
fn a_check_online_tells_of_the_authority_and_of_names() {
    let pebble = Pebble::start(&[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catamaran.toml");
    fs::write(
        &file,
        config(&pebble, folder.path(), "\"a.test\"", "http://127.0.0.1:1"),
    )
    .unwrap();
    let mut command = Command::new(binary().unwrap());
    let output = command
        .args(["check", "--online"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let directory = format!("online: {}: a directory of ACME", pebble.directory_url());
    assert!(
        said.contains(&directory) && said.contains("FAULT: a.test: "),
        "{said}"
    );
    let is_logged = || pebble.log().contains("GET /dir").then_some(());
    Deadline::default()
        .poll("the line of Pebble", is_logged)
        .unwrap();
    assert!(!pebble.log().contains("sign-me-up"));
}
