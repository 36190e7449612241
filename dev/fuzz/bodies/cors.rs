//! Checks origins of the configuration with any text, and the field `Origin` with any bytes.
//!
//! A plain function that panics on a finding: the fuzz target calls it, and so does the replay of the committed corpus
//! in the crate's own tests.

use catamaran_proxy::config::OriginPattern;

/// The input is a text for the key `origins`, a line end, and a value of `Origin`. A value that the text allows must
/// be one origin as browsers write it, with the scheme, host or domain, and port of the text.
pub(crate) fn origin(input: &[u8]) {
    let mut lines = input.splitn(2, |&byte| byte == b'\n');
    let text = String::from_utf8_lossy(lines.next().unwrap_or_default());
    let origin = lines.next().unwrap_or_default();
    let Ok(pattern) = OriginPattern::parse(&text) else {
        return;
    };
    let matches = pattern.matches(origin);
    match &pattern {
        OriginPattern::Any => assert!(matches),
        OriginPattern::Exact(exact) => {
            assert_eq!(matches, origin == exact.as_bytes());
            let again = OriginPattern::parse(exact);
            assert_eq!(again.as_ref(), Ok(&pattern), "{text}");
        }
        OriginPattern::Below {
            scheme,
            domain,
            port,
        } => {
            let inner = format!("{scheme}a{domain}{port}");
            assert!(
                pattern.matches(inner.as_bytes()) || inner.len() > 253,
                "{text}"
            );
            let itself = format!("{scheme}{domain}{port}");
            assert!(!pattern.matches(itself.as_bytes()), "{text}");
            if matches {
                below(origin, scheme, &format!("{domain}{port}"));
            }
        }
    }
}

/// Checks that an origin that is allowed below a domain is a single one, and ends with the domain.
fn below(origin: &[u8], scheme: &str, end: &str) {
    let origin = std::str::from_utf8(origin).expect("what is allowed is ASCII");
    assert!(
        origin.starts_with(scheme) && origin.ends_with(end),
        "{origin}"
    );
    let exact = OriginPattern::parse(origin);
    assert_eq!(exact, Ok(OriginPattern::Exact(origin.to_owned())));
}
