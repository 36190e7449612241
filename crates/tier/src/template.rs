//! Templates: what they may name, and how they say what is wrong.

use std::collections::BTreeMap;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, Value};

use crate::fault::Fault;

pub(crate) type Names = BTreeMap<String, Value>;

/// Renders `text` of the file `place`. A name that is not among `names` is a fault.
pub(crate) fn render(place: &str, text: &str, names: &Names) -> Result<String, Fault> {
    environment()
        .render_named_str(place, text, names)
        .map_err(|error| fault(place, &error))
}

/// Undefined names are faults, wherever they stand. What is rendered is no HTML.
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
    environment.add_filter("host", |address: String| {
        split(&address).map(|(host, _)| host)
    });
    environment.add_filter("port", |address: String| {
        split(&address).map(|(_, port)| port)
    });
    environment
}

/// A duration in milliseconds.
fn milliseconds(text: &str) -> Result<u64, Error> {
    let duration = catamaran_units::parse_duration(text);
    let duration =
        duration.map_err(|error| Error::new(ErrorKind::InvalidOperation, error.to_string()))?;
    u64::try_from(duration.as_millis())
        .map_err(|_| Error::new(ErrorKind::InvalidOperation, "a duration beyond 2^64 ms"))
}

/// Host and port of `host:port`.
fn split(address: &str) -> Result<(String, String), Error> {
    let parts = address
        .rsplit_once(':')
        .filter(|(_, port)| port.parse::<u16>().is_ok());
    let (host, port) = parts.ok_or_else(|| {
        Error::new(
            ErrorKind::InvalidOperation,
            format!("`{address}` is not HOST:PORT"),
        )
    })?;
    Ok((host.to_owned(), port.to_owned()))
}

fn fault(place: &str, error: &Error) -> Fault {
    let place = match error.line() {
        Some(line) => format!("{place}:{line}"),
        None => place.to_owned(),
    };
    let what = error
        .detail()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    Fault::new(place, what)
}
