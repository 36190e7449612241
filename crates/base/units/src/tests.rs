use super::*;

#[test]
fn reads_durations() {
    for (text, micros) in [
        ("0s", 0),
        ("800us", 800),
        ("200ms", 200_000),
        ("0.25ms", 250),
        ("5s", 5_000_000),
        ("1.50s", 1_500_000),
        ("1.5m", 90_000_000),
        ("2h", 7_200_000_000),
    ] {
        let duration = parse_duration(text);
        assert_eq!(duration, Ok(Duration::from_micros(micros)), "{text}");
    }
    assert_eq!(parse_duration("0.001us"), Ok(Duration::from_nanos(1)));
}

#[test]
fn says_why_a_text_is_no_duration() {
    for text in ["5", "0.5"] {
        let error = DurationError::Unit(text.to_owned());
        assert_eq!(parse_duration(text), Err(error), "{text}");
    }
    for text in [
        "", "s", "5 s", "-5s", "+5s", "5S", "1m30s", "5sec", "٥s", "1.s", ".5s", "1.2.3s", "1,5s",
        "1e3s", "infs", "1d",
    ] {
        assert_eq!(parse_duration(text), Err(DurationError::Syntax), "{text}");
    }
    for text in ["0.0001us", "0.3333333333333s", "0.00000000000000000000001h"] {
        assert_eq!(parse_duration(text), Err(DurationError::Fine), "{text}");
    }
    for text in ["18446744073709551615h", "99999999999999999999s"] {
        assert_eq!(parse_duration(text), Err(DurationError::Range), "{text}");
    }
}

#[test]
fn a_lifetime_may_be_in_days() {
    let hours = |count: u64| Ok(Duration::from_secs(count * 3600));
    for (text, lifetime) in [("14d", hours(336)), ("0.5d", hours(12)), ("36h", hours(36))] {
        assert_eq!(parse_lifetime(text), lifetime, "{text}");
    }
    for text in ["", "d", "14", "14 d", "14days", "-1d", "1d12h"] {
        assert_eq!(parse_lifetime(text), Err(DurationError::Lifetime), "{text}");
    }
    assert_eq!(parse_lifetime("999999999999d"), Err(DurationError::Range));
}

#[test]
fn reads_sizes() {
    for (text, bytes) in [
        ("0", 0),
        ("8192", 8192),
        ("8192.0", 8192),
        ("64KiB", 65536),
        ("1.5MiB", 1_572_864),
        ("1MB", 1_000_000),
        ("0.5kB", 500),
        ("7B", 7),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_size(text), Ok(bytes), "{text}");
    }
}

#[test]
fn says_why_a_text_is_no_size() {
    let message = parse_size("1.5k").map_err(|error| error.to_string());
    let expected = "has an ambiguous unit; write \"1.5KiB\" (1024) or \"1.5kB\" (1000)";
    assert_eq!(message, Err(expected.to_owned()));
    for text in ["", "KiB", "8 KiB", "-1", "8kib", "1.", ".5KiB"] {
        assert_eq!(parse_size(text), Err(SizeError::Syntax), "{text}");
    }
    for text in ["1.5", "0.3KiB"] {
        assert_eq!(parse_size(text), Err(SizeError::Fraction), "{text}");
    }
    for text in ["18446744073709551615GiB", "99999999999999999999"] {
        assert_eq!(parse_size(text), Err(SizeError::Range), "{text}");
    }
}

#[test]
fn writes_what_it_reads() {
    for text in ["0s", "1us", "1ms", "1500ms", "90s", "1m", "24h"] {
        assert_eq!(parse_duration(text).map(show_duration).as_deref(), Ok(text));
    }
    for text in ["0B", "1B", "8KiB", "1536KiB", "3MiB", "2GiB"] {
        assert_eq!(parse_size(text).map(show_size).as_deref(), Ok(text));
    }
    assert_eq!(show_duration(Duration::from_nanos(1999)), "1us");
}

#[test]
fn counts_have_commas() {
    for (count, text) in [
        (0, "0"),
        (999, "999"),
        (1000, "1,000"),
        (1_234_567, "1,234,567"),
    ] {
        assert_eq!(show_count(count), text);
    }
}
