use std::ffi::OsString;
use std::fs;

use tempfile::TempDir;

use crate::load::{LoadError, LoadedFile, load_among};
use crate::read_files::ReadFiles;

/// Makes a temporary directory with these files.
fn directory(files: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Loads `main.toml` of a directory. The error is the text of the report, in which the directory is
/// cut from the names of files.
fn read(directory: &TempDir) -> Result<LoadedFile, String> {
    read_recorded(directory, &mut ReadFiles::default())
}

/// As [`read`]; `files` becomes the files that were read.
fn read_recorded(directory: &TempDir, files: &mut ReadFiles) -> Result<LoadedFile, String> {
    let variables = |name: &str| (name == "PLACE").then(|| OsString::from("more"));
    let path = directory.path().join("main.toml");
    load_among(&path, &variables, files).map_err(|error| {
        let within = fs::canonicalize(directory.path()).unwrap();
        let said = match error {
            LoadError::Faults(report) => report.to_string(),
            error @ LoadError::Read { .. } => error.to_string(),
        };
        let said = said.replace(&format!("{}/", directory.path().display()), "");
        said.replace(&format!("{}/", within.display()), "")
    })
}

fn faults(files: &[(&str, &str)]) -> String {
    read(&directory(files)).expect_err("a fault")
}

#[test]
fn lists_go_on_in_included_files() {
    let directory = directory(&[
        (
            "main.toml",
            &format!("{MAIN}[[route]]\npath = \"/main\"\nstatus = 404\n"),
        ),
        (
            "conf.d/b.toml",
            "[[route]]\npath = \"/b\"\nupstream = \"app\"\n",
        ),
        ("conf.d/a.toml", APP),
        (
            "conf.d/c.toml",
            "include = \"${PLACE}/*\"\n\n[[route]]\npath = \"/c\"\nupstream = \"app\"\n\
             [[upstream.app.backend]]\nurl = \"ajp://127.0.0.1:8010\"\n\
             [upstream.app.sticky]\n",
        ),
        ("conf.d/more/x", "[[listen]]\naddress = \"127.0.0.1:0\"\n"),
        ("conf.d/.hidden.toml", "not TOML"),
        ("conf.d/c.toml.bak", "not TOML"),
    ]);
    let config = read(&directory).unwrap().config;
    assert_eq!(config.listeners.len(), 2);
    let upstream = &config.upstreams[0];
    assert_eq!((config.upstreams.len(), upstream.backends.len()), (1, 2));
    assert!(upstream.sticky.is_some());
    let within = |it: String| it.replace(&format!("{}/", directory.path().display()), "");
    let routes: Vec<String> = config
        .routes
        .iter()
        .map(|it| within(it.place.as_ref().unwrap().to_string()) + " " + &it.path)
        .collect();
    assert_eq!(
        routes,
        [
            "main.toml:6 /main",
            "conf.d/b.toml:1 /b",
            "conf.d/c.toml:3 /c"
        ]
    );
}

#[test]
fn a_pattern_may_match_nothing_and_a_name_must_exist() {
    let route = "[[route]]\nstatus = 404\n";
    let nothing = directory(&[("main.toml", &format!("{MAIN}{route}"))]);
    assert_eq!(read(&nothing).unwrap().config.routes.len(), 1);
    let said = faults(&[("main.toml", "include = \"none.toml\"\n")]);
    assert!(
        said.starts_with("main.toml:1:11: fault: cannot read none.toml: No such file"),
        "{said}"
    );
    assert_eq!(
        said.lines().count(),
        3,
        "what is missing is not blamed: {said}"
    );
}

#[test]
fn relative_paths_of_values_start_from_the_main_file() {
    let route = "[[route]]\nupstream = \"app\"\n";
    let directory = directory(&[
        ("main.toml", &format!("{MAIN}{route}")),
        ("conf.d/a.toml", &format!("{APP}secret_file = \"key\"\n")),
        // What a file of a secret holds is taken as it is.
        ("key", "${PLACE}"),
    ]);
    let config = read(&directory).unwrap().config;
    let secret = config.upstreams[0].backends[0].ajp.secret.clone();
    assert_eq!(
        secret.as_ref().map(|it| it.as_bytes()),
        Some(&b"${PLACE}"[..])
    );
}

#[test]
fn what_two_files_define_is_named_with_both_places() {
    for (added, expected) in [
        (
            "[server]\nvia = \"x\"\n",
            "conf.d/a.toml:1:1: fault: [server] is defined already, at main.toml:2; keep one",
        ),
        (
            "server.via = \"x\"\n",
            "conf.d/a.toml:1:1: fault: [server] is defined already, at main.toml:2; keep one",
        ),
        (
            "\n[upstream.main]\nretries = 1\n",
            "conf.d/a.toml:2:1: fault: [upstream.main] is defined already, at main.toml:8; keep",
        ),
        (
            "listen = [{ address = \"127.0.0.1:0\" }]\n",
            "conf.d/a.toml:1:10: fault: `listen` is defined already, at main.toml:4; keep",
        ),
        (
            "[[upstream.main.backend]]\nurl = \"ajp://127.0.0.1:8009\"\n",
            "conf.d/a.toml:2:7: fault: the backend of main.toml:10 is named \
             `ajp://127.0.0.1:8009` too;",
        ),
        (
            "[[route]]\nstatus = 404\n",
            "conf.d/a.toml:1:1: fault: main.toml:6 has a route for the same requests",
        ),
        (
            "# two\n[[route]]\npath = \"/x\"\nupstream = \"mian\"\n",
            "conf.d/a.toml:4:12: fault: there is no upstream `mian`; did you mean `main`?",
        ),
    ] {
        let main = format!(
            "{MAIN}[[route]]\nupstream = \"main\"\n{}",
            APP.replace("app", "main")
        );
        let said = faults(&[("main.toml", &main), ("conf.d/a.toml", added)]);
        assert!(said.contains(expected), "{added}: {said}");
        assert!(said.contains(" | "), "the line is shown: {said}");
    }
}

#[test]
fn broken_syntax_is_named_in_its_file() {
    let said = faults(&[
        ("main.toml", &format!("{MAIN}[[route]]\nstatus = 404\n")),
        ("conf.d/a.toml", "# fine\n"),
        ("conf.d/b.toml", "\n\n[upstream.x\nsecret = \"hunter2\"\n"),
    ]);
    assert!(said.starts_with("conf.d/b.toml:3:"), "{said}");
    assert!(
        !said.contains("hunter2") && !said.contains("main.toml"),
        "{said}"
    );
    // What it seems to include is a guess of the parser.
    let said = faults(&[("main.toml", "include = absent.toml\n[[listen]]\n")]);
    let fault = "main.toml:1:11: fault: syntax: string values must be quoted";
    assert!(said.starts_with(fault), "{said}");
    assert_eq!(said.matches("fault: ").count(), 1, "{said}");
    let not_utf8 = directory(&[("main.toml", MAIN)]);
    fs::create_dir(not_utf8.path().join("conf.d")).unwrap();
    fs::write(not_utf8.path().join("conf.d/a.toml"), b"a\n\xff").unwrap();
    let said = read(&not_utf8).unwrap_err();
    assert!(
        said.contains("cannot read conf.d/a.toml: line 2 is not UTF-8"),
        "{said}"
    );
    fs::remove_file(not_utf8.path().join("conf.d/a.toml")).unwrap();
    fs::create_dir(not_utf8.path().join("conf.d/a.toml")).unwrap();
    let said = read(&not_utf8).unwrap_err();
    assert!(said.contains("it is not a regular file"), "{said}");
}

#[test]
fn files_that_include_themselves_are_refused() {
    for (files, expected) in [
        (
            &[("main.toml", "include = \"*.toml\"\n")][..],
            "main.toml:1:11: fault: main.toml includes itself: main.toml -> main.toml",
        ),
        (
            &[
                ("main.toml", "include = \"a.toml\"\n"),
                ("a.toml", "# a\ninclude = [\"d/b.toml\"]\n"),
                ("d/b.toml", "include = [\n  \"../a.toml\",\n]\n"),
            ],
            "d/b.toml:2:3: fault: d/../a.toml includes itself: a.toml -> d/b.toml -> a.toml",
        ),
        (
            &[
                ("main.toml", "include = [\"a.toml\",\n\"a.*\"]\n"),
                ("a.toml", ""),
            ],
            "main.toml:2:1: fault: a.toml is included already, at line 1",
        ),
    ] {
        let said = faults(files);
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn includes_are_bounded() {
    let names: Vec<String> = (0..12).map(|number| format!("{number}.toml")).collect();
    let texts: Vec<String> = (1..13)
        .map(|next| format!("include = \"{next}.toml\""))
        .collect();
    let mut files: Vec<(&str, &str)> = vec![("main.toml", "include = \"0.toml\"")];
    files.extend(
        names
            .iter()
            .map(String::as_str)
            .zip(texts.iter().map(String::as_str)),
    );
    let said = faults(&files);
    assert!(
        said.contains("10.toml is not read: files are included over 10 steps"),
        "{said}"
    );
    let large = format!("# {}\n", "x".repeat(9 << 20));
    let said = faults(&[
        ("main.toml", "include = \"?.toml\"\n"),
        ("a.toml", &large),
        ("b.toml", &large),
    ]);
    assert!(
        said.contains("b.toml makes the configuration too large"),
        "{said}"
    );
}

#[test]
fn an_include_at_fault_is_named() {
    for (text, expected) in [
        (
            "include = 5\n",
            "1:11: fault: `include` must be a path or pattern such as",
        ),
        ("include = [\"\"]\n", "1:12: fault: `include` is empty"),
        ("include = [[]]\n", "1:12: fault: `include` must be a path"),
        (
            "include = \"a[.toml\"\n",
            "1:11: fault: cannot find files of `a[.toml`:",
        ),
        (
            "include = \"${NONE}\"\n",
            "1:11: fault: the environment variable `NONE` is not set",
        ),
        (
            "[server]\ninclude = \"x\"\n",
            "2:1: fault: [server] has no key `include`; write it at the top",
        ),
        (
            "includes = \"x\"\n",
            "1:1: fault: `includes` is no table of this file; did you mean `include`?",
        ),
    ] {
        let said = faults(&[("main.toml", text)]);
        assert!(
            said.contains(&format!("main.toml:{expected}")),
            "{text}: {said}"
        );
    }
    let refused = crate::parse("x.toml", "include = \"/**/*.toml\"\n").unwrap_err();
    assert!(refused.to_string().contains("files are not read from here"));
}

#[test]
fn files_of_a_configuration_with_faults_are_recorded() {
    let directory = directory(&[
        ("main.toml", "include = [\"a.toml\", \"none.toml\"]\n"),
        ("a.toml", "include = \"conf.d/*.toml\"\n[admn]\n"),
        (
            "conf.d/app.toml",
            "[upstream.app]\nsecret_file = \"secret\"\n",
        ),
    ]);
    let at = |name: &str| directory.path().join(name);
    let mut files = ReadFiles::default();
    read_recorded(&directory, &mut files).unwrap_err();
    let mut before = files.versions().clone();
    assert_eq!(before.now(), before);
    for (name, text) in [
        ("conf.d/app.toml", "# mended\n"),
        ("none.toml", "# not missing\n"),
        ("secret", "of some length\n"),
        ("main.toml", "#"),
    ] {
        fs::write(at(name), text).unwrap();
        let present = before.now();
        assert_ne!(present, before, "{name}");
        before = present;
    }
    // The file itself, which is all that is known of a configuration without it.
    fs::remove_file(at("main.toml")).unwrap();
    read_recorded(&directory, &mut files).unwrap_err();
    let without = files.versions().clone();
    assert_eq!(without.now(), without);
    fs::write(at("main.toml"), MAIN).unwrap();
    assert_ne!(without.now(), without);
}

#[test]
fn a_pattern_is_changed_by_the_files_that_match_alone() {
    let directory = directory(&[
        ("main.toml", &MAIN.replace("conf.d/*", "*/*")),
        ("conf.d/app.toml", &format!("{APP}{ROUTE}")),
    ]);
    let at = |name: &str| directory.path().join(name);
    let mut files = ReadFiles::default();
    read_recorded(&directory, &mut files).unwrap();
    let before = files.versions().clone();
    // Such as those that the front writes, and those of an editor.
    for name in ["conf.d/state.json", "conf.d/.app.toml.swp", "access.log"] {
        fs::write(at(name), "x").unwrap();
        assert_eq!(before.now(), before, "{name}");
    }
    fs::create_dir(at("other")).unwrap();
    assert_eq!(before.now(), before, "a directory");
    fs::write(at("other/a.toml"), "").unwrap();
    let with_other = before.now();
    assert_ne!(with_other, before, "another file");
    fs::remove_file(at("other/a.toml")).unwrap();
    assert_eq!(before.now(), before, "taken back");
}

#[test]
fn files_that_are_written_again_have_the_content_that_they_had() {
    let text = format!("{APP}{ROUTE}");
    let directory = directory(&[("main.toml", MAIN), ("conf.d/app.toml", &text)]);
    let content = || {
        let mut files = ReadFiles::default();
        read_recorded(&directory, &mut files).unwrap();
        files.content()
    };
    let before = content();
    let app = directory.path().join("conf.d/app.toml");
    fs::write(&app, &text).unwrap();
    assert_eq!(content(), before);
    fs::write(&app, text.replace("8009", "8010")).unwrap();
    assert_ne!(content(), before);
    fs::rename(&app, app.with_file_name("b.toml")).unwrap();
    assert_ne!(content(), before);
}

const MAIN: &str = "include = [\"conf.d/*.toml\"]\n[server]\nvia = \"front\"\n\
                    [[listen]]\naddress = \"127.0.0.1:0\"\n";

const APP: &str = "[upstream.app]\n[[upstream.app.backend]]\nurl = \"ajp://127.0.0.1:8009\"\n";

const ROUTE: &str = "[[route]]\nupstream = \"app\"\n";
