//! What is said of faulty files: `tests/faults.txt` has them, each with the exact words.

use std::path::Path;

use catamaran_config::{LoadError, load, parse};
use catamaran_testkit::Cases;

/// The faulty files.
fn cases() -> Cases {
    Cases::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/faults.txt"))
}

#[test]
fn each_fault_is_said_in_its_words() {
    cases().check(|case| {
        let said = match parse(&case.name, &case.text) {
            Ok(loaded) => loaded.report.to_string(),
            Err(report) => report.to_string(),
        };
        assert!(!said.is_empty(), "{} is fine", case.name);
        assert!(!said.contains("hunter2"), "a secret is shown:\n{said}");
        said
    });
}

#[test]
fn warnings_do_not_keep_a_file_from_being_used() {
    let loaded = parse("x.toml", &cases().case("warnings.toml").text).unwrap();
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
