use catamaran_message::RequestHead;
use http::Method;

use super::*;
use crate::config::{FlagRule, KnownNames, Placeholder, SameSite};
use crate::path::captured::Captures as PathCaptures;
use crate::request_id::RequestIds;

/// The lines of `Set-Cookie` that a client of `http://shop.test:81/?who=me` gets by these rules, without a rewrite.
fn changed(rules: &CookieRules, sent: &str) -> Vec<String> {
    let mut head = RequestHead::empty();
    head.target.query = Some(bytes::Bytes::from_static(b"who=me"));
    let values = Values {
        authority: b"shop.test:81",
        client: [192, 0, 2, 1].into(),
        id: RequestIds::new().next(),
        secure: false,
        tls: None,
        worker: None,
        method: &Method::GET,
        path: b"/",
        rest: b"",
        head: &head,
        captured: PathCaptures::NONE,
    };
    let changes = CookieChanges::new(rules, values);
    let mut headers = Fields::from_iter([(SET_COOKIE, sent)]);
    changes.turn_back(&mut headers, None);
    changes.flag(&mut headers);
    let lines = headers.get_all(SET_COOKIE);
    lines
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect()
}

fn text(text: &str, known: KnownNames) -> CookieTest {
    CookieTest::Text(Template::parse(text, known).unwrap())
}

/// A replacement of a text, or of what an expression behind a `~` matches.
fn replacement(from: &str, to: &str) -> CookieReplacement {
    let expression = from
        .strip_prefix('~')
        .map(|it| PathExpression::parse(it).unwrap());
    CookieReplacement {
        to: Template::parse_replacement(to, expression.as_ref(), None).unwrap(),
        from: match expression {
            Some(expression) => CookieTest::Expression(expression),
            None => text(from, Placeholder::OF_STORED),
        },
    }
}

#[test]
fn the_first_rule_that_fits_replaces_a_domain() {
    let rules = CookieRules {
        domains: vec![
            replacement("app.internal", "{host}"),
            replacement("gone.internal", ""),
            replacement("in.{host}", "{host}"),
            replacement("~(?i)^(.+)\\.internal$", "{1}.example.org"),
            replacement("a.internal", "never.test"),
            replacement("~^evil=(.*)$", "{1}"),
        ],
        ..CookieRules::default()
    };
    for (sent, expected) in [
        (
            "a=b; Domain=App.Internal; Secure",
            "a=b; Domain=shop.test; Secure",
        ),
        ("a=b;domain=.app.internal", "a=b; Domain=.shop.test"),
        ("a=b; Domain=\"app.internal\"", "a=b; Domain=shop.test"),
        ("a=b; Domain=.gone.internal; Path=/x", "a=b; Path=/x"),
        ("a=b; Domain=in.shop.test", "a=b; Domain=shop.test"),
        ("a=b; Domain=A.INTERNAL", "a=b; Domain=A.example.org"),
        ("a=b; Domain=other.test", "a=b; Domain=other.test"),
        (
            "a=b; Domain=xapp.internal.test",
            "a=b; Domain=xapp.internal.test",
        ),
        ("domain=app.internal; Domain", "domain=app.internal; Domain"),
        // A tab is a control character.
        ("a=b; Domain=evil=x\ty", "a=b; Domain=evil=x\ty"),
    ] {
        assert_eq!(changed(&rules, sent), [expected], "{sent}");
    }
}

#[test]
fn the_first_rule_that_fits_replaces_a_path_or_its_beginning() {
    let rules = CookieRules {
        paths: vec![
            replacement("/app/", "/shop/"),
            replacement("~^/r/(?<tail>.+)$", "/{tail}"),
            replacement("~^/whole", "/new"),
            replacement("/", "/site/"),
        ],
        ..CookieRules::default()
    };
    for (sent, expected) in [
        ("a=b; Path=/app/x; HttpOnly", "a=b; Path=/shop/x; HttpOnly"),
        ("a=b; Path=/r/x/y", "a=b; Path=/x/y"),
        ("a=b; Path=/wholesale", "a=b; Path=/new"),
        ("a=b; Path=/app", "a=b; Path=/site/app"),
        ("a=b; PATH=/", "a=b; Path=/site/"),
        ("a=b; Path=x", "a=b; Path=x"),
        ("a=b", "a=b"),
    ] {
        assert_eq!(changed(&rules, sent), [expected], "{sent}");
    }
}

#[test]
fn flags_are_set_and_removed_by_the_name_of_a_cookie() {
    let named = |name: Option<CookieTest>, changes| FlagRule {
        name,
        changes,
        words: Vec::new(),
    };
    let all = FlagChanges {
        secure: Some(true),
        http_only: Some(true),
        same_site: Some(Some(SameSite::None)),
    };
    let none = FlagChanges {
        secure: Some(false),
        http_only: Some(false),
        same_site: Some(None),
    };
    let secure = FlagChanges {
        secure: Some(true),
        ..FlagChanges::default()
    };
    let expression = PathExpression::parse("(?i)bar").unwrap();
    let rules = CookieRules {
        flags: vec![
            named(Some(text("a", Placeholder::OF_FIELDS)), all),
            named(Some(text("b", Placeholder::OF_FIELDS)), none),
            named(Some(text("{query:who}", Placeholder::OF_FIELDS)), secure),
            named(Some(CookieTest::Expression(expression)), none),
        ],
        ..CookieRules::default()
    };
    for (sent, expected) in [
        (
            "A=1; Path=/",
            "A=1; Path=/; Secure; HttpOnly; SameSite=None",
        ),
        (
            "a=1;samesite=Lax;Secure;Path=/",
            "a=1; Path=/; Secure; HttpOnly; SameSite=None",
        ),
        (
            "b=1; secure; HTTPONLY; samesite=Strict; Path=/",
            "b=1; Path=/",
        ),
        ("b=1", "b=1"),
        ("me=1; SameSite=Lax", "me=1; SameSite=Lax; Secure"),
        ("fooBar=1; Secure", "fooBar=1"),
        ("c=a;Secure", "c=a;Secure"),
    ] {
        assert_eq!(changed(&rules, sent), [expected], "{sent}");
    }
    let of_all = CookieRules {
        flags: vec![named(None, secure)],
        ..CookieRules::default()
    };
    assert_eq!(changed(&of_all, "c=1"), ["c=1; Secure"]);
}

#[test]
fn words_of_a_request_name_flags() {
    for (words, expected) in [
        (&["{query:who}"][..], "a=1; HttpOnly"),
        (&["{scheme}", "Secure", "NOHTTPONLY"], "a=1; Secure"),
        (
            &["secure", "nosecure", "samesite=Lax"],
            "a=1; HttpOnly; Secure; SameSite=Lax",
        ),
        (&["nosamesite", ""], "a=1; HttpOnly"),
    ] {
        let word = |it: &&str| Template::parse(it, Placeholder::OF_FIELDS).unwrap();
        let rules = CookieRules {
            flags: vec![FlagRule {
                name: None,
                changes: FlagChanges::default(),
                words: words.iter().map(word).collect(),
            }],
            ..CookieRules::default()
        };
        assert_eq!(changed(&rules, "a=1; HttpOnly"), [expected], "{words:?}");
    }
}
