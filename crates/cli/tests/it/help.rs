//! The help of each command, word for word: `tests/help.txt` has it.

use std::path::Path;

use catamaran_testkit::Cases;

use super::outcome;

/// The commands with their help.
pub(super) fn cases() -> Cases {
    Cases::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/help.txt"))
}

/// What is printed with these arguments, which are no fault.
fn printed(arguments: &[&str]) -> String {
    let (code, stdout, stderr) = outcome(arguments);
    assert_eq!((code, stderr.as_str()), (Some(0), ""), "{arguments:?}");
    stdout
}

#[test]
fn each_command_has_its_help() {
    cases().check(|case| {
        let words: Vec<&str> = case.text.split_whitespace().collect();
        printed(&words[1..])
    });
}

#[test]
fn help_is_a_command_too() {
    let cases = cases();
    assert_eq!(printed(&["help"]), cases.case("catamaran").said);
    assert_eq!(printed(&["help", "drain"]), cases.case("drain").said);
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
        assert_eq!(printed(arguments), expected);
    }
}
