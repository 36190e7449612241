//! Cookies of backends that a route changes: their domain and path before a response is stored, their flags for each client.

use std::sync::Arc;

use catamaran_proxy::config::{
    CacheConfig, CookieReplacement, CookieRules, CookieTest, FlagChanges, FlagRule, KnownNames,
    Placeholder, RouteRules, SetCookie, Template,
};

use crate::cache::{Origin, cache, cached, field, get_as};
use crate::start;

fn text(text: &str, known: KnownNames) -> CookieTest {
    CookieTest::Text(Template::parse(text, known).unwrap())
}

fn replacement(from: &str, to: &str) -> CookieReplacement {
    CookieReplacement {
        from: text(from, Placeholder::OF_STORED),
        to: Template::parse_replacement(to, None, None).unwrap(),
    }
}

#[test]
fn a_stored_cookie_has_the_clients_path_and_each_client_gets_its_flags() {
    let origin = Origin::saying(
        "Cache-Control: max-age=60\r\nSet-Cookie: a=1; Domain=app.internal; Path=/inner/x\r\n",
    );
    let pages = CacheConfig {
        set_cookie: SetCookie::Store,
        ..cache()
    };
    let secure = FlagChanges {
        secure: Some(true),
        ..FlagChanges::default()
    };
    let rules = RouteRules {
        cache: Some(pages.name.clone()),
        cookies: CookieRules {
            flags: vec![FlagRule {
                name: Some(text("{header:X-Who}", Placeholder::OF_FIELDS)),
                changes: secure,
                words: Vec::new(),
            }],
            domains: vec![replacement("app.internal", "{host}")],
            paths: vec![replacement("/inner/", "/app/")],
        },
        ..RouteRules::default()
    };
    let mut config = cached(origin.backend(), pages);
    config.routes[0].rules = Some(Arc::new(rules));
    let front = start(config).unwrap();
    for (who, expected) in [
        ("a", "a=1; Domain=a; Path=/app/x; Secure"),
        ("b", "a=1; Domain=a; Path=/app/x"),
        ("a", "a=1; Domain=a; Path=/app/x; Secure"),
    ] {
        let got = get_as(&front, "/page", &format!("X-Who: {who}\r\n"));
        assert_eq!(field(&got, "set-cookie"), Some(expected), "{who}");
    }
    assert_eq!(origin.count("/page"), 1);
}
