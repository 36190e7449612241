//! `lab judge`, as a person uses it.

use std::process::Command;

use super::outcome;

#[test]
fn a_published_pair_is_judged() {
    let names = ["004-off", "004-on"].map(|name| format!("{PUBLISHED}/{name}.txt"));
    let (code, stdout, stderr) = outcome(&["lab", "judge", &names[0], &names[1]]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("004-on.txt: no comparison"), "{stdout}");
    assert!(
        stdout.contains("  no claim  unequal-load: Connections were to be kept in "),
        "{stdout}"
    );
    assert!(
        stdout.contains("The maxima differ by a factor of 14"),
        "{stdout}"
    );
}

#[test]
fn a_judgement_as_json() {
    let name = format!("{PUBLISHED}/002-bio-1.txt");
    let (code, stdout, stderr) = outcome(&["lab", "judge", "--json", &name]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let report: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["schema"], "catamaran-judge/1");
    let found = &report["judgements"][0]["found"][0];
    assert_eq!(
        (&found["gate"], &found["effect"]),
        (&"status".into(), &"void".into())
    );
}

#[test]
fn what_is_no_report_and_what_is_not_there() {
    let readme = format!("{PUBLISHED}/README.md");
    let (code, stdout, stderr) = outcome(&["lab", "judge", &readme]);
    assert_eq!((code, stdout.as_str()), (Some(3), ""));
    assert!(
        stderr.contains("README.md: this is no text of ab 1.3 to 2.3, wrk 2 to 4 with wrk2, hey"),
        "{stderr}"
    );
    let (code, _, stderr) = outcome(&["lab", "judge", "/nonexistent/run.txt"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("cannot read /nonexistent/run.txt"),
        "{stderr}"
    );
    let (code, _, stderr) = outcome(&["lab", "judge"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("<FILE>"), "{stderr}");
}

#[test]
fn results_that_cannot_be_compared_are_no_verdict() {
    let result = |name: &str| {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/lab");
        format!("{docs}/{name}/result.json")
    };
    for (other, said) in [
        (result("cache"), "different experiments"),
        ("/nonexistent/result.json".to_owned(), "/nonexistent"),
    ] {
        let (code, _, stderr) = outcome(&["lab", "compare", &result("front-page"), &other]);
        assert_eq!(code, Some(2), "{stderr}");
        assert!(stderr.contains(said), "{stderr}");
    }
}

#[test]
fn experiments_are_listed_and_checked() {
    let (code, stdout, stderr) = outcome(&["lab", "list"]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("45 claims, 22 cells, 264 runs"), "{stdout}");
    let (code, stdout, _) = outcome(&["lab", "list", "--check"]);
    assert_eq!(code, Some(0));
    assert!(stdout.starts_with("keepalive: fine (22 cells)"), "{stdout}");
}

#[test]
fn faults_of_a_file_come_all_at_once_with_their_lines() {
    let file = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../lab/lab/fixtures/keepalive.toml"
    );
    let text = std::fs::read_to_string(file).unwrap();
    let text = text
        .replace("rounds = 12", "rounds = 61")
        .replace("target = \"httpd\"", "target = \"apache\"");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("own.toml");
    std::fs::write(&file, text).unwrap();
    let name = file.display().to_string();
    for arguments in [
        &["lab", "list", "--check", &name][..],
        &["lab", "run", &name],
    ] {
        let (code, stdout, stderr) = outcome(arguments);
        assert_eq!((code, stdout.as_str()), (Some(1), ""));
        for fault in [
            "own.toml:47:1: fault: rounds = 61",
            "own.toml:20:1: fault: no target `apache`",
        ] {
            assert!(stderr.contains(fault), "{stderr}");
        }
    }
    let (code, _, stderr) = outcome(&["lab", "run", "keepalife"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("there are keepalive"), "{stderr}");
    let (code, _, stderr) = outcome(&["lab", "report", &name]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("own.toml"), "{stderr}");
}

#[test]
fn too_few_open_files_are_said_before_anything_is_started() {
    let command = format!(
        "ulimit -n 64; exec {} lab run keepalive --out /nonexistent/x",
        env!("CARGO_BIN_EXE_catamaran")
    );
    let output = Command::new("sh").args(["-c", &command]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("gate files: 64 open files are allowed, "),
        "{said}"
    );
    let needed = " needed: connections of the largest cell";
    assert!(said.contains(needed), "{said}");
}

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/lab/published");
