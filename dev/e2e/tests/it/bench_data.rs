//! `bench` with data: requests from a file, values from a table, and the faults of both.

use std::fs;

use catamaran_e2e::{App, catamaran};
use catamaran_testkit::Deadline;
use serde_json::Value;

/// Runs `bench` in a directory with these files.
fn bench(files: &[(&str, &str)], words: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    for (name, text) in files {
        fs::write(path(name), text).unwrap();
    }
    let words: Vec<String> = words
        .split(' ')
        .map(|word| word.strip_prefix('@').map_or_else(|| word.to_owned(), path))
        .collect();
    let words: Vec<&str> = ["bench"]
        .into_iter()
        .chain(words.iter().map(String::as_str))
        .collect();
    let mut process = catamaran(&words).unwrap();
    let status = process.wait(Deadline::default()).unwrap();
    let stderr = process.stderr().replace(&path(""), "");
    (status.code(), process.stdout(), stderr)
}

#[test]
fn a_mix_of_requests_over_both_protocols() {
    let app = App::start("epoll", &[]).unwrap();
    for url in [
        format!("http://{}/", app.http()),
        format!("ajp://{}/", app.ajp()),
    ] {
        let files = [("mix.jsonl", REQUESTS), ("sizes.csv", "size\n3\n5\n")];
        let words = format!("--json -k -n 4 --data-file @sizes.csv --requests @mix.jsonl {url}");
        let (code, stdout, stderr) = bench(&files, &words);
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        // Requests 1 and 3 are of the first kind, and have the first row.
        assert_eq!(report["statuses"]["200"], 2, "{report}");
        assert_eq!(report["statuses"]["404"], 2, "{report}");
        let names: Vec<(&Value, &Value)> = report["by_name"]
            .as_array()
            .unwrap()
            .iter()
            .map(|named| (&named["name"], &named["latency"]["count"]))
            .collect();
        let two = Value::from(2);
        assert_eq!(names, [(&"sizes".into(), &two), (&"missing".into(), &two)]);
    }
}

#[test]
fn faults_of_files_name_their_lines() {
    let url = "http://127.0.0.1:9/";
    let csv = "size,name\n3,a\n4\n";
    for (files, words, expected) in [
        (
            [("r.jsonl", "{\"path\":\"/\"}\n{\"path\":5}\n")],
            "--requests-file @r.jsonl",
            "error: r.jsonl, line 2: invalid type: integer `5`, expected a string",
        ),
        (
            [("t.csv", csv)],
            "--data-file @t.csv",
            "error: t.csv, line 3: the row has 1 cells, the first line 2",
        ),
        (
            [("t.csv", "a\n1\n")],
            "--data-file @t.csv -H X:{{csv;b}}",
            "error: request 1 of target 1: {{csv;b}} is no placeholder",
        ),
        (
            [("t.csv", "a,b\n1,2\n")],
            "--data-file @t.csv",
            "error: no request takes a value from the table; write {{csv COLUMN}} where one \
             belongs: its columns are a, b",
        ),
    ] {
        let (code, _, stderr) = bench(&files, &format!("{words} {url}"));
        assert_eq!(code, Some(2), "{words}: {stderr}");
        assert!(stderr.starts_with(expected), "{words}: {stderr}");
    }
}

const REQUESTS: &str = concat!(
    "{\"path\":\"/bytes/{{csv size}}\",\"name\":\"sizes\"}\n",
    "{\"path\":\"/status/404\",\"name\":\"missing\"}\n",
);
