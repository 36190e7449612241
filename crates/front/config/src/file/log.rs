//! `[log]`: the access log.

use std::path::{Path, PathBuf};

use catamaran_proxy::config::{AccessLogFormat, AccessLogTarget, LogConfig};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Surroundings;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::route::{HostError, parse_host};
use crate::value::text::{file_path, parse_access_log};
use crate::value::{Choices, NamedValues, Syntax};

/// The table as written.
struct RawLog {
    log: LogConfig,
    /// Files by hosts.
    hosts: Vec<(String, PathBuf)>,
}

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
    let mut written = RawLog {
        log: std::mem::take(log),
        hosts: Vec::new(),
    };
    table.read(KEYS, &mut written);
    *log = written.log;
    if let AccessLogTarget::File(path) = &mut log.access {
        *path = surroundings.base.join(&path);
        if surroundings.sees_files() {
            writable(&mut table, "access", path);
        }
    }
    own_format(&mut table, entries);
    for (host, path) in written.hosts {
        let host = match parse_host(&host) {
            Ok(host) => host,
            Err(error) => {
                let what = match error {
                    HostError::Url { host, .. } => format!("is a URL; write \"{host}\""),
                    error => error.to_string(),
                };
                let message = format!("`hosts` names `{host}`, which {what}");
                table.push(Finding::fault(message, table.place_of("hosts")));
                continue;
            }
        };
        let path = surroundings.base.join(path);
        if surroundings.sees_files() {
            writable(&mut table, "hosts", &path);
        }
        match log.hosts.iter_mut().find(|(known, _)| *known == path) {
            Some((_, hosts)) => hosts.push(host),
            None => log.hosts.push((path, vec![host])),
        }
    }
    let files = log.hosts.iter().map(|(path, _)| path);
    if let AccessLogTarget::File(access) = &log.access
        && let Some(path) = files.clone().find(|path| *path == access)
    {
        let message = format!("`hosts` names {}, which is `access`", path.display());
        let hint = "leave the host out: its lines go there by themselves";
        table.push(Finding::fault(message, table.place_of("hosts")).hint(hint));
    }
    if files.count() > HOST_FILES_MAX {
        let message = format!("`hosts` names more than {HOST_FILES_MAX} files");
        let hint = "write format = \"json\" and one file: each line has its `host`";
        table.push(Finding::fault(message, table.place_of("hosts")).hint(hint));
    }
    table.finish(report);
}

/// Says of a format as httpd or nginx have it what there is in its place.
fn own_format(table: &mut Table<'_>, entries: &DeTable<'_>) {
    let written = entries.get("format").and_then(|it| it.get_ref().as_str());
    if written.is_some_and(|it| it.contains(['%', '$', '{'])) {
        let hint = "formats of one's own are not available: \"combined\" is httpd's, with more fields \
                    behind it; \"json\" has every field by its name, for jq or a log shipper to choose \
                    from (docs/log.md)";
        table.hint_at("format", hint);
    }
}

/// Adds a finding to the table if no file can be written at `path`: a warning if only this user may not, who
/// need not be the user that serves.
fn writable(table: &mut Table<'_>, key: &str, path: &Path) {
    let place = table.place_of(key);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    if path.is_dir() {
        let message = format!("`{key}` is {}, a directory", path.display());
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
    keys: &[Part::all(&KEYS)],
    later: &[],
};

/// Each has a thread.
const HOST_FILES_MAX: usize = 64;

static KEYS: &[Key<RawLog>] = &[
    Key {
        name: "access",
        group: ALL,
        value: fill!(
            Syntax {
                what: "a path, \"-\" for standard output, or \"off\"",
                parse: parse_access_log,
            },
            RawLog.log.access
        ),
        preset: Preset::Value("\"-\""),
        sample: "\"access.log\"",
        effect: "Where the lines go. A file is appended to; a relative path starts from the \
                 directory of the configuration file.",
        extremes: "A thread of its own writes the lines from a bounded queue. If the disk stalls, \
                   the front drops and counts lines; requests do not wait.",
        elsewhere: "nginx `access_log`; httpd `CustomLog`; mod_jk `JkRequestLogFormat`",
    },
    Key {
        name: "format",
        group: ALL,
        value: fill!(
            Choices(&[
                ("combined", AccessLogFormat::Combined),
                ("json", AccessLogFormat::Json),
            ]),
            RawLog.log.format
        ),
        preset: Preset::Value("\"combined\""),
        sample: "\"json\"",
        effect: "How a line looks: Apache's combined format with upstream, timings, reason, protocol, \
                 TLS and request id behind it, or one JSON object. Of TLS the first has version and \
                 cipher; the other also `tls_group`, `sni`, `resumed`, `alpn` and \
                 `client_cert_sha256`.",
        extremes: "Tools that read the combined format ignore what follows it.",
        elsewhere: "nginx `log_format`; httpd `LogFormat`",
    },
    Key {
        name: "hosts",
        group: ALL,
        value: fill!(
            NamedValues {
                what: "hosts with their files, such as { \"shop.example.org\" = \"shop.log\" }",
                of: file_path("a path such as \"shop.log\""),
            },
            RawLog.hosts
        ),
        preset: Preset::Value("{}"),
        sample: "{ \"shop.example.org\" = \"shop.log\", \"*.example.net\" = \"net.log\" }",
        effect: "Files for the lines of some hosts, in the same format. What counts is the host that the \
                 client asked for; `*.example.net` is every name below `example.net`. Lines of all other \
                 hosts go to `access`. Several hosts may share a file.",
        extremes: "At most 64 files, each with a thread that writes. A line is in one file only: to have \
                   all in one place, write one file in JSON, whose lines have their `host`.",
        elsewhere: "nginx `access_log` of a `server`; httpd `CustomLog` of a `<VirtualHost>`",
    },
];
