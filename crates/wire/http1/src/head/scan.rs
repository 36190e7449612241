//! Finds the end of a head as its bytes arrive, and keeps it within limits.
//!
//! A scan remembers how far it has read, so a head that arrives one byte at a time costs no more than
//! one that arrives at once. What it refuses depends on the bytes alone, and not on how they were
//! split: a limit applies at the first byte beyond it, whether the line is complete or not.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::conn::Role;
use crate::error::Fault;
use crate::head::request_line;
use crate::limits::Limits;
use crate::syntax::is_token;

/// A complete head, not yet taken apart.
#[derive(Debug)]
pub(crate) struct RawHead {
    /// All of it, the empty line at its end too.
    pub(crate) bytes: Bytes,
    /// Length of the start line without its ending.
    pub(crate) start_line: usize,
    /// Where the first field line begins.
    pub(crate) fields_at: usize,
    /// Number of field lines.
    pub(crate) fields: usize,
    /// Offsets of the LFs of the first field lines, as far as they were found when the head was
    /// completed; 0 is not known.
    field_ends: [u32; ENDS_KEPT],
}

impl RawHead {
    /// The offset of the LF that ends the field line of this index, which begins at `at`.
    pub(crate) fn field_end(&self, index: usize, at: usize) -> Option<usize> {
        match self.field_ends.get(index) {
            Some(&end @ 1..) => usize::try_from(end).ok(),
            _ => memchr(b'\n', self.bytes.get(at..)?).map(|offset| at + offset),
        }
    }
}

/// How far the search for the end of a head has come. Offsets are from the head's first byte,
/// which is the first one of the input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// Bytes looked at.
    scanned: usize,
    /// Where the current line begins.
    line_at: usize,
    /// Complete lines.
    lines: usize,
    start_line: usize,
    fields_at: usize,
    /// Empty lines skipped before the head.
    skipped: usize,
}

/// Longer methods are refused; the longest registered one has 17 bytes.
pub(crate) const METHOD_BYTES_MAX: usize = 32;

impl Scan {
    /// Whether no byte of a head was seen.
    pub(crate) fn is_untouched(&self) -> bool {
        self.scanned == 0
    }

    /// Takes the head out of `input` once all of it is there.
    pub(crate) fn advance(
        &mut self,
        role: Role,
        limits: &Limits,
        input: &mut BytesMut,
    ) -> Result<Option<RawHead>, Fault> {
        if self.scanned == 0 && !self.begin(role, limits, input)? {
            return Ok(None);
        }
        let limit_min = limits
            .head_bytes
            .min(limits.line_bytes)
            .min(limits.target_bytes);
        let may_pass_limits = input.len() > limit_min;
        let mut field_ends = [0; ENDS_KEPT];
        loop {
            let lf = memchr(b'\n', &input[self.scanned..]).map(|offset| self.scanned + offset);
            if may_pass_limits {
                self.check_size(role, limits, input, lf)?;
            }
            let Some(lf) = lf else {
                self.scanned = input.len();
                return Ok(None);
            };
            let cr = lf > self.line_at && input[lf - 1] == b'\r';
            if !cr && role == Role::Server {
                return Err(Fault::BareLf);
            }
            let line_end = lf - usize::from(cr);
            if line_end == self.line_at {
                let bytes = input.split_to(lf + 1).freeze();
                let scan = std::mem::take(self);
                let (start_line, fields_at) = (scan.start_line, scan.fields_at);
                let fields = scan.lines - 1;
                return Ok(Some(RawHead {
                    bytes,
                    start_line,
                    fields_at,
                    fields,
                    field_ends,
                }));
            }
            if self.lines == 0 && role == Role::Server && !has_version(&input[..line_end]) {
                // Whoever speaks HTTP/0.9 waits for an answer to this line, not for more lines.
                request_line::decode(&input[..line_end])?;
            }
            if let Some(field) = self.lines.checked_sub(1)
                && let Some(end) = field_ends.get_mut(field)
            {
                // Zero in a head of four gigabytes, which no limit allows.
                *end = u32::try_from(lf).unwrap_or(0);
            }
            self.end_line(line_end, lf + 1);
            if self.lines - 1 > limits.fields {
                return Err(Fault::TooManyFields);
            }
        }
    }

    /// Looks at the first byte; `false` if there is none. Empty lines before a request are
    /// skipped (RFC 9112 section 2.2).
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
                // Another protocol, TLS for one, need not be waited for.
                (Role::Server, [byte, ..]) if !is_token(*byte) => return Err(Fault::Method),
                (Role::Server, _) => return Ok(true),
            }
        }
    }

    fn end_line(&mut self, line_end: usize, next_line: usize) {
        if self.lines == 0 {
            self.start_line = line_end;
            self.fields_at = next_line;
        }
        self.lines += 1;
        self.line_at = next_line;
        self.scanned = next_line;
    }

    /// Checks the current line, up to `lf` or so far, against the limits on lines and heads. Of
    /// two limits passed, the one whose first byte beyond comes first is named.
    fn check_size(
        &self,
        role: Role,
        limits: &Limits,
        input: &[u8],
        lf: Option<usize>,
    ) -> Result<(), Fault> {
        let line_max = if self.lines == 0 && role == Role::Server {
            // Method, target, version and the spaces between them.
            limits.target_bytes.saturating_add(METHOD_BYTES_MAX + 10)
        } else {
            limits.line_bytes
        };
        // One more for the CR.
        let line_end_max = self.line_at.saturating_add(line_max).saturating_add(1);
        let line_is_long = lf.unwrap_or(input.len()) > line_end_max;
        let head_is_large = lf.map_or(input.len(), |lf| lf + 1) > limits.head_bytes;
        match (line_is_long, head_is_large) {
            (false, false) => Ok(()),
            (true, false) => Err(self.long_line(role, input)),
            (false, true) => Err(Fault::HeadTooLarge),
            (true, true) if limits.head_bytes <= line_end_max => Err(Fault::HeadTooLarge),
            (true, true) => Err(self.long_line(role, input)),
        }
    }

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

/// Whether a request line ends as one of HTTP/1.x does. That it is well-formed is for later.
fn has_version(line: &[u8]) -> bool {
    let version = line.last_chunk::<9>();
    version.is_some_and(|version| version.starts_with(b" HTTP/1."))
}

/// How many field lines' ends are kept: most heads have no more fields.
const ENDS_KEPT: usize = 16;
