//! `[log]`: the access log.

use std::path::Path;

use catamaran_front::config::{AccessLogFormat, AccessLogTarget, LogConfig};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use toml::Spanned;
use toml::de::DeValue;

use super::Surroundings;
use crate::key::{Doc, Key, Preset, Section};
use crate::report::{Finding, Report};
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
        if surroundings.sees_files() {
            writable(&mut table, path);
        }
    }
    table.set(&FORMAT, &mut log.format);
    table.finish(report);
}

/// Whether lines can be written there: by this user, who need not be the one that serves.
fn writable(table: &mut Table<'_>, path: &Path) {
    let place = table.place_of(&ACCESS);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() {
        let message = format!("`access` is {}, a directory", path.display());
        table.push(Finding::fault(message, place).hint("write the path of a file"));
    } else if !directory.is_dir() {
        let message = format!("there is no directory {}", directory.display());
        let hint = "create it, or write the log elsewhere";
        table.push(Finding::fault(message, place).hint(hint));
    } else {
        let needed = if path.exists() { path } else { directory };
        let allowed = accessat(CWD, needed, Access::WRITE_OK, AtFlags::EACCESS);
        if let Err(error) = allowed {
            let message = format!("{} cannot be written to: {error}", needed.display());
            let hint = "give the user that the front runs as the right to write it, or run it as another user";
            table.push(Finding::warning(message, place).hint(hint));
        }
    }
}

pub(crate) static SECTION: Section = Section {
    header: "[log]",
    intro: "The access log, one line for each exchange. The table may be left out. The front's own \
            messages go to standard error; `serve --log-level` chooses which.",
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
        extremes: "A thread of its own writes the lines from a bounded queue. If the disk stalls, \
                   the front drops and counts lines; requests do not wait.",
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
