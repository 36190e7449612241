//! The fields `traceparent` and `tracestate` (W3C Trace Context, Recommendation of November 2021).
//!
//! Only the syntax is here; [`crate::traces`] decides which traces are recorded. Every sequence of bytes can be read: what
//! the specification does not allow reads as `None`.

use std::num::{NonZeroU64, NonZeroU128};

use catamaran_message::Fields;
use catamaran_message::name::{TRACEPARENT, TRACESTATE};

/// The id of a trace; never all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceId(NonZeroU128);

/// The id of a span; never all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpanId(NonZeroU64);

/// The value of a `traceparent`: the span of the sender, in which the request was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceParent {
    pub(crate) trace: TraceId,
    pub(crate) span: SpanId,
    /// Whether the sender may have recorded its span.
    pub(crate) is_sampled: bool,
}

impl TraceId {
    pub(crate) fn random() -> Self {
        Self(NonZeroU128::new(fastrand::u128(1..)).unwrap_or(NonZeroU128::MIN))
    }

    pub(crate) fn digits(self) -> String {
        format!("{:032x}", self.0)
    }
}

impl SpanId {
    pub(crate) fn random() -> Self {
        Self::of(fastrand::u64(1..))
    }

    /// The id that is `count` places after this one in a series whose neighbours look unlike.
    pub(crate) fn after(self, count: u32) -> Self {
        let step = u64::from(count).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self::of(self.0.get().wrapping_add(step))
    }

    pub(crate) fn digits(self) -> String {
        format!("{:016x}", self.0)
    }

    fn of(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }
}

impl TraceParent {
    /// A parent with fixed ids, which stand for random ones in explanations.
    pub(crate) const SUPPOSED: Self = Self {
        trace: TraceId(NonZeroU128::MIN),
        span: SpanId(NonZeroU64::MIN),
        is_sampled: false,
    };

    /// Reads the parent of a request. `None` if there is no valid one, or if there are several.
    pub(crate) fn of(headers: &Fields) -> Option<Self> {
        let mut lines = headers.get_all(TRACEPARENT);
        match (lines.next(), lines.next()) {
            (Some(only), None) => Self::parse(only),
            (Some(_), Some(_)) | (None, _) => None,
        }
    }

    /// Reads the value of a `traceparent`. Of a version that is not known, the first four parts are read as those of
    /// version 00 (section 3.2.2, "Versioning").
    fn parse(text: &[u8]) -> Option<Self> {
        // `VV-TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT-SSSSSSSSSSSSSSSS-FF`: version, trace, span and flags.
        let (known, further) = text.split_first_chunk::<LEN>()?;
        if [2, 35, 52].iter().any(|&index| known[index] != b'-') {
            return None;
        }
        match (hex(&known[..2])?, further) {
            (0, []) | (1..=0xfe, [] | [b'-', ..]) => {}
            // Version 00 has no further parts, and there is no version ff.
            _ => return None,
        }
        let span = u64::try_from(hex(&known[36..52])?).ok()?;
        Some(Self {
            trace: TraceId(NonZeroU128::new(hex(&known[3..35])?)?),
            span: SpanId(NonZeroU64::new(span)?),
            is_sampled: hex(&known[53..])? & 1 == 1,
        })
    }

    /// Writes the fields of a request. `tracestate` stays, as one line, if the trace goes on and the list is valid; it has
    /// no meaning in another trace.
    pub(crate) fn write(self, goes_on: bool, headers: &mut Fields) {
        if goes_on && is_state(headers) {
            headers.join_lines(TRACESTATE, b",");
        } else {
            headers.remove(TRACESTATE);
        }
        headers.insert(TRACEPARENT, self.text());
    }

    /// The value, in version 00.
    pub(crate) fn text(self) -> String {
        let Self {
            trace,
            span,
            is_sampled,
        } = self;
        let flags = u8::from(is_sampled);
        format!("00-{:032x}-{:016x}-{flags:02x}", trace.0, span.0)
    }
}

/// The number that lower-case hexadecimal digits write, at most 32 of them.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// Whether the lines of `tracestate` are together a valid list (section 3.3.1). Empty members are allowed.
fn is_state(headers: &Fields) -> bool {
    let lines = headers.get_all(TRACESTATE);
    let members = lines.flat_map(|line| line.split(|byte| *byte == b','));
    let trimmed = members.map(<[u8]>::trim_ascii);
    let mut count = 0;
    for member in trimmed.filter(|member| !member.is_empty()) {
        count += 1;
        if count > MEMBERS_MAX || !is_member(member) {
            return false;
        }
    }
    true
}

/// Whether a text is `key=value`. A key is a name, or `tenant@system`, whose parts have limits of their own.
fn is_member(member: &[u8]) -> bool {
    let Some(equals) = memchr::memchr(b'=', member) else {
        return false;
    };
    let (key, value) = (&member[..equals], &member[equals + 1..]);
    let is_key = match memchr::memchr(b'@', key) {
        Some(at_sign) => {
            is_key_part(&key[..at_sign], u8::is_ascii_alphanumeric, 241)
                && is_key_part(&key[at_sign + 1..], u8::is_ascii_alphabetic, 14)
        }
        None => is_key_part(key, u8::is_ascii_alphabetic, 256),
    };
    let is_of_value = |byte: &u8| matches!(byte, b' '..=b'~') && !b",=".contains(byte);
    is_key && (1..=256).contains(&value.len()) && value.iter().all(is_of_value)
}

/// Whether a text, whose first byte must be as `is_first` tells, can be a part of a key.
fn is_key_part(part: &[u8], is_first: fn(&u8) -> bool, len_max: usize) -> bool {
    let is_allowed =
        |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/".contains(byte);
    let begins = part.first().is_some_and(is_first);
    begins && part.len() <= len_max && part.iter().all(is_allowed)
}

/// The length of a `traceparent` of version 00.
const LEN: usize = 55;

/// The most members of a `tracestate`.
const MEMBERS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn fields(sent: &[(&str, &str)]) -> Fields {
        let line = |(name, value): &(&str, &str)| match *name {
            "traceparent" => (TRACEPARENT, value.as_bytes().to_vec()),
            _ => (TRACESTATE, value.as_bytes().to_vec()),
        };
        sent.iter().map(line).collect()
    }

    /// What a backend gets of these lines of `tracestate` in a trace that goes on.
    fn passed(lines: &[&str]) -> Vec<String> {
        let sent: Vec<_> = lines.iter().map(|line| ("tracestate", *line)).collect();
        let mut headers = fields(&sent);
        let parent = TraceParent::parse(VALID.as_bytes()).unwrap();
        parent.write(true, &mut headers);
        assert_eq!(headers.get(TRACEPARENT), Some(VALID.as_bytes()));
        let left = headers.get_all(TRACESTATE);
        left.map(|line| String::from_utf8_lossy(line).into_owned())
            .collect()
    }

    #[test]
    fn a_parent_is_read_and_written_alike() {
        let parent = TraceParent::parse(VALID.as_bytes()).unwrap();
        assert_eq!(parent.trace.digits(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(parent.span.digits(), "00f067aa0ba902b7");
        assert!(parent.is_sampled);
        assert_eq!(parent.text(), VALID);
        let unsampled = VALID.replace("-01", "-00");
        let parent = TraceParent::parse(unsampled.as_bytes()).unwrap();
        assert!(!parent.is_sampled);
        assert_eq!(parent.text(), unsampled);
    }

    #[test]
    fn only_the_flag_that_is_known_is_passed_on() {
        for (flags, sampled) in [("ff", true), ("fe", false), ("03", true), ("02", false)] {
            let text = VALID.replace("-01", &format!("-{flags}"));
            let parent = TraceParent::parse(text.as_bytes()).unwrap();
            assert_eq!(parent.is_sampled, sampled, "{flags}");
        }
    }

    #[test]
    fn a_higher_version_is_read_by_its_first_four_parts() {
        let cc = VALID.replace("00-4", "cc-4");
        for text in [
            cc.clone(),
            cc.clone() + "-",
            cc.clone() + "-what-the-future",
        ] {
            let parent = TraceParent::parse(text.as_bytes());
            assert_eq!(
                parent.map(TraceParent::text).as_deref(),
                Some(VALID),
                "{text}"
            );
        }
        assert_eq!(TraceParent::parse((cc + ".what").as_bytes()), None);
    }

    #[test]
    fn what_is_not_valid_is_no_parent() {
        let zero_trace = VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32));
        let zero_span = VALID.replace("00f067aa0ba902b7", &"0".repeat(16));
        let wrong = [
            VALID.to_uppercase(),
            VALID.replace("00-4", "ff-4"),
            VALID.replace("00-4", "0-4"),
            VALID.replace("00-4", "0x-4"),
            zero_trace,
            zero_span,
            VALID.replace("-01", "-1"),
            VALID.replace("-01", "-0g"),
            VALID.replace("4b", "4g"),
            VALID.replace('-', "_"),
            format!("{VALID}-"),
            format!("{VALID}0"),
            format!(" {VALID}"),
            String::new(),
        ];
        for text in wrong {
            assert_eq!(TraceParent::parse(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn of_several_parents_none_counts() {
        let one = ("traceparent", VALID);
        assert!(TraceParent::of(&fields(&[one])).is_some());
        assert_eq!(TraceParent::of(&fields(&[one, one])), None);
        assert_eq!(TraceParent::of(&fields(&[])), None);
    }

    #[test]
    fn the_state_is_passed_on_as_one_line() {
        assert_eq!(passed(&["a=1"]), ["a=1"]);
        assert_eq!(passed(&["a=1, b=2", "c@d=x y"]), ["a=1, b=2,c@d=x y"]);
        assert_eq!(
            passed(&["a=1,,b=2,"]),
            ["a=1,,b=2,"],
            "empty members are allowed"
        );
        assert_eq!(passed(&["0tenant@system=1"]), ["0tenant@system=1"]);
        let most = vec!["a=1"; 32].join(",");
        assert_eq!(passed(&[&most]), [&*most]);
    }

    #[test]
    fn a_state_that_is_not_valid_is_dropped() {
        let many = vec!["a=1"; 33].join(",");
        let long = format!("a={}", "x".repeat(257));
        let key = format!("{}=1", "x".repeat(257));
        for line in [
            "a", "=1", "a=", "A=1", "0a=1", "a b=1", "a=1=2", "a=\u{e9}", "a@0b=1", "a@=1", "@b=1",
            &many, &long, &key,
        ] {
            assert_eq!(passed(&[line]), <[&str; 0]>::default(), "{line}");
            assert_eq!(passed(&["b=1", line]), <[&str; 0]>::default(), "{line}");
        }
    }

    #[test]
    fn a_new_trace_has_no_state_of_another() {
        let mut headers = fields(&[
            ("traceparent", "odd"),
            ("traceparent", VALID),
            ("tracestate", "a=1"),
        ]);
        let parent = TraceParent {
            trace: TraceId::random(),
            span: SpanId::random(),
            is_sampled: false,
        };
        parent.write(false, &mut headers);
        assert_eq!(TraceParent::of(&headers), Some(parent));
        assert!(!headers.contains(TRACESTATE));
    }

    #[test]
    fn ids_of_a_series_differ() {
        let first = SpanId::random();
        let mut ids: Vec<String> = (0..1000).map(|count| first.after(count).digits()).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 1000);
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(
            parent in proptest::collection::vec(any::<u8>(), 0..80),
            state in proptest::collection::vec(any::<u8>(), 0..80),
        ) {
            let mut headers: Fields = [(TRACEPARENT, &parent), (TRACESTATE, &state)].into_iter().collect();
            let read = TraceParent::of(&headers);
            let written = read.unwrap_or_else(|| TraceParent {
                trace: TraceId::random(),
                span: SpanId::random(),
                is_sampled: true,
            });
            written.write(read.is_some(), &mut headers);
            prop_assert_eq!(TraceParent::of(&headers), Some(written));
        }

        #[test]
        fn what_looks_like_a_parent_is_read_as_it_is_written(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?") {
            if let Some(parent) = TraceParent::parse(text.as_bytes()) {
                prop_assert_eq!(&parent.text()[..52], format!("00{}", &text[2..52]));
                prop_assert_eq!(TraceParent::parse(parent.text().as_bytes()), Some(parent));
            } else {
                prop_assert!(text.starts_with("ff") || text.starts_with("00") || text.contains(&"0".repeat(16)));
            }
        }
    }
}
