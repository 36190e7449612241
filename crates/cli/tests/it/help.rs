//! The help of each command, word for word.

use std::path::Path;

use super::outcome;

fn check(arguments: &[&str], expected: &str) {
    let (code, stdout, stderr) = outcome(arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(
        stdout == expected,
        "{arguments:?} differs; now it prints:\n{stdout}"
    );
}

#[test]
fn catamaran() {
    check(&["--help"], include_str!("../help/catamaran.txt"));
}

#[test]
fn bench() {
    check(&["bench", "--help"], include_str!("../help/bench.txt"));
}

#[test]
fn serve() {
    check(&["serve", "--help"], include_str!("../help/serve.txt"));
}

#[test]
fn check_() {
    check(&["check", "--help"], include_str!("../help/check.txt"));
}

#[test]
fn app() {
    check(&["app", "--help"], include_str!("../help/app.txt"));
}

#[test]
fn demo() {
    check(&["demo", "--help"], include_str!("../help/demo.txt"));
}

#[test]
fn lab_up() {
    check(&["lab", "up", "--help"], include_str!("../help/lab-up.txt"));
}

#[test]
fn the_commands_for_a_front_that_runs() {
    for (command, expected) in [
        ("status", include_str!("../help/status.txt")),
        ("drain", include_str!("../help/drain.txt")),
        ("stop", include_str!("../help/stop.txt")),
        ("activate", include_str!("../help/activate.txt")),
        ("probe", include_str!("../help/probe.txt")),
        ("weight", include_str!("../help/weight.txt")),
        ("reset", include_str!("../help/reset.txt")),
        ("reload", include_str!("../help/reload.txt")),
        ("purge", include_str!("../help/purge.txt")),
        ("explain", include_str!("../help/explain.txt")),
        ("import", include_str!("../help/import.txt")),
        ("upgrade", include_str!("../help/upgrade.txt")),
        ("log", include_str!("../help/log.txt")),
        ("certificates", include_str!("../help/certificates.txt")),
        ("doctor", include_str!("../help/doctor.txt")),
    ] {
        check(&[command, "--help"], expected);
    }
}

#[test]
fn help_is_a_command_too() {
    check(&["help"], include_str!("../help/catamaran.txt"));
    check(&["help", "drain"], include_str!("../help/drain.txt"));
    let (code, stdout, _) = outcome(&["help", "bench"]);
    assert_eq!((code, &stdout), (Some(0), &outcome(&["bench", "--help"]).1));
}

/// With the profile that it was built with, whose name its folder has.
#[test]
fn version() {
    let binary = Path::new(env!("CARGO_BIN_EXE_catamaran"));
    let folder = binary.parent().unwrap().file_name().unwrap();
    let profile = match folder.to_str().unwrap() {
        "debug" => "dev",
        name => name,
    };
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!("catamaran {version} ({profile} build)\n");
    for arguments in [&["--version"][..], &["bench", "-V"]] {
        check(arguments, &expected);
    }
}
