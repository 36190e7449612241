//! `docs/log.md` names every token that the code can write as a reason, and no other.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_reason_is_on_the_page_and_no_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let page = fs::read_to_string(root.join("docs/log.md")).unwrap();
    let (_, reasons) = page.split_once("## Reasons").expect("the section");
    let rows = reasons.lines().filter_map(|line| line.strip_prefix("| `"));
    let described: BTreeSet<String> = rows
        .filter_map(|row| Some(row.split_once('`')?.0.to_owned()))
        .collect();
    let mut written = BTreeSet::new();
    let mut everything = String::new();
    for name in CRATES {
        for file in sources(&root.join("crates").join(name).join("src")) {
            let text = fs::read_to_string(file).unwrap();
            let text = text
                .split("#[cfg(test)]\nmod tests")
                .next()
                .unwrap_or_default();
            everything.push_str(text);
            written.extend(by_calls(text));
            if text.contains("culprit")
                || matches!(name, "wire/ajp" | "wire/http1" | "front/upstream")
            {
                written.extend(by_functions(text));
            }
        }
    }
    let others = [
        "backend",
        "client",
        "front",
        "up",
        "out",
        "suspect",
        "ramping",
        "verifying",
    ];
    let missing: Vec<_> = written
        .iter()
        .filter(|token| !described.contains(*token) && !others.contains(&token.as_str()))
        .collect();
    assert!(missing.is_empty(), "docs/log.md lacks {missing:?}");
    let unknown: Vec<_> = described
        .iter()
        .filter(|token| !everything.contains(&format!("\"{token}\"")))
        .collect();
    assert!(
        unknown.is_empty(),
        "no code writes {unknown:?} of docs/log.md"
    );
    assert!(described.len() > 100, "only {} tokens", described.len());
}

/// The files of a crate, without its tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found.retain(|path| !path.components().any(|part| part.as_os_str() == "tests"));
    found
}

/// The tokens that calls give.
fn by_calls(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for call in CALLS {
        for (at, _) in text.match_indices(call) {
            let rest = &text[at + call.len()..];
            let arguments = rest.split([';', '{', '}']).next().unwrap_or_default();
            let first = literals(arguments).next();
            found.extend(first.filter(|it| arguments.find(it.as_str()).unwrap_or(999) < 140));
        }
    }
    found
}

/// The tokens that functions of the name `token` return.
fn by_functions(text: &str) -> BTreeSet<String> {
    let bodies = text.match_indices("fn token(").map(|(at, _)| &text[at..]);
    bodies
        .filter_map(|body| body.split("\n    }").next())
        .flat_map(literals)
        .collect()
}

/// Literals of lower-case letters, digits and dashes.
fn literals(text: &str) -> impl Iterator<Item = String> {
    let is_token = |text: &&str| {
        let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !text.is_empty() && text.bytes().all(good)
    };
    let parts = text.split('"').skip(1).step_by(2);
    parts.filter(is_token).map(str::to_owned)
}

const CRATES: [&str; 6] = [
    "wire/ajp",
    "front/proxy",
    "wire/http2",
    "wire/http1",
    "wire/transport",
    "front/upstream",
];

/// Calls that give a reason its token, as they begin.
const CALLS: [&str; 9] = [
    "Reason::new(",
    "Failure::client(",
    "Failure::new(",
    "Self::new(Culprit::",
    "Decision::Answer(",
    "answer_request(",
    "early(",
    "misdirected(",
    "unavailable(",
];
