//! Man pages and completions: they have every command, and the programs that read them take them.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use catamaran_testkit::Signal;

use super::outcome;
use super::running::{deadline, start};

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

/// The long names in the help of `bench`.
fn flags_of_bench() -> Vec<String> {
    let cases = super::help::cases();
    let lines = cases.case("bench").said.lines();
    let flag = |line: &str| {
        let name = &line[line.find(" --")? + 3..];
        let end = name.find(|it: char| !it.is_ascii_alphanumeric() && it != '-');
        Some(name[..end.unwrap_or(name.len())].to_owned())
    };
    let flags: Vec<String> = lines
        .filter(|line| line.starts_with("  "))
        .filter_map(flag)
        .collect();
    let has_gate = flags.iter().any(|flag| flag == "fail-if");
    assert!(has_gate && flags.len() > 50, "{flags:?}");
    flags
}

#[test]
fn each_flag_of_bench_is_in_its_man_page_and_in_completions() {
    let folder = tempfile::tempdir().expect("a directory");
    let (code, _, stderr) = outcome(&["generate", "man", folder.path().to_str().unwrap()]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    let page = fs::read_to_string(folder.path().join("catamaran-bench.1")).unwrap();
    let script = |shell| outcome(&["completions", shell]).1;
    let [bash, zsh, fish] = ["bash", "zsh", "fish"].map(script);
    for flag in flags_of_bench() {
        let escaped = flag.replace('-', "\\-");
        assert!(
            page.contains(&format!("\\-\\-{escaped}\\fR")),
            "{flag}: {page}"
        );
        assert!(bash.contains(&format!(" --{flag} ")), "{flag}: {bash}");
        assert!(zsh.contains(&format!("'--{flag}")), "{flag}: {zsh}");
        let in_fish = format!("subcommand bench\" -l {flag} ");
        let with_letter = format!(" -l {flag} -d");
        assert!(
            fish.contains(&in_fish) || fish.contains(&with_letter),
            "{flag}: {fish}"
        );
    }
}

/// What the shell prints for `ask`, which has the script of completions in `$SCRIPT`.
fn offered(shell: &str, ask: &str) -> String {
    let (code, script, _) = outcome(&["completions", shell]);
    assert_eq!(code, Some(0));
    let folder = tempfile::tempdir().expect("a directory");
    // zsh finds it by this name.
    let path = folder.path().join("_catamaran");
    fs::write(&path, script).expect("a file");
    let programs = Path::new(env!("CARGO_BIN_EXE_catamaran")).parent();
    let output = Command::new("sh")
        .args([
            "-c",
            "PATH=\"$PROGRAMS:$PATH\" exec \"$0\" -c \"$1\"",
            shell,
            ask,
        ])
        .env("PROGRAMS", programs.expect("a directory"))
        .env("SCRIPT", path)
        .env("FOLDER", folder.path())
        .env("HOME", folder.path())
        .env("TERM", "dumb")
        .output()
        .expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(
        output.status.code(),
        Some(127),
        "{said}; `cargo xtask needs` installs it"
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What bash offers for a line whose last word is being typed. It divides words at these signs, too.
fn offered_by_bash(line: &str) -> String {
    let words = line.replace('=', " = ").replace(':', " : ");
    let last = words.split(' ').count() - 1;
    let ask = format!(
        "source \"$SCRIPT\"; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=({words}); COMP_CWORD={last}; \
         f=$(complete -p catamaran); f=${{f#*-F }}; ${{f%% *}} catamaran \"${{COMP_WORDS[$COMP_CWORD]}}\" \
         \"${{COMP_WORDS[$COMP_CWORD-1]}}\"; echo \"${{COMPREPLY[*]}}\""
    );
    offered("bash", &ask)
}

/// Asks until the answer comes: nothing is offered where a busy machine has the front answer after a second.
fn wait_for_offer(what: &str, is_offered: impl FnMut() -> Option<()>) {
    deadline().poll(what, is_offered).expect("an offer");
}

#[test]
fn shells_offer_the_backends_of_the_front_that_runs() {
    let folder = tempfile::tempdir().expect("a directory");
    let socket = folder.path().join("admin.sock");
    let file = folder.path().join("catamaran.toml");
    let backend = |name| {
        format!("[[upstream.tomcat.backend]]\nname = \"{name}\"\nurl = \"ajp://127.0.0.1:1\"\n")
    };
    let text = format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n[[route]]\nupstream = \"tomcat\"\n[upstream.tomcat]\n\
         sticky = \"off\"\n{}{}{}[admin]\naddress = \"unix:{}\"\n",
        backend("blue"),
        backend("green"),
        backend("red:1"),
        socket.display()
    );
    fs::write(&file, text).expect("a file");
    let mut front = start(&["serve", "--config", file.to_str().unwrap()]);
    let admin = |line: &str| line.contains("admin on").then_some(());
    front.wait_for_line("its admin socket", admin).unwrap();
    let line = format!("catamaran drain --admin=unix:{} tomcat/", socket.display());
    let offered_behind = |text: &str| offered_by_bash(&format!("{line}{text}"));
    for (text, expected) in [
        ("", "tomcat/blue tomcat/green tomcat/red:1\n"),
        ("b", "tomcat/blue\n"),
        // bash puts it behind the last colon.
        ("red:", "1\n"),
        ("blue:", "\n"),
    ] {
        let is_offered = || (offered_behind(text) == expected).then_some(());
        wait_for_offer(expected, is_offered);
    }
    let ask = format!("source $SCRIPT; complete --do-complete '{line}'");
    let expected = "tomcat/blue\ntomcat/green\ntomcat/red:1\n";
    let is_offered = || (offered("fish", &ask) == expected).then_some(());
    wait_for_offer(expected, is_offered);
    let ask = ZSH.replace("catamaran dr", &line.replace("tomcat/", "tomcat/b"));
    let is_offered = || offered("zsh", &ask).contains("tomcat/blue>").then_some(());
    wait_for_offer("tomcat/blue", is_offered);
    front.signal(Signal::Kill).unwrap();
    front.wait(deadline()).unwrap();
    assert_eq!(offered_by_bash(&line), "\n", "nobody answers");
    fs::remove_file(&socket).unwrap();
    let _silent = UnixListener::bind(&socket).unwrap();
    assert_eq!(offered_by_bash(&line), "\n", "nobody answers in time");
}

#[test]
fn bash_completes_a_command() {
    assert_eq!(offered_by_bash("catamaran dr"), "drain\n");
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
