//! Templates for requests, compiled before the run, with the placeholders `{{n}}`, `{{uuid}}`,
//! `{{rand 1 6}}` and `{{csv COLUMN}}`.
//!
//! Values depend only on the seed, the request's number and the table, so a run can be repeated
//! exactly, whichever thread sends which request.

use std::io::Write as _;
use std::ops::RangeInclusive;

use thiserror::Error;

use crate::plan::{Row, Table};

/// A compiled text: literal parts and placeholders.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Literal(Vec<u8>),
    /// `{{n}}`: the request's number in the run.
    Number,
    /// `{{uuid}}`: a new random UUID.
    Uuid,
    /// `{{rand LOW HIGH}}`: a random whole number in this range.
    Random(RangeInclusive<i64>),
    /// `{{csv COLUMN}}`: the cell of this column in the request's row.
    Column(usize),
}

/// The part of a request that a text is for; it decides which bytes are allowed or escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The request target: bytes that are not allowed there are percent-encoded.
    Target,
    /// A header value: cells with control characters are refused when the text is compiled.
    Header,
    /// The body: all bytes are sent as they are.
    Body,
}

/// The reason why a text cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum TemplateFault {
    /// The text between braces is not a placeholder.
    #[error(
        "{{{{{0}}}}} is no placeholder: there are {{{{n}}}}, {{{{uuid}}}}, {{{{rand LOW HIGH}}}} \
         and {{{{csv COLUMN}}}}; for braces as they stand write \\{{{{{0}}}}}"
    )]
    Unknown(String),
    /// The bounds of `rand` are not two whole numbers in order.
    #[error("{{{{{0}}}}} needs two whole numbers, the lower one first, as in {{{{rand 1 6}}}}")]
    Range(String),
    /// The text uses a column, but there is no table.
    #[error("{{{{csv {0}}}}} needs a table: give --data-file FILE.csv")]
    NoTable(String),
    /// The table has no column of the name that the text uses.
    #[error("{{{{csv {column}}}}}: the table has no such column, but {columns}")]
    NoColumn {
        /// The name of the column in the text.
        column: String,
        /// The names of the table's columns.
        columns: String,
    },
    /// A cell for a header value has a control character.
    #[error(
        "{{{{csv {column}}}}}: the cell in line {line} of the table has a line break or another \
         control character, which a header cannot have"
    )]
    Cell {
        /// The name of the cell's column.
        column: String,
        /// The line of the table in which the row begins, from 1.
        line: u64,
    },
}

/// The values of one request's placeholders.
#[derive(Clone, Debug)]
pub(crate) struct Values<'a> {
    number: u64,
    random: fastrand::Rng,
    row: Option<&'a Row>,
}

impl<'a> Values<'a> {
    /// The values for request `number`, from 1. Rows of the table are used in turn.
    pub(crate) fn new(seed: u64, number: u64, table: Option<&'a Table>) -> Self {
        Self {
            number,
            random: crate::pace::random(seed ^ STREAM, number as usize),
            row: table.and_then(|table| table.row(number)),
        }
    }
}

impl Template {
    /// Compiles a text for the part `place` of a request.
    ///
    /// # Errors
    /// A placeholder is not valid; [`TemplateFault`] says why.
    pub(crate) fn compile(
        text: &[u8],
        place: Place,
        table: Option<&Table>,
    ) -> Result<Self, TemplateFault> {
        let mut parts = Vec::new();
        let (mut literal, mut rest) = (Vec::new(), text);
        while let Some(start) = find(rest, b"{{") {
            let (before, braces) = rest.split_at(start);
            literal.extend_from_slice(before);
            let Some((words, after)) = placeholder(braces) else {
                literal.push(b'{');
                rest = &braces[1..];
                continue;
            };
            rest = after;
            // A backslash makes the braces literal.
            if literal.last() == Some(&b'\\') {
                literal.pop();
                literal.extend_from_slice(&braces[..braces.len() - after.len()]);
                continue;
            }
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(compile_placeholder(words, place, table)?);
        }
        literal.extend_from_slice(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self { parts })
    }

    /// A template without placeholders: braces in `text` are literal.
    pub(crate) fn literal(text: &[u8]) -> Self {
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![Part::Literal(text.to_vec())]
        };
        Self { parts }
    }

    /// The text, if it has no placeholders; else `None`.
    pub(crate) fn as_plain(&self) -> Option<&[u8]> {
        match &self.parts[..] {
            [] => Some(&[]),
            [Part::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// Appends the text with these values to `out`.
    pub(crate) fn fill(&self, values: &mut Values<'_>, place: Place, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Number => write_number(values.number, out),
                Part::Uuid => uuid(&mut values.random, out),
                Part::Random(range) => write_number(values.random.i64(range.clone()), out),
                Part::Column(column) => {
                    let cell = values.row.and_then(|row| row.cells.get(*column));
                    put(cell.map_or(&[], |cell| &cell[..]), place, out);
                }
            }
        }
    }

    /// Appends the longest text that the template can become to `out`.
    pub(crate) fn fill_longest(&self, place: Place, table: Option<&Table>, out: &mut Vec<u8>) {
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.extend_from_slice(text),
                Part::Number => write_number(u64::MAX, out),
                // 32 digits and four hyphens.
                Part::Uuid => out.extend_from_slice(&[b'0'; 36]),
                // The number with the most signs, whatever the bounds are.
                Part::Random(_) => write_number(i64::MIN, out),
                Part::Column(column) => {
                    if let Some(table) = table {
                        out.extend_from_slice(&longest_cell(table, *column, place));
                    }
                }
            }
        }
    }
}

/// The longest cell of a column after it is escaped; empty if no row has one.
fn longest_cell(table: &Table, column: usize, place: Place) -> Vec<u8> {
    let cells = table.rows.iter().filter_map(|row| row.cells.get(column));
    let escaped = cells.map(|cell| {
        let mut text = Vec::new();
        put(cell, place, &mut text);
        text
    });
    escaped.max_by_key(Vec::len).unwrap_or_default()
}

/// The words in the braces at the beginning of `text`, and the text after them; `None`: these
/// braces are no placeholder, such as those of JSON.
fn placeholder(text: &[u8]) -> Option<(&str, &[u8])> {
    let inner = &text[2..];
    let end = find(&inner[..inner.len().min(WORDS_BYTES_MAX)], b"}}")?;
    let words = str::from_utf8(&inner[..end]).ok()?.trim_matches(' ');
    let is_plain = |character: char| !character.is_control() && !matches!(character, '{' | '}');
    let is_word = words.starts_with(|first: char| first.is_ascii_alphabetic());
    (is_word && words.chars().all(is_plain)).then_some((words, &inner[end + 2..]))
}

/// Compiles the words between braces to a placeholder.
fn compile_placeholder(
    words: &str,
    place: Place,
    table: Option<&Table>,
) -> Result<Part, TemplateFault> {
    match words.split_once(' ').unwrap_or((words, "")) {
        ("n", "") => Ok(Part::Number),
        ("uuid", "") => Ok(Part::Uuid),
        ("rand", bounds) => {
            let numbers: Result<Vec<i64>, _> =
                bounds.split_ascii_whitespace().map(str::parse).collect();
            match numbers.as_deref() {
                Ok(&[low, high]) if low <= high => Ok(Part::Random(low..=high)),
                _ => Err(TemplateFault::Range(words.to_owned())),
            }
        }
        ("csv", column) if !column.is_empty() => compile_column(column.trim(), place, table),
        _ => Err(TemplateFault::Unknown(words.to_owned())),
    }
}

/// Compiles `{{csv COLUMN}}`. For a header value, all cells of the column are checked.
fn compile_column(name: &str, place: Place, table: Option<&Table>) -> Result<Part, TemplateFault> {
    let table = table.ok_or_else(|| TemplateFault::NoTable(name.to_owned()))?;
    let mut columns = table.columns.iter();
    let Some(column) = columns.position(|known| known == name) else {
        return Err(TemplateFault::NoColumn {
            column: name.to_owned(),
            columns: table.columns.join(", "),
        });
    };
    if place == Place::Header {
        for row in &table.rows {
            if row.cells[column].iter().any(|byte| is_control(*byte)) {
                return Err(TemplateFault::Cell {
                    column: name.to_owned(),
                    line: row.line,
                });
            }
        }
    }
    Ok(Part::Column(column))
}

/// Whether a field value cannot contain `byte` (RFC 9110, section 5.5).
fn is_control(byte: u8) -> bool {
    byte != b'\t' && (byte < b' ' || byte == 0x7F)
}

/// Appends a cell of the table, with the escapes that its place needs.
fn put(cell: &[u8], place: Place, out: &mut Vec<u8>) {
    if place != Place::Target {
        return out.extend_from_slice(cell);
    }
    for byte in cell {
        let is_reserved = matches!(
            byte,
            b'"' | b'#' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}'
        );
        if byte.is_ascii_graphic() && !is_reserved {
            out.push(*byte);
        } else {
            write!(out, "%{byte:02X}").expect("a vector takes all");
        }
    }
}

fn write_number(number: impl std::fmt::Display, out: &mut Vec<u8>) {
    write!(out, "{number}").expect("a vector takes all");
}

/// Appends a random UUID of version 4 (RFC 9562, section 5.4).
fn uuid(random: &mut fastrand::Rng, out: &mut Vec<u8>) {
    let (version_mask, version) = (0xF << 76, 0x4 << 76);
    let (variant_mask, variant) = (0x3 << 62, 0x2 << 62);
    let random_bits = random.u128(..) & !version_mask & !variant_mask;
    let bits = random_bits | version | variant;
    let digits = format!("{bits:032x}");
    for (index, digit) in digits.bytes().enumerate() {
        // The form is 8-4-4-4-12 digits.
        if matches!(index, 8 | 12 | 16 | 20) {
            out.push(b'-');
        }
        out.push(digit);
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// The most bytes between opening and closing braces, the closing ones included: longer texts are not placeholders.
const WORDS_BYTES_MAX: usize = 128;

/// A constant by which the random numbers of placeholders differ from those of schedules.
const STREAM: u64 = 0x7465_6D70_6C61_7465;

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |line, cells: [&[u8]; 2]| Row {
            line,
            cells: cells.map(<[u8]>::to_vec).to_vec(),
        };
        Table {
            columns: vec!["id".to_owned(), "full name".to_owned()],
            rows: vec![row(2, [b"7", b"red shoes"]), row(3, [b"8", b"a\nb"])],
        }
    }

    fn filled(text: &str, place: Place, number: u64) -> String {
        let table = table();
        let template = Template::compile(text.as_bytes(), place, Some(&table)).unwrap();
        let (mut out, mut longest) = (Vec::new(), Vec::new());
        template.fill(&mut Values::new(1, number, Some(&table)), place, &mut out);
        template.fill_longest(place, Some(&table), &mut longest);
        assert!(out.len() <= longest.len(), "{text}");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_are_filled() {
        for (text, place, number, expected) in [
            ("/item/{{n}}?x={{ n }}", Place::Target, 3, "/item/3?x=3"),
            (
                "{{csv id}}/{{csv full name}}",
                Place::Target,
                1,
                "7/red%20shoes",
            ),
            ("{{csv full name}}", Place::Body, 2, "a\nb"),
            ("{{csv id}}", Place::Header, 3, "7"),
            ("{{rand 5 5}}", Place::Body, 1, "5"),
            ("", Place::Body, 1, ""),
        ] {
            assert_eq!(filled(text, place, number), expected, "{text}");
        }
    }

    #[test]
    fn braces_that_are_no_placeholders_stand() {
        for text in [
            r#"{"a":{"b":{{}}}}"#,
            r#"{{"a":1}}"#,
            "{{",
            "{{}}",
            "{{ \u{1}n}}",
            "{{{",
        ] {
            assert_eq!(filled(text, Place::Body, 1), text);
        }
        assert_eq!(filled(r"\{{n}} {{{n}}}", Place::Body, 4), "{{n}} {4}");
        assert_eq!(filled(r"\{{name}}", Place::Body, 4), "{{name}}");
    }

    #[test]
    fn random_values_follow_the_seed_and_the_number() {
        let text = "{{rand 1 1000000}} {{uuid}} {{uuid}}";
        let one = filled(text, Place::Body, 1);
        assert_eq!(one, filled(text, Place::Body, 1));
        assert_ne!(one, filled(text, Place::Body, 2));
        let words: Vec<&str> = one.split(' ').collect();
        assert_ne!(words[1], words[2]);
        let uuid: Vec<&str> = words[1].split('-').collect();
        assert_eq!(
            uuid.iter().map(|it| it.len()).collect::<Vec<_>>(),
            [8, 4, 4, 4, 12]
        );
        assert!(
            uuid[2].starts_with('4') && "89ab".contains(&uuid[3][..1]),
            "{one}"
        );
        for number in 1..1000 {
            let rolled: i64 = filled("{{rand -1 1}}", Place::Body, number)
                .parse()
                .unwrap();
            assert!((-1..=1).contains(&rolled));
        }
    }

    #[test]
    fn faults_say_what_would_be_right() {
        let fault = |text: &str, place, table: Option<&Table>| {
            Template::compile(text.as_bytes(), place, table)
                .unwrap_err()
                .to_string()
        };
        let table = table();
        for (text, place, table, expected) in [
            (
                "{{name}}",
                Place::Body,
                None,
                r"for braces as they stand write \{{name}}",
            ),
            (
                "{{rand 6 1}}",
                Place::Body,
                None,
                "{{rand 6 1}} needs two whole numbers",
            ),
            ("{{rand 1}}", Place::Body, None, "needs two whole numbers"),
            (
                "{{csv id}}",
                Place::Body,
                None,
                "needs a table: give --data-file",
            ),
            (
                "{{csv x}}",
                Place::Body,
                Some(&table),
                "no such column, but id, full name",
            ),
            (
                "{{csv full name}}",
                Place::Header,
                Some(&table),
                "the cell in line 3 of the table",
            ),
            (
                "{{csv}}",
                Place::Body,
                Some(&table),
                "{{csv}} is no placeholder",
            ),
        ] {
            let found = fault(text, place, table);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }
}
