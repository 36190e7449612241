//! What each path becomes, and what is refused; the numbers are rows of the hostile-request table.

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
    check("/a%3Bb", "/a%3Bb", "/a%3Bb");
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
    check("/a/%252e%252e/b", "/a/%252e%252e/b", "/a/%252e%252e/b");
    check("/%2541", "/%2541", "/%2541");
}

#[test]
fn unreserved_escapes_are_decoded_109() {
    check("/%41dmin", "/Admin", "/Admin");
    check("/%7Euser/%61", "/~user/a", "/~user/a");
}

#[test]
fn reserved_escapes_stay_as_received_110() {
    for path in [
        "/a%3fb",
        "/a%23b",
        "/a%25b",
        "/a%2Fb",
        "/a%2fb",
        "/a%5cb",
        "/caf%C3%a9",
    ] {
        let route = path
            .replace("%3f", "%3F")
            .replace("%2f", "%2F")
            .replace("%5c", "%5C");
        check(path, path, &route.replace("%a9", "%A9"));
    }
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
}
