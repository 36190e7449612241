//! Man pages and completions: they have every command, and the programs that read them take them.

use std::fs;
use std::process::Command;

use super::outcome;

#[test]
fn each_command_has_a_man_page() {
    let folder = tempfile::tempdir().expect("a directory");
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

/// What the shell offers for `catamaran dr` and the key Tab.
fn offered(shell: &str, ask: &str) -> String {
    let (code, script, _) = outcome(&["completions", shell]);
    assert_eq!(code, Some(0));
    let folder = tempfile::tempdir().expect("a directory");
    // zsh finds it by this name.
    let path = folder.path().join("_catamaran");
    fs::write(&path, script).expect("a file");
    let output = Command::new(shell)
        .args(["-c", ask])
        .env("SCRIPT", path)
        .env("FOLDER", folder.path())
        .env("HOME", folder.path())
        .env("TERM", "dumb")
        .output()
        .unwrap_or_else(|error| panic!("{shell}, of `cargo xtask needs`: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn bash_completes_a_command() {
    let ask = "source \"$SCRIPT\"; COMP_WORDS=(catamaran dr); COMP_CWORD=1; \
               _catamaran catamaran dr catamaran; echo \"${COMPREPLY[*]}\"";
    assert_eq!(offered("bash", ask), "drain\n");
}

#[test]
fn fish_completes_a_command() {
    let said = offered(
        "fish",
        "source $SCRIPT; complete --do-complete 'catamaran dr'",
    );
    // Behind the command is what it is for.
    let commands = said.lines().filter_map(|line| line.split('\t').next());
    assert_eq!(commands.collect::<Vec<_>>(), ["drain"], "{said}");
}

/// zsh completes in a terminal alone: `zpty` is one. The widget prints the line once Tab has completed it.
#[test]
fn zsh_completes_a_command() {
    let said = offered("zsh", ZSH);
    assert!(said.contains("<catamaran drain>"), "{said:?}");
}

const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
tell() { zpty -w shell "$1"; }
tell "PS1= ; fpath=($FOLDER \$fpath); autoload -U compinit; compinit -u -D"
tell 'shown() { print -r -- "<${BUFFER% }>"; exit }; zle -N shown; bindkey "^X" shown; print -r ready'
zpty -r -m shell said '*ready*ready*'
zpty -n -w shell $'catamaran dr\t\x18'
zpty -r -m shell said '*<*>*'
print -r -- "$said"
"#;
