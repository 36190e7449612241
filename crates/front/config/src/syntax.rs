//! What is said where a file is no TOML, and how it is read all the same.
//!
//! A parser says what it expected of the next byte. Whoever wrote the line meant something else, which is
//! guessed here from the line; the rest of the file is then read as if the line had been right.

use std::borrow::Cow;
use std::ops::Range;

use toml::de::DeTable;

use crate::foreign;
use crate::include::shifted;
use crate::report::Finding;
use crate::signs::OddSign;

/// What is wrong with the syntax of a text, whose first byte has the offset `start`.
pub(crate) fn all_syntax(errors: &[toml::de::Error], text: &str, start: usize) -> Vec<Finding> {
    let mut findings: Vec<Finding> = errors.iter().map(|it| syntax(it, text, start)).collect();
    // The parser finds several faults in one bare value.
    findings.dedup_by(|one, other| one.span == other.span && one.message == other.message);
    findings
}

/// A text without odd signs, lines of other servers and habits of other formats, as far as they break its
/// syntax: in their place are plain signs or blanks of the same length, so that the rest is read as it was
/// meant. With what is said of them.
pub(crate) fn mended(text: &str) -> (Cow<'_, str>, Vec<Finding>) {
    let mut mended = Cow::Borrowed(text);
    let mut findings = Vec::new();
    while findings.len() < MENDED_MAX {
        let (_, errors) = DeTable::parse_recoverable(&mended);
        let spans = errors
            .iter()
            .map(|it| it.span().map_or(text.len(), |span| span.start));
        let Some((line, finding, plain)) = spans.into_iter().find_map(|at| mend(&mended, at))
        else {
            break;
        };
        findings.push(finding);
        let mut next = mended.into_owned();
        next.replace_range(line, &plain);
        mended = Cow::Owned(next);
    }
    (mended, findings)
}

/// The line on which a byte stands, what is to be said of it, and what it becomes.
fn mend(text: &str, at: usize) -> Option<(Range<usize>, Finding, String)> {
    let (start, line) = line_of(text, at);
    let place = start..start + line.len();
    if let Some(odd) = OddSign::in_line(line) {
        let at = start + odd.at..start + odd.at + odd.sign.len_utf8();
        let finding = Finding::fault(format!("syntax: here is {odd}"), at).hint(odd.hint());
        return Some((place, finding, OddSign::plain_line(line)));
    }
    if let Some((shown, answer)) = directive(line) {
        let at = start + line.len() - line.trim_start().len();
        let message = format!("syntax: `{shown}` is no key = value");
        let finding = Finding::fault(message, at..at + shown.len()).hint(answer);
        return Some((place, finding, " ".repeat(line.len())));
    }
    let habit = Habit::of(line, at.saturating_sub(start))?;
    let mut plain = line.to_owned();
    plain.replace_range(habit.at..=habit.at, habit.instead);
    let at = start + habit.at;
    let finding = Finding::fault(habit.message, at..at + 1).hint(habit.hint);
    Some((place, finding, plain))
}

/// A sign of one byte that other formats want and TOML does not.
struct Habit {
    /// Where it stands in its line.
    at: usize,
    /// What is to stand there.
    instead: &'static str,
    message: &'static str,
    hint: &'static str,
}

impl Habit {
    /// That of a line in which the parser stumbles over the byte `at`.
    fn of(line: &str, at: usize) -> Option<Self> {
        if let Some(at) = colon(line) {
            return Some(Self {
                at,
                instead: "=",
                message: "syntax: a colon stands between key and value",
                hint: "write `=`",
            });
        }
        let body = line.split(" #").next().unwrap_or_default().trim_end();
        let is_closed = |sign: char| body.matches(sign).count().is_multiple_of(2);
        let stumbles = line.get(at..).is_some_and(|it| it.starts_with(','));
        let is_it = body.ends_with(';') || body.ends_with(',') && stumbles && at + 1 == body.len();
        let at = (is_it && is_closed('"') && is_closed('\'')).then(|| body.len() - 1)?;
        Some(Self {
            at,
            instead: " ",
            message: "syntax: this does not belong behind a value",
            hint: "remove it",
        })
    }
}

/// Where the colon of a line such as `workers: 2` stands.
fn colon(line: &str) -> Option<usize> {
    let (key, value) = line.split_once(':')?;
    let is_part = |it: char| it.is_ascii_alphanumeric() || "_-.".contains(it);
    let is_key = !key.trim().is_empty() && key.trim().chars().all(is_part);
    (is_key && value.starts_with(' ') && !value.trim().is_empty()).then_some(key.len())
}

/// The line on which a byte stands, and where it begins.
fn line_of(text: &str, offset: usize) -> (usize, &str) {
    let end = text.trim_end().len();
    let offset = (0..=offset.min(end))
        .rev()
        .find(|&at| text.is_char_boundary(at));
    let before = &text[..offset.unwrap_or(0)];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (start, text[start..].lines().next().unwrap_or_default())
}

/// What is said of a line that another server's file could have.
fn directive(line: &str) -> Option<(String, String)> {
    let mut words = line.split_whitespace();
    let (first, second) = (words.next()?, words.next());
    if line.contains('=') || first.starts_with(['[', '#', '"', '\'']) {
        return None;
    }
    // With one blank between, so that it stands in the line as it is shown.
    let pair = second.map(|second| (format!("{first} {second}"), format!("{first}_{second}")));
    let pair = pair.filter(|(shown, _)| line.contains(shown.as_str()));
    let first = first.trim_end_matches([';', ':']);
    let alone = (first.to_owned(), first.to_owned());
    let mut named = pair.into_iter().chain([alone]);
    named.find_map(|(shown, name)| {
        let answers = foreign::answers(&name);
        let quoted = (format!("`{name}`"), format!("`{shown}`"));
        let answer = answers.join("; ").replace(&quoted.0, &quoted.1);
        (!answer.is_empty()).then_some((shown, answer))
    })
}

/// The parser's words, and ours where they do not say what to do. The text's first byte has the offset
/// `start`.
fn syntax(error: &toml::de::Error, text: &str, start: usize) -> Finding {
    let within = error.span().unwrap_or(text.len()..text.len());
    let message = error.message();
    if let Some((_, words, hint)) = PLAINER.iter().find(|it| message.starts_with(it.0)) {
        return Finding::fault(*words, shifted(within, start)).hint(*hint);
    }
    let bare = match message.starts_with("string values must be quoted") {
        true => Some(within.clone()),
        false => bare_value(text, within.start),
    };
    let Some(bare) = bare else {
        return Finding::fault(format!("syntax: {message}"), shifted(within, start));
    };
    let place = shifted(bare.clone(), start);
    let hint = match text.get(bare).unwrap_or_default() {
        "" => return Finding::fault("syntax: there is no value", place),
        "yes" | "on" => "write true".to_owned(),
        "no" => "write false".to_owned(),
        word if word.contains(char::is_whitespace) => "write one value".to_owned(),
        // Not shown: it may be a secret.
        _ => "write it in quotes".to_owned(),
    };
    Finding::fault("syntax: this is neither a number nor in quotes", place).hint(hint)
}

/// Where the value of `key = value` stands, if the parser stumbles in it and it is a text without quotes.
fn bare_value(text: &str, at: usize) -> Option<Range<usize>> {
    let (start, line) = line_of(text, at);
    let (key, value) = line.split_once('=')?;
    let value = value.split('#').next().unwrap_or_default();
    let begins = start + key.len() + 1 + value.len() - value.trim_start().len();
    let value = value.trim();
    let is_number = value
        .bytes()
        .all(|it| it.is_ascii_digit() || b"_+-".contains(&it));
    let is_bare = !value.starts_with(['"', '\'', '[', '{']) && !is_number;
    (is_bare && at >= begins).then(|| begins..begins + value.len())
}

/// How the parser begins, what is said instead, and what to do.
const PLAINER: &[(&str, &str, &str)] = &[
    (
        "invalid basic string, expected `\"`",
        "syntax: the quotes are not closed on this line",
        "close them",
    ),
    (
        "invalid literal string, expected `'`",
        "syntax: the quotes are not closed on this line",
        "close them",
    ),
    (
        "duplicate key",
        "syntax: this stands twice",
        "keep one; of a table, keep one header with all its keys",
    ),
];

/// Lines that are mended; a file with more is another server's, or none.
const MENDED_MAX: usize = 50;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a text, as `line: message; hint`.
    fn said(text: &str) -> Vec<String> {
        let (plain, findings) = mended(text);
        assert_eq!(plain.len(), text.len(), "{plain}");
        let (_, errors) = DeTable::parse_recoverable(&plain);
        let all = findings.into_iter().chain(all_syntax(&errors, &plain, 0));
        let shown = |it: Finding| {
            let at = it.span.map_or(0, |span| span.start);
            let line = text[..at].matches('\n').count() + 1;
            format!(
                "{line}: {}; {}",
                it.message.trim_start_matches("syntax: "),
                it.hint
            )
        };
        all.map(shown).collect()
    }

    #[test]
    fn habits_of_other_formats_are_named_once() {
        let bare = "this is neither a number nor in quotes; write it in quotes";
        for (text, expected) in [
            (
                "workers: 2\n",
                vec!["1: a colon stands between key and value; write `=`".to_owned()],
            ),
            (
                "[log]\nformat: json\n",
                vec![
                    "2: a colon stands between key and value; write `=`".to_owned(),
                    format!("2: {bare}"),
                ],
            ),
            (
                "via = \"a\";\nworkers = 2; # two\n",
                vec![
                    "1: this does not belong behind a value; remove it".to_owned(),
                    "2: this does not belong behind a value; remove it".to_owned(),
                ],
            ),
            (
                "workers = 2,\n",
                vec!["1: this does not belong behind a value; remove it".to_owned()],
            ),
            ("address = 127.0.0.1:8080\n", vec![format!("1: {bare}")]),
            ("allow = 10.0.0.0/8 # all\n", vec![format!("1: {bare}")]),
            ("timeout = 30s\n", vec![format!("1: {bare}")]),
            (
                "a = \"x\nb = 1\n",
                vec!["1: the quotes are not closed on this line; close them".to_owned()],
            ),
            (
                "[a]\nb = 1\n[a]\nc = 2\n",
                vec![
                    "3: this stands twice; keep one; of a table, keep one header with all its keys"
                        .to_owned(),
                ],
            ),
            (
                "allow = [\n  \"10.0.0.0/8\", # mine\n]\nvia = \"a; b:\"\n",
                vec![],
            ),
        ] {
            assert_eq!(said(text), expected, "{text}");
        }
    }
}
