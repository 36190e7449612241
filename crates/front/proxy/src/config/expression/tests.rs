//! Tests of what is an expression, and of its groups.

use super::*;

fn expression(text: &str) -> PathExpression {
    PathExpression::parse(text).expect(text)
}

#[test]
fn an_expression_matches_bytes_somewhere_in_the_path() {
    for (text, path, expected) in [
        ("^/shop/[0-9]+$", "/shop/12", true),
        ("^/shop/[0-9]+$", "/shop/12/x", false),
        (r"\.php", "/a.php/x", true),
        (r"\.PHP$", "/a.php", false),
        (r"(?i)\.PHP$", "/a.php", true),
        // As in PCRE without its UTF mode, letters outside ASCII are bytes.
        ("^/ä$", "/ä", true),
        ("^/..$", "/ä", true),
        ("(?i)^/ä$", "/Ä", false),
        (r"^/\w+$", "/ä", false),
        ("", "/", true),
    ] {
        let found = expression(text).matches(path.as_bytes());
        assert_eq!(found, expected, "{text} {path}");
    }
}

#[test]
fn what_is_no_expression_is_refused_with_its_reason() {
    let reason = |text: &str| PathExpression::parse(text).unwrap_err();
    for (text, part) in [
        ("(", "unclosed group"),
        ("(?=x)", "look-around"),
        (r"(a)\1", "backreferences"),
        ("(?<id>a)(?<id>b)", "duplicate"),
        (r"\p{L}", "Unicode"),
    ] {
        match reason(text) {
            ExpressionError::Syntax(why) => assert!(why.contains(part), "{text}: {why}"),
            other => panic!("{text}: {other}"),
        }
    }
    for name in ["host", "path", "rest", "client_ip", "query"] {
        let error = reason(&format!("(?<{name}>x)"));
        assert_eq!(error, ExpressionError::Reserved(name.to_owned()));
    }
    assert_eq!(reason("((a{100}){100}){100}"), ExpressionError::Large);
    assert_eq!(reason(&"a".repeat(TEXT_MAX + 1)), ExpressionError::Large);
}

#[test]
fn groups_have_numbers_and_names() {
    let expression = expression("(a)(?<id>b)?");
    for (name, group) in [
        ("1", Some(1)),
        ("2", Some(2)),
        ("id", Some(2)),
        ("0", None),
        ("3", None),
        ("+1", None),
        ("01", None),
        ("", None),
        ("ID", None),
    ] {
        assert_eq!(expression.group(name), group, "{name}");
    }
    assert_eq!(expression.groups().collect::<Vec<_>>(), ["1", "2", "id"]);
}

/// What a backtracking engine would need exponential time for is answered alike by an engine that looks at each byte
/// of the path at most once for each step of the expression; a path of 64 KiB would never end otherwise. Those of clients
/// are shorter.
#[test]
fn what_is_exponential_elsewhere_ends() {
    let path = format!("/{}!", "a".repeat(64 << 10));
    for text in [
        "^/(a+)+$",
        "^/(a|a)*$",
        "^/(a|aa)+$",
        "^/(.*a){20}$",
        "^/([a-z]+)*$",
        "(a*)*b",
    ] {
        let expression = expression(text);
        assert!(!expression.matches(path.as_bytes()), "{text}");
        let groups = expression.captured(&Bytes::from(path.clone()));
        assert_eq!(groups, Captures::default(), "{text}");
    }
    let all = ["^/(a+)+$", "^/(a|a)*$", "(a*)*!$"].map(expression);
    let set = PathExpression::set(all.iter()).expect("they can be combined");
    assert_eq!(set.matches(path.as_bytes()).iter().collect::<Vec<_>>(), [2]);
}

#[test]
fn a_set_is_made_of_what_is_small_together() {
    let expression = |index| expression(&format!("^/shop{index}/([0-9]+)/?$"));
    let all: Vec<_> = (0..PathExpression::COUNT_MAX).map(expression).collect();
    let set = PathExpression::set(all[..500].iter()).expect("they can be combined");
    let found = set.matches(b"/shop77/0123456789");
    assert_eq!(found.iter().collect::<Vec<_>>(), [77]);
    assert!(PathExpression::set(all.iter()).is_none());
}
