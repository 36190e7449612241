//! Checks which words of a command line may be targets.
//!
//! Flags of other load generators take values that ab's flags of the same letter do not take (`-q 50`
//! of hey, `-d 10s` of wrk), so a value can be left over. Such a word must not become a server that
//! gets load (`50` is the address 0.0.0.50). All of this is checked before anything is sent; ab mode
//! has ab's rules.

use crate::flag::Flag;
use crate::refusal::Refusal;

/// A word of the command line that is neither a flag nor a flag's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operand {
    pub(crate) text: String,
    /// Whether the operand is the first word of the command line.
    pub(crate) is_first: bool,
    /// The flag directly before the operand, if that flag takes no value.
    pub(crate) behind: Option<&'static Flag>,
}

/// Checks that each operand of a line is a target.
///
/// # Errors
/// [`Refusal::Reserved`], [`Refusal::Stray`] with the probable meaning of the word, or [`Refusal::Url`].
pub(crate) fn check(operands: &[Operand]) -> Result<(), Refusal> {
    let is_only = operands.len() == 1;
    for operand in operands {
        let text = &operand.text;
        if operand.is_first && RESERVED.contains(&text.as_str()) {
            return Err(Refusal::Reserved(text.clone()));
        }
        if has_scheme(text) {
            continue;
        }
        let mut hint = operand.behind.and_then(|flag| (flag.hint)(text, is_only));
        if hint.is_none() && !is_only {
            let scheme_hint = "with more than one target each needs a scheme, as in http://HOST/";
            hint = Some(scheme_hint.to_owned());
        }
        if let Some(hint) = hint {
            let word = text.clone();
            return Err(Refusal::Stray { word, hint });
        }
        check_bare(text)?;
    }
    Ok(())
}

/// Checks a target that may have no scheme.
///
/// # Errors
/// [`Refusal::Url`] for a word that is probably not a host.
pub(crate) fn check_bare(text: &str) -> Result<(), Refusal> {
    let refuse = |reason| {
        let url = text.to_owned();
        Err(Refusal::Url { url, reason })
    };
    if has_scheme(text) {
        return Ok(());
    }
    let is_number = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let is_address = text.parse::<std::net::Ipv4Addr>().is_ok();
    if !text.is_empty() && is_number(text) && !is_address {
        return refuse("a number alone is no host; write http://HOST/ for what you mean");
    }
    let host = text.split(['?', '#']).next().unwrap_or_default();
    if !text.is_empty() && !host.contains(['.', ':', '/']) && host != "localhost" {
        return refuse(
            "a single word may be a mistyped flag's value; for a host write http://HOST/",
        );
    }
    Ok(())
}

fn has_scheme(text: &str) -> bool {
    let over_unix = ["http+unix:", "ajp+unix:", "memcached+unix:"];
    text.contains("://") || over_unix.iter().any(|scheme| text.starts_with(scheme))
}

/// Words that are commands of `bench` if they come first, and not hosts.
const RESERVED: [&str; 3] = ["report", "merge", "knee"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flag;

    fn operand(text: &str) -> Operand {
        Operand {
            text: text.to_owned(),
            is_first: false,
            behind: None,
        }
    }

    #[test]
    fn a_lone_word_must_look_like_a_host() {
        for text in [
            "http://h/",
            "ajp://h",
            "http+unix:/run/a.sock",
            "localhost",
            "localhost?q",
            "example.com",
            "h:8080",
            "h/",
            "127.0.0.1",
            "::1",
        ] {
            assert_eq!(check(&[operand(text)]), Ok(()), "{text}");
        }
        for text in ["50", "0.5", "host", "10s", "GET", "8080", "1.2.3"] {
            let refusal = check(&[operand(text)]).unwrap_err();
            assert!(matches!(refusal, Refusal::Url { .. }), "{text}: {refusal}");
        }
    }

    #[test]
    fn of_several_each_has_a_scheme() {
        let two = |one, other| check(&[operand(one), operand(other)]);
        assert_eq!(two("http://a/", "ajp://b/"), Ok(()));
        for (one, other) in [
            ("http://a/", "b.c"),
            ("body.txt", "http://a/"),
            ("a.b", "c.d"),
        ] {
            assert!(
                matches!(two(one, other), Err(Refusal::Stray { .. })),
                "{one} {other}"
            );
        }
    }

    #[test]
    fn a_word_behind_a_flag_says_what_was_meant() {
        let url = operand("http://h/");
        for (text, flag, expected) in [
            ("50", "quiet", "--rate 50"),
            ("10s", "no-percentiles", "--duration 10s"),
            ("1.5s", "no-percentiles", "--duration 1.5s"),
            ("hello", "no-percentiles", "--data hello"),
            ("body.txt", "watchdog", "--data @body.txt"),
        ] {
            let stray = Operand {
                behind: flag::long(flag),
                ..operand(text)
            };
            let refusal = check(&[stray, url.clone()]).unwrap_err().to_string();
            assert!(refusal.ends_with(expected), "{text}: {refusal}");
        }
        for (text, flag) in [("example.com", "quiet"), ("h.d/", "no-percentiles")] {
            let target = Operand {
                behind: flag::long(flag),
                ..operand(text)
            };
            assert_eq!(check(&[target]), Ok(()), "{text}");
        }
        for (text, flag) in [("50", "quiet"), ("10s", "no-percentiles")] {
            let lone = Operand {
                behind: flag::long(flag),
                ..operand(text)
            };
            assert!(
                matches!(check(&[lone]), Err(Refusal::Stray { .. })),
                "{text}"
            );
        }
    }

    #[test]
    fn commands_to_come_are_no_hosts() {
        for text in RESERVED {
            let first = Operand {
                is_first: true,
                ..operand(text)
            };
            assert_eq!(check(&[first]), Err(Refusal::Reserved(text.to_owned())));
        }
        assert_eq!(check(&[operand("http://report/")]), Ok(()));
    }
}
