//! Rewrites paths: replaces a route's prefix by another, and reverses that in responses; or replaces a whole path.
//!
//! Prefixes are compared by whole segments, decoded and without parameters, as routes are. The rest of the path stays
//! unchanged. It has no dot segments, however a container reads it, so a rewritten path never leaves the new prefix. A
//! rewritten path is not routed again, so there are no loops.

use bytes::Bytes;

use crate::config::template::Blank;
use crate::config::{Rewrite, Template};
use crate::path::{self, NormalPath, PathFault};

/// A route's prefix, and the prefix that replaces it.
#[derive(Clone, Debug)]
pub(crate) struct PathRewrite {
    from: Prefix,
    to: Prefix,
    /// Whether paths in responses are rewritten in reverse.
    pub(crate) reverse: bool,
    internal_hosts: Box<[Box<[u8]>]>,
}

/// The beginning of a path, cut at the end of a segment.
#[derive(Clone, Debug)]
pub(crate) struct Prefix {
    /// The prefix without a slash at its end; empty for `/`.
    text: Box<[u8]>,
    /// The segments in the [`path::compared`] form.
    segments: Box<[Bytes]>,
}

impl PathRewrite {
    /// Makes the rewrite of the prefix `from` that `config` describes.
    pub(super) fn new(from: &str, config: &Rewrite) -> Self {
        let hosts = config.internal_hosts.iter();
        Self {
            from: Prefix::new(from),
            to: Prefix::new(&config.to),
            reverse: config.reverse,
            internal_hosts: hosts.map(|it| it.as_bytes().into()).collect(),
        }
    }

    /// Rewrites the path to forward. Routes and policies still see the path that the client sent.
    pub(crate) fn forward(&self, path: &mut NormalPath) {
        if let Some(rewritten) = replace(&path.forward, &self.from, &self.to) {
            path.forward_as(rewritten.into());
        }
    }

    /// Rewrites a path of the backend into the one by which clients reach it. `None` if it is not below the new prefix
    /// or is malformed, or if a browser would read it as another path or even another host.
    pub(crate) fn back(&self, path: &[u8]) -> Option<Vec<u8>> {
        if !path.starts_with(b"/") || path.iter().any(|&byte| is_reread(byte)) {
            return None;
        }
        let normal = path::normalise(&Bytes::copy_from_slice(path)).ok()?;
        let back = replace(&normal.forward, &self.to, &self.from)?;
        // What begins with two slashes names a host (RFC 3986, section 4.2).
        (!back.starts_with(b"//")).then_some(back)
    }

    /// Whether `host`, in lower case, is one of `internal_hosts`, which backends use as names for this site.
    pub(crate) fn is_internal(&self, host: &[u8]) -> bool {
        self.internal_hosts.iter().any(|it| **it == *host)
    }
}

impl Prefix {
    pub(crate) fn new(path: &str) -> Self {
        let text = path.strip_suffix('/').unwrap_or(path);
        // Nothing stands before the first slash.
        let segments = text.split('/').skip(1);
        let compared = |segment: &str| path::compared(&Bytes::copy_from_slice(segment.as_bytes()));
        Self {
            segments: segments.map(compared).collect(),
            text: text.as_bytes().into(),
        }
    }

    /// The rest of a normalised path after the prefix: empty, or a text that begins with a slash. Parameters of the
    /// prefix's last segment are left out: after `https://example.org` they would change the host.
    pub(crate) fn rest<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        let mut rest = path;
        for wanted in &self.segments {
            match skip_segment(rest, wanted) {
                Some((behind, _)) => rest = behind,
                None => return b"",
            }
        }
        if rest.starts_with(b"/") { rest } else { b"" }
    }
}

/// Replaces the whole path to forward by `to`, filled in with what the route's expression captured. Parameters of the
/// last segment stay at the end, as a session id there is of the whole path.
///
/// # Errors
/// The captured texts make a dot segment together with what stands around them.
pub(crate) fn replace_whole(path: &mut NormalPath, to: &Template) -> Result<(), PathFault> {
    let mut text = to.fill(|blank, text| match blank {
        Blank::Capture(group) => path.captured().write_in_path(*group, text),
        // The new path can only have captured texts.
        Blank::Placeholder(_) | Blank::Named(_) | Blank::Response(_) => {}
    });
    let last_segment = match memchr::memrchr(b'/', &path.forward) {
        Some(slash) => &path.forward[slash + 1..],
        None => &path.forward[..],
    };
    if let Some(parameters) = memchr::memchr(b';', last_segment) {
        text.extend_from_slice(&last_segment[parameters..]);
    }
    let mut segments = text.split(|&byte| byte == b'/');
    if segments.any(|segment| matches!(segment, b"." | b"..")) {
        return Err(PathFault::HiddenDots);
    }
    let normal = path::normalise(&text.into())?;
    path.forward_as(normal.forward);
    Ok(())
}

/// Whether browsers change this byte in a path: they read a backslash as a slash, and drop tabs and line ends (WHATWG
/// URL, section 4.4). With its prefix replaced by `/`, `/app/\evil.test` would lead to another host.
fn is_reread(byte: u8) -> bool {
    byte == b'\\' || byte.is_ascii_control()
}

/// Replaces the prefix `from` of a normalised path by `to`; `None` if the path does not begin with `from`.
fn replace(path: &[u8], from: &Prefix, to: &Prefix) -> Option<Vec<u8>> {
    // The target of OPTIONS for the whole server is no path.
    if path == b"*" {
        return None;
    }
    let (mut rest, mut parameters) = (path, &b""[..]);
    for wanted in &from.segments {
        (rest, parameters) = skip_segment(rest, wanted)?;
    }
    let mut replaced = Vec::with_capacity(to.text.len() + parameters.len() + rest.len() + 1);
    replaced.extend_from_slice(&to.text);
    if rest.is_empty() {
        // The last segment's parameters are those of the whole path, such as a session id.
        if to.text.is_empty() {
            replaced.push(b'/');
        }
        replaced.extend_from_slice(parameters);
    } else if !to.text.is_empty() {
        replaced.extend_from_slice(parameters);
    }
    replaced.extend_from_slice(rest);
    Some(replaced)
}

/// Skips the next segment; returns the rest and the segment's parameters. `None` if it is not the `wanted` segment.
fn skip_segment<'p>(mut path: &'p [u8], wanted: &[u8]) -> Option<(&'p [u8], &'p [u8])> {
    loop {
        let inner = path.strip_prefix(b"/")?;
        let end = inner.iter().position(|&byte| byte == b'/');
        let (segment, rest) = inner.split_at(end.unwrap_or(inner.len()));
        let name_end = segment.iter().position(|&byte| byte == b';');
        let (name, parameters) = segment.split_at(name_end.unwrap_or(segment.len()));
        // A segment that is nothing but parameters does not count: see `path::compared`.
        if name.is_empty() && !parameters.is_empty() && !rest.is_empty() {
            path = rest;
            continue;
        }
        // Most names need not be decoded, which copies them.
        let is_equal = name == wanted && !name.contains(&b'%');
        let is_wanted = is_equal || path::compared(&Bytes::copy_from_slice(name)) == wanted;
        return is_wanted.then_some((rest, parameters));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::config::{KnownNames, PathExpression};

    fn rewrite(from: &str, to: &str) -> PathRewrite {
        let config = Rewrite {
            to: to.to_owned(),
            reverse: true,
            internal_hosts: Vec::new(),
        };
        PathRewrite::new(from, &config)
    }

    fn forwarded(from: &str, to: &str, path: &str) -> String {
        let mut path = path::normalise(&Bytes::copy_from_slice(path.as_bytes())).unwrap();
        rewrite(from, to).forward(&mut path);
        String::from_utf8(path.forward.to_vec()).unwrap()
    }

    #[test]
    fn the_prefix_is_replaced_and_the_rest_stays() {
        for (from, to, path, expected) in [
            ("/shop", "/app", "/shop/x%20y;a=b", "/app/x%20y;a=b"),
            ("/shop", "/app", "/shop", "/app"),
            ("/shop/", "/app/", "/shop/", "/app/"),
            ("/shop", "/", "/shop", "/"),
            ("/shop", "/", "/shop/", "/"),
            ("/shop", "/", "/shop/x", "/x"),
            ("/", "/app", "/", "/app/"),
            ("/", "/app", "/app/x", "/app/app/x"),
            ("/", "/a/b", "/x", "/a/b/x"),
            ("/a/b", "/", "/a/b/c/d", "/c/d"),
            ("/adm@in", "/x", "/adm%40in/%2e/y", "/x/y"),
            ("/%C3%A4", "/x", "/%c3%a4/y", "/x/y"),
            (
                "/shop",
                "/app",
                "/shop;jsessionid=1.a",
                "/app;jsessionid=1.a",
            ),
            ("/shop", "/", "/shop;jsessionid=1.a", "/;jsessionid=1.a"),
            ("/shop", "/app", "/shop;v=1/x", "/app;v=1/x"),
            ("/shop", "/", "/shop;v=1/x", "/x"),
            ("/shop", "/app", "/;y/shop/x", "/app/x"),
            ("/", "/app", "*", "*"),
        ] {
            assert_eq!(forwarded(from, to, path), expected, "{from} {to} {path}");
        }
    }

    #[test]
    fn what_is_behind_a_prefix_begins_with_a_slash() {
        for (prefix, path, expected) in [
            ("/old", "/old/x/y", "/x/y"),
            ("/old/", "/old/x", "/x"),
            ("/old", "/old", ""),
            ("/old", "/old/", "/"),
            ("/old", "/old//x", "/x"),
            ("/", "/x", "/x"),
            ("/", "/", "/"),
            ("/", "*", ""),
            ("/old", "/old;@evil.test", ""),
            ("/old", "/old;@evil.test/x", "/x"),
            ("/adm@in", "/adm%40in/x%20y;a=b", "/x%20y;a=b"),
            ("/old", "/other", ""),
        ] {
            let path = path::normalise(&Bytes::copy_from_slice(path.as_bytes())).unwrap();
            let rest = Prefix::new(prefix).rest(&path.forward);
            assert_eq!(rest, expected.as_bytes(), "{prefix} {path:?}");
        }
    }

    fn whole(expression: &str, to: &str, path: &str) -> Result<String, PathFault> {
        let expression = PathExpression::parse(expression).unwrap();
        let to = Template::parse_with(to, KnownNames::NONE, Some(&expression)).unwrap();
        let mut path = path::normalise(&Bytes::copy_from_slice(path.as_bytes())).unwrap();
        path.capture(|path| expression.captured(path));
        replace_whole(&mut path, &to)?;
        Ok(String::from_utf8(path.forward.to_vec()).unwrap())
    }

    #[test]
    fn a_whole_path_has_what_was_captured_encoded_again() {
        for (expression, to, path, expected) in [
            (
                "^/shop/(?<id>[0-9]+)$",
                "/items/{id}",
                "/shop/12",
                "/items/12",
            ),
            ("^/(.*)$", "/new/{1}", "/a/b", "/new/a/b"),
            ("^(.*)$", "/new{1}", "/a%20b%3Fc%23d", "/new/a%20b%3Fc%23d"),
            ("^(.*)$", "/new{1}", "/a%3B%25%5C%2F", "/new/a%3B%25%5C%2F"),
            (
                "^(.*)$",
                "/new{1}",
                "/a,b@c:d=%C3%A4",
                "/new/a,b@c:d=%C3%A4",
            ),
            ("^(.*)$", "/new/{1}", "/x", "/new/x"),
            ("^/a(b)?$", "/n{1}/", "/a", "/n/"),
            ("^/a(b)?$", "/n/{1}/x", "/a", "/n/x"),
            (
                "^/(a)",
                "/n/{1}",
                "/a/b;jsessionid=1.x",
                "/n/a;jsessionid=1.x",
            ),
            ("^/(a)", "/n/{1}", "/a;v=1/b", "/n/a"),
        ] {
            let found = whole(expression, to, path);
            assert_eq!(found.as_deref(), Ok(expected), "{expression} {to} {path}");
        }
        for (expression, to, path) in [
            ("^/a(.)b(.*)$", "/n/{1}{2}", "/a.b./etc"),
            ("^/a(.*)b$", "/n/{1}/x", "/a..b"),
            ("^/a(.*)b$", "/n/.{1}", "/a.b"),
            ("^/a(.*)b$", "/n/.{1}", "/ab"),
            ("^/a(.*)$", "/n/.{1}", "/a.;x"),
            ("^/a(.*)$", "/n/{1}", "/a..%2Fx"),
        ] {
            let found = whole(expression, to, path);
            assert_eq!(
                found,
                Err(PathFault::HiddenDots),
                "{expression} {to} {path}"
            );
        }
    }

    #[test]
    fn routes_still_see_what_the_client_sent() {
        let mut path = path::normalise(&Bytes::from_static(b"/shop/x")).unwrap();
        rewrite("/shop", "/").forward(&mut path);
        assert_eq!(
            (&path.forward[..], path.route()),
            (&b"/x"[..], &b"/shop/x"[..])
        );
    }

    #[test]
    fn the_way_back_is_by_whole_segments() {
        for (from, to, path, expected) in [
            ("/shop", "/app", "/app/x", Some("/shop/x")),
            ("/shop", "/app", "/app", Some("/shop")),
            ("/shop", "/app", "/apple", None),
            ("/shop", "/app", "/app/../x", None),
            ("/shop", "/app", "/x/../app/y", Some("/shop/y")),
            ("/shop", "/app", "/app/..;/x", None),
            ("/shop", "/", "/x", Some("/shop/x")),
            ("/shop", "/", "/", Some("/shop/")),
            ("/", "/app", "/app/login", Some("/login")),
            ("/", "/app", "/app", Some("/")),
            ("/", "/app", "/other", None),
            ("/shop", "/", ".", None),
            ("/", "/app", "/app/\\evil.test", None),
            ("/", "/app", "/app\\/evil.test", None),
            ("/", "/app", "/app/\t/evil.test", None),
            ("/", "/app", "/app/\r\n/evil.test", None),
            ("/", "/app", "/app/\u{7f}/evil.test", None),
            ("/shop", "/app", "/app/a\\b", None),
            ("/", "/app", "/app//evil.test", Some("/evil.test")),
            ("/", "/app", "/app/;x//evil.test", Some("/;x/evil.test")),
            ("/", "/app", "/app;x//evil.test", Some("/evil.test")),
            ("/", "/app", "/app/%5Cevil.test", Some("/%5Cevil.test")),
        ] {
            let back = rewrite(from, to).back(path.as_bytes());
            let back = back.map(|it| String::from_utf8(it).unwrap());
            assert_eq!(back.as_deref(), expected, "{from} {to} {path}");
        }
    }

    proptest! {
        /// Whatever path a backend names, the rewritten one is a path of this site, never another host.
        #[test]
        fn the_way_back_never_names_a_host(
            from in prefix(), to in prefix(),
            rest in "([/\\\\;.a\\t\\r\\n\\x00\\x7f]|%5C|%2F|%09){0,8}",
        ) {
            let path = format!("{}/{rest}", to.strip_suffix('/').unwrap_or(&to));
            if let Some(back) = rewrite(&from, &to).back(path.as_bytes()) {
                // As browsers read it (WHATWG URL, section 4.4).
                let kept = back.iter().filter(|byte| !b"\t\r\n".contains(byte));
                let read: Vec<u8> = kept.map(|&byte| if byte == b'\\' { b'/' } else { byte }).collect();
                prop_assert!(read.starts_with(b"/") && !read.starts_with(b"//"), "{:?}", read);
            }
        }
    }

    fn prefix() -> impl Strategy<Value = String> {
        "(/(a|b|a%40|app)){1,3}|/".prop_map(|it| it)
    }

    proptest! {
        /// Whatever is captured, the new path is normal, below what stands before the first group, and has no query.
        #[test]
        fn a_whole_path_is_a_normal_path_below_its_beginning(
            path in "(/|[a.]|%2[eEfF53]|%3[bBfF]|%5[cC]|%C3|;|,|@){0,12}",
            expression in prop::sample::select(vec!["(.*)/(.*)", "^/?(.)(.*)$", "([^/]*)$()", "()(.+)"]),
            to in prop::sample::select(vec!["/n/{1}{2}", "/n/{2}/{1}", "/n/.{1}.{2}", "/n/{1}/{2}/x"]),
        ) {
            let path = format!("/{path}");
            let is_normal = path::normalise(&Bytes::copy_from_slice(path.as_bytes())).is_ok();
            if is_normal && let Ok(new) = whole(expression, to, &path) {
                let again = path::normalise(&Bytes::copy_from_slice(new.as_bytes()));
                prop_assert_eq!(&again.expect("a normal path").forward, new.as_bytes());
                prop_assert!(new.starts_with("/n/"), "{}", new);
                prop_assert!(new.bytes().all(|it| it.is_ascii_graphic() && !b"?#\\".contains(&it)), "{}", new);
            }
        }
    }

    proptest! {
        /// A path below the route's prefix is rewritten to one below the new prefix, and reversing that gives it back.
        #[test]
        fn nothing_leaves_the_prefix_and_all_comes_back(
            from in prefix(), to in prefix(),
            rest in "((/(a|b|%2e%2e|\\.\\.|a%2Fb|c;x=1|%20|))){0,5}",
        ) {
            let sent = format!("{}{rest}", from.strip_suffix('/').unwrap_or(&from));
            let sent = if sent.is_empty() { "/".to_owned() } else { sent };
            let rewrite = rewrite(&from, &to);
            if let Ok(path) = path::normalise(&Bytes::from(sent))
                && replace(&path.forward, &rewrite.from, &rewrite.from).is_some()
            {
                let mut rewritten = path.clone();
                rewrite.forward(&mut rewritten);
                let again = path::normalise(&rewritten.forward).expect("a normal path");
                prop_assert_eq!(&again.forward, &rewritten.forward);
                prop_assert!(replace(&again.forward, &rewrite.to, &rewrite.to).is_some());
                let back = rewrite.back(&rewritten.forward).expect("below the new prefix");
                let slash = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
                prop_assert_eq!(slash(&back), slash(&path.forward));
            }
        }
    }
}
