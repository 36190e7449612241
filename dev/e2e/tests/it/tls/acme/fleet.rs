//! Two machines with a directory in common, of which one stands still while it orders.

use std::fs;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{Front, binary};
use catamaran_testkit::{Deadline, Signal};
use serde_json::Value;

use super::{
    config, dns_hook_that_waits, forget_pause, orders_and_certificates, site_with,
    wait_for_no_records, wait_for_record,
};

/// A front as on another machine: its kernel was booted at another time, and this lock excludes nobody from there.
fn front_elsewhere(config: &str, lock: &Path) -> Front {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("catamaran.toml"), config).unwrap();
    let script = "echo elsewhere > boot; touch lock; chmod 600 lock; mount --bind lock \"$1\"; \
                  mount --bind boot /proc/sys/kernel/random/boot_id; \
                  exec \"$0\" serve --config catamaran.toml";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-ec", script])
        .arg(binary().unwrap())
        .arg(lock)
        .current_dir(folder.path());
    Front::with_command(&mut command, folder).unwrap()
}

fn read_json(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
fn one_that_stood_still_leaves_its_order_to_the_machine_that_took_over() {
    let mut site = site_with(&[], |pebble, state, url| {
        let hook = dns_hook_that_waits(pebble, state);
        let keys = format!(
            "challenge = \"dns-01\"\ndns_hook = [\"/bin/sh\", \"{}\", \"own\"]\nterms_agreed",
            hook.display()
        );
        config(pebble, state, "\"a.test\"", url).replace("terms_agreed", &keys)
    });
    wait_for_record(site.state.path());
    site.front.process().signal(Signal::Stop).unwrap();
    let folder = site.folder().join("a.test");
    let owner_file = folder.join("owner.json");
    // Its ten minutes are over.
    let mut owner = read_json(&owner_file);
    owner["until"] = 0.into();
    fs::write(&owner_file, owner.to_string()).unwrap();
    forget_pause(&folder.join("state.json"));

    let asked = format!("\"{}\"", site.pebble.challenges());
    let config_elsewhere = site
        .config
        .replace("/dns-hook-that-waits", "/dns-hook")
        .replace(&asked, "\"127.0.0.1:0\"");
    let second = front_elsewhere(&config_elsewhere, &folder.join("lock"));
    let mut first = std::mem::replace(&mut site.front, second);
    site.wait_for("a.test");
    assert_eq!(read_json(&owner_file)["boot"], "elsewhere");
    wait_for_no_records(&folder);
    // After the certificate it asks when to renew it, and is done.
    let is_done = || {
        let state = read_json(&folder.join("state.json"));
        let has_asked = state["order"].is_null() && state["ask_window_at"] != 0;
        has_asked.then_some(())
    };
    Deadline::default().poll("the second one", is_done).unwrap();
    let stored = || {
        let files = ["state.json", "next.pem", "current/chain.pem"];
        files.map(|file| fs::read_to_string(folder.join(file)).unwrap())
    };
    let stored_by_second = stored();

    // The hook of the first one ends, and what it has begun is another's.
    fs::write(site.state.path().join("go"), "").unwrap();
    first.process().signal(Signal::Continue).unwrap();
    first
        .wait_for_log("a process on another machine has taken over to order")
        .unwrap();
    first.wait_for_log("another process orders").unwrap();
    let [served_by_second, _] = site.served();
    let _second = std::mem::replace(&mut site.front, first);
    let is_same = || (site.served()[0] == served_by_second).then_some(());
    let same = Deadline::default().poll("the certificate", is_same);
    assert!(same.is_ok(), "{}", site.front.log());
    assert_eq!(site.status("a.test"), "200");
    let told = site.told("a.test");
    assert_eq!(
        (&told["next_attempt"], &told["problem"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(stored(), stored_by_second);
    assert_eq!(read_json(&owner_file)["boot"], "elsewhere");
    assert!(!folder.join("2").exists(), "one certificate is stored");
    let attempts = site.front.metric("catamaran_acme_attempts_total").unwrap();
    assert_eq!(attempts, [0.0, 0.0]);
    let counted = orders_and_certificates(&site.pebble, 1);
    assert_eq!(counted, (1, 1), "{}", site.pebble.log());
    let said = fs::read_to_string(site.state.path().join("said")).unwrap();
    assert_eq!(said.matches(" cleanup ").count(), 1, "{said}");
}
