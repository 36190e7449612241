//! Histograms as a log that HdrHistogram's tools read.
//!
//! One line per interval: a tag, when it began, how long it was, its maximum, and the histogram in
//! the V2 encoding, deflated, in base64; as `HistogramLogProcessor` and the libraries of other
//! languages read it. Values are microseconds; the maximum, which is there for the eye, is in
//! milliseconds. Times are arguments, because this crate has no clock. [`Log`] is such a file read
//! again, and several of them merged.

mod read;

use std::borrow::Cow;
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{
    IntervalLogWriterBuilder, IntervalLogWriterError, Tag,
};
pub use read::{Log, ReadFault};

use crate::Histogram;

/// The values recorded in a part of a run.
#[derive(Clone, Debug)]
pub struct Interval<'a> {
    /// The name of what was measured, one word; spaces and commas in it become underscores.
    pub tag: &'a str,
    /// The start of the interval, counted from the start of the run.
    pub start: Duration,
    /// The length of the interval.
    pub length: Duration,
    /// What was recorded.
    pub histogram: Cow<'a, Histogram>,
}

/// Writes a log of `intervals`, in the order of their starts, of a run that began at `start`. The iterator is advanced
/// only after the interval before was written, so that the histograms of a long run need not be in memory at once.
///
/// # Errors
/// `to` cannot be written.
pub fn write<'a>(
    to: &mut impl Write,
    start: SystemTime,
    intervals: impl IntoIterator<Item = Interval<'a>>,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Histogram log format version 1.3]")
        .add_comment("[Values are microseconds; Interval_Max is milliseconds]")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(1000.0)
        .begin_log_with(to, &mut serializer)?;
    for interval in intervals {
        let tag = interval.tag.replace(TAG_BREAKERS, "_");
        let counts = interval.histogram.counts();
        log.write_histogram(counts, interval.start, interval.length, Tag::new(&tag))
            .map_err(|error| match error {
                IntervalLogWriterError::IoError(error) => error,
                IntervalLogWriterError::SerializeError(error) => {
                    io::Error::other(format!("a histogram cannot be encoded: {error}"))
                }
            })?;
    }
    Ok(())
}

/// The characters that would end a tag.
const TAG_BREAKERS: [char; 5] = [',', ' ', '\n', '\r', '\t'];

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use hdrhistogram::Histogram as Counts;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    #[test]
    fn what_was_written_is_read_by_the_library() {
        let mut histogram = Histogram::new();
        (1..=1000).for_each(|micros| histogram.record_micros(micros * 10));
        let interval = Interval {
            tag: "raw, total",
            start: Duration::from_secs(1),
            length: Duration::from_millis(1500),
            histogram: Cow::Borrowed(&histogram),
        };
        let start = UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let mut bytes = Vec::new();
        write(&mut bytes, start, [interval]).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(
            text.starts_with("#[Histogram log format version 1.3]\n"),
            "{text}"
        );
        assert!(text.contains("#[StartTime: 1700000000.000 "), "{text}");
        let entries: Result<Vec<_>, _> = IntervalLogIterator::new(&bytes).collect();
        let entries = entries.unwrap();
        let Some(LogEntry::Interval(read)) = entries.last() else {
            panic!("no interval in {text}");
        };
        assert_eq!(read.tag().unwrap().as_str(), "raw__total");
        assert_eq!(read.start_timestamp(), Duration::from_secs(1));
        assert_eq!(read.duration(), Duration::from_millis(1500));
        let encoded = STANDARD.decode(read.encoded_histogram()).unwrap();
        let counts: Counts<u64> = Deserializer::new()
            .deserialize(&mut encoded.as_slice())
            .unwrap();
        assert_eq!(counts.len(), 1000);
        assert_eq!(
            counts.value_at_quantile(0.5),
            histogram.counts().value_at_quantile(0.5)
        );
    }
}
