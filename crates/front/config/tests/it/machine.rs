//! What is said of the machine that a file is for: the directories of its log and of its sockets.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use catamaran_config::load;
use catamaran_proxy::config::{
    Address, Coding, FilesConfig, Links, ListenAddress, MediaPattern, RouteTarget,
};

/// What is said of a file with these tables in that directory.
fn said(directory: &Path, tables: &str) -> String {
    let path = directory.join("catamaran.toml");
    let needed = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nstatus = 404\n";
    fs::write(&path, format!("{needed}{tables}")).expect("a directory that can be written");
    let said = match load(&path) {
        Ok(loaded) => loaded.report.to_string(),
        Err(error) => error.to_string(),
    };
    said.replace(&format!("{}/", directory.display()), "")
}

#[test]
fn the_directory_of_the_log_must_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    for (access, expected) in [
        ("access.log", ""),
        (
            "none/access.log",
            "fault: there is no directory none; create it",
        ),
        (
            "catamaran.toml/access.log",
            "fault: there is no directory catamaran.toml;",
        ),
        (
            "logs",
            "fault: `access` is logs, a directory; write the path of a file",
        ),
        ("logs/access.log", ""),
    ] {
        fs::create_dir_all(at.join("logs")).unwrap();
        let said = said(at, &format!("[log]\naccess = \"{access}\"\n"));
        assert_eq!(said.is_empty(), expected.is_empty(), "{access}: {said}");
        assert!(said.contains(expected), "{access}: {said}");
    }
}

#[test]
fn a_log_that_this_user_cannot_write_is_warned_of() {
    let directory = tempfile::tempdir().unwrap();
    let logs = directory.path().join("logs");
    fs::create_dir(&logs).unwrap();
    fs::set_permissions(&logs, Permissions::from_mode(0o555)).unwrap();
    let may_write = fs::write(logs.join("probe"), "").is_ok();
    let said = said(directory.path(), "[log]\naccess = \"logs/access.log\"\n");
    let warned = said.contains("warning: logs cannot be written to: Permission denied");
    assert_eq!(warned, !may_write, "root may write anywhere: {said}");
}

#[test]
fn two_paths_to_one_socket_are_one() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("run")).unwrap();
    symlink("run", directory.path().join("var-run")).unwrap();
    let at = directory.path().display();
    let listen = |path: &str| format!("[[listen]]\naddress = \"unix:{at}/{path}\"\n");
    let both = listen("run/front.sock") + &listen("var-run/front.sock");
    let fault = ":8:11: fault: line 6 listens there already";
    assert!(said(directory.path(), &both).contains(fault));
    let other = listen("run/front.sock") + &listen("var-run/other.sock");
    assert_eq!(said(directory.path(), &other), "");
}

#[test]
fn the_directories_of_sockets_and_of_the_state_must_be_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("run")).unwrap();
    let admin = |more: &str| format!("[admin]\naddress = \"unix:run/admin.sock\"\n{more}");
    assert_eq!(said(at, &admin("state_file = \"run/state.json\"\n")), "");
    let missing = said(at, &admin("state_file = \"state/state.json\"\n"));
    let fault = "7:14: fault: there is no directory state; create it, or write another path";
    assert!(missing.contains(fault), "{missing}");
    for other in ["run", "/dev/null"] {
        let other_kind = said(at, &admin(&format!("state_file = \"{other}\"\n")));
        let fault = format!("7:14: fault: `state_file` is no regular file: {other}");
        assert!(other_kind.contains(&fault), "{other_kind}");
    }
    let missing = said(at, "[admin]\naddress = \"unix:none/admin.sock\"\n");
    assert!(
        missing.contains("6:11: fault: there is no directory none;"),
        "{missing}"
    );
    let missing = said(at, "[[listen]]\naddress = \"unix:none/front.sock\"\n");
    assert!(
        missing.contains("6:11: fault: there is no directory none;"),
        "{missing}"
    );
    // systemd may make it when the front is started.
    let made = said(
        at,
        "[admin]\naddress = \"unix:/run/no-such-unit/admin.sock\"\n",
    );
    assert!(
        made.contains("warning: there is no directory /run/no-such-unit;"),
        "{made}"
    );
}

#[test]
fn the_directory_of_challenges_is_looked_for() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let listener = "[[listen]]\naddress = \"127.0.0.1:0\"\nacme_webroot = \"acme\"\n";
    let missing = said(at, listener);
    let warning = "6:11: warning: `acme_webroot` of this listener is no directory, so every challenge is \
                   answered 404: acme; create it";
    assert!(missing.contains(warning), "{missing}");
    fs::create_dir(at.join("acme")).unwrap();
    assert_eq!(said(at, listener), "");
}

#[test]
fn the_program_of_records_must_run() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let hook = at.join("hook");
    let tables = format!(
        "[tls.www.acme]\nnames = \"*.a.test\"\nterms_agreed = true\nstate_dir = \"acme\"\ndns_hook = \"{}\"\n",
        hook.display()
    );
    let warning = "warning: this user cannot run hook, the program of `dns_hook`; ";
    let missing = said(at, &tables);
    assert!(missing.contains(warning), "{missing}");
    fs::create_dir(&hook).unwrap();
    assert!(said(at, &tables).contains(warning), "a directory");
    fs::remove_dir(&hook).unwrap();
    fs::write(&hook, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&hook, Permissions::from_mode(0o600)).unwrap();
    assert!(said(at, &tables).contains(warning), "not executable");
    fs::set_permissions(&hook, Permissions::from_mode(0o700)).unwrap();
    let runs = said(at, &tables);
    assert!(!runs.contains(warning), "{runs}");
}

#[test]
fn a_profile_without_a_certificate_has_its_other_files_read() {
    let directory = tempfile::tempdir().unwrap();
    let trust = "client_certificate = \"required\"\nclient_ca = \"none-ca.pem\"\nclient_crl = \"none-crl.pem\"\n";
    let half = "[[tls.www.certificate]]\nchain = \"www.pem\"\n";
    for certificate in ["", half] {
        let said = said(
            directory.path(),
            &format!("[tls.www]\n{trust}{certificate}"),
        );
        let faults: Vec<&str> = said.lines().filter(|it| it.contains(": fault: ")).collect();
        assert_eq!(faults.len(), 3, "{said}");
        for file in ["none-ca.pem", "none-crl.pem"] {
            assert!(faults.iter().any(|it| it.contains(file)), "{said}");
        }
    }
}

#[test]
fn relative_paths_of_sockets_start_from_the_directory_of_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    let text = "[[listen]]\naddress = \"unix:front.sock\"\nname = \"inside\"\n\
                [admin]\naddress = \"unix:admin.sock\"\n\
                [upstream.a]\n[[upstream.a.backend]]\nurl = \"ajp+unix:ajp.sock\"\n\
                [[route]]\nlisten = [\"unix:front.sock\"]\nupstream = \"a\"\n";
    let path = at.join("catamaran.toml");
    fs::write(&path, text).unwrap();
    let config = load(&path).unwrap_or_else(|error| panic!("{error}")).config;
    let socket = |name: &str| ListenAddress::Unix(at.join(name));
    assert_eq!(config.listeners[0].address, socket("front.sock"));
    assert_eq!(config.admin.unwrap().addresses, [socket("admin.sock")]);
    let address = Address::Unix(at.join("ajp.sock"));
    assert_eq!(config.upstreams[0].backends[0].address, address);
    assert_eq!(config.routes[0].listen, [0]);
    let long = format!("[[listen]]\naddress = \"unix:{}.sock\"\n", "x".repeat(100));
    let said = said(at, &long);
    assert!(said.contains("too long for a socket"), "{said}");
}

#[test]
fn the_directory_of_files_must_be_one_that_can_be_served() {
    let top = tempfile::tempdir().unwrap();
    let at = top.path().join("conf");
    fs::create_dir_all(at.join("www")).unwrap();
    fs::create_dir_all(at.join("war/WEB-INF")).unwrap();
    fs::create_dir(at.join("keys")).unwrap();
    fs::write(at.join("keys/site.key"), "").unwrap();
    symlink("www", at.join("link")).unwrap();
    symlink("/", at.join("everything")).unwrap();
    for (files, expected) in [
        ("www", ""),
        ("link", ""),
        ("none", "fault: there is no directory none; create it"),
        ("catamaran.toml", "fault: catamaran.toml is no directory;"),
        ("/", "fault: `files` is `/`, every file of the machine;"),
        (
            "everything",
            "fault: `files` is `/`, every file of the machine;",
        ),
        (
            ".",
            "has this configuration in it, which clients could read",
        ),
        (
            "..",
            "has this configuration in it, which clients could read",
        ),
        ("war", "warning: war is an exploded WAR"),
        ("keys", "warning: keys has the key of a certificate in it"),
        ("/etc", "warning: /etc is a directory of the system"),
    ] {
        let said = said(
            &at,
            &format!("[[route]]\npath = \"/f\"\nfiles = \"{files}\"\n"),
        );
        assert_eq!(said.is_empty(), expected.is_empty(), "{files}: {said}");
        assert!(said.contains(expected), "{files}: {said}");
    }
}

#[test]
fn a_directory_of_files_is_relative_to_the_configuration() {
    let directory = tempfile::tempdir().unwrap();
    let at = directory.path();
    fs::create_dir(at.join("www")).unwrap();
    let path = at.join("catamaran.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nfiles = \"www\"\n\
                index = []\nfallback = \"app.html\"\nlinks = [\"other\"]\nhide = \"*.map\"\n\
                cache_control = \"no-cache\"\n\
                cache_control_types = { \"text/*\" = \"off\", \"text/css\" = \"max-age=1\" }\n\
                charset = \"off\"\ntypes = { GLB = \"model/glb\" }\n\
                precompressed = \"zstd\"\n";
    fs::write(&path, text).unwrap();
    let loaded = load(&path).unwrap();
    let route = &loaded.config.routes[0];
    assert_eq!(route.target, RouteTarget::Files);
    let files = route.rules.as_ref().unwrap().files.clone().unwrap();
    let mut expected = FilesConfig::new(at.join("www"));
    expected.index.clear();
    expected.fallback = Some("app.html".to_owned());
    expected.links = Links::Also(vec![at.join("other")]);
    expected.hide = vec!["*.map".to_owned()];
    expected.cache_control = Some(http::HeaderValue::from_static("no-cache"));
    let pattern = |text: &str| MediaPattern::parse(text).unwrap();
    let short = http::HeaderValue::from_static("max-age=1");
    expected.cache_control_types = vec![
        (pattern("text/css"), Some(short)),
        (pattern("text/*"), None),
    ];
    expected.charset = None;
    let glb = http::HeaderValue::from_static("model/glb");
    expected.types.insert("glb".to_owned(), glb);
    expected.precompressed = vec![Coding::Zstd];
    assert_eq!(*files, expected);
}
