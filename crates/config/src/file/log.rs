//! `[log]`: the access log.

use catamaran_front::config::{AccessLogFormat, AccessLogTarget, LogConfig};
use toml::Spanned;
use toml::de::DeValue;

use super::Surroundings;
use crate::key::{Doc, Key, Preset, Section};
use crate::report::Report;
use crate::table::{Table, table};
use crate::value::text::{AccessLogError, parse_access_log};
use crate::value::{Choices, Parsed};

/// Reads the table.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    surroundings: &Surroundings<'_>,
    log: &mut LogConfig,
    report: &mut Report,
) {
    let Some((place, entries)) = table(SECTION.header, value, report) else {
        return;
    };
    let mut table = Table::new(&SECTION, place, entries);
    table.set(&ACCESS, &mut log.access);
    if let AccessLogTarget::File(path) = &mut log.access {
        *path = surroundings.base.join(&path);
    }
    table.set(&FORMAT, &mut log.format);
    table.finish(report);
}

pub(crate) static SECTION: Section = Section {
    header: "[log]",
    intro: "The access log, one line an exchange. The table may be left out. (What the front itself \
            has to say goes to standard error; `serve --log-level` rules it.)",
    keys: &[&ACCESS, &FORMAT],
    later: &[],
};

static ACCESS: Key<Parsed<AccessLogTarget, AccessLogError>> = Key {
    name: "access",
    values: Parsed {
        what: "a path, \"-\" for standard output, or \"off\"",
        parse: parse_access_log,
    },
    doc: Doc {
        preset: Preset::Value("\"-\""),
        sample: "\"access.log\"",
        effect: "Where the lines go. A file is appended to; a relative path starts from the \
                 directory of the configuration file.",
        extremes: "Lines are written off the hot path through a bounded queue: when the disk stalls, \
                   lines are dropped and counted, not requests.",
        elsewhere: "nginx `access_log`; httpd `CustomLog`; mod_jk `JkRequestLogFormat`",
    },
};

static FORMAT: Key<Choices<AccessLogFormat>> = Key {
    name: "format",
    values: Choices(&[
        ("combined", AccessLogFormat::Combined),
        ("json", AccessLogFormat::Json),
    ]),
    doc: Doc {
        preset: Preset::Value("\"combined\""),
        sample: "\"json\"",
        effect: "How a line looks: Apache's combined format with upstream, timings, reason, protocol, \
                 TLS and request id behind it, or one JSON object. Of TLS the first has version and \
                 cipher; the other also `tls_group`, `sni`, `resumed`, `alpn` and \
                 `client_cert_sha256`.",
        extremes: "Tools that read the combined format ignore what follows it.",
        elsewhere: "nginx `log_format`; httpd `LogFormat`",
    },
};
