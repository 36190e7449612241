//! `lab judge`, as a person uses it.

use super::outcome;

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/published");

#[test]
fn a_published_pair_is_judged() {
    let names = ["004-off", "004-on"].map(|name| format!("{PUBLISHED}/{name}.txt"));
    let (code, stdout, stderr) = outcome(&["lab", "judge", &names[0], &names[1]]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    assert!(stdout.contains("ratio 3.21"), "{stdout}");
    assert!(
        stdout.contains("The maxima differ by a factor of 14"),
        "{stdout}"
    );
}

#[test]
fn what_is_no_report_and_what_is_not_there() {
    let readme = format!("{PUBLISHED}/README.md");
    let (code, stdout, stderr) = outcome(&["lab", "judge", &readme]);
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(
        stderr.contains("this is no text of ab, wrk or strace -c"),
        "{stderr}"
    );
    let (code, _, stderr) = outcome(&["lab", "judge", "/nonexistent/run.txt"]);
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("cannot read /nonexistent/run.txt"),
        "{stderr}"
    );
    let (code, _, stderr) = outcome(&["lab", "judge"]);
    assert_eq!(code, Some(2));
    assert!(stderr.contains("<FILE>"), "{stderr}");
}
