//! `check`, and the same faults in the way of `serve`.

use std::path::Path;
use std::process::Stdio;

use catamaran_testkit::Cases;

use super::{catamaran, outcome, outcome_with};

#[test]
fn a_file_without_faults() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/tomcat.toml");
    let path = path.to_str().unwrap();
    let (code, stdout, stderr) = outcome(&["check", "--config", path]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert_eq!(
        stdout,
        format!("{path}: fine (2 listeners, 3 upstreams, 4 routes)\n")
    );
}

#[test]
fn faults_are_shown_and_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("faulty.toml");
    std::fs::write(&path, FAULTY).unwrap();
    let path = path.to_str().unwrap();
    let expected = format!(
        "{path}:1:1: fault: [[listen]] lacks `address`; write address = \"127.0.0.1:8080\"
    1 | [[listen]]
      | ^^^^^^^^^^
{path}:2:1: fault: [[listen]] has no key `adress`; did you mean `address`?
    2 | adress = \"127.0.0.1:0\"
      | ^^^^^^
{path}:4:12: fault: there is no upstream `tomcat`; add [upstream.tomcat] with a \
         [[upstream.tomcat.backend]]
    4 | upstream = \"tomcat\"
      |            ^^^^^^^^
{path}: 3 faults
"
    );
    for command in ["check", "serve"] {
        let (code, stdout, stderr) = outcome(&[command, "--config", path]);
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        assert_eq!(stderr, expected);
    }
}

#[test]
fn warnings_are_shown_and_the_file_is_usable() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[upstream.a]\n[[upstream.a.backend]]\n\
                url = \"ajp://10.0.0.1:8009\"\n[[route]]\nupstream = \"a\"\n";
    std::fs::write(&path, text).unwrap();
    let (code, stdout, stderr) = outcome(&["check", "--config", path.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.ends_with("c.toml: usable, with 1 warning (1 listener, 1 upstream, 1 route)\n"),
        "{stdout}"
    );
    assert!(stderr.contains("c.toml:5:7: warning: AJP goes to 10.0.0.1:8009 without a secret"));
}

#[test]
fn a_missing_file_is_named() {
    for command in ["check", "serve"] {
        let (code, _, stderr) = outcome(&[command, "--config", "/none/c.toml"]);
        assert_eq!(code, Some(1));
        let expected = "error: cannot read /none/c.toml: No such file or directory (os error 2)\n";
        assert_eq!(stderr, expected);
    }
}

#[test]
fn a_closed_output_is_no_fault() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/tomcat.toml");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = catamaran(&["check", "--config", path.to_str().unwrap()])
        .stdout(Stdio::from(writer))
        .output()
        .unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn the_file_may_be_named_without_a_flag_or_come_from_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    std::fs::write(&path, FINE).unwrap();
    let path = path.to_str().unwrap();
    let counts = "fine, but each request is answered with an error: no route leads anywhere \
                  (1 listener, 0 upstreams, 1 route)\n";
    let (code, stdout, _) = outcome(&["check", path]);
    assert_eq!((code, stdout), (Some(0), format!("{path}: {counts}")));
    let (code, stdout, stderr) = outcome_with(&["check", "-"], FINE);
    assert_eq!(
        (code, stdout),
        (Some(0), format!("standard input: {counts}")),
        "{stderr}"
    );
    let (code, _, stderr) = outcome_with(&["check", "-"], FAULTY);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("standard input:2:1: fault: [[listen]] has no key `adress`"),
        "{stderr}"
    );
    assert!(stderr.ends_with("standard input: 3 faults\n"), "{stderr}");
}

#[test]
fn findings_are_told_in_json() {
    let (code, stdout, stderr) = outcome_with(&["check", "--json", "-"], FAULTY);
    assert_eq!((code, stderr.as_str()), (Some(1), ""));
    let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&said["usable"], &said["faults"]),
        (&false.into(), &3.into())
    );
    let second = &said["findings"][1];
    let expected = serde_json::json!({
        "severity": "fault", "file": "standard input", "line": 2, "column": 1,
        "message": "[[listen]] has no key `adress`", "hint": "did you mean `address`?",
    });
    assert_eq!(second, &expected);
    let (code, stdout, _) = outcome_with(&["check", "--json", "-"], FINE);
    let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &said["counts"]["routes"]), (Some(0), &1.into()));
    let (code, stdout, _) = outcome(&["check", "--json", "/none/c.toml"]);
    let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &said["findings"][0]["line"]),
        (Some(1), &serde_json::Value::Null)
    );
}

#[test]
fn a_file_of_another_server_is_refused() {
    let nginx = "http {\n  server {\n    listen 80;\n  }\n}\n";
    let (code, _, stderr) = outcome_with(&["check", "-"], nginx);
    assert_eq!(code, Some(1));
    assert!(
        stderr.starts_with("standard input:1:6: fault: syntax: "),
        "{stderr}"
    );
    assert!(stderr.ends_with("standard input: 5 faults\n"), "{stderr}");
}

/// The odd files of the configuration's own tests: as a file, from standard input, and as JSON they are judged alike.
#[test]
fn a_file_is_judged_alike_in_each_form() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../front/config/tests");
    let directory = tempfile::tempdir().unwrap();
    for (kind, code, usable) in [("odd_faulty.txt", 1, false), ("odd_fine.txt", 0, true)] {
        for case in Cases::read(tests.join(kind)).iter() {
            // Its certificate is made by the configuration's own tests.
            if case.text.contains("www.key") {
                continue;
            }
            let path = directory.path().join(&case.name);
            std::fs::write(&path, &case.text).unwrap();
            let (name, text) = (path.to_str().unwrap(), &case.text);
            assert_eq!(outcome(&["check", name]).0, Some(code), "{name}");
            assert_eq!(outcome_with(&["check", "-"], text).0, Some(code), "{name}");
            let (got, stdout, _) = outcome_with(&["check", "--json", "-"], text);
            let said: serde_json::Value = serde_json::from_str(&stdout).unwrap();
            assert_eq!(
                (got, &said["usable"]),
                (Some(code), &usable.into()),
                "{said}"
            );
            let findings = said["findings"].as_array().unwrap();
            assert_eq!(findings.is_empty(), usable, "{name}: {said}");
            // What is missing is on no line.
            let is_missing = |it: &serde_json::Value| {
                let message = it["message"].as_str();
                message.is_some_and(|it| it.starts_with("there is no "))
            };
            let has_line = |it: &serde_json::Value| it["line"].is_u64();
            let placed = |it| has_line(it) || it["severity"] != "fault" || is_missing(it);
            assert!(findings.iter().all(placed), "{name}: {said}");
        }
    }
}

const FINE: &str = "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nstatus = 404\n";

const FAULTY: &str = "[[listen]]\nadress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"tomcat\"\n";
