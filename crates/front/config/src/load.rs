//! Turns the text of a file into typed values.
//!
//! Only this module opens files: the configuration, the files that it includes, and the secrets, pages and
//! certificates of backends that it names. They must be regular files of limited size.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File as DiskFile;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamaran_proxy::config::{
    BackendConfig, Config, FoundMember, HiddenValue, Place, RequestAttributes, Roots, RouteConfig,
    Secret, UpstreamConfig,
};
use toml::Spanned;
use toml::de::DeTable;

use crate::file::backend_tls::RootsCache;
use crate::file::sticky::Sticky;
use crate::file::{self, File, Surroundings, backend_tls};
use crate::include::{self, Includes};
use crate::read_files::ReadFiles;
use crate::report::Report;
use crate::syntax::parsed;
use crate::value::address::BackendUrl;
use crate::value::text::SECRET_MAX;
use crate::variables::Variables;
use crate::{check, value, variables};

/// A configuration without faults.
#[derive(Debug)]
pub struct LoadedFile {
    /// The typed configuration.
    pub config: Config,
    /// Warnings about the file, which can be used in spite of them; often there are none.
    pub report: Report,
    /// The paths of the files that secrets were read from.
    pub secret_files: Vec<PathBuf>,
}

/// Why a file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path of the file.
        path: PathBuf,
        /// Why the file could not be read.
        source: io::Error,
    },
    /// The file has faults; the report has all of them.
    #[error("{0}")]
    Faults(Report),
}

/// Loads a configuration file, the files that it includes, and the environment variables that they name.
///
/// # Errors
/// The file cannot be read, or has any fault; then the report has all faults.
pub fn load(path: &Path) -> Result<LoadedFile, LoadError> {
    load_recorded(path, &mut ReadFiles::default())
}

/// As [`load`]; `files` becomes the files that were read, also those of a configuration with faults.
///
/// # Errors
/// As for [`load`].
pub fn load_recorded(path: &Path, files: &mut ReadFiles) -> Result<LoadedFile, LoadError> {
    load_among(path, &|name| std::env::var_os(name), files)
}

/// Reads the file at `path`, with `variables` as its environment.
pub(crate) fn load_among(
    path: &Path,
    variables: Variables<'_>,
    files: &mut ReadFiles,
) -> Result<LoadedFile, LoadError> {
    *files = ReadFiles::default();
    files.note(path);
    let text = read_text(path, FILE_BYTES_MAX).map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })?;
    files.note_content(path, text.as_bytes());
    let parsed = parse_at(path, &path.display().to_string(), &text, variables, files);
    parsed.map_err(LoadError::Faults)
}

/// As [`load`], for a text that was read elsewhere, such as from standard input. Findings show it under
/// `name`, and relative paths start from the working directory.
///
/// # Errors
/// The text has any fault; the report has all faults.
pub fn load_text(name: &str, text: &str) -> Result<LoadedFile, Report> {
    let variables = |name: &str| std::env::var_os(name);
    let mut files = ReadFiles::default();
    parse_at(Path::new(name), name, text, &variables, &mut files)
}

/// Reads a text as if it was the file at `path`. The files that it names are recorded in `files`.
fn parse_at(
    path: &Path,
    name: &str,
    text: &str,
    variables: Variables<'_>,
    files: &mut ReadFiles,
) -> Result<LoadedFile, Report> {
    let secret_files = RefCell::new(Vec::new());
    let hidden = RefCell::new(Vec::new());
    let record = RefCell::new(std::mem::take(files));
    let read_pem = |path: &Path| recorded(&record, path, || pem_or_reason(path));
    let read_page = |path: &Path| recorded(&record, path, || page_or_reason(path));
    let read_secret = |path: &Path| {
        secret_files.borrow_mut().push(path.to_owned());
        let value = recorded(&record, path, || secret_or_reason(path))?;
        hidden.borrow_mut().push(HiddenValue {
            value: Secret::new(value.clone()),
            name: path.display().to_string(),
        });
        Ok(value)
    };
    let surroundings = Surroundings {
        base: path.parent().unwrap_or_else(|| Path::new("")),
        read_secret: &read_secret,
        checks_files: true,
        read_pem: Some(&read_pem),
        read_page: Some(&read_page),
        roots: RootsCache::default(),
        includes: Some(Includes {
            path,
            read: &read_text,
            bytes_max: FILE_BYTES_MAX,
            record: &record,
        }),
        variables,
    };
    let parsed = parse_within(name, text, &surroundings);
    *files = record.take();
    let mut loaded = parsed?;
    loaded.secret_files = secret_files.take();
    if let Some(admin) = &mut loaded.config.admin {
        admin.hidden.extend(hidden.take());
    }
    Ok(loaded)
}

/// Parses a configuration without opening files or reading environment variables. Findings show the text
/// under `name`.
///
/// A `secret_file`, an `include` and a `${NAME}` are faults here.
///
/// # Errors
/// The text has any fault; the report has all faults.
pub fn parse(name: &str, text: &str) -> Result<LoadedFile, Report> {
    parse_within(name, text, &Surroundings::none())
}

/// As [`parse`], with these environment variables.
#[cfg(test)]
pub(crate) fn parse_with(
    name: &str,
    text: &str,
    variables: Variables<'_>,
) -> Result<LoadedFile, Report> {
    let surroundings = Surroundings {
        variables,
        ..Surroundings::none()
    };
    parse_within(name, text, &surroundings)
}

/// Reads a text with its surroundings: expands includes and variables, reads all tables, and checks whether they fit
/// together.
pub(crate) fn parse_within(
    name: &str,
    text: &str,
    surroundings: &Surroundings<'_>,
) -> Result<LoadedFile, Report> {
    let mut report = Report::new(name, text).with_unknown_key(file::hint_of_unknown_key);
    let variables = surroundings.variables;
    let included = include::collect(text, surroundings.includes, variables, &mut report);
    let has_all_includes = report.faults() == 0;
    let texts = std::iter::once(text).chain(included.iter().map(String::as_str));
    let Some(merged) = merged(texts, &mut report) else {
        report.finish();
        return Err(report);
    };
    let expanded = variables::expand_all(&merged, variables, &mut report);
    let findings_before = report.findings().len();
    let mut root = merged;
    variables::put(&mut root, &expanded);
    let file = file::read(&root, surroundings, &mut report);
    check::check(&file, surroundings.sees_files(), &mut report);
    // A text whose variables could not be replaced is reported already, and its content is not what was meant.
    report.retain_from(findings_before, |place| !expanded.failed_at(place));
    // What seems to be missing may be in a file that could not be included.
    if !has_all_includes {
        report.forget_absences();
    }
    report.finish();
    if report.faults() > 0 {
        Err(report)
    } else {
        let mut config = typed(file, &report);
        if let Some(admin) = &mut config.admin {
            admin.hidden.clone_from(&expanded.hidden);
        }
        Ok(LoadedFile {
            config,
            report,
            secret_files: Vec::new(),
        })
    }
}

/// Merges the tables of all texts; `None` if the syntax of one is broken.
fn merged<'t>(texts: impl Iterator<Item = &'t str>, report: &mut Report) -> Option<DeTable<'t>> {
    let mut root = Some(DeTable::new());
    for (number, text) in texts.enumerate() {
        let start = report.start(number);
        // After a broken text the others are parsed as well, so that all faults are reported.
        let added = parsed(text, start, report).map(Spanned::into_inner);
        root = match (root, added) {
            (Some(mut tables), Some(added)) => {
                include::add(&mut tables, added, start, report);
                Some(tables)
            }
            (None, _) | (_, None) => None,
        };
    }
    root
}

/// The issuers in a PEM file, or else those that this system trusts.
///
/// # Errors
/// The file cannot be used, or the system trusts no issuer.
pub fn trusted_issuers(ca_file: Option<PathBuf>) -> Result<Roots, String> {
    let surroundings = Surroundings {
        read_pem: Some(&pem_or_reason),
        ..Surroundings::none()
    };
    backend_tls::trusted_roots(ca_file, &surroundings)
}

/// The settings of a backend by its URL alone: every default, and for TLS the issuers that this system trusts.
///
/// # Errors
/// The system trusts no issuer, or a certificate cannot contain the host's name.
pub fn backend(url: BackendUrl) -> Result<BackendConfig, String> {
    backend_tls::plain(url)
}

/// The configuration of a file without faults.
fn typed(mut file: File, report: &Report) -> Config {
    let has_clear = file.has_clear_listener();
    for profile in &mut file.tls {
        if let (Some(written), Some(mut acme)) = (&profile.acme, profile.value.acme.take()) {
            acme.challenges = written.challenge.challenges(&profile.value, has_clear);
            profile.value.acme = Some(acme);
        }
    }
    let mut pending: Vec<PathBuf> = Vec::new();
    for acme in file
        .tls
        .iter()
        .filter_map(|profile| profile.value.acme.as_ref())
    {
        if !pending.contains(&acme.pending()) {
            pending.push(acme.pending());
        }
    }
    let listeners = file.listeners.into_iter().map(|mut listener| {
        // The authority asks in clear text, at any of them.
        if listener.value.tls.is_none() {
            listener.value.acme_pending.clone_from(&pending);
        }
        listener.value
    });
    Config {
        server: file.server,
        tls: file.tls.into_iter().map(|profile| profile.value).collect(),
        listeners: listeners.collect(),
        upstreams: file.upstreams.into_iter().map(typed_upstream).collect(),
        caches: file.caches.into_iter().map(|cache| cache.value).collect(),
        auths: file.auths.into_iter().map(|auth| auth.value).collect(),
        limits: file.limits.into_iter().map(|limit| limit.value).collect(),
        routes: placed_routes(file.routes, report),
        error_pages: file.error_pages.map(Arc::new),
        log: file.log,
        trace: file.trace.map(Arc::new),
        admin: file.admin.map(|admin| admin.value),
    }
}

/// The configuration of an upstream, with the parts that the file keeps apart for its checks.
fn typed_upstream(upstream: file::upstream::Upstream) -> UpstreamConfig {
    let mut config = upstream.config;
    let backends = upstream.backends.into_iter();
    config.backends = backends.map(|backend| backend.value).collect();
    config.members = upstream.members.map(|members| members.value);
    config.sticky = match upstream.sticky {
        Sticky::On(sticky) => Some(sticky),
        Sticky::Off | Sticky::Unsaid => None,
    };
    config.attributes = (upstream.attributes != RequestAttributes::default())
        .then(|| Arc::new(upstream.attributes));
    config
}

/// The values of all routes, each with its file and line. Routes of one file share the file's name.
fn placed_routes(routes: Vec<file::route::Route>, report: &Report) -> Vec<RouteConfig> {
    let mut names: HashMap<&str, Arc<str>> = HashMap::new();
    let mut values = Vec::new();
    for route in routes {
        let name = report.name(route.place.start);
        let place = Place {
            file: Arc::clone(names.entry(name).or_insert_with(|| name.into())),
            line: report.line(route.place.start),
        };
        values.extend(route.values.into_iter().map(|value| RouteConfig {
            place: Some(place.clone()),
            ..value
        }));
    }
    values
}

/// Reads a file of members; the error is the text of its faults, in the same form as for any file.
pub(crate) fn read_members(path: &Path) -> Result<Vec<FoundMember>, String> {
    let text = read_text(path, file::member::BYTES_MAX)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let (found, report) = file::member::parse(path, &text);
    match report.faults() {
        0 => Ok(found),
        _ => Err(report.to_string().trim_end().to_owned()),
    }
}

/// Reads the secret in the first line of a file.
///
/// # Errors
/// The file cannot be read, or its content is not a valid secret.
pub fn read_secret(path: &Path) -> io::Result<String> {
    // CRLF may follow the secret.
    let bytes = read_regular(path, SECRET_MAX + 2)?;
    let text = String::from_utf8(bytes).map_err(|error| not_utf8(&error))?;
    let without_lf = text.strip_suffix('\n').unwrap_or(&text);
    let line = without_lf.strip_suffix('\r').unwrap_or(without_lf);
    value::text::parse_secret(line)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

/// Reads a file by `read`, and records it with its content.
fn recorded<T: AsRef<[u8]>>(
    record: &RefCell<ReadFiles>,
    path: &Path,
    read: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    record.borrow_mut().note(path);
    let content = read()?;
    record.borrow_mut().note_content(path, content.as_ref());
    Ok(content)
}

fn secret_or_reason(path: &Path) -> Result<String, String> {
    read_secret(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => error.to_string(),
        _ => format!("cannot be read: {error}"),
    })
}

fn read_text(path: &Path, bytes_max: usize) -> io::Result<String> {
    let bytes = read_regular(path, bytes_max)?;
    String::from_utf8(bytes).map_err(|error| not_utf8(&error))
}

fn pem_or_reason(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path, PEM_BYTES_MAX).map_err(|error| format!("cannot be read: {error}"))
}

fn page_or_reason(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path, PAGE_BYTES_MAX).map_err(|error| format!("cannot be read: {error}"))
}

/// Reads a regular file. Others are refused before they are opened: opening a pipe would wait for its
/// writer, and a device may have no end.
fn read_regular(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    DiskFile::open(path)?
        .take(bytes_max as u64 + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() > bytes_max {
        let message = format!("it is larger than {bytes_max} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(bytes)
}

/// The error for a file that is not UTF-8; it names the line, or UTF-16 if the file has its byte order mark.
fn not_utf8(error: &std::string::FromUtf8Error) -> io::Error {
    if error.as_bytes().starts_with(&[0xff, 0xfe]) || error.as_bytes().starts_with(&[0xfe, 0xff]) {
        let message = "it is UTF-16, as some editors of Windows write; save it as UTF-8";
        return io::Error::new(io::ErrorKind::InvalidData, message);
    }
    let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("line {line} is not UTF-8"),
    )
}

/// The most bytes of all files of a configuration: enough for a hundred thousand routes and their upstreams.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The most bytes of a file of certificates; those of a whole system take a quarter of a megabyte.
const PEM_BYTES_MAX: usize = 4 << 20;

/// The most bytes of an error page; each page is kept in memory.
const PAGE_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests;
