//! Reads the lines of a head as its bytes arrive, and keeps it within limits.
//!
//! A scan remembers how far it has read, so a head that arrives one byte at a time costs no more than
//! one that arrives at once. What it refuses depends on the bytes alone, and not on how they were
//! split: a limit applies at the first byte beyond it, whether the line is complete or not.
//!
//! Each field line is read once: its end and any control character in it are the same search.

use bytes::{Buf, Bytes, BytesMut};
use catamaran_message::{Fields, name};
use memchr::memchr;

use crate::conn::Role;
use crate::error::Fault;
use crate::head::request_line;
use crate::head::words::{first_byte, first_control};
use crate::limits::Limits;
use crate::syntax::{is_token, is_token_text, trim};

/// A complete head, whose fields have been read.
#[derive(Debug)]
pub(crate) struct RawHead {
    /// The whole head, including the empty line at its end.
    pub(crate) bytes: Bytes,
    /// The length of the start line without its line ending.
    pub(crate) start_line: usize,
}

/// The progress of reading a head. Offsets are from the head's first byte, which is the first one of the input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// The number of bytes read so far.
    scanned: usize,
    /// The offset of the current line.
    line_at: usize,
    /// The number of complete lines.
    lines: usize,
    start_line: usize,
    /// The number of empty lines skipped before the head.
    skipped: usize,
}

/// The longest method accepted, in bytes; the longest registered one has 17.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

/// The result of looking for the end of a line.
enum LineEnd {
    /// The line is complete: `end` is the offset of its ending, `next` that of the next line.
    At { end: usize, next: usize },
    /// More bytes are needed.
    Later,
}

impl Scan {
    /// Whether no byte of a head has been read.
    pub(crate) fn is_untouched(&self) -> bool {
        self.scanned == 0
    }

    /// Takes the head out of `input` once all of it is there; `None` before. Its fields are read into `fields`,
    /// which must be empty at its first byte.
    pub(crate) fn advance(
        &mut self,
        role: Role,
        limits: &Limits,
        input: &mut BytesMut,
        fields: &mut Fields,
    ) -> Result<Option<RawHead>, Fault> {
        if self.scanned == 0 && !self.begin(role, limits, input)? {
            return Ok(None);
        }
        let limit_min = limits
            .head_bytes
            .min(limits.line_bytes)
            .min(limits.target_bytes);
        // An input shorter than every limit needs no checks.
        let may_pass_limits = input.len() > limit_min;
        loop {
            if self.lines > 0 && self.scanned == self.line_at && !may_pass_limits {
                self.read_plain_lines(limits, input, fields);
            }
            let stop = match self.lines {
                // Other bytes of the start line are checked when it is decoded.
                0 => memchr(b'\n', &input[self.scanned..]).map(|offset| self.scanned + offset),
                _ => self.field_line_end(input),
            };
            if may_pass_limits {
                self.check_size(role, limits, input, stop)?;
            }
            let LineEnd::At { end, next } = self.judge_end(role, input, stop)? else {
                return Ok(None);
            };
            let is_empty_line = end == self.line_at;
            if is_empty_line {
                let bytes = input.split_to(next).freeze();
                let start_line = std::mem::take(self).start_line;
                return Ok(Some(RawHead { bytes, start_line }));
            }
            if self.lines == 0 {
                if role == Role::Server && !has_version(&input[..end]) {
                    // A client of HTTP/0.9 sends no more lines and waits for an answer.
                    request_line::decode(&input[..end])?;
                }
                self.start_line = end;
            } else if self.lines > limits.fields {
                return Err(Fault::TooManyFields);
            } else {
                let line = &input[self.line_at..end];
                let has_crlf = next - end == 2;
                read_field(line, self.line_at, has_crlf, fields)?;
            }
            self.lines += 1;
            self.line_at = next;
            self.scanned = next;
        }
    }

    /// Reads field lines of the usual form quickly: whole lines that end in CR LF and have no fault. All others are
    /// left to the slower, exact rules.
    #[inline]
    fn read_plain_lines(&mut self, limits: &Limits, input: &[u8], fields: &mut Fields) {
        let (mut line_at, mut lines) = (self.line_at, self.lines);
        while lines <= limits.fields {
            let rest = &input[line_at..];
            // A line that begins with a control character is the empty one at the end, or has a fault.
            let Some(end @ 1..) = first_control(rest) else {
                break;
            };
            if !rest[end..].starts_with(b"\r\n")
                || read_field(&rest[..end], line_at, true, fields).is_err()
            {
                break;
            }
            line_at += end + 2;
            lines += 1;
        }
        if line_at > self.line_at {
            (self.line_at, self.lines, self.scanned) = (line_at, lines, line_at);
        }
    }

    /// Begins a head with its first byte; `false` if there is none. Empty lines before a request are skipped (RFC
    /// 9112 section 2.2).
    fn begin(&mut self, role: Role, limits: &Limits, input: &mut BytesMut) -> Result<bool, Fault> {
        loop {
            match (role, &input[..]) {
                (_, []) | (Role::Server, [b'\r']) => return Ok(false),
                (Role::Client, [b'H', ..]) => return Ok(true),
                (Role::Client, _) => return Err(Fault::StatusLine),
                (Role::Server, [b'\r', b'\n', ..]) => {
                    self.skipped += 1;
                    if self.skipped > limits.leading_lines {
                        return Err(Fault::LeadingLines);
                    }
                    input.advance(2);
                }
                (Role::Server, [b'\n', ..]) => return Err(Fault::BareLf),
                // A byte that begins no method shows another protocol, such as TLS: refuse it without waiting for a
                // whole line.
                (Role::Server, [byte, ..]) if !is_token(*byte) => return Err(Fault::Method),
                (Role::Server, _) => return Ok(true),
            }
        }
    }

    /// The offset of the LF of a field line, or of the byte that is wrong: a control character other than a tab, or
    /// a CR without LF after it.
    #[inline]
    fn field_line_end(&self, input: &[u8]) -> Option<usize> {
        let rest = &input[self.scanned..];
        let control = first_control(rest)?;
        match rest[control..] {
            // The byte after the CR, which should be LF.
            [b'\r', _, ..] => Some(self.scanned + control + 1),
            // Whether LF follows the CR is not known yet.
            [b'\r'] => None,
            _ => Some(self.scanned + control),
        }
    }

    /// Checks the ending of a line. `stop` is the offset of its LF, or of a wrong byte in it; `None`: neither has come.
    fn judge_end(
        &mut self,
        role: Role,
        input: &[u8],
        stop: Option<usize>,
    ) -> Result<LineEnd, Fault> {
        let Some(stop) = stop else {
            // A CR at the end of the input is examined again with the next bytes.
            let ends_in_cr = self.lines > 0 && input.last() == Some(&b'\r');
            self.scanned = input.len() - usize::from(ends_in_cr);
            return Ok(LineEnd::Later);
        };
        if input[stop] != b'\n' {
            let line = &input[self.line_at..stop];
            let colon = line.iter().position(|byte| *byte == b':');
            let has_name = colon.is_some_and(|colon| is_token_text(&line[..colon]));
            return Err(if has_name {
                Fault::FieldValue
            } else {
                Fault::FieldName
            });
        }
        let has_cr = stop > self.line_at && input[stop - 1] == b'\r';
        if !has_cr && role == Role::Server {
            return Err(Fault::BareLf);
        }
        Ok(LineEnd::At {
            end: stop - usize::from(has_cr),
            next: stop + 1,
        })
    }

    /// Checks the current line, up to `stop` or as far as it is there, against the limits on lines and heads. If two
    /// limits are exceeded, it reports the one that is exceeded at the earlier byte.
    fn check_size(
        &self,
        role: Role,
        limits: &Limits,
        input: &[u8],
        stop: Option<usize>,
    ) -> Result<(), Fault> {
        let line_max = if self.lines == 0 && role == Role::Server {
            // Method, target, version and the spaces between them.
            limits.target_bytes.saturating_add(METHOD_BYTES_MAX + 10)
        } else {
            limits.line_bytes
        };
        // One byte more for the CR.
        let line_end_max = self.line_at.saturating_add(line_max).saturating_add(1);
        let line_is_long = stop.unwrap_or(input.len()) > line_end_max;
        let head_is_large = stop.map_or(input.len(), |stop| stop + 1) > limits.head_bytes;
        let head_limit_is_first = limits.head_bytes <= line_end_max;
        if head_is_large && (head_limit_is_first || !line_is_long) {
            Err(Fault::HeadTooLarge)
        } else if line_is_long {
            Err(self.long_line(role, input))
        } else {
            Ok(())
        }
    }

    /// The fault of a start line or field line that is too long.
    fn long_line(&self, role: Role, input: &[u8]) -> Fault {
        if self.lines > 0 || role == Role::Client {
            return Fault::FieldTooLong;
        }
        match memchr(b' ', &input[..input.len().min(METHOD_BYTES_MAX + 1)]) {
            Some(_) => Fault::TargetTooLong,
            None => Fault::Method,
        }
    }
}

/// Reads a field line, which begins at `at` and has no control characters but tabs. `has_crlf` says that CR LF ends
/// it.
#[inline(always)]
fn read_field(line: &[u8], at: usize, has_crlf: bool, fields: &mut Fields) -> Result<(), Fault> {
    let colon = first_byte(line, b':').ok_or(Fault::FieldName)?;
    let (name, rest) = (&line[..colon], &line[colon + 1..]);
    let id = name::find(name);
    // Neither a space before the colon nor one that folds a line can be part of a name.
    if id.is_none() && !is_token_text(name) || name.len() > NAME_BYTES_MAX {
        return Err(Fault::FieldName);
    }
    let rest_at = at + colon + 1;
    let (value_at, value_len, is_line) = match rest {
        // The usual form: one space after the colon, none at the end.
        [b' ', first, .., last] if !is_space(*first) && !is_space(*last) => {
            (rest_at + 1, rest.len() - 1, has_crlf)
        }
        _ => {
            let value = trim(rest);
            let before = rest.iter().take_while(|byte| is_space(**byte)).count();
            (rest_at + before, value.len(), false)
        }
    };
    let value_range = value_at..value_at + value_len;
    fields.push(id, at..at + colon, value_range, is_line);
    Ok(())
}

fn is_space(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// Whether a request line ends like one of HTTP/1.x. Whether it is well-formed is checked later.
fn has_version(line: &[u8]) -> bool {
    let version = line.last_chunk::<9>();
    version.is_some_and(|version| version.starts_with(b" HTTP/1."))
}

/// The longest field name, in bytes: the list of fields cannot count further.
const NAME_BYTES_MAX: usize = 65_535;
