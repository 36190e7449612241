//! `check`, and the same faults in the way of `serve`.

use std::path::Path;
use std::process::Stdio;

use super::{catamaran, outcome};

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
fn warnings_are_shown_and_fine() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let text = "[[listen]]\naddress = \"127.0.0.1:0\"\n[upstream.a]\n[[upstream.a.backend]]\n\
                url = \"ajp://10.0.0.1:8009\"\n[[route]]\nupstream = \"a\"\n";
    std::fs::write(&path, text).unwrap();
    let (code, stdout, stderr) = outcome(&["check", "--config", path.to_str().unwrap()]);
    assert_eq!(code, Some(0));
    assert!(
        stdout.ends_with("c.toml: fine (1 listener, 1 upstream, 1 route)\n"),
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

const FAULTY: &str = "[[listen]]\nadress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"tomcat\"\n";
