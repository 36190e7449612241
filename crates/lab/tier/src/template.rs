//! Renders templates: defines the names and filters in them, and finds the line of a fault.
//!
//! Besides minijinja's own filters there are `ms` (a duration in milliseconds), and `scheme`,
//! `address`, `host` and `port`, which give that part of a URL or a `HOST:PORT`. The function
//! `fault(text)` lets a template refuse settings that its server cannot have.

use std::collections::BTreeMap;
use std::ops::Range;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

pub(crate) type Names = BTreeMap<String, Value>;

/// A fault of a template: the message and its line.
#[derive(Debug)]
pub(crate) struct TemplateFault {
    pub(crate) what: String,
    /// The line of the fault in the template, from 1; 0 if it is not known.
    line: usize,
}

impl TemplateFault {
    /// The byte range in `text`, the template, of the line with the fault.
    pub(crate) fn line(&self, text: &str) -> Range<usize> {
        let mut lines = text.split_inclusive('\n');
        let before = lines.by_ref().take(self.line.saturating_sub(1));
        let start: usize = before.map(str::len).sum();
        let length = lines.next().map_or(0, |line| line.trim_end().len());
        start..start + length
    }
}

/// Renders `text`, a template in the file `place`. A name that is not in `names` is a fault.
pub(crate) fn render(place: &str, text: &str, names: &Names) -> Result<String, TemplateFault> {
    environment()
        .render_named_str(place, text, names)
        .map_err(|error| fault(&error))
}

/// Splits a backend's URL into its scheme, `http` or `ajp`, and its address, `HOST:PORT` or
/// `unix:/PATH`; `None` if it is not such a URL.
pub(crate) fn backend(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    match scheme {
        "http+unix" | "ajp+unix" if rest.starts_with('/') => {
            // `http+unix:/PATH` is split into `http` and `unix:/PATH`.
            let scheme = scheme.trim_end_matches("+unix");
            Some((scheme, &url[scheme.len() + 1..]))
        }
        "http" | "ajp" => {
            let address = rest.strip_prefix("//")?;
            let (_, port) = address.rsplit_once(':')?;
            let has_port = port.parse::<u16>().is_ok();
            has_port.then_some((scheme, address))
        }
        _ => None,
    }
}

/// The environment of all templates: an undefined name is a fault, and nothing is escaped as HTML.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    let syntax = SyntaxConfig::builder()
        .trim_blocks(true)
        .lstrip_blocks(true)
        .keep_trailing_newline(true)
        .build();
    environment.set_syntax(syntax.expect("its delimiters are the usual ones"));
    environment.add_filter("ms", milliseconds);
    environment.add_filter("host", |text: String| split(&text).map(|(host, _)| host));
    environment.add_filter("port", |text: String| split(&text).map(|(_, port)| port));
    environment.add_filter("scheme", |url: String| {
        parts(&url).map(|(scheme, _)| scheme)
    });
    environment.add_filter("address", |url: String| {
        parts(&url).map(|(_, address)| address)
    });
    environment.add_function("fault", |text: String| Err::<String, _>(refused(text)));
    environment
}

/// The filter `ms`: a duration such as `10s` in milliseconds.
fn milliseconds(text: &str) -> Result<u64, Error> {
    let duration = catamaran_units::parse_duration(text);
    let duration = duration.map_err(|error| refused(error.to_string()))?;
    u64::try_from(duration.as_millis()).map_err(|_| refused("a duration beyond 2^64 ms"))
}

/// The scheme and the address of a backend's URL.
fn parts(url: &str) -> Result<(String, String), Error> {
    match backend(url) {
        Some((scheme, address)) => Ok((scheme.to_owned(), address.to_owned())),
        None => Err(refused(format!("`{url}` is not a backend's URL"))),
    }
}

/// The host and the port of `host:port`, or of a URL that has them.
fn split(text: &str) -> Result<(String, String), Error> {
    let address = backend(text).map_or(text, |(_, address)| address);
    match address.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => Ok((host.to_owned(), port.to_owned())),
        _ => Err(refused(format!("`{address}` is not HOST:PORT"))),
    }
}

fn refused(what: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, what)
}

fn fault(error: &Error) -> TemplateFault {
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateFault {
        what,
        line: error.line().unwrap_or(0),
    }
}
