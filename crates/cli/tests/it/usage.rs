//! Arguments that ask for what cannot be: exit code 2 and a line that says what to do.

use super::outcome;

fn check(arguments: &[&str], said: &str) {
    let (code, stdout, stderr) = outcome(arguments);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(2), ""),
        "{arguments:?}: {stderr}"
    );
    assert!(stderr.contains(said), "{arguments:?}: {stderr}");
}

#[test]
fn serve() {
    for (arguments, said) in [
        (&["serve"][..], "--config <FILE>"),
        (&["serve", "--listen", "127.0.0.1:0"], "--upstream <URL>"),
        (
            &["serve", "--upstream", "ajp://127.0.0.1:8009"],
            "--listen <ADDRESS>",
        ),
        (
            &[
                "serve",
                "--config",
                "x",
                "--listen",
                "127.0.0.1:0",
                "--upstream",
                "ajp://a:1",
            ],
            "cannot be used with",
        ),
        (
            &["serve", "--listen=localhost:80", "--upstream=ajp://a:1"],
            "has the name `localhost`; write an address, such as 127.0.0.1:80",
        ),
        (
            &["serve", "--listen", "127.0.0.1:80", "--upstream", "ajp://a"],
            "has no port; write ajp://a:8009",
        ),
        (
            &["serve", "--listen=127.0.0.1:80", "--upstream=gopher://x"],
            "has the unknown scheme `gopher`",
        ),
        (&["serve", "--no-such-option"], "unexpected argument"),
        (
            &[
                "serve",
                "--listen=127.0.0.1:80",
                "--listen=127.0.0.1:80",
                "--upstream=ajp://a:1",
            ],
            "error: --listen has an address twice; remove one",
        ),
        (
            &[
                "serve",
                "--listen=127.0.0.1:0",
                "--upstream=ajp://a:1",
                "--upstream=ajp://a:1",
            ],
            "error: --upstream ajp://a:1 is there twice; remove one",
        ),
        (
            &["serve", "--config", "x", "--admin", "unix:"],
            "needs the path of a socket after the colon",
        ),
        (&["serve", "--config", "x", "--workers", "0"], "--workers"),
        (
            &["serve", "--config", "x", "--access-log", ""],
            "write a path, \"-\"",
        ),
        (
            &["serve", "--config", "x", "--workers", "1025"],
            "must be a number from 1 to 1024",
        ),
    ] {
        check(arguments, said);
    }
}

#[test]
fn other_commands() {
    for (arguments, said) in [
        (&["check"][..], "<FILE>"),
        (
            &["check", "a.toml", "--config", "b.toml"],
            "cannot be used with",
        ),
        (
            &["serve", "--config", "x", "--secret-file", "y"],
            "--upstream <URL>",
        ),
        (&["log"], "reopen"),
        (&["check", "--config", "x", "--log-level", "loud"], "trace"),
        (&["app"], "--ajp <ADDRESS>|--http <ADDRESS>"),
        (
            &["app", "--ajp", "127.0.0.1:0", "--secret", ""],
            "error: --secret is empty",
        ),
        (
            &[
                "app",
                "--ajp",
                "127.0.0.1:0",
                "--secret",
                "a",
                "--secret-file",
                "b",
            ],
            "cannot be used with",
        ),
        (&["app", "--packet-size", "4KiB"], "8192"),
        (&["app", "--max-post-size", "0"], "is no limit"),
        (&["app", "--keep-alive-timeout", "60"], "has no unit"),
        (&["app", "--trusted-peers", "me"], "is no address"),
        (&["app", "--confidential", "admin"], "begin with `/`"),
        (&["app", "--unix-socket-mode", "rw"], "octal"),
        (&["bench"], "there is no URL"),
        (&["sail"], "unrecognized subcommand 'sail'"),
        (&[], "Usage: catamaran"),
    ] {
        check(arguments, said);
    }
}

#[test]
fn a_secret_that_cannot_be_read_is_a_fault() {
    let arguments = [
        "app",
        "--ajp",
        "127.0.0.1:0",
        "--secret-file",
        "/none/ajp.secret",
    ];
    let (code, _, stderr) = outcome(&arguments);
    assert_eq!(code, Some(1));
    let expected = "error: cannot use the secret in /none/ajp.secret: No such file or directory";
    assert!(stderr.starts_with(expected), "{stderr}");
}

#[test]
fn a_secret_without_ajp_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ajp.secret");
    std::fs::write(&path, "a secret\n").unwrap();
    let path = path.to_str().unwrap();
    let http = [
        "serve",
        "--listen=127.0.0.1:0",
        "--upstream=http://a:1",
        "--secret-file",
        path,
    ];
    check(
        &http,
        "error: --secret-file is for AJP, and no --upstream begins with ajp:",
    );
}
