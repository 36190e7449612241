//! Prometheus' text format, version 0.0.4: how metrics are written down.
//!
//! [`crate::admin::metrics`] decides which metrics are written. Each metric has a line for its help,
//! one for its type, and one for each sample. Backslashes and line feeds are escaped everywhere,
//! quotes in the values of labels.

use std::fmt::{Display, Write as _};

/// A group of samples of one name.
#[derive(Debug)]
pub(crate) struct Family {
    /// Counters end in `_total`.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// What it says, in one sentence.
    pub(crate) help: &'static str,
    /// Each label with what its values are.
    pub(crate) labels: &'static [(&'static str, &'static str)],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only grows, from 0 at the start of the process.
    Counter,
    /// It goes up and down.
    Gauge,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
        }
    }
}

/// A page being written.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    text: String,
}

/// The samples of one family, being written.
#[derive(Debug)]
pub(crate) struct Samples<'e> {
    family: &'static Family,
    text: &'e mut String,
}

impl Exposition {
    /// Begins a family, whose samples follow. Each family is begun once.
    pub(crate) fn family(&mut self, family: &'static Family) -> Samples<'_> {
        let Family { name, help, .. } = family;
        self.text.push_str("# HELP ");
        self.text.push_str(name);
        self.text.push(' ');
        escape(help, false, &mut self.text);
        let kind = family.kind.name();
        writeln!(self.text, "\n# TYPE {name} {kind}").expect("a string takes all");
        Samples {
            family,
            text: &mut self.text,
        }
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

impl Samples<'_> {
    /// A family's only sample, which has no labels.
    pub(crate) fn only(&mut self, value: impl Display) {
        self.sample(&[], value);
    }

    /// A sample with the values of the family's labels, in their order.
    pub(crate) fn sample(&mut self, labels: &[&str], value: impl Display) {
        debug_assert_eq!(labels.len(), self.family.labels.len(), "a value each");
        self.text.push_str(self.family.name);
        for (index, ((name, _), value)) in self.family.labels.iter().zip(labels).enumerate() {
            self.text.push(if index == 0 { '{' } else { ',' });
            self.text.push_str(name);
            self.text.push_str("=\"");
            escape(value, true, self.text);
            self.text.push('"');
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        writeln!(self.text, " {value}").expect("a string takes all");
    }
}

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
}
