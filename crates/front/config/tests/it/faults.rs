//! What is said of faulty files: each `tests/faults/NAME.toml` has the exact words in `NAME.txt`.

use std::path::Path;

use catamaran_config::{LoadError, load, parse};

/// Compares what is said of a file with its golden text; returns it.
fn check(name: &str) -> String {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
    let text =
        std::fs::read_to_string(directory.join(format!("{name}.toml"))).expect("a readable file");
    let expected =
        std::fs::read_to_string(directory.join(format!("{name}.txt"))).unwrap_or_default();
    let said = match parse(&format!("{name}.toml"), &text) {
        Ok(loaded) => loaded.report.to_string(),
        Err(report) => report.to_string(),
    };
    assert!(
        said == expected,
        "{name}.txt differs; now it is said:\n{said}"
    );
    assert!(!said.contains("hunter2"), "a secret is shown:\n{said}");
    said
}

/// A test for each file, so that every one that differs is seen at once.
macro_rules! golden {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            let said = check(stringify!($name));
            assert!(!said.is_empty());
        })*

        #[test]
        fn no_file_is_forgotten() {
            let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults");
            let mut files: Vec<_> = std::fs::read_dir(directory)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
                .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
                .collect();
            files.sort();
            let mut named = vec![$(stringify!($name)),*];
            named.sort();
            assert_eq!(files, named);
        }
    };
}

golden!(
    addresses,
    admin,
    admin_clash,
    attributes,
    attributes_warnings,
    backend_tls,
    caches,
    caches_unused,
    compress,
    empty,
    error_pages,
    files,
    foreign,
    later,
    line_ends,
    listen,
    listeners,
    listeners_warnings,
    mcmp,
    members,
    odd_text,
    policy,
    probe,
    proxy,
    recognised,
    redirects,
    route,
    route_rewritten,
    route_rules,
    sent_host,
    shapes,
    sticky,
    sticky_warnings,
    syntax,
    tls,
    unasked,
    unknown,
    upstream,
    values,
    warnings,
);

#[test]
fn warnings_do_not_keep_a_file_from_being_used() {
    let loaded = parse("x.toml", include_str!("../faults/warnings.toml")).unwrap();
    assert_eq!(loaded.report.faults(), 0);
    assert_eq!(loaded.report.warnings(), loaded.report.findings().len());
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("none.toml");
    let message = load(&path).unwrap_err().to_string();
    assert!(message.starts_with(&format!("cannot read {}: No such file", path.display())));
    std::fs::write(&path, b"a = 1\nb = \"\xff\"\n").unwrap();
    assert!(
        load(&path)
            .unwrap_err()
            .to_string()
            .ends_with("line 2 is not UTF-8")
    );
    std::fs::write(&path, "#".repeat((16 << 20) + 1)).unwrap();
    assert!(
        load(&path)
            .unwrap_err()
            .to_string()
            .ends_with("it is larger than 16777216 bytes")
    );
    assert!(matches!(
        load(directory.path()),
        Err(LoadError::Read { .. })
    ));
}

#[test]
fn a_file_of_many_routes_is_read() {
    let mut text = String::from(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[upstream.app.backend]]\nurl = \"http://127.0.0.1:1\"\n",
    );
    for number in 0..20_000 {
        text += &format!(
            "[[route]]\nhost = \"h{number}.example.org\"\nupstream = \"app\"\n# {number:040}\n"
        );
    }
    assert!(text.len() > 1 << 20);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.toml");
    std::fs::write(&path, text).unwrap();
    assert_eq!(load(&path).unwrap().config.routes.len(), 20_000);
}
