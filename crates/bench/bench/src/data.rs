//! `--data-file`: reads a CSV file (RFC 4180), whose cells `{{csv COLUMN}}` puts into requests.

use catamaran_load::plan::{Row, Table};
use csv::{ByteRecord, ErrorKind, Position, ReaderBuilder};

use crate::refusal::Refusal;
use crate::settings;

/// Reads the CSV file at `path` as a table.
///
/// # Errors
/// [`Refusal::File`] if the file cannot be read; [`Refusal::Line`] with the line at fault.
pub(crate) fn read(path: &str) -> Result<Table, Refusal> {
    table(&settings::file(path)?).map_err(|(line, what)| Refusal::Line {
        path: path.to_owned(),
        line,
        what,
    })
}

/// Reads the table from the file's bytes: its first line has the columns' names. The error is the
/// line at fault and why.
fn table(text: &[u8]) -> Result<Table, (u64, String)> {
    // A byte order mark is not part of the first name.
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
    let mut reader = ReaderBuilder::new().from_reader(text);
    let mut lines = DataLines::new(text);
    let headers = reader
        .byte_headers()
        .map_err(|error| fault(&error, &mut lines))?;
    let columns = column_names(headers).map_err(|what| (1, what))?;
    let mut rows = Vec::new();
    let mut record = ByteRecord::new();
    while reader
        .read_byte_record(&mut record)
        .map_err(|error| fault(&error, &mut lines))?
    {
        rows.push(Row {
            line: lines.of(record.position()),
            cells: record.iter().map(<[u8]>::to_vec).collect(),
        });
    }
    if rows.is_empty() {
        Err((
            1,
            "there is no row: the first line has the columns' names, each other line their values"
                .to_owned(),
        ))
    } else {
        Ok(Table { columns, rows })
    }
}

/// The columns' names, without blanks around them. The error says which name is not UTF-8 or occurs twice.
fn column_names(headers: &ByteRecord) -> Result<Vec<String>, String> {
    let mut columns: Vec<String> = Vec::new();
    for bytes in headers {
        let Ok(name) = str::from_utf8(bytes.trim_ascii()) else {
            return Err("a column's name is not UTF-8".to_owned());
        };
        if columns.iter().any(|known| known == name) {
            return Err(format!("two columns have the name {name:?}"));
        }
        columns.push(name.to_owned());
    }
    Ok(columns)
}

/// Finds the line number of each record. The reader's own count is that of the last record's end,
/// before its line end and empty lines.
#[derive(Debug)]
struct DataLines<'a> {
    text: &'a [u8],
    /// The offset of the last record that was asked for, and the number of its line.
    offset: usize,
    line: u64,
}

impl<'a> DataLines<'a> {
    fn new(text: &'a [u8]) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
        }
    }

    /// The line in which the record at `position` begins; calls must come in the order of positions.
    fn of(&mut self, position: Option<&Position>) -> u64 {
        let stated = position.map_or(0, |position| position.byte() as usize);
        let from = stated.clamp(self.offset, self.text.len());
        // The reader's position may be before the last line's end and before empty lines.
        let is_line_end = |byte: &&u8| matches!(byte, b'\r' | b'\n');
        let start = from + self.text[from..].iter().take_while(is_line_end).count();
        let passed = self.text[self.offset..start].iter();
        self.line += passed.filter(|byte| **byte == b'\n').count() as u64;
        self.offset = start;
        self.line
    }
}

fn fault(error: &csv::Error, lines: &mut DataLines<'_>) -> (u64, String) {
    let line = lines.of(error.position());
    let what = match error.kind() {
        ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("the row has {len} cells, the first line {expected_len}"),
        _ => error.to_string(),
    };
    (line, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_bytes_and_may_be_quoted() {
        let text = b"\xEF\xBB\xBFid, full name\r\n1,\"a, \"\"b\"\"\nc\"\r\n\r\n2,\xFF\r\n";
        let table = table(text).unwrap();
        assert_eq!(table.columns, ["id", "full name"]);
        assert_eq!(table.rows.len(), 2);
        assert_eq!(table.rows[0].cells, [&b"1"[..], b"a, \"b\"\nc"]);
        assert_eq!(table.rows[1].cells, [&b"2"[..], b"\xFF"]);
        assert_eq!((table.rows[0].line, table.rows[1].line), (2, 5));
    }

    #[test]
    fn faults_have_their_lines() {
        for (text, line, expected) in [
            (
                "a,b\r\n1,2\r\n\r\n3\r\n",
                4,
                "the row has 1 cells, the first line 2",
            ),
            ("a,a\n1,2\n", 1, "two columns have the name \"a\""),
            ("a,b\n", 1, "there is no row"),
            ("", 1, "there is no row"),
        ] {
            let (at, what) = table(text.as_bytes()).unwrap_err();
            assert_eq!(at, line, "{text}");
            assert!(what.starts_with(expected), "{text}: {what}");
        }
    }
}
