//! `[log]`: the access log.

use std::path::{Path, PathBuf};

use catamaran_proxy::config::{
    AccessLogFormat, AccessLogTarget, LogCondition, LogConfig, LogTemplate, LogTemplateError,
    SyslogAddress,
};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use toml::Spanned;
use toml::de::DeValue;

use super::Surroundings;
use crate::fill;
use crate::key::{ALL, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::address::from_directory;
use crate::value::route::{HostError, parse_host};
use crate::value::text::{file_path, parse_access_log};
use crate::value::{NamedValues, OneOrMore, Syntax};

/// The values of the keys of `[log]`, before they are checked against each other.
struct RawLog {
    log: LogConfig,
    /// The files for the lines of some hosts: each host, and its file.
    hosts: Vec<(String, PathBuf)>,
}

/// Reads `[log]`.
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
    place_target(&mut table, &mut log.access, surroundings);
    for (host, path) in written.hosts {
        let Some(host) = host_of_log(&host, &mut table) else {
            continue;
        };
        let path = surroundings.base.join(path);
        if surroundings.sees_files() {
            writable(&mut table, "hosts", &path);
        }
        let mut files = log.hosts.iter_mut();
        match files.find(|(host_file, _)| *host_file == path) {
            Some((_, hosts)) => hosts.push(host),
            None => log.hosts.push((path, vec![host])),
        }
    }
    check_host_files(&mut table, log);
    table.finish(report);
}

/// A host of `hosts`; `None` if it is not valid, which is reported.
fn host_of_log(text: &str, table: &mut Table<'_>) -> Option<String> {
    let reason = match parse_host(text) {
        Ok(host) => return Some(host),
        Err(HostError::Url { host, .. }) => format!("is a URL; write \"{host}\""),
        Err(error) => error.to_string(),
    };
    let message = format!("`hosts` names `{text}`, which {reason}");
    table.push(Finding::fault(message, table.place_of("hosts")));
    None
}

/// Reports a file of `hosts` that is the access log itself, and too many files.
fn check_host_files(table: &mut Table<'_>, log: &LogConfig) {
    if let AccessLogTarget::File(access) = &log.access
        && let Some((path, _)) = log.hosts.iter().find(|(path, _)| path == access)
    {
        let message = format!("`hosts` names {}, which is `access`", path.display());
        let hint = "leave the host out: its lines go there by themselves";
        table.push(Finding::fault(message, table.place_of("hosts")).hint(hint));
    }
    if log.hosts.len() > HOST_FILES_MAX {
        let message = format!("`hosts` names more than {HOST_FILES_MAX} files");
        let hint = "write format = \"json\" and one file: each line has its `host`";
        table.push(Finding::fault(message, table.place_of("hosts")).hint(hint));
    }
}

/// Makes a relative path of the log start from the directory of the configuration, and reports if lines cannot be
/// written there.
fn place_target(
    table: &mut Table<'_>,
    target: &mut AccessLogTarget,
    surroundings: &Surroundings<'_>,
) {
    match target {
        AccessLogTarget::Off | AccessLogTarget::Stdout => {}
        AccessLogTarget::File(path) => {
            *path = surroundings.base.join(&path);
            if surroundings.sees_files() {
                writable(table, "access", path);
            }
        }
        AccessLogTarget::Syslog(SyslogAddress::Udp { .. }) => {}
        AccessLogTarget::Syslog(SyslogAddress::Unix(path)) => {
            if let Err(error) = from_directory(surroundings.base, path) {
                let message = format!("`access` {error}");
                table.push(Finding::fault(message, table.place_of("access")));
            } else if surroundings.sees_files() && !path.exists() {
                let message = format!("there is no socket {}", path.display());
                let hint = "start the syslog server; lines are lost until it is there";
                table.push(Finding::warning(message, table.place_of("access")).hint(hint));
            }
        }
    }
}

/// Why a text is not a format.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum FormatError {
    /// The text has no name in braces, and is neither `combined` nor `json`.
    #[error(
        "must be \"combined\", \"json\" or a line with names in braces, such as \"{{client}} {{status}}\": httpd's `%h` and \
         nginx's `$remote_addr` are `{{client}}` (docs/log.md)"
    )]
    Plain,
    #[error(transparent)]
    Template(#[from] LogTemplateError),
}

/// Parses a format: a known word, or a template with placeholders in braces. `%{` is from formats of other servers.
fn parse_format(text: &str) -> Result<AccessLogFormat, FormatError> {
    match text {
        "combined" => Ok(AccessLogFormat::Combined),
        "json" => Ok(AccessLogFormat::Json),
        _ if !text.contains('{') || text.contains("%{") => Err(FormatError::Plain),
        _ => Ok(AccessLogFormat::Template(LogTemplate::parse(text)?)),
    }
}

/// Adds a finding to the table if no file can be written at `path`. It is only a warning if this user has no right to
/// write, because the front may run as another user.
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
        // A file that does not exist yet is created in its directory.
        let target = if path.exists() { path } else { directory };
        if let Err(error) = accessat(CWD, target, Access::WRITE_OK, AtFlags::EACCESS) {
            let message = format!("{} cannot be written to: {error}", target.display());
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

/// The most log files for hosts: each has a thread.
const HOST_FILES_MAX: usize = 64;

static KEYS: &[Key<RawLog>] = &[
    Key {
        name: "access",
        group: ALL,
        value: fill!(
            Syntax {
                what: "a path, \"-\" for standard output, \"off\", or a syslog server such as \"unix:/dev/log\"",
                parse: parse_access_log,
            },
            RawLog.log.access
        ),
        preset: Preset::Value("\"-\""),
        sample: "\"access.log\"",
        effect: "Where the lines go. A file is appended to; a relative path starts from the \
                 directory of the configuration file. `unix:PATH` and `udp:HOST:PORT` are a syslog server: each line is \
                 a message of its own (RFC 5424; facility `local7`, severity `info`, program `catamaran`), cut off at 8192 \
                 bytes, over UDP at 2048. [log.md](log.md#to-syslog) explains it.",
        extremes: "A thread of its own writes the lines from a bounded queue. If the disk stalls, \
                   the front drops and counts lines; requests do not wait. Nobody confirms what is sent over UDP.",
        elsewhere: "nginx `access_log`, `syslog:server=`; httpd `CustomLog`; mod_jk `JkRequestLogFormat`",
    },
    Key {
        name: "format",
        group: ALL,
        value: fill!(
            Syntax {
                what: "\"combined\", \"json\" or a line with names in braces, such as \"{client} {status}\"",
                parse: parse_format,
            },
            RawLog.log.format
        ),
        preset: Preset::Value("\"combined\""),
        sample: "\"json\"",
        effect: "How a line looks: Apache's combined format with upstream, timings, reason, protocol, \
                 TLS and request id behind it, or one JSON object. Of TLS the first has version and \
                 cipher; the other also `tls_group`, `sni`, `resumed`, `alpn` and \
                 `client_cert_sha256`. Or a line of one's own, with the names of \
                 [log.md](log.md#a-format-of-your-own) in braces; `{header:NAME}` is a field of the request, `{{` a brace. \
                 What there is not is `-`, and what a client sent is escaped.",
        extremes: "Tools that read the combined format ignore what follows it. A field may hold a secret: `Authorization` \
                   and `Cookie` are written as they came.",
        elsewhere: "nginx `log_format`; httpd `LogFormat`",
    },
    Key {
        name: "only",
        group: ALL,
        value: fill!(
            OneOrMore(Syntax {
                what: "a condition such as \"status >= 400\"",
                parse: LogCondition::parse,
            }),
            RawLog.log.only
        ),
        preset: Preset::Value("[]"),
        sample: "[\"status >= 400\", \"duration >= 1s\"]",
        effect: "Which exchanges have a line, in every file: those that meet the condition, or one of several. A condition \
                 is `status`, `duration` (to the last byte of the response) or `bytes` (of its body), then `>=`, `<` or \
                 `==`, then a value. A status of 0 is that of an exchange without a response. Empty: each has a line.",
        extremes: "An exchange without a line is only counted in the metrics: what a client did before it failed is not \
                   to be seen.",
        elsewhere: "nginx `access_log … if=`; httpd `CustomLog expr=`",
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
