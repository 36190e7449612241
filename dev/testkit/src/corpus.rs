//! The committed corpora of the fuzz targets, replayed in tests.
//!
//! The corpus of a target is `dev/fuzz/corpus/TARGET.txt`: a line for each input, its name and behind a space its
//! bytes as [`slice::escape_ascii`] writes them.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

/// Reads a file of inputs; each comes with its name.
///
/// # Errors
/// The file cannot be read, or a line is not an input.
pub fn read_corpus(path: &Path) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let input = |line: &str| {
        let (name, escaped) = line.split_once(' ')?;
        Some((name.to_owned(), unescape(escaped)?))
    };
    let mut inputs = Vec::new();
    for line in text.lines() {
        inputs.push(input(line).with_context(|| format!("no input: {line}"))?);
    }
    Ok(inputs)
}

/// Undoes [`slice::escape_ascii`]; `None` if the text is invalid.
fn unescape(escaped: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'\\' => match rest.next()? {
                b't' => b'\t',
                b'r' => b'\r',
                b'n' => b'\n',
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
                }
                itself => itself,
            },
            byte => byte,
        });
    }
    Some(bytes)
}

/// Calls `body`, the code that the fuzzer runs, with every input of a target's corpus.
///
/// # Panics
/// The corpus is missing or empty, or `body` panics.
#[expect(
    clippy::print_stdout,
    reason = "tells the input, only if its run fails"
)]
pub fn replay_corpus(target: &str, body: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    let path = corpus.join(format!("{target}.txt"));
    let inputs = read_corpus(&path).expect("the corpus is committed");
    assert!(!inputs.is_empty(), "{} is empty", path.display());
    for (name, input) in inputs {
        println!("{target}: {name}");
        body(&input);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_bytes_are_read_as_they_were_written() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unescape(&bytes.escape_ascii().to_string()), Some(bytes));
        for wrong in ["\\", "\\x1", "\\xzz"] {
            assert_eq!(unescape(wrong), None, "{wrong}");
        }
    }
}
