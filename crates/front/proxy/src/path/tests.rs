//! Tests what each path becomes and which are refused; the numbers in names are rows of the
//! hostile-request table.

use proptest::prelude::*;

use super::*;

fn check(path: &str, forward: &str, route: &str) {
    let normal = normalise(&Bytes::copy_from_slice(path.as_bytes()));
    let texts = normal.as_ref().map(|it| (&it.forward[..], it.route()));
    assert_eq!(texts, Ok((forward.as_bytes(), route.as_bytes())), "{path}");
}

fn check_refused(path: &str, fault: PathFault) {
    assert_eq!(
        normalise(&Bytes::copy_from_slice(path.as_bytes())),
        Err(fault),
        "{path}"
    );
}

#[test]
fn plain_paths_stay() {
    for path in ["/", "/a", "/a/b.c/", "*", "/a-b_c~d", "/a:b@c!$&'()*+,="] {
        check(path, path, path);
    }
}

#[test]
fn dot_segments_are_resolved_101() {
    check("/a/../b", "/b", "/b");
    check("/a/./b", "/a/b", "/a/b");
    check("/a/%2e%2e/b", "/b", "/b");
    check("/a/%2E./b", "/b", "/b");
    check("/a/b/..", "/a/", "/a/");
    check("/a/b/.", "/a/b/", "/a/b/");
    check("/a/..", "/", "/");
    check("/.a/..b/c..", "/.a/..b/c..", "/.a/..b/c..");
    check("/...", "/...", "/...");
}

#[test]
fn nothing_climbs_above_the_root() {
    for path in [
        "/..",
        "/../a",
        "/a/../../b",
        "/%2e%2e/a",
        "/./..",
        "//..",
        "/a/..//..",
    ] {
        check_refused(path, PathFault::AboveRoot);
    }
}

#[test]
fn parameters_are_forwarded_and_not_matched_103() {
    check("/admin;x=1", "/admin;x=1", "/admin");
    check("/admin;", "/admin;", "/admin");
    check("/a;x/b;y=z;w", "/a;x/b;y=z;w", "/a/b");
    check("/a;x/../admin", "/admin", "/admin");
    check(
        "/app/page;jsessionid=AB.n1",
        "/app/page;jsessionid=AB.n1",
        "/app/page",
    );
    check("/;x/admin", "/;x/admin", "/admin");
    check("/a%3Bb", "/a%3Bb", "/a;b");
}

#[test]
fn dots_in_disguise_are_refused_103() {
    for path in [
        "/a/..;/admin",
        "/a/.;x/b",
        "/..;x=y",
        "/a/%2e%2e;/b",
        "/a/..%2fadmin",
        "/a/..%2Fadmin",
        "/a/%2e%2e%2fadmin",
        "/a/..%5cadmin",
        "/a/x%2f..%2fy",
        "/a/x%2f..",
        "/a/x%5C.",
        "/a/..\\b",
        "/a/x%2f..;p",
    ] {
        check_refused(path, PathFault::HiddenDots);
    }
}

#[test]
fn slashes_are_merged_104() {
    check("/a//b", "/a/b", "/a/b");
    check("//evil/x", "/evil/x", "/evil/x");
    check("///", "/", "/");
    check("//admin", "/admin", "/admin");
}

#[test]
fn escaped_controls_are_refused_106() {
    for path in ["/%00", "/a%0d%0ab", "/a%0a", "/%1F", "/%7f"] {
        check_refused(path, PathFault::EscapedControl);
    }
}

#[test]
fn nothing_is_decoded_twice_107() {
    check("/a/%252e%252e/b", "/a/%252e%252e/b", "/a/%2e%2e/b");
    check("/%2541", "/%2541", "/%41");
    check("/%252F", "/%252F", "/%2F");
}

#[test]
fn unreserved_escapes_are_decoded_109() {
    check("/%41dmin", "/Admin", "/Admin");
    check("/%7Euser/%61", "/~user/a", "/~user/a");
}

#[test]
fn reserved_escapes_are_forwarded_and_matched_decoded_110() {
    for (path, route) in [
        ("/a%3fb", "/a?b"),
        ("/a%23b", "/a#b"),
        ("/a%25b", "/a%b"),
        ("/a%2Fb", "/a\0b"),
        ("/a%2fb", "/a\0b"),
        ("/a%5cb", "/a\\b"),
        ("/adm%40in%3A%2B", "/adm@in:+"),
        ("/caf%C3%a9", "/café"),
    ] {
        check(path, path, route);
    }
}

#[test]
fn escaped_separators_have_further_readings() {
    let readings = |path: &'static str| -> Vec<String> {
        let normal = normalise(&Bytes::from_static(path.as_bytes())).unwrap();
        let text = |reading| String::from_utf8(reading).unwrap();
        normal.readings().map(text).collect()
    };
    assert_eq!(readings("/a/b@%40;x%2Fy"), [""; 0]);
    assert_eq!(readings("/a%2fb"), ["/a/b"]);
    assert_eq!(readings("/a%5Cb"), ["/a/b"]);
    assert_eq!(readings("/a/%2F%2f/b%2F"), ["/a/b/"]);
    assert_eq!(readings("/%252F"), [""; 0]);
    assert_eq!(
        readings("/a%2Fb%5Cc%2540"),
        ["/a/b\\c%40", "/a\0b/c%40", "/a/b/c%40"]
    );
}

#[test]
fn malformed_escapes_are_refused() {
    for path in ["/%", "/%4", "/%zz", "/a%2"] {
        check_refused(path, PathFault::Escape);
    }
}

proptest! {
    /// Normalising is idempotent, and a normal path has none of what normalising removes.
    #[test]
    fn a_normal_path_is_normal(path in "/[a.%25f2eE;/\\\\]{0,24}") {
        let Ok(normal) = normalise(&Bytes::from(path)) else { return Ok(()) };
        prop_assert_eq!(normalise(&normal.forward), Ok(normal.clone()));
        let segments: Vec<_> = normal.route().split(|&byte| byte == b'/').collect();
        prop_assert!(!segments.contains(&&b".."[..]) && !segments.contains(&&b"."[..]));
        prop_assert!(!normal.forward.windows(2).any(|pair| pair == b"//"));
        prop_assert!(normal.forward.starts_with(b"/") && normal.route().starts_with(b"/"));
    }

    /// The form for routes, and every further reading of it, is what a container makes of the
    /// forwarded path, whether it keeps escaped separators or decodes them.
    #[test]
    fn routes_see_what_containers_see(
        path in "/([a@.]|%40|%2f|%5C|%252F|%25|%3b|;[a%2F]?|/|%61|%2e){0,12}",
    ) {
        let Ok(normal) = normalise(&Bytes::from(path)) else { return Ok(()) };
        let mut seen: Vec<Vec<u8>> = vec![normal.route().to_vec()];
        seen.extend(normal.readings());
        for separators in [&b""[..], b"/", b"\\", b"/\\"] {
            let decoded = container(&normal.forward, separators);
            prop_assert!(seen.contains(&decoded), "{decoded:?} is not in {seen:?}");
        }
    }
}

/// Maps a path as a servlet container does (Servlet 6.0, section 3.5.2): it drops parameters,
/// decodes escapes, those in `separators` to a slash, and resolves empty and dot segments. `\0`
/// stands for an escaped slash that was kept.
fn container(path: &[u8], separators: &[u8]) -> Vec<u8> {
    let mut decoded = String::new();
    for segment in std::str::from_utf8(path).unwrap().split('/').skip(1) {
        let segment = segment.split(';').next().unwrap();
        let (first, escapes) = segment.split_once('%').unwrap_or((segment, ""));
        decoded.push('/');
        decoded.push_str(first);
        for escape in escapes.split('%').filter(|it| !it.is_empty()) {
            let byte = u8::from_str_radix(&escape[..2], 16).unwrap();
            decoded.push(match byte {
                byte if separators.contains(&byte) => '/',
                b'/' => '\0',
                byte => char::from(byte),
            });
            decoded.push_str(&escape[2..]);
        }
    }
    let mut resolved: Vec<&str> = Vec::new();
    let mut segments = decoded[1..].split('/').peekable();
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        match segment {
            "" | "." if is_last => resolved.push(""),
            "" | "." => {}
            ".." => assert!(resolved.pop().is_some() && !is_last, "refused before"),
            segment => resolved.push(segment),
        }
    }
    format!("/{}", resolved.join("/")).into()
}

#[test]
fn the_path_that_was_asked_for_stays_known() {
    let mut path = normalise(&Bytes::from_static(b"/a//b/%61;x=1")).unwrap();
    assert_eq!(path.asked()[..], *b"/a/b/a;x=1");
    for forwarded in ["/x", "/y"] {
        path.forward_as(Bytes::from_static(forwarded.as_bytes()));
        assert_eq!(path.asked()[..], *b"/a/b/a;x=1");
        assert_eq!(path.route(), b"/a/b/a");
    }
}
