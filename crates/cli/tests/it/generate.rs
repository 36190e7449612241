//! Man pages and completions: they have every command, and the programs that read them take them.

use std::fs;
use std::process::Command;

use super::outcome;

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let (code, _, stderr) = outcome(&["generate", "man", path]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    for (page, expected) in [
        ("catamaran.1", "catamaran\\-doctor"),
        ("catamaran-serve.1", "SIGHUP"),
        ("catamaran-doctor.1", "\\-\\-dial"),
        ("catamaran-lab-run.1", "\\-\\-resume"),
    ] {
        let text = fs::read_to_string(folder.path().join(page)).unwrap();
        assert!(text.contains(expected), "{page}: {text}");
    }
    // What is not for users has no page.
    assert!(!folder.path().join("catamaran-generate.1").exists());
    assert!(!folder.path().join("catamaran-lab-extra.1").exists());
    let page = folder.path().join("catamaran-serve.1");
    let shown = Command::new("man")
        .args(["--local-file", "--warnings"])
        .arg(page)
        .output();
    let shown = shown.expect("man is installed");
    assert_eq!(String::from_utf8_lossy(&shown.stderr), "");
    assert!(String::from_utf8_lossy(&shown.stdout).contains("catamaran-serve"));
}

#[test]
fn bash_completes_a_command() {
    let (code, script, _) = outcome(&["completions", "bash"]);
    assert_eq!(code, Some(0));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("catamaran");
    fs::write(&path, script).unwrap();
    let ask = "source \"$0\"; COMP_WORDS=(catamaran dr); COMP_CWORD=1; \
               _catamaran catamaran dr catamaran; echo \"${COMPREPLY[*]}\"";
    let output = Command::new("bash")
        .args(["-c", ask])
        .arg(path)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "drain\n");
}

#[test]
fn other_shells_have_the_command_too() {
    for shell in ["zsh", "fish"] {
        let (code, script, _) = outcome(&["completions", shell]);
        assert_eq!(code, Some(0));
        assert!(script.contains("drain"), "{shell}");
    }
}
