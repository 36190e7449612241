//! Adds header fields to every response of the application, so that its responses look like those
//! of a real one.

use std::path::Path;

use catamaran_connector::{App, Handler, Request, Response};
use http::{HeaderName, HeaderValue};

use crate::failure::Failure;

/// The built-in application with additional fields in each response.
pub(super) struct AppWithFields {
    app: App,
    fields: Vec<(HeaderName, HeaderValue)>,
}

impl AppWithFields {
    /// Reads the fields from a file; without a file none are added.
    pub(super) fn new(file: Option<&Path>) -> Result<Self, Failure> {
        Ok(Self {
            app: App::new(),
            fields: file.map_or_else(|| Ok(Vec::new()), read)?,
        })
    }
}

impl Handler for AppWithFields {
    fn handle(&self, request: &Request) -> Response {
        let response = self.app.handle(request);
        self.fields
            .iter()
            .fold(response, |response, (name, value)| {
                response.with_header(name.clone(), value.clone())
            })
    }
}

fn read(path: &Path) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    let place = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::Fault(format!("cannot read {place}: {error}")))?;
    let mut fields = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        if line.is_empty() {
            continue;
        }
        let Some(name_and_value) = field(line) else {
            let example = "write `Name: value`, such as `X-Frame-Options: DENY`";
            return Err(Failure::Fault(format!(
                "{place}, line {number} is no header field; {example}"
            )));
        };
        fields.push(name_and_value);
    }
    Ok(fields)
}

fn field(line: &str) -> Option<(HeaderName, HeaderValue)> {
    let (name, value) = line.split_once(':')?;
    Some((name.parse().ok()?, value.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_and_a_value() {
        let (name, value) = field("X-Frame-Options: DENY").unwrap();
        assert_eq!(
            (name.as_str(), value.as_bytes()),
            ("x-frame-options", &b"DENY"[..])
        );
        for wrong in ["X-Frame-Options", "X Frame: DENY", ": DENY", "X: a\u{7f}"] {
            assert_eq!(field(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_fault_names_the_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(&file, "X-A: b\n\nX-C\n").unwrap();
        let Err(Failure::Fault(said)) = read(file.path()) else {
            panic!("a line without a value passes")
        };
        assert!(said.contains(", line 3 is no header field"), "{said}");
        std::fs::write(&file, "X-A: b\n\nX-C: d\n").unwrap();
        assert!(read(file.path()).is_ok_and(|fields| fields.len() == 2));
    }
}
