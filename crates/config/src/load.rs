//! From a file's text to typed values.
//!
//! Only this module opens files: the configuration, and the secrets and certificates of backends that
//! it names. They must be regular files of a bounded size.

use std::collections::HashSet;
use std::fs::File as DiskFile;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catamaran_front::config::{BackendConfig, Config, Place, RouteConfig, UpstreamConfig};
use toml::de::DeTable;

use crate::file::backend_tls::RootsCache;
use crate::file::sticky::Sticky;
use crate::file::{self, File, Surroundings, backend_tls};
use crate::report::{Finding, Report};
use crate::value::address::BackendUrl;
use crate::value::text::SECRET_MAX;
use crate::{check, value};

/// A configuration that can be used.
#[derive(Debug)]
pub struct Loaded {
    /// What the file means.
    pub config: Config,
    /// What its author should know all the same; warnings only, often none.
    pub report: Report,
}

/// Why a file gave no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It has faults.
    #[error("{0}")]
    Faults(Report),
}

/// Reads a configuration file.
///
/// # Errors
/// When the file cannot be read, or has any fault; the report then holds all of them.
pub fn load(path: &Path) -> Result<Loaded, LoadError> {
    let read = read_regular(path, FILE_BYTES_MAX)
        .and_then(|bytes| String::from_utf8(bytes).map_err(|error| not_utf8(&error)));
    let text = read.map_err(|source| LoadError::Read {
        path: path.to_owned(),
        source,
    })?;
    let base = path.parent().unwrap_or_else(|| Path::new(""));
    let surroundings = Surroundings {
        base,
        read_secret: &secret_or_reason,
        reads_certificates: true,
        read_pem: Some(&pem_or_reason),
        roots: RootsCache::default(),
    };
    parse_within(&path.display().to_string(), &text, &surroundings).map_err(LoadError::Faults)
}

/// Reads a configuration from its text, under the name that findings shall give it. Files it names
/// are not opened: a `secret_file` is a fault here.
///
/// # Errors
/// When the text has any fault; the report then holds all of them.
pub fn parse(name: &str, text: &str) -> Result<Loaded, Report> {
    let refuse = |_: &Path| Err("cannot be read from here".to_owned());
    parse_within(
        name,
        text,
        &Surroundings {
            base: Path::new(""),
            read_secret: &refuse,
            reads_certificates: false,
            read_pem: None,
            roots: RootsCache::default(),
        },
    )
}

pub(crate) fn parse_within(
    name: &str,
    text: &str,
    surroundings: &Surroundings<'_>,
) -> Result<Loaded, Report> {
    let mut report = Report::new(name, text);
    let (root, errors) = DeTable::parse_recoverable(text);
    let file = file::read(root.get_ref(), surroundings, &mut report);
    check::check(&file, &mut report);
    if !errors.is_empty() {
        keep_apart(&errors, &mut report);
    }
    for error in &errors {
        report.push(syntax(error, text));
    }
    report.sort();
    if report.faults() > 0 {
        Err(report)
    } else {
        Ok(Loaded {
            config: typed(file, name, &report),
            report,
        })
    }
}

/// The parser's words, and ours where it speaks of a bare word as of a text that lacks its quotes.
fn syntax(error: &toml::de::Error, text: &str) -> Finding {
    let place = error.span().unwrap_or(text.len()..text.len());
    if !error.message().starts_with("string values must be quoted") {
        return Finding::fault(format!("syntax: {}", error.message()), place);
    }
    let hint = match text.get(place.clone()).unwrap_or_default() {
        "" => return Finding::fault("syntax: there is no value", place),
        "yes" | "on" => "write true".to_owned(),
        "no" => "write false".to_owned(),
        word if word.contains(char::is_whitespace) => "write one value".to_owned(),
        // Not shown: it may be a secret.
        _ => "write it in quotes".to_owned(),
    };
    Finding::fault("syntax: this is neither a number nor in quotes", place).hint(hint)
}

/// Where the syntax is broken the parser guesses; what is found amiss on such a line, or missing
/// from the file, may be the guess and not the author.
fn keep_apart(errors: &[toml::de::Error], report: &mut Report) {
    let place = |error: &toml::de::Error| Some(report.line(error.span()?.start));
    let broken: HashSet<usize> = errors.iter().filter_map(place).collect();
    report.retain_lines(|line| line.is_some_and(|line| !broken.contains(&line)));
}

/// A backend of which only the URL is known: every default, and over TLS the issuers that this system
/// trusts.
///
/// # Errors
/// The system trusts none, or the host is no name that a certificate can have.
pub fn backend(url: BackendUrl) -> Result<BackendConfig, String> {
    backend_tls::plain(url)
}

fn typed(file: File, name: &str, report: &Report) -> Config {
    let name: Arc<str> = name.into();
    let routes = |route: file::route::Route| {
        let place = Place {
            file: Arc::clone(&name),
            line: report.line(route.place.start),
        };
        let placed = move |value| RouteConfig {
            place: Some(place.clone()),
            ..value
        };
        route.values.into_iter().map(placed)
    };
    let upstream = |upstream: file::upstream::Upstream| UpstreamConfig {
        name: upstream.name,
        policy: upstream.policy,
        hash_by: upstream.hash_by,
        backends: upstream
            .backends
            .into_iter()
            .map(|backend| backend.value)
            .collect(),
        retries: upstream.retries,
        unwell_max: upstream.unwell_max,
        sticky: match upstream.sticky {
            Sticky::On(sticky) => Some(sticky),
            Sticky::Off | Sticky::Unsaid => None,
        },
    };
    Config {
        server: file.server,
        tls: file.tls.into_iter().map(|profile| profile.value).collect(),
        listeners: file
            .listeners
            .into_iter()
            .map(|listener| listener.value)
            .collect(),
        upstreams: file.upstreams.into_iter().map(upstream).collect(),
        routes: file.routes.into_iter().flat_map(routes).collect(),
        log: file.log,
        admin: file.admin.map(|admin| admin.value),
    }
}

/// Reads the secret that a file holds in its first line.
///
/// # Errors
/// When the file cannot be read, or what it holds is no secret.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let bytes = read_regular(path, SECRET_MAX + 2)?;
    let text = String::from_utf8(bytes).map_err(|error| not_utf8(&error))?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    value::text::parse_secret(line)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.to_string()))
}

fn secret_or_reason(path: &Path) -> Result<String, String> {
    read_secret(path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => error.to_string(),
        _ => format!("cannot be read: {error}"),
    })
}

fn pem_or_reason(path: &Path) -> Result<Vec<u8>, String> {
    read_regular(path, PEM_BYTES_MAX).map_err(|error| format!("cannot be read: {error}"))
}

/// Opening a pipe would wait for its writer, and a device may have no end.
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

fn not_utf8(error: &std::string::FromUtf8Error) -> io::Error {
    let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
    let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("line {line} is not UTF-8"),
    )
}

/// A hundred thousand routes and their upstreams; a larger file is hardly a configuration.
const FILE_BYTES_MAX: usize = 16 << 20;

/// The certificates of a whole system take a quarter of a megabyte.
const PEM_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests;
