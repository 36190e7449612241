//! Reads the table of strace -c.

use super::scan::Scan;
use super::{Calls, PublishedText, TextFault};

/// The bytes at which tables begin: at their heading, whose words a page may have put into cells.
pub(super) fn starts(text: &str) -> Vec<usize> {
    let places = text.match_indices(ANCHOR).map(|(start, _)| start);
    let is_table = |start: &usize| {
        let mut words = text[start + ANCHOR.len()..].split_whitespace();
        words.next() == Some("calls") && words.any(|word| word == "syscall")
    };
    places.filter(is_table).collect()
}

/// Reads rows of percent, seconds, microseconds per call, calls, errors if there were any, and
/// name. Rows are found by their words, since pages join lines, and logs put words before them.
pub(super) fn read(block: &str) -> Result<PublishedText, TextFault> {
    let rows = Scan(block).after("syscall").map_or(block, |rows| rows.0);
    let words: Vec<&str> = rows.split_whitespace().collect();
    let mut calls = Calls::default();
    let mut next = 0;
    while next < words.len() {
        let Some(row) = CallsRow::read(&words[next..]) else {
            next += 1;
            continue;
        };
        if row.name == "total" {
            break;
        }
        calls.counts.insert(row.name.to_owned(), row.calls);
        if let Some(errors) = row.errors {
            calls.errors.insert(row.name.to_owned(), errors);
        }
        next += row.words;
    }
    if calls.counts.is_empty() {
        Err(TextFault::Incomplete("strace -c", "syscall"))
    } else {
        Ok(PublishedText::Calls(calls))
    }
}

/// One row of the table: a system call.
struct CallsRow<'a> {
    calls: u64,
    errors: Option<u64>,
    name: &'a str,
    /// The number of words in the row.
    words: usize,
}

impl<'a> CallsRow<'a> {
    /// Reads a row from the words at its beginning; `None` if they are not a row.
    fn read(words: &[&'a str]) -> Option<Self> {
        let [share, seconds, rest @ ..] = words else {
            return None;
        };
        if !is_decimal(share) || !is_decimal(seconds) {
            return None;
        }
        // Microseconds for each call, calls, and errors if there were any.
        let numbers: Vec<Option<u64>> = rest.iter().take(3).map_while(|word| whole(word)).collect();
        let name = *rest.get(numbers.len())?;
        let (calls, errors) = match numbers[..] {
            // The sums are not used. In older versions their line has no microseconds per call.
            _ if name == "total" => (0, None),
            [_, calls] => (calls?, None),
            [_, calls, errors] => (calls?, errors),
            _ => return None,
        };
        Some(Self {
            calls,
            errors,
            name,
            // Share, seconds and name, and the numbers between them.
            words: 3 + numbers.len(),
        })
    }
}

/// Whether a word is a decimal number such as `12.34`, or `-` where times were not taken.
fn is_decimal(word: &str) -> bool {
    word == "-" || (word.contains('.') && word.parse::<f64>().is_ok())
}

/// Reads a whole number: `Some(None)` for `-`, where times were not taken; `None` if it is neither.
fn whole(word: &str) -> Option<Option<u64>> {
    match word {
        "-" => Some(None),
        word => word.parse().ok().map(Some),
    }
}

/// The head of a column that each table has.
const ANCHOR: &str = "usecs/call";
