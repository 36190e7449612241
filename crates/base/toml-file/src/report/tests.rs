use super::excerpt::Line;
use super::*;

fn shown(text: &str, marked: &str) -> String {
    let start = text.find(marked).expect("the marked part is in the text");
    let mut report = Report::new("x.toml", text);
    report.push(Finding::fault("wrong", start..start + marked.len()).hint("right it"));
    report.to_string()
}

#[test]
fn marks_the_place() {
    let expected = "x.toml:2:5: fault: wrong; right it\n    2 | b = 22\n      |     ^^\n";
    assert_eq!(shown("a = 1\nb = 22\n", "22"), expected);
}

#[test]
fn counts_characters_and_keeps_tabs() {
    let expected =
        "x.toml:1:10: fault: wrong; right it\n    1 | \tä = \"ü\" # é\n      | \t        ^^^\n";
    assert_eq!(shown("\tä = \"ü\" # é", "# é"), expected);
}

#[test]
fn replaces_what_a_terminal_would_obey() {
    assert!(!shown("a = \"\u{1b}[2J\u{202e}\"", "a").contains(['\u{1b}', '\u{202e}']));
}

#[test]
fn never_shows_a_secret() {
    for (text, line) in [
        ("secret = \"hunter2\" # why", "secret = \"*******\" # why"),
        (
            "a = 1, secret='hunter2', b = 2",
            "a = 1, secret='*******', b = 2",
        ),
        ("\"secret\" = hunter2", "\"secret\" = *******"),
        ("x.secret=\"hunter2", "x.secret=\"*******"),
        (
            "secret = \"a\\\"hunter2\" # why",
            "secret = \"**********\" # why",
        ),
        ("AJP_SECRET=hunter2", "AJP_SECRET=*******"),
        ("secret = '\\' # why", "secret = '*' # why"),
        ("secret = 'a' secret = 'b'", "secret = '*' secret = '*'"),
        ("secret_file = \"/etc/key\"", "secret_file = \"/etc/key\""),
    ] {
        let shown = shown(text, "=");
        assert!(shown.contains(&format!(" | {line}\n")), "{text}: {shown}");
    }
    for (text, line) in [
        ("secret: hunter2", "secret: *******"),
        ("secret:\"hunter2\"", "secret:\"*******\""),
        (
            "secret\u{a0}:\u{a0}\"hunter2\"",
            "secret\u{a0}:\u{a0}\"*******\"",
        ),
        ("secret: \u{201c}hunter2\u{201d}", "secret: *********"),
    ] {
        let shown = shown(text, ":");
        assert!(shown.contains(&format!(" | {line}\n")), "{text}: {shown}");
    }
    for quotes in ["\"\"\"", "'''"] {
        let text = format!("secret = {quotes}\nhunter2 x\n{quotes} # why");
        let shown = shown(&text, "hunter2");
        assert!(shown.contains("2 | *********\n"), "{shown}");
    }
}

#[test]
fn shortens_a_long_line_around_the_mark() {
    let text = format!("{}HERE{}", "x".repeat(5000), "y".repeat(5000));
    let shown = shown(&text, "HERE");
    assert!(shown.contains("HERE") && shown.len() < 600, "{shown}");
}

#[test]
fn points_at_the_last_line_for_an_unexpected_end() {
    assert_eq!(Line::at("a = [\n\n\n", 0, 8).number, 1);
}

#[test]
fn ends_after_a_hundred() {
    let mut report = Report::new("x.toml", "a");
    (0..150).for_each(|_| report.push(Finding::fault("wrong", 0..1)));
    assert!(report.to_string().ends_with("x.toml: and 50 more\n"));
}
