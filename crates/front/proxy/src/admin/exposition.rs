//! Writes metrics in Prometheus' text format, version 0.0.4, or as OpenMetrics 1.0.
//!
//! [`crate::admin::metrics`] decides which metrics are written. Each metric has a line for its help, one for its type,
//! and one for each sample. Backslashes and line feeds are escaped everywhere, quotes only in the values of labels.
//! OpenMetrics differs in three things: a family of counters is named without `_total`, quotes are escaped in the help,
//! too, and the page ends with `# EOF`.
//!
//! No library writes it. `prometheus-client`, whose encoder would take histograms that are summed over workers, writes
//! OpenMetrics only, escapes no help, and wants a registry of collectors and a type for each set of labels.
//! `prometheus` writes version 0.0.4 only, from values that it keeps itself. Either could replace the 100 lines from
//! [`Exposition`] on, for one format.

use std::fmt::{Display, Write as _};

use catamaran_upstream::BucketSums;

/// The format of a page of metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    /// Prometheus text format 0.0.4, which every scraper reads.
    #[default]
    Text,
    /// OpenMetrics 1.0, for scrapers that ask for it.
    OpenMetrics,
}

impl Format {
    /// Chooses the format by a scraper's Accept field: OpenMetrics if the field names it, unless its quality is 0; else
    /// the text format. Other qualities are ignored.
    pub(crate) fn accepted(accept: &str) -> Self {
        for range in accept.split(',') {
            let mut words = range.split(';').map(str::trim);
            let is_open_metrics = words.next() == Some("application/openmetrics-text");
            let is_zero = |word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000");
            if is_open_metrics && !words.any(is_zero) {
                return Self::OpenMetrics;
            }
        }
        Self::Text
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A metric: its name, type, help and labels, which all of its samples share.
#[derive(Debug)]
pub(crate) struct Family {
    /// The name of the metric; that of a counter ends in `_total`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The meaning of the metric, in one sentence.
    pub(crate) help: &'static str,
    /// The labels, each with its name and a description of its values.
    pub(crate) labels: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number that only grows, from 0 at the start of the process.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Durations in seconds, counted in buckets.
    Histogram,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// A page of metrics that is being written.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    format: Format,
    text: String,
}

/// The samples of one family, being written.
#[derive(Debug)]
pub(crate) struct Samples<'e> {
    family: &'static Family,
    text: &'e mut String,
}

impl Exposition {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            text: String::new(),
        }
    }

    /// Begins a family, whose samples follow. Each family is begun once.
    pub(crate) fn family(&mut self, family: &'static Family) -> Samples<'_> {
        let is_open_metrics = self.format == Format::OpenMetrics;
        let name = match family.name.strip_suffix("_total") {
            Some(without_total) if is_open_metrics => without_total,
            _ => family.name,
        };
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        escape(family.help, is_open_metrics, &mut self.text);
        let kind = family.kind.name();
        writeln!(self.text, "\n# TYPE {name} {kind}").expect("a string takes all");
        Samples {
            family,
            text: &mut self.text,
        }
    }

    pub(crate) fn into_text(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }
}

impl Samples<'_> {
    /// Writes a family's only sample, which has no labels.
    pub(crate) fn only(&mut self, value: impl Display) {
        self.sample(&[], value);
    }

    /// Writes a sample; `labels` are the values of the family's labels, in their order.
    pub(crate) fn sample(&mut self, labels: &[&str], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// Writes the samples of a histogram; `labels` are the values of the family's labels, in their order.
    pub(crate) fn histogram(&mut self, labels: &[&str], sums: &BucketSums) {
        for (bound, count) in sums.cumulative() {
            // With a fraction, as OpenMetrics has it: a series has one name in both formats.
            self.line("_bucket", labels, Some(&format!("{bound:?}")), count);
        }
        let count = sums.count();
        self.line("_bucket", labels, Some("+Inf"), count);
        self.line("_sum", labels, None, sums.seconds());
        self.line("_count", labels, None, count);
    }

    /// Writes a sample. `suffix` is appended to the family's name; `bound` becomes the label `le` of a bucket.
    fn line(&mut self, suffix: &str, labels: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "a value each");
        self.text.push_str(self.family.name);
        self.text.push_str(suffix);
        let names = self.family.labels.iter().map(|(name, _)| *name);
        let named = names.zip(labels.iter().copied());
        let mut separator = '{';
        for (name, label) in named.chain(bound.map(|bound| ("le", bound))) {
            self.text.push(separator);
            separator = ',';
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(label, true, self.text);
            self.text.push('"');
        }
        let has_labels = separator == ',';
        if has_labels {
            self.text.push('}');
        }
        writeln!(self.text, " {value}").expect("a string takes all");
    }
}

/// Appends a text with its backslashes and line feeds escaped, and with its quotes escaped if `quotes`.
fn escape(text: &str, quotes: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static CUPS: Family = Family {
        name: "cups_total",
        kind: Kind::Counter,
        help: "Cups of \"tea\" in C:\\ and\nbelow.",
        labels: &[("sort", "what is in it"), ("size", "how large")],
    };
    static HEAT: Family = Family {
        name: "heat_ratio",
        kind: Kind::Gauge,
        help: "How hot.",
        labels: &[],
    };

    #[test]
    fn to_the_byte() {
        let mut page = Exposition::default();
        let mut cups = page.family(&CUPS);
        cups.sample(&["earl \"grey\"\\\n", "é"], 2);
        cups.sample(&["", "l"], u64::MAX);
        page.family(&HEAT).only(0.5);
        let expected = "# HELP cups_total Cups of \"tea\" in C:\\\\ and\\nbelow.\n\
             # TYPE cups_total counter\n\
             cups_total{sort=\"earl \\\"grey\\\"\\\\\\n\",size=\"é\"} 2\n\
             cups_total{sort=\"\",size=\"l\"} 18446744073709551615\n\
             # HELP heat_ratio How hot.\n\
             # TYPE heat_ratio gauge\n\
             heat_ratio 0.5\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn open_metrics_to_the_byte() {
        let mut page = Exposition::new(Format::OpenMetrics);
        page.family(&CUPS).sample(&["", "l"], 1);
        let expected = "# HELP cups Cups of \\\"tea\\\" in C:\\\\ and\\nbelow.\n\
             # TYPE cups counter\n\
             cups_total{sort=\"\",size=\"l\"} 1\n\
             # EOF\n";
        assert_eq!(page.into_text(), expected);
    }

    #[test]
    fn a_histogram_has_buckets_a_sum_and_a_count() {
        static TIME: Family = Family {
            name: "time_seconds",
            kind: Kind::Histogram,
            help: "How long.",
            labels: &[("who", "of whom")],
        };
        let mut page = Exposition::default();
        page.family(&TIME).histogram(&["a"], &BucketSums::default());
        let text = page.into_text();
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(lines[0], "# TYPE time_seconds histogram");
        assert_eq!(lines[1], "time_seconds_bucket{who=\"a\",le=\"0.001\"} 0");
        let end = lines.len() - 4;
        assert_eq!(
            lines[end..],
            [
                "time_seconds_bucket{who=\"a\",le=\"60.0\"} 0",
                "time_seconds_bucket{who=\"a\",le=\"+Inf\"} 0",
                "time_seconds_sum{who=\"a\"} 0",
                "time_seconds_count{who=\"a\"} 0",
            ]
        );
    }

    #[test]
    fn a_scraper_says_what_it_reads() {
        let prometheus =
            "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
        for (accept, expected) in [
            (prometheus, Format::OpenMetrics),
            (
                "text/plain, application/openmetrics-text; q=0",
                Format::Text,
            ),
            ("*/*", Format::Text),
            ("", Format::Text),
        ] {
            assert_eq!(Format::accepted(accept), expected, "{accept}");
        }
    }
}
