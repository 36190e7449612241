use super::*;

fn said(pcre: &str) -> Option<Vec<String>> {
    let text = |it: &Matcher| match it {
        Matcher::Exact(path) => format!("={path}"),
        Matcher::Prefix(path) => format!("{path}/"),
        other => other.shown(),
    };
    let found = matchers(&translated(pcre, false))?;
    Some(found.iter().map(text).collect())
}

#[test]
fn expressions_that_are_patterns() {
    for (pcre, expected) in [
        ("^/ca/ee/*", &["/ca/ee*"][..]),
        ("^/app(/.*)?", &["/app*"]),
        ("^(/.*/api/solr/.*)$", &["/*/api/solr/*"]),
        (r"\.(jsp|do)$", &["/*.do", "/*.jsp"]),
        ("^/(a|b)/", &["/a/*", "/b/*"]),
        ("^/[ab]$", &["=/a", "=/b"]),
        ("^/app(/.*)?$", &["/app/"]),
        ("^/app(/|$)(.*)", &["/app/"]),
        ("^/app(/|$)(.*)$", &["/app/"]),
        ("^(^/admin|/public)", &["/admin*", "/public*"]),
        ("(^/a|/b$)$", &["*/b", "=/a"]),
        ("^/$", &["=/"]),
        ("^/?$", &["=/"]),
        ("/\\.ht", &["*/.ht*"]),
        ("^/(?!admin)", &["/"]),
        ("^", &["/"]),
        ("(.*)", &["/"]),
        ("((((", &["/"]),
    ] {
        assert_eq!(said(pcre).as_deref().unwrap(), expected, "{pcre}");
    }
}

#[test]
fn other_expressions_are_no_patterns() {
    for pcre in [
        "^/v[0-9]+/x$",
        "^/a.c$",
        "^/a.+$",
        "^/a{2,3}$",
        "^/a*b",
        "^admin/",
        "^/x\\b/",
        "^/a$b",
        "^/a(^/b|c)",
        "/.*^/b",
        "/a^",
        "(?i)^/a",
        r"^/a\*b",
        "^/a;b",
        "^/caf\u{e9}",
        "^/(a|b|c|d|e|f|g)(a|b|c|d|e|f|g)(a|b|c|d|e|f|g)$",
    ] {
        assert_eq!(said(pcre), None, "{pcre}");
    }
}

#[test]
fn hosts_of_expressions() {
    let is = |text: &str| HostTest::Is(text.to_owned());
    for (pcre, expected) in [
        ("^www.a.org$", Some(vec![is("www.a.org")])),
        ("(?i)^A.org$", Some(vec![is("a.org")])),
        ("^(a|b).org$", Some(vec![is("a.org"), is("b.org")])),
        ("^www\\..+", Some(vec![HostTest::Starts("www.".to_owned())])),
        ("a.org", Some(vec![HostTest::Has("a.org".to_owned())])),
        ("^(?!www)", None),
        ("^[^.]+\\.org$", None),
        ("^(?>a|ab)$", None),
        ("^a{b}$", None),
        ("+a", None),
    ] {
        assert_eq!(host_tests(pcre), expected, "{pcre}");
    }
}
