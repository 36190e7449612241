//! The profile that the binary was built with: `--version` names it, and figures of another one than
//! `dist` have a warning beside them.

use catamaran_e2e::{App, catamaran};
use catamaran_testkit::Deadline;
use serde_json::Value;

/// What the command prints on standard output.
fn said(words: &[&str]) -> String {
    let mut process = catamaran(words).unwrap();
    process.wait(Deadline::default()).unwrap();
    process.stdout()
}

/// The profile of the binary under test.
pub(crate) fn profile() -> String {
    let version = said(&["--version"]);
    let (_, rest) = version.split_once(" (").unwrap();
    let (profile, _) = rest.split_once(" build)\n").unwrap();
    profile.to_owned()
}

#[test]
fn bench_names_a_slow_build_but_not_as_ab() {
    let app = App::start("epoll", &[]).unwrap();
    let url = format!("http://{}/bytes/10", app.http());
    let profile = profile();
    let is_slow = profile != "dist";
    let warning = format!("WARNING: this is a {profile} build of the generator");
    for words in [&["bench", "-n", "5"][..], &["bench", "-n", "5", "-c", "5"]] {
        let text = said(&[words, &[&url]].concat());
        assert_eq!(
            text.matches(&warning).count(),
            usize::from(is_slow),
            "{text}"
        );
    }
    let json = said(&["bench", "-n", "5", "--json", &url]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let kinds = json["warnings"].as_array().unwrap().iter();
    let builds = kinds.filter(|warning| warning["kind"] == "build").count();
    assert_eq!(builds, usize::from(is_slow), "{json}");
    let ab = said(&["bench", "--compat", "ab", "-n", "5", &url]);
    assert!(ab.contains("Complete requests:      5\n"), "{ab}");
    assert!(!ab.contains(" build of the generator"), "{ab}");
}

#[test]
fn the_doctor_names_a_slow_build() {
    let text = said(&["lab", "doctor", "keepalive"]);
    let expected = match profile().as_str() {
        "dist" => "ok       catamaran = dist build\n".to_owned(),
        profile => format!("note     catamaran = {profile} build (This is a {profile} build of"),
    };
    assert!(text.contains(&expected), "{text}");
}
