//! `--requests-file`: reads requests with their own methods, paths, headers, bodies, weights and
//! names, one JSON object a line.

use std::collections::HashSet;
use std::num::NonZeroU32;

use bytes::Bytes;
use catamaran_load::plan::{Header, Request, Table};
use serde::Deserialize;
use serde_json::Value;

use crate::refusal::Refusal;
use crate::{settings, target};

/// One line of the file: a request, with `path` required.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestLine {
    method: Option<String>,
    path: String,
    headers: Option<Value>,
    body: Option<Value>,
    weight: Option<NonZeroU32>,
    name: Option<String>,
}

/// Reads the requests of a file. What a line leaves out is as in `base`.
///
/// # Errors
/// [`Refusal::File`] if the file cannot be read; [`Refusal::Line`] with the line at fault.
pub(crate) fn read(
    path: &str,
    base: &Request,
    table: Option<&Table>,
) -> Result<Vec<Request>, Refusal> {
    let text = settings::file(path)?;
    requests(&text, base, table).map_err(|(line, what)| Refusal::Line {
        path: path.to_owned(),
        line,
        what,
    })
}

/// Reads all requests of the file's text. The error is the line at fault, from 1, and why.
fn requests(
    text: &[u8],
    base: &Request,
    table: Option<&Table>,
) -> Result<Vec<Request>, (u64, String)> {
    let mut requests = Vec::new();
    let mut names = HashSet::new();
    for (number, line) in (1..).zip(text.split(|byte| *byte == b'\n')) {
        let object = line.trim_ascii();
        if object.is_empty() {
            continue;
        }
        let request = request(object, base).map_err(|what| (number, what))?;
        request.check(table).map_err(|what| (number, what))?;
        names.insert(request.name.clone());
        if names.len() > NAMES_MAX {
            let what = format!(
                "there are more than {NAMES_MAX} names, each with a histogram of its own: give \
                 requests that are alike the same `name`"
            );
            return Err((number, what));
        }
        requests.push(request);
    }
    if requests.is_empty() {
        Err((
            1,
            "there is no request: each line is one, as a JSON object".to_owned(),
        ))
    } else {
        Ok(requests)
    }
}

/// Reads the request of one line. Without a method, it is a POST if it has a body, else a GET.
fn request(line: &[u8], base: &Request) -> Result<Request, String> {
    let line: RequestLine = serde_json::from_slice(line).map_err(|error| fault(&error))?;
    // A path may begin with a placeholder, whose value has the slash.
    if !line.path.starts_with('/') && !line.path.starts_with("{{") {
        return Err(format!(
            "the path {:?} does not begin with a slash",
            line.path
        ));
    }
    let own_headers = match line.headers {
        Some(headers) => self::headers(headers)?,
        None => Vec::new(),
    };
    let (body, content_type) = match line.body {
        None => (None, None),
        Some(Value::String(text)) => (Some(text), None),
        Some(value) => (Some(value.to_string()), Some("application/json")),
    };
    let default = if body.is_some() { "POST" } else { "GET" };
    let method = line.method.unwrap_or_else(|| default.to_owned());
    // Servers want a Content-Length for these, even if it is 0.
    let sends_body = body.is_some() || ["POST", "PUT", "PATCH"].contains(&method.as_str());
    let body = body.unwrap_or_default();
    let content = sends_body.then_some(Content {
        length: body.len(),
        content_type,
    });
    let name = line
        .name
        .unwrap_or_else(|| format!("{method} {}", line.path));
    Ok(Request {
        method,
        target: line.path,
        headers: merged_headers(&base.headers, own_headers, content),
        body: Bytes::from(body),
        has_placeholders: true,
        name: Some(name),
        weight: line.weight.unwrap_or(NonZeroU32::MIN),
        ..base.clone()
    })
}

/// The facts about a body that header fields state.
#[derive(Clone, Copy)]
struct Content {
    length: usize,
    /// The type that follows from the form of the body; `None`: it may be any.
    content_type: Option<&'static str>,
}

/// The header fields of a request: those of `base` that the line does not replace, then those about the body, if the
/// request has one, then the line's own.
fn merged_headers(base: &[Header], own: Vec<Header>, content: Option<Content>) -> Vec<Header> {
    let has = |headers: &[Header], name: &str| {
        let mut names = headers.iter().map(|header| &header.name);
        names.any(|known| known.eq_ignore_ascii_case(name))
    };
    let mut headers = base.to_vec();
    headers.retain(|header| !has(&own, &header.name));
    if let Some(content) = content {
        if !has(&own, "content-length") {
            let length = content.length.to_string();
            headers.push(target::header("Content-length", &length));
        }
        // A type that the body has by its form replaces that of `base`.
        let replaces_type = content.content_type.is_some() || !has(&headers, "content-type");
        if !has(&own, "content-type") && replaces_type {
            headers.retain(|header| !header.name.eq_ignore_ascii_case("content-type"));
            let content_type = content.content_type.unwrap_or("text/plain");
            headers.push(target::header("Content-type", content_type));
        }
    }
    headers.extend(own);
    headers
}

/// Reads the headers of a line: an object, or a list of lines as for `-H`.
fn headers(value: Value) -> Result<Vec<Header>, String> {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| match value {
                Value::String(value) => Ok(target::header(&name, &value)),
                Value::Number(number) => Ok(target::header(&name, &number.to_string())),
                _ => Err(format!("the value of the header {name:?} is no string")),
            })
            .collect(),
        Value::Array(lines) => lines
            .iter()
            .map(|line| {
                let line = line.as_str().ok_or("a header line is no string")?;
                target::line_to_header(line).map_err(|refusal| refusal.to_string())
            })
            .collect(),
        _ => Err(
            "headers are an object, such as {\"Accept\": \"*/*\"}, or a list of header lines"
                .to_owned(),
        ),
    }
}

/// The error's text without the line number, which is always 1.
fn fault(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}

/// The most different names: each has a histogram in each thread.
const NAMES_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use catamaran_load::plan::HttpVersion;

    use super::*;

    fn base() -> Request {
        Request::get("/", HttpVersion::Http11)
            .header("Host", "h")
            .header("Accept", "*/*")
    }

    fn one(line: &str) -> Request {
        let mut requests = requests(line.as_bytes(), &base(), None).unwrap();
        assert_eq!(requests.len(), 1);
        requests.remove(0)
    }

    fn fields(request: &Request) -> String {
        let fields = request.headers.iter().map(|header| {
            let value = String::from_utf8_lossy(&header.value);
            format!("{}: {value}", header.name)
        });
        fields.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn what_a_line_does_not_say_is_as_on_the_command_line() {
        let request = one(r#"{"path":"/a/{{n}}"}"#);
        assert_eq!(
            (request.method.as_str(), request.target.as_str()),
            ("GET", "/a/{{n}}")
        );
        assert_eq!(request.name.as_deref(), Some("GET /a/{{n}}"));
        assert_eq!(fields(&request), "Host: h; Accept: */*");
        assert!(request.has_placeholders && request.weight.get() == 1);
        let request = one(
            r#"{"method":"PUT","path":"/x","headers":{"accept":"a/b","X-N":5},"body":"{{n}}",
            "weight":3,"name":"put"}"#
                .replace('\n', "")
                .as_str(),
        );
        assert_eq!(
            fields(&request),
            "Host: h; Content-length: 5; Content-type: text/plain; X-N: 5; accept: a/b"
        );
        assert_eq!(
            (request.weight.get(), request.name.as_deref()),
            (3, Some("put"))
        );
    }

    #[test]
    fn a_body_may_be_json() {
        let request = one(r#"{"path":"/x","headers":["X: 1"],"body":{"id":"{{n}}"}}"#);
        assert_eq!(request.method, "POST");
        assert_eq!(&request.body[..], br#"{"id":"{{n}}"}"#);
        let expected =
            "Host: h; Accept: */*; Content-length: 14; Content-type: application/json; X: 1";
        assert_eq!(fields(&request), expected);
    }

    #[test]
    fn faults_have_their_lines() {
        for (text, line, expected) in [
            ("", 1, "there is no request"),
            (
                "\n{\"path\":\"/\"}\n{\"path\":",
                3,
                "EOF while parsing a value at column 8",
            ),
            (
                "{\"path\":\"/\",\"url\":\"x\"}",
                1,
                "unknown field `url`, expected one of",
            ),
            (
                "{\"path\":\"x\"}",
                1,
                "the path \"x\" does not begin with a slash",
            ),
            (
                "{\"path\":\"/a b\"}",
                1,
                "the target is empty or has white space",
            ),
            ("{\"path\":\"/{{x}}\"}", 1, "{{x}} is no placeholder"),
            ("{\"path\":\"/{{csv x}}\"}", 1, "{{csv x}} needs a table"),
            (
                "{\"path\":\"/\",\"weight\":0}",
                1,
                "invalid value: integer `0`",
            ),
            ("{\"path\":\"/\",\"headers\":5}", 1, "headers are an object"),
            (
                "{\"path\":\"/\",\"headers\":{\"a\":[]}}",
                1,
                "the value of the header \"a\"",
            ),
            (
                "{\"path\":\"/\",\"headers\":[\"a\"]}",
                1,
                "the header line \"a\" has no name",
            ),
            (
                "{\"path\":\"/\",\"headers\":{\"a\":\"b\\nc\"}}",
                1,
                "a field value has a line break",
            ),
        ] {
            let (at, what) = requests(text.as_bytes(), &base(), None).unwrap_err();
            assert_eq!(at, line, "{text}");
            assert!(what.starts_with(expected), "{text}: {what}");
        }
        let many = (0..=NAMES_MAX).map(|number| format!("{{\"path\":\"/{number}\"}}\n"));
        let (line, what) =
            requests(many.collect::<String>().as_bytes(), &base(), None).unwrap_err();
        assert_eq!(line, 1001);
        assert!(what.contains("the same `name`"), "{what}");
    }
}
