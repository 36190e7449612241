use super::*;

#[test]
fn parts_that_mean_the_same_are_translated() {
    for (pcre, expected) in [
        (r"^/shop/(\d+)$", r"^/shop/(\d+)$"),
        (r"^/(?P<id>[a-z]+)/(?'n'x)", r"^/(?<id>[a-z]+)/(?<n>x)"),
        ("^/(?<host>a)", "^/(a)"),
        (r"\.(?:php|ph[\w-]?)$", r"\.(?:php|ph[\w\-]?)$"),
        (r"^/a{2,}?b{c}{,}$", r"^/a{2,}?b\{c\}\{,\}$"),
        (r"/[]&&[+--]\]", r"/[\]\&\&\[+-\-]\]"),
        (r"[^a-c-z[:alpha:]]", r"[^a-c\-z[:alpha:]]"),
        (r"\/\<\>\_\x2e\#", r"/<>_\x2E#"),
        ("^/caf\u{e9}+", r"^/caf\xC3\xA9+"),
        (r"\A/(?i:a)\b\Z", r"\A/(?i:a)\b\z"),
        (r"^/\(a\)\{\}\*$", r"^/\(a\)\{\}\*$"),
        ("(?i)^/a", "(?i)^/a"),
        ("", ""),
    ] {
        let found = translated(pcre, false);
        assert_eq!(found.text(), expected, "{pcre}");
        assert!(found.is_exact, "{pcre}");
    }
    assert_eq!(translated("^/a", true).text(), "(?i)^/a");
    assert_eq!(translated("(?i)^/a", true).text(), "(?i)^/a");
}

#[test]
fn a_class_may_have_several_ranges() {
    for (pcre, matches, others) in [
        ("^/[a-z0-9]$", "amz059", "-A"),
        ("^/[A-Za-z0-9_]$", "AMZamz059_", "-."),
        ("^/[0-9a-f]$", "059acf", "-g"),
        ("^/[a-zA-Z0-9_.-]$", "mMZ5_.-", ",~"),
        ("^/[a-c-e]$", "abc-e", "d"),
        ("^/[a-c-e-g]$", "abc-efg", "dh"),
        ("^/[a-c--9]$", "abc-./5", ",:"),
    ] {
        let found = translated(pcre, false);
        assert!(found.is_exact, "{pcre}");
        let has = |sign: char| found.has(&format!("/{sign}"));
        let mut signs = matches.chars();
        assert!(signs.all(has), "{pcre}: {}", found.text());
        assert!(!others.chars().any(has), "{pcre}: {}", found.text());
    }
}

#[test]
fn a_part_that_the_front_lacks_is_replaced_by_more() {
    for (pcre, expected) in [
        (r"^/(?!app/|x)[^/]+\.php$", r"^/[^/]+\.php$"),
        (r"(?<!/admin)(?=.)+/b", "/b"),
        (r"^/(?>a|ab)c", "^/(?:a|ab)c"),
        ("^/a++b?+c{2}+", "^/a+b?c{2}"),
        (r"^/(a)\1$", "^/(a)(?:.*)$"),
    ] {
        let found = translated(pcre, false);
        assert_eq!(found.text(), expected, "{pcre}");
        assert!(!found.is_exact, "{pcre}");
        assert_eq!(found.placeholder("1"), None, "{pcre}");
    }
}

#[test]
fn an_expression_with_any_other_part_matches_every_path() {
    for pcre in [
        "(*UTF8)^/a",
        "(?s)^/a",
        "(?x) a",
        "(?-i)^/a",
        "^/(a(?i)b)",
        "^/(?|a|b)",
        "^/(?#x)a",
        "^/(?R)",
        "^/(?1)",
        "^/(?(1)a|b)",
        r"^/\Qa|b\E",
        r"^/\p{L}",
        r"^/\101",
        r"^/\g1",
        r"^/\ka",
        r"^/\h\R\K\X\N",
        r"^/\cA",
        r"^/\x{2e}",
        r"^/\x2",
        r"^/[\b]",
        r"^/[a-\d]",
        r"^/[\1]",
        "^/[[.a.]]",
        "^/[[:^alpha:]]",
        "^/[[:nothing:]]",
        "^/[\u{e9}]",
        "^/[z-a]",
        "^/a**",
        "^/a{2}{3}",
        "^/a{,2}",
        "^/a{1, 2}",
        "^/a{ 2 }",
        "^*",
        r"\b+",
        "+",
        "{2}",
        "^/(a",
        "^/a)",
        "^/[a",
        "^/[]",
        "^/a\\",
        "^/(?<1>a)",
        "^/(?<a>a)(?<a>b)",
        "^/a{70000}",
    ] {
        let found = translated(pcre, false);
        let everything = (EVERYTHING, false);
        assert_eq!((found.text(), found.is_exact), everything, "{pcre}");
    }
    let deep = "(".repeat(1000) + &")".repeat(1000);
    assert!(!translated(&deep, false).is_exact);
}

#[test]
fn groups_keep_their_names_where_no_placeholder_has_them() {
    let found = translated("^/(?<host>a)(?<id>b)(c)$", false);
    for (group, expected) in [
        ("host", Some("{1}")),
        ("1", Some("{1}")),
        ("id", Some("{id}")),
        ("2", Some("{id}")),
        ("3", Some("{3}")),
        ("4", None),
        ("0", None),
        ("other", None),
    ] {
        assert_eq!(found.placeholder(group).as_deref(), expected, "{group}");
    }
}

#[test]
fn what_a_repetition_captures_is_unsure() {
    for (pcre, expected) in [
        ("^/(a)?(.*)$", [true, true]),
        ("^/(a)+(.*)$", [false, true]),
        ("^/(?:(a)/)*(.*)$", [false, true]),
        ("^/(a)(?:b*)*$", [false, false]),
        ("^/(.*)/(?:a|b){2}$", [false, false]),
    ] {
        let found = translated(pcre, false);
        let is_sure = |group: &str| found.placeholder(group).is_some();
        assert!(found.is_exact, "{pcre}");
        let sure = ["1", "2"].map(is_sure);
        let expected = if found.groups.len() == 1 {
            [expected[0], false]
        } else {
            expected
        };
        assert_eq!(sure, expected, "{pcre}");
    }
}

#[test]
fn how_the_paths_of_an_expression_begin() {
    for (pcre, expected) in [
        ("^/app/[0-9]", "/app/"),
        ("^/app*", "/ap"),
        ("^/app{2}", "/ap"),
        ("^/app+", "/ap"),
        ("^/a[.]b;c", "/a.b;c"),
        (r"^/a\.b", "/a.b"),
        ("^/a|/b", ""),
        ("/app", ""),
        ("(?i)^/app", "/"),
    ] {
        assert_eq!(translated(pcre, false).start(), expected, "{pcre}");
    }
}

#[test]
fn a_file_is_taken_out_of_a_directory_by_its_name() {
    for (pcre, is_taken) in [
        (r"\.php$", false),
        (r"\.(php|jsp)$", false),
        ("^/(api|rest)/", false),
        ("^/static/.*", false),
        ("^/static/(.*)$", false),
        (r"/\.ht", false),
        (r"/\d\x2E$", false),
        (r"\.html$", true),
        (r"\.(js|html)$", true),
        ("^/index", true),
        ("/in", true),
        (r"\.ht", true),
        ("l$", true),
        (r"\w$", true),
        ("[a-z]+$", true),
        (r"\x6C$", true),
        ("^/a(/|$)", false),
        ("^/a|/b", false),
        ("^/a(l|(a))$", false),
        (r"a/\b", true),
        ("^/a[^/]*$", false),
        ("^/i[^/]*$", true),
        (r"index\.[a-z]+", true),
    ] {
        let expression = translated(pcre, false);
        assert_eq!(expression.takes_file("index.html"), is_taken, "{pcre}");
    }
    assert!(translated(r"\.HTML$", true).takes_file("index.html"));
}
