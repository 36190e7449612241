//! Requests that are made anew each time they are sent: those with placeholders, and all requests
//! of clients that keep cookies.

use bytes::Bytes;

use crate::plan::{Header, Request, Table};
use crate::template::{Place, Template, TemplateFault, Values};

/// A request with parts that are known only when it is sent.
#[derive(Debug)]
pub(crate) struct Dynamic {
    /// The request as the plan has it, for the parts that do not change.
    base: Request,
    target: Template,
    /// The templates of the header values, in the order of the fields of `base`.
    values: Vec<Template>,
    body: Template,
}

impl Dynamic {
    /// Compiles the request's placeholders; `table` has the columns for `{{csv COLUMN}}`.
    ///
    /// # Errors
    /// A placeholder is not valid; [`TemplateFault`] says why.
    pub(crate) fn compile(request: &Request, table: Option<&Table>) -> Result<Self, TemplateFault> {
        let compile = |text: &[u8], place| {
            if request.has_placeholders {
                Template::compile(text, place, table)
            } else {
                Ok(Template::literal(text))
            }
        };
        let headers = request.headers.iter();
        let values: Result<Vec<_>, _> = headers
            .map(|header| compile(&header.value, Place::Header))
            .collect();
        Ok(Self {
            target: compile(request.target.as_bytes(), Place::Target)?,
            values: values?,
            body: compile(&request.body, Place::Body)?,
            base: request.clone(),
        })
    }

    /// Whether the request has placeholders, so that it differs each time it is sent.
    pub(crate) fn varies(&self) -> bool {
        let mut parts = self.values.iter().chain([&self.target, &self.body]);
        parts.any(|part| part.as_plain().is_none())
    }

    /// The request with these values filled in; Content-Length is the length of the body made.
    pub(crate) fn fill(&self, values: &mut Values<'_>) -> Request {
        self.make(|template, place, out| template.fill(values, place, out))
    }

    /// The longest request that can be made by filling in placeholders.
    pub(crate) fn longest(&self, table: Option<&Table>) -> Request {
        self.make(|template, place, out| template.fill_longest(place, table, out))
    }

    /// Makes a request in which `write` fills in each template. If the body's length changes, so does Content-Length.
    fn make(&self, mut write: impl FnMut(&Template, Place, &mut Vec<u8>)) -> Request {
        let mut fill = |template: &Template, place| match template.as_plain() {
            Some(text) => text.to_vec(),
            None => {
                let mut out = Vec::new();
                write(template, place, &mut out);
                out
            }
        };
        let body = match self.body.as_plain() {
            // Shares the plan's bytes instead of copying them. A plain text differs from them only if it had `\{{`,
            // which loses its backslash, so bytes of the same length are the same.
            Some(text) if text.len() == self.base.body.len() => self.base.body.clone(),
            _ => Bytes::from(fill(&self.body, Place::Body)),
        };
        let has_new_length = body.len() != self.base.body.len();
        let mut headers = Vec::with_capacity(self.base.headers.len());
        for (header, template) in self.base.headers.iter().zip(&self.values) {
            let is_length = header.name.eq_ignore_ascii_case("content-length");
            let value = if is_length && has_new_length {
                body.len().to_string().into_bytes()
            } else {
                fill(template, Place::Header)
            };
            let name = header.name.clone();
            headers.push(Header { name, value });
        }
        let target = fill(&self.target, Place::Target);
        Request {
            method: self.base.method.clone(),
            // No byte is replaced: the plan's target is UTF-8, and cells of a table are percent-encoded in it.
            target: String::from_utf8_lossy(&target).into_owned(),
            version: self.base.version,
            headers,
            body,
            has_placeholders: false,
            name: None,
            weight: self.base.weight,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::HttpVersion;

    #[test]
    fn the_length_is_that_of_the_body_that_is_sent() {
        let request = Request {
            method: "POST".to_owned(),
            body: Bytes::from_static(b"id={{n}}"),
            has_placeholders: true,
            ..Request::get("/a/{{n}}", HttpVersion::Http11)
                .header("Content-length", "8")
                .header("X-Id", "{{n}}{{n}}")
        };
        let dynamic = Dynamic::compile(&request, None).unwrap();
        assert!(dynamic.varies());
        let filled = dynamic.fill(&mut Values::new(1, 1234, None));
        assert_eq!(filled.target, "/a/1234");
        assert_eq!(&filled.body[..], b"id=1234");
        let values: Vec<&[u8]> = filled.headers.iter().map(|it| &it.value[..]).collect();
        assert_eq!(values, [&b"7"[..], b"12341234"]);
    }

    /// A Content-Length that is wrong on purpose is kept if nothing is filled in.
    #[test]
    fn what_has_no_placeholder_stays() {
        let request = Request {
            body: Bytes::from_static(b"{{x"),
            has_placeholders: true,
            ..Request::get("/", HttpVersion::Http11).header("Content-Length", "99")
        };
        let dynamic = Dynamic::compile(&request, None).unwrap();
        assert!(!dynamic.varies());
        let filled = dynamic.fill(&mut Values::new(1, 1, None));
        assert_eq!(
            (&filled.body[..], &filled.headers[0].value[..]),
            (&b"{{x"[..], &b"99"[..])
        );
    }
}
