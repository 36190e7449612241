//! Finds labels and the values after them in a text.
//!
//! A label may be anywhere in a line: logs put the time and a container's name before it, pages a
//! bullet, and some pages have lost their line ends. Its value is what follows it.

/// A part of a text, from which values are read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Scan<'a>(pub(super) &'a str);

impl<'a> Scan<'a> {
    /// The text after the first `label` without a letter or digit before it.
    pub(super) fn after(self, label: &str) -> Option<Self> {
        let at = self.find(label, 0)?;
        Some(Self(&self.0[at + label.len()..]))
    }

    /// The byte index of the first `label` from byte `from` on, without a letter or digit before it.
    pub(super) fn find(self, label: &str, from: usize) -> Option<usize> {
        let matches = self.0[from..].match_indices(label);
        let mut places = matches.map(|(offset, _)| from + offset);
        places.find(|place| {
            let before = self.0[..*place].chars().next_back();
            before.is_none_or(|letter| !letter.is_alphanumeric())
        })
    }

    /// The byte indexes of all places of `label`.
    pub(super) fn places(self, label: &str) -> Vec<usize> {
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(place) = self.find(label, from) {
            places.push(place);
            from = place + label.len();
        }
        places
    }

    /// The bytes at which reports begin. A report has the label `anchor`, after which `is_report`
    /// is true; `first` finds its beginning in the text between this anchor and the one before.
    pub(super) fn starts(
        self,
        anchor: &str,
        is_report: impl Fn(Self) -> bool,
        first: impl Fn(Self) -> Option<usize>,
    ) -> Vec<usize> {
        let mut from = 0;
        let mut starts = Vec::new();
        for place in self.places(anchor) {
            let end = place + anchor.len();
            if is_report(Self(&self.0[end..])) {
                starts.extend(first(Self(&self.0[from..place])).map(|first| from + first));
                from = end;
            }
        }
        starts
    }

    /// The first word as a number, without the marks that tables and markdown put around it; `None`
    /// if it is not a number.
    pub(super) fn number(self) -> Option<f64> {
        number(self.words().next()?)
    }

    /// The first word as a whole number, read as [`Self::number`] does.
    pub(super) fn count(self) -> Option<u64> {
        self.number().map(|number| number as u64)
    }

    /// The numbers up to the first word that is not one, or to the end of the line.
    pub(super) fn numbers(self) -> Vec<f64> {
        let line = Scan(self.0.lines().next().unwrap_or_default());
        line.words().map_while(number).collect()
    }

    /// The duration at the beginning, in milliseconds; it needs a unit.
    pub(super) fn millis(self) -> Option<f64> {
        duration(self.0).map(|(millis, _)| millis)
    }

    /// The durations at the beginning, in milliseconds, up to the first word that is not one.
    pub(super) fn all_millis(self) -> Vec<f64> {
        let mut unread = self.0;
        let mut durations = Vec::new();
        while let Some((millis, after)) = duration(unread) {
            durations.push(millis);
            unread = after;
        }
        durations
    }

    /// The size at the beginning, in bytes, with its unit: `250.00MB`, `677.73 KiB`. `step` is the factor from one unit
    /// to the next: 1,024, or 1,000 for some tools.
    pub(super) fn bytes(self, step: u32) -> Option<u64> {
        let is_gap = |letter: char| letter.is_whitespace() || is_mark(letter);
        let (value, unit) = numeral(self.0.trim_start_matches(is_gap))?;
        let power = match unit.split_whitespace().next()? {
            "B" | "bytes" => 0,
            "KB" | "kB" | "KiB" => 1,
            "MB" | "MiB" => 2,
            "GB" | "GiB" => 3,
            "TB" | "TiB" => 4,
            _ => return None,
        };
        Some((value * f64::from(step).powi(power)) as u64)
    }

    /// The rest of the line after its first comma and a blank.
    pub(super) fn after_comma(self) -> Option<Self> {
        let (_, rest) = self.0.lines().next()?.split_once(", ")?;
        Some(Self(rest))
    }

    /// Whether the line has at most one word, besides marks.
    pub(super) fn is_one_word(self) -> bool {
        Scan(self.line()).words().nth(1).is_none()
    }

    /// The rest of the line.
    pub(super) fn line(self) -> &'a str {
        self.0.lines().next().unwrap_or_default().trim()
    }

    fn words(self) -> impl Iterator<Item = &'a str> {
        let words = self.0.split_whitespace();
        words.filter(|word| !word.chars().all(is_mark))
    }
}

/// The last word of `text` before the byte index `at`; `None` if there is none.
pub(super) fn word_before(text: &str, at: usize) -> Option<&str> {
    text[..at].split_whitespace().next_back()
}

/// The number at the beginning of `word`, without marks before it and a unit or sign after it.
pub(super) fn number(word: &str) -> Option<f64> {
    numeral(word.trim_start_matches(is_mark)).map(|(value, _)| value)
}

/// The number at the beginning of `text`, and the text after it. Some tools print numbers as in the user's locale: a
/// comma before exactly three digits separates thousands, any other comma is a decimal point.
fn numeral(text: &str) -> Option<(f64, &str)> {
    let is_part = |letter: char| letter.is_ascii_digit() || matches!(letter, '.' | ',');
    let length = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
    // A comma or dot at the end belongs to the sentence.
    let digits = text[..length].trim_end_matches([',', '.']);
    let after = &text[digits.len()..];
    let mut groups = digits.split(',').skip(1);
    let separates_thousands =
        groups.all(|group| group.split('.').next().unwrap_or_default().len() == 3);
    let decimal = if separates_thousands {
        digits.replace(',', "")
    } else {
        digits.replace('.', "").replace(',', ".")
    };
    let value = decimal.parse().ok()?;
    Some((value, after))
}

/// Reads a number with a unit of thousands, such as `251k` or `1.2M`.
pub(super) fn short_count(word: &str) -> Option<u64> {
    let factor = match word.chars().next_back()? {
        'k' | 'K' => 1e3,
        'm' | 'M' => 1e6,
        _ => 1.0,
    };
    Some((number(word)? * factor).round() as u64)
}

/// Reads the duration at the beginning of `text`, in milliseconds, such as `1.25ms`, `1m30s` or
/// `0.0041 secs`; also returns the text after it.
fn duration(text: &str) -> Option<(f64, &str)> {
    let mut unread =
        text.trim_start_matches(|letter: char| letter.is_whitespace() || is_mark(letter));
    let mut sum = None;
    while let Some((value, after_value)) = numeral(unread) {
        let with_unit = after_value.trim_start_matches(' ');
        let length = with_unit.find(|letter: char| !letter.is_alphabetic());
        let (unit, after_unit) = with_unit.split_at(length.unwrap_or(with_unit.len()));
        let factor = match unit {
            "ns" => 1e-6,
            "us" | "\u{b5}s" | "\u{3bc}s" => 1e-3,
            "ms" => 1.0,
            "s" | "sec" | "secs" | "seconds" => 1e3,
            "m" => 6e4,
            "h" => 3.6e6,
            _ => break,
        };
        sum = Some(sum.unwrap_or(0.0) + value * factor);
        unread = after_unit;
    }
    sum.map(|sum| (sum, unread))
}

/// Whether a letter is a mark that tables and markdown put around figures.
fn is_mark(letter: char) -> bool {
    matches!(letter, '|' | '\u{2502}' | '*' | ',' | ':' | '=' | '(' | '`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_may_stand_anywhere() {
        let text = Scan("web_1 | 12:00 Complete requests:   5000\nweb_1 | **Rate:** | 1.5 |");
        assert_eq!(
            text.after("Complete requests:").unwrap().count(),
            Some(5000)
        );
        assert_eq!(text.after("Rate:").unwrap().number(), Some(1.5));
        assert_eq!(text.after("requests").unwrap().number(), Some(5000.0));
        assert_eq!(text.after("quests:"), None);
        assert_eq!(text.after("Rate:** | 1.5 |").unwrap().number(), None);
        assert_eq!(Scan("a: 1 a: 2").places("a:"), [0, 5]);
    }

    #[test]
    fn numbers_as_locales_have_them() {
        for (text, value) in [
            ("400,1/s", 400.1),
            ("166,75", 166.75),
            ("42,676.68", 42_676.68),
            ("1,234", 1234.0),
            ("12,345,678", 12_345_678.0),
            ("1.234,5", 1234.5),
            ("0, read 3", 0.0),
            ("50.00.", 50.0),
        ] {
            assert_eq!(Scan(text).number(), Some(value), "{text}");
        }
    }

    #[test]
    fn numbers_and_durations() {
        assert_eq!(
            Scan(" 9 50 25.3 44 747 Percentage 5").numbers(),
            [9.0, 50.0, 25.3, 44.0, 747.0]
        );
        assert_eq!(Scan(" 9\n50").numbers(), [9.0]);
        for (text, millis) in [
            ("1.25ms", Some(1.25)),
            (" 812.00us 5", Some(0.812)),
            ("30.5\u{b5}s", Some(0.0305)),
            ("0.0041 secs", Some(4.1)),
            ("1m30.5s,", Some(90_500.0)),
            ("\u{2502} 16.45 ms \u{2502}", Some(16.45)),
            ("0,41 secs", Some(410.0)),
            ("1,234.5 ms", Some(1234.5)),
            ("12 clients", None),
            ("soon", None),
        ] {
            let tenths_of_us = |it: f64| (it * 1e4).round();
            let found = Scan(text).millis().map(tenths_of_us);
            assert_eq!(found, millis.map(tenths_of_us), "{text}");
        }
        assert_eq!(
            Scan(" 1ms, 2.5ms, 3s x 4s").all_millis(),
            [1.0, 2.5, 3000.0]
        );
        assert_eq!(Scan(" 21.70MB read").bytes(1024), Some(22_754_099));
        assert_eq!(Scan("\t2 KiB\n").bytes(1024), Some(2048));
        assert_eq!(Scan(" 11.1 kB read").bytes(1000), Some(11_100));
        assert_eq!(Scan("21.70").bytes(1024), None);
        assert_eq!(short_count("251k"), Some(251_000));
        assert_eq!(short_count("1.2M"), Some(1_200_000));
        assert_eq!(short_count("17"), Some(17));
    }
}
