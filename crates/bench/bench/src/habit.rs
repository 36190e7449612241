//! Refuses flags of wrk, hey, oha and h2load that ab does not have, with a hint at the flag that is
//! meant. This happens before anything is sent; ab mode has ab's rules.

use crate::refusal::Refusal;

/// The refusal of an unknown flag, with a hint if it is one of another tool's.
pub(crate) fn unknown(word: String) -> Refusal {
    match hint(&word) {
        Some(hint) => Refusal::Habit { word, hint },
        None => Refusal::UnknownFlag(word),
    }
}

/// The advice for another tool's flag, such as `for threads give -W N`.
pub(crate) fn hint(word: &str) -> Option<&'static str> {
    // hey takes its long names after one dash.
    let name = word.trim_start_matches('-');
    let habit = HABITS.iter().find(|(names, _)| names.contains(&name));
    habit.map(|(_, hint)| *hint)
}

/// Names of other tools' flags, without dashes, and the hint for them.
const HABITS: [(&[&str], &str); 14] = [
    (
        &["L", "latency", "u_latency"],
        "percentiles are in every report",
    ),
    (
        &["disable-keepalive", "no-keepalive"],
        "a connection is closed after each answer unless -k is given",
    ),
    (
        &["disable-redirects", "redirect"],
        "redirects are not followed",
    ),
    (
        &["disable-compression"],
        "nothing is decompressed; to ask for it give -H 'Accept-Encoding: gzip'",
    ),
    (&["cpus", "workers"], "for threads give -W N"),
    (&["clients"], "for clients give -c N"),
    (&["host"], "for another Host give -H 'Host: NAME'"),
    (
        &["a", "basic-auth"],
        "for Basic authorization give -A USER:PASSWORD",
    ),
    (
        &["insecure"],
        "certificates are not verified unless --verify is given",
    ),
    (&["no-tui", "no-progress"], "for no progress give -q"),
    (
        &["latency-correction", "query-per-second", "rps"],
        "give --rate N: latency then counts from when each request was due",
    ),
    (
        &["output-format", "format"],
        "for files give --json, --csv or --hdr",
    ),
    (
        &["max-concurrent-streams"],
        "for streams on a connection give --streams N",
    ),
    (
        &["http3"],
        "this client speaks HTTP/2 (--http2), HTTP/1.1, HTTP/1.0 and AJP13",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::Mode;
    use crate::settings::read;

    fn refused(mode: Mode, line: &str) -> Option<String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        read(&words, mode).err().map(|refusal| refusal.to_string())
    }

    #[test]
    fn habits_of_other_tools_meet_a_hint() {
        for (line, expected) in [
            ("-c 100 --latency http://h/", "percentiles are in every"),
            ("-L http://h/", "percentiles are in every"),
            ("-disable-keepalive http://h/", "unless -k is given"),
            ("--disable-keepalive http://h/", "unless -k is given"),
            ("-cpus 4 http://h/", "for threads give -W N"),
            ("--no-tui http://h/", "for no progress give -q"),
            ("-t2 -c100 -d10s http://h/", "give --duration 10s"),
            ("-q50 http://h/", "give --rate 50"),
            ("-z10s http://h/", "give --duration 10s"),
            ("-t 2 --duration 10s http://h/", "for threads give -W N"),
            ("--duration 10s -t 2 http://h/", "for threads give -W N"),
        ] {
            let refusal = refused(Mode::Ours, line).unwrap_or_default();
            assert!(refusal.contains(expected), "{line}: {refusal}");
        }
    }

    #[test]
    fn what_ab_gives_a_meaning_keeps_it() {
        for line in [
            "-t 2 -c 4 http://h/",
            "-d http://h/",
            "-dS http://h/",
            "-q http://h/",
            "-t 2 -t 3 http://h/",
        ] {
            assert_eq!(refused(Mode::Ours, line), None, "{line}");
        }
        assert_eq!(refused(Mode::Ab, "-L http://h/"), None);
        assert_eq!(refused(Mode::Ab, "-z 10s http://h/"), None);
    }

    #[test]
    fn no_habit_is_a_flag_of_ours() {
        for name in HABITS.iter().flat_map(|(names, _)| *names) {
            assert!(crate::flag::long(name).is_none(), "--{name}");
        }
    }
}
