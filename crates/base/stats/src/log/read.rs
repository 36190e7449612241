//! Reads logs, and merges those of several generators.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram as Counts;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, LogEntry,
};
use thiserror::Error;

use super::{Interval, write};
use crate::slice::MICROS_MAX;
use crate::{Histogram, Slice, SliceRecorder};

/// The histograms of a log, each with its tag and time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    entries: Vec<Entry>,
}

/// One line of a log: an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// The tag; empty if the line has none.
    tag: String,
    /// The start of the interval, since 1970.
    start: Duration,
    length: Duration,
    /// The values. A slice takes little memory, and a log may have thousands of lines.
    values: Slice,
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {reason}")]
pub struct ReadFault {
    /// The line with the fault, counted from 1.
    pub line: usize,
    /// What is wrong with the line.
    pub reason: String,
}

impl Log {
    /// Reads a log of microseconds, such as [`write()`] makes. Times are from the log's BaseTime, or
    /// from its StartTime where it has no BaseTime and they are too small to be dates.
    ///
    /// # Errors
    /// A line is neither a comment, nor a header, nor an interval; its histogram cannot be decoded,
    /// or has values above an hour, and so is not of microseconds.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadFault> {
        let mut log = Self::default();
        let mut reader = Reader::default();
        for (line, number) in bytes.split_inclusive(|byte| *byte == b'\n').zip(1..) {
            match reader.line(line) {
                Ok(entry) => log.entries.extend(entry),
                Err(reason) => {
                    let line = number;
                    return Err(ReadFault { line, reason });
                }
            }
        }
        Ok(log)
    }

    /// Merges logs into one. Time is divided into seconds from the earliest start. Intervals with the same tag that
    /// begin in the same second become one; those longer than a second are merged only with each other.
    #[must_use]
    pub fn merge(logs: impl IntoIterator<Item = Self>) -> Self {
        let entries: Vec<Entry> = logs.into_iter().flat_map(|log| log.entries).collect();
        let origin = origin(&entries);
        let mut merged: BTreeMap<(u64, bool, String), Entry> = BTreeMap::new();
        for entry in entries {
            let second = (entry.start - origin).as_secs();
            let key = (second, entry.length <= SECOND, entry.tag.clone());
            match merged.get_mut(&key) {
                Some(same) => same.add(&entry),
                None => drop(merged.insert(key, entry)),
            }
        }
        let mut log = Self {
            entries: merged.into_values().collect(),
        };
        log.entries.sort_by_key(|entry| entry.start);
        log
    }

    /// Whether the log has no interval.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All values of each tag, in the order of tags.
    #[must_use]
    pub fn totals(&self) -> BTreeMap<&str, Histogram> {
        let mut totals: BTreeMap<&str, Histogram> = BTreeMap::new();
        for entry in &self.entries {
            let total = totals.entry(&entry.tag).or_default();
            total.add_slice(&entry.values);
        }
        totals
    }

    /// Writes the log as [`write()`] does; intervals without a tag get the tag `untagged`.
    ///
    /// # Errors
    /// `to` cannot be written.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let origin = origin(&self.entries);
        let intervals = self.entries.iter().map(|entry| Interval {
            tag: match entry.tag.as_str() {
                "" => "untagged",
                tag => tag,
            },
            start: entry.start - origin,
            length: entry.length,
            histogram: Cow::Owned(Histogram::from(&entry.values)),
        });
        write(to, UNIX_EPOCH + origin, intervals)
    }
}

impl Entry {
    fn add(&mut self, other: &Self) {
        let end = (self.start + self.length).max(other.start + other.length);
        self.start = self.start.min(other.start);
        self.length = end - self.start;
        self.values.add(&other.values);
    }
}

/// The earliest start of the intervals; zero if there are none.
fn origin(entries: &[Entry]) -> Duration {
    let starts = entries.iter().map(|entry| entry.start);
    starts.min().unwrap_or_default()
}

/// The state of reading: the headers of the lines so far.
#[derive(Default)]
struct Reader {
    start_time: Duration,
    base_time: Option<Duration>,
    recorder: SliceRecorder,
}

impl Reader {
    /// Reads a line; `None` if it has no histogram.
    fn line(&mut self, line: &[u8]) -> Result<Option<Entry>, String> {
        let text = line.trim_ascii();
        let is_interval = !matches!(text.first(), None | Some(b'#' | b'"'));
        // The parser requires a line end, and skips what it does not understand.
        let line = [text, b"\n"].concat();
        match IntervalLogIterator::new(&line).next() {
            Some(Ok(LogEntry::Interval(interval))) if is_interval => {
                self.interval(&interval).map(Some)
            }
            Some(Ok(LogEntry::StartTime(time))) => {
                self.start_time = time;
                Ok(None)
            }
            Some(Ok(LogEntry::BaseTime(time))) => {
                self.base_time = Some(time);
                Ok(None)
            }
            _ if is_interval => Err("this is no interval of an HdrHistogram log".to_owned()),
            _ => Ok(None),
        }
    }

    fn interval(&mut self, interval: &IntervalLogHistogram<'_>) -> Result<Entry, String> {
        let timestamp = interval.start_timestamp();
        let base = match self.base_time {
            Some(base) => base,
            // The time is a date.
            None if timestamp > YEAR => Duration::ZERO,
            None => self.start_time,
        };
        let start = base.checked_add(timestamp).filter(|start| *start < FAR);
        let start = start.ok_or("its time is later than the year 9999")?;
        if interval.duration() > YEAR {
            return Err("it lasts longer than a year".to_owned());
        }
        let tag = interval.tag();
        Ok(Entry {
            tag: tag.map_or_else(String::new, |tag| tag.as_str().to_owned()),
            start,
            length: interval.duration(),
            values: self.values(interval.encoded_histogram())?,
        })
    }

    /// Decodes a histogram: base64 of a compressed or plain one.
    fn values(&mut self, encoded: &str) -> Result<Slice, String> {
        let base64 = STANDARD.decode(encoded);
        let decoded = base64.map_err(|error| format!("its histogram is not base64: {error}"))?;
        let bytes = inflated(decoded, HISTOGRAM_BYTES_MAX)?;
        let counts: Counts<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| format!("its histogram cannot be decoded: {error}"))?;
        if counts.max() > HIGHEST {
            return Err("it has values above an hour, so they are not microseconds".to_owned());
        }
        for bucket in counts.iter_recorded() {
            let times = u32::try_from(bucket.count_since_last_iteration()).unwrap_or(u32::MAX);
            self.recorder.record_many(bucket.value_iterated_to(), times);
        }
        Ok(self.recorder.take())
    }
}

/// Decompresses a histogram, and checks the length that its header states: the library would trust that number and
/// allocate up to 4 GB before it reads on.
fn inflated(bytes: Vec<u8>, max: usize) -> Result<Vec<u8>, String> {
    let bytes = match bytes.strip_prefix(&COMPRESSED) {
        Some(after_cookie) => {
            let compressed = after_cookie.get(size_of::<u32>()..).unwrap_or_default();
            let mut plain = Vec::new();
            // One byte more than allowed tells that there is more.
            let mut reader = ZlibDecoder::new(compressed).take(max as u64 + 1);
            let read = reader.read_to_end(&mut plain);
            read.map_err(|error| format!("its histogram cannot be decoded: {error}"))?;
            plain
        }
        None => bytes,
    };
    if bytes.len() > max {
        return Err(format!("its histogram is longer than {max} bytes"));
    }
    let field = bytes.get(4..8).and_then(|length| length.try_into().ok());
    let announced = field.map_or(0, u32::from_be_bytes) as usize;
    let present = bytes.len().saturating_sub(HEADER_BYTES);
    if announced > present {
        return Err(format!(
            "its histogram cannot be decoded: it announces {announced} bytes and has {present}"
        ));
    }
    Ok(bytes)
}

/// The first bytes of a compressed histogram in the V2 encoding; its length follows.
const COMPRESSED: [u8; 4] = 0x1C84_9314_u32.to_be_bytes();

/// The length of a histogram's header: two words of four bytes for its kind and length, and 32 bytes of parameters.
const HEADER_BYTES: usize = 40;

/// The largest histogram accepted, in bytes. One of an hour to three digits has at most 24,000 counts of nine bytes;
/// one of five digits, from other tools, some 3 million.
const HISTOGRAM_BYTES_MAX: usize = 32 << 20;

const SECOND: Duration = Duration::from_secs(1);

/// A start below this is counted from the beginning of the log and is not a date.
const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// The beginning of the year 9999, beyond which no date is accepted.
const FAR: Duration = Duration::from_secs(253_370_764_800);

/// The largest value accepted, in microseconds: an hour, and the rest of the bucket that contains it.
const HIGHEST: u64 = MICROS_MAX + MICROS_MAX / 500;

#[cfg(test)]
mod tests {
    use super::*;

    fn log(start: u64, intervals: &[(&str, u64, u64, &[u64])]) -> Vec<u8> {
        let intervals = intervals.iter().map(|(tag, start, length, values)| {
            let mut histogram = Histogram::new();
            values
                .iter()
                .for_each(|micros| histogram.record_micros(*micros));
            Interval {
                tag,
                start: Duration::from_millis(*start),
                length: Duration::from_millis(*length),
                histogram: Cow::Owned(histogram),
            }
        });
        let mut bytes = Vec::new();
        write(
            &mut bytes,
            UNIX_EPOCH + Duration::from_millis(start),
            intervals,
        )
        .unwrap();
        bytes
    }

    fn lines(log: &Log) -> Vec<(String, u128, u128, u64)> {
        let entries = log.entries.iter().map(|entry| {
            let (start, length) = (entry.start.as_millis(), entry.length.as_millis());
            (entry.tag.clone(), start, length, entry.values.count())
        });
        entries.collect()
    }

    #[test]
    fn a_log_is_what_was_written() {
        let bytes = log(
            1_700_000_000_250,
            &[
                ("connect", 0, 2500, &[80, 90]),
                ("total", 0, 1000, &[1, 2047, 2048, 123_456, MICROS_MAX]),
                ("total", 1000, 1000, &[]),
                ("total", 2000, 500, &[7]),
            ],
        );
        let log = Log::read(&bytes).unwrap();
        assert_eq!(
            lines(&log),
            [
                ("connect".to_owned(), 1_700_000_000_250, 2500, 2),
                ("total".to_owned(), 1_700_000_000_250, 1000, 5),
                ("total".to_owned(), 1_700_000_001_250, 1000, 0),
                ("total".to_owned(), 1_700_000_002_250, 500, 1),
            ]
        );
        let mut again = Vec::new();
        log.write(&mut again).unwrap();
        assert_eq!(
            String::from_utf8(again).unwrap(),
            String::from_utf8(bytes).unwrap()
        );
    }

    /// Two generators, of which one began 300 ms after the other.
    #[test]
    fn merged_seconds_are_those_of_both() {
        let one = log(
            5000,
            &[("total", 0, 1000, &[10, 20]), ("total", 1000, 1000, &[30])],
        );
        let other = log(
            5300,
            &[
                ("connect", 0, 2000, &[5]),
                ("total", 0, 1000, &[40]),
                ("total", 1000, 1000, &[50, 60]),
            ],
        );
        let logs = [&one, &other].map(|bytes| Log::read(bytes).unwrap());
        let merged = Log::merge(logs);
        assert_eq!(
            lines(&merged),
            [
                ("total".to_owned(), 5000, 1300, 3),
                ("connect".to_owned(), 5300, 2000, 1),
                ("total".to_owned(), 6000, 1300, 3),
            ]
        );
        let total = &merged.totals()["total"];
        assert_eq!((total.count(), total.max().as_micros()), (6, 60));
        assert_eq!(total.median().as_micros(), 30);
    }

    #[test]
    fn times_without_a_base_are_from_the_start_unless_they_are_dates() {
        let written = String::from_utf8(log(5000, &[("t", 1500, 1000, &[1])])).unwrap();
        let without_base: String = written
            .split_inclusive('\n')
            .filter(|line| !line.contains("BaseTime"))
            .collect();
        let start = |text: &str| Log::read(text.as_bytes()).unwrap().entries[0].start;
        assert_eq!(start(&without_base).as_millis(), 6500);
        let dated = without_base.replace("Tag=t,1.500,", "Tag=t,1700000000.500,");
        assert_eq!(start(&dated).as_millis(), 1_700_000_000_500);
    }

    /// The parser of the format skips such lines, and their requests would be missing.
    #[test]
    fn a_line_that_cannot_be_read_is_named() {
        let good = String::from_utf8(log(0, &[("total", 0, 1000, &[10])])).unwrap();
        let number = good.lines().count();
        let cut = good.trim_end();
        let cut = &cut[..cut.len() - 9];
        for (text, line, expected) in [
            (
                format!("{good}Tag=total,1.0,garbage\n"),
                number + 1,
                "no interval",
            ),
            ("{\"schema\":1}".to_owned(), 1, "no interval"),
            (
                format!("{good}Tag=total,1.000,1.000,0.010,????\n"),
                number + 1,
                "not base64",
            ),
            (
                format!("{good}Tag=total,1.000,1.000,0.010,AAAA\n"),
                number + 1,
                "decoded",
            ),
            (cut.to_owned(), number, "its histogram"),
            (
                format!("{good}Tag=t,99999999999999.000,1.000,0.010,AAAA\n"),
                number + 1,
                "9999",
            ),
        ] {
            let fault = Log::read(text.as_bytes()).unwrap_err();
            assert!(
                fault.line == line && fault.reason.contains(expected),
                "{fault} {text}"
            );
        }
    }

    /// A few bytes that announce gigabytes take no memory.
    #[test]
    fn a_length_that_is_not_there_is_refused() {
        use std::io::Write as _;

        use flate2::Compression;
        use flate2::write::ZlibEncoder;
        use hdrhistogram::serialization::{Serializer, V2Serializer};
        let mut plain = Vec::new();
        let counts = Counts::<u64>::new(3).unwrap();
        V2Serializer::new().serialize(&counts, &mut plain).unwrap();
        let encoded = |announced: u32, is_compressed: bool| {
            let mut bytes = plain.clone();
            bytes[4..8].copy_from_slice(&announced.to_be_bytes());
            if is_compressed {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&bytes).unwrap();
                let inner = encoder.finish().unwrap();
                let length = u32::try_from(inner.len()).unwrap().to_be_bytes();
                bytes = [&COMPRESSED[..], &length, &inner].concat();
            }
            bytes
        };
        let read = |announced, is_compressed| {
            let encoded = STANDARD.encode(encoded(announced, is_compressed));
            Log::read(format!("0.000,1.000,1.000,{encoded}\n").as_bytes())
        };
        let own = u32::try_from(plain.len() - HEADER_BYTES).unwrap();
        for is_compressed in [false, true] {
            assert!(read(own, is_compressed).is_ok(), "{is_compressed}");
            let fault = read(u32::MAX, is_compressed).unwrap_err();
            let expected = "announces 4294967295 bytes and has";
            assert!(fault.reason.contains(expected), "{fault}");
            let fault = inflated(encoded(own, is_compressed), HEADER_BYTES).unwrap_err();
            assert!(fault.contains("is longer than 40 bytes"), "{fault}");
        }
    }

    #[test]
    fn values_above_an_hour_are_no_microseconds() {
        use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
        let mut counts = Counts::<u64>::new(3).unwrap();
        counts.record(MICROS_MAX * 1000).unwrap();
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&counts, &mut bytes)
            .unwrap();
        let line = format!("0.000,1.000,1.000,{}\n", STANDARD.encode(bytes));
        let fault = Log::read(line.as_bytes()).unwrap_err();
        assert!(fault.reason.contains("above an hour"), "{fault}");
    }
}
