//! Flags for what is printed or written to files.

use std::time::Duration;

use catamaran_load::render::ab::HtmlAttributes;

use super::ValueKind::{Attached, Needed};
use super::{Flag, FlagUse, store, switch_on};
use crate::getopt::Mode;
use crate::number;
use crate::refusal::Refusal;
use crate::refusal::RunKind::{Knee, Memcached, Versus};
use crate::settings::Information;

/// The settings of outputs, and the destination of each.
#[derive(Debug, Default)]
pub(crate) struct OutputSettings {
    pub(crate) verbosity: i64,
    pub(crate) quiet: bool,
    pub(crate) no_percentiles: bool,
    pub(crate) no_confidence: bool,
    pub(crate) html: bool,
    pub(crate) attributes: HtmlAttributes,
    pub(crate) gnuplot: Option<String>,
    pub(crate) percentiles: Option<String>,
    pub(crate) no_banner: bool,
    pub(crate) watchdog: bool,
    pub(crate) ticks: Option<Duration>,
    pub(crate) json: Option<Sink>,
    pub(crate) csv: Option<Sink>,
    pub(crate) hdr: Option<String>,
}

/// The destination of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sink {
    Stdout,
    File(String),
}

impl Sink {
    /// Standard output if the flag has no value or the value `-`, else the file of that name.
    fn of(given: &FlagUse<'_>) -> Self {
        match given.value {
            None | Some("-") => Self::Stdout,
            Some(path) => Self::File(path.to_owned()),
        }
    }
}

pub(super) static FLAGS: &[Flag] = &[
    Flag {
        short: Some('v'),
        long: "verbosity",
        value: Needed("N"),
        help: "From 2 on, show the request and the head of the first answer",
        apply: |settings, given| {
            settings.output.verbosity = number::atoi(given.text());
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('q'),
        long: "quiet",
        help: "Show no progress",
        apply: |settings, _| switch_on(&mut settings.output.quiet),
        hint: |word, is_only| {
            let is_number = number::amount(word).is_some();
            (is_number || !is_only).then(|| {
                format!("-q is ab's --quiet and takes no value; for a rate give --rate {word}")
            })
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('d'),
        long: "no-percentiles",
        help: "Leave the table of percentiles out",
        apply: |settings, _| switch_on(&mut settings.output.no_percentiles),
        hint: |word, is_only| {
            let meant = match number::duration(word) {
                Some(_) => format!("for a duration give --duration {word}"),
                None if is_only => return None,
                None => format!("for a body give --data {word}"),
            };
            Some(format!(
                "-d is ab's --no-percentiles and takes no value; {meant}"
            ))
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('S'),
        long: "no-confidence",
        help: "Leave medians and deviations out",
        apply: |settings, _| switch_on(&mut settings.output.no_confidence),
        ..Flag::OURS
    },
    Flag {
        short: Some('w'),
        long: "html",
        help: "ab's report as a table of HTML",
        conflicts: &[(Memcached, "-w")],
        apply: |settings, _| switch_on(&mut settings.output.html),
        ..Flag::OURS
    },
    Flag {
        short: Some('x'),
        long: "table-attributes",
        value: Needed("TEXT"),
        help: "Attributes of its <table>; implies -w",
        conflicts: &[(Memcached, "-w")],
        apply: |settings, given| {
            settings.output.html = true;
            settings.output.attributes.table = given.owned();
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('y'),
        long: "row-attributes",
        value: Needed("TEXT"),
        help: "Attributes of its <tr>; implies -w",
        conflicts: &[(Memcached, "-w")],
        apply: |settings, given| {
            settings.output.html = true;
            settings.output.attributes.row = given.owned();
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('z'),
        long: "cell-attributes",
        value: Needed("TEXT"),
        help: "Attributes of its <td> and <th>; implies -w",
        conflicts: &[(Memcached, "-w")],
        apply: |settings, given| {
            if given.mode == Mode::Ours && number::duration(given.text()).is_some() {
                return Err(Refusal::CellTime(given.owned()));
            }
            settings.output.html = true;
            settings.output.attributes.cell = given.owned();
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('g'),
        long: "gnuplot",
        value: Needed("FILE"),
        help: "Write ab's file of every request, which takes 40 bytes of memory each",
        conflicts: &[(Memcached, "ab's files"), (Knee, "-g"), (Versus, "-g")],
        apply: |settings, given| store(&mut settings.output.gnuplot, given.owned()),
        ..Flag::OURS
    },
    Flag {
        short: Some('e'),
        long: "percentiles",
        value: Needed("FILE"),
        help: "Write ab's file of percentiles",
        conflicts: &[(Memcached, "ab's files"), (Knee, "-e"), (Versus, "-e")],
        apply: |settings, given| store(&mut settings.output.percentiles, given.owned()),
        ..Flag::OURS
    },
    Flag {
        short: Some('Q'),
        long: "no-banner",
        help: "As ab: leave the first lines out (we have none)",
        apply: |settings, _| switch_on(&mut settings.output.no_banner),
        ..Flag::OURS
    },
    Flag {
        short: Some('D'),
        long: "watchdog",
        help: "A line of counters on standard error every 5 s",
        apply: |settings, _| switch_on(&mut settings.output.watchdog),
        hint: |word, is_only| {
            (!is_only).then(|| {
                format!(
                    "-D is ab's --watchdog and takes no value; for a body from a file give --data @{word}"
                )
            })
        },
        ..Flag::OURS
    },
    Flag {
        long: "ticks",
        value: Needed("TIME"),
        help: "How far it is as a line of JSON on standard error, so often",
        apply: |settings, given| store(&mut settings.output.ticks, given.time()?),
        ..Flag::OURS
    },
    Flag {
        long: "json",
        value: Attached("FILE"),
        help: "The report as JSON: to the file, or instead of the text",
        apply: |settings, given| store(&mut settings.output.json, Sink::of(given)),
        ..Flag::OURS
    },
    Flag {
        long: "csv",
        value: Attached("FILE"),
        help: "The report as one row: added to the file, or instead of the text",
        conflicts: &[(Knee, "--csv"), (Versus, "--csv")],
        apply: |settings, given| store(&mut settings.output.csv, Sink::of(given)),
        ..Flag::OURS
    },
    Flag {
        long: "hdr",
        value: Needed("FILE"),
        help: "Write the histograms as a log for HdrHistogram's tools",
        conflicts: &[(Knee, "--hdr"), (Versus, "--hdr")],
        apply: |settings, given| store(&mut settings.output.hdr, given.owned()),
        ..Flag::OURS
    },
    Flag {
        long: "compat",
        value: Needed("ab"),
        help: "Be ab 2.4: its request, its report, its exit codes",
        // `--compat ab` was taken out of the line before it was read.
        apply: |_, given| Err(given.bad("ab")),
        ..Flag::OURS
    },
    Flag {
        short: Some('V'),
        long: "version",
        help: "Print the version",
        apply: |settings, _| {
            let html = settings.output.html;
            settings.information = Some(Information::Version { html });
            Ok(())
        },
        ..Flag::OURS
    },
    Flag {
        short: Some('h'),
        long: "help",
        help: "Print this",
        apply: |settings, _| {
            settings.information = Some(Information::Help);
            Ok(())
        },
        ..Flag::OURS
    },
];
