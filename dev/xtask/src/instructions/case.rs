//! What is counted: one record for each row.

use std::fmt;

use super::backend::BackendProtocol;
use super::heads::{RequestHead, ResponseHead};

/// A case to count: client, configuration and backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) client: ClientProtocol,
    pub(super) request: RequestHead,
    pub(super) source: ResponseSource,
    pub(super) response: ResponseHead,
    pub(super) extras: Extras,
}

/// The protocol of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientProtocol {
    Http1,
    /// HTTP/2 without TLS, so that no cipher is counted.
    Http2,
}

/// The source of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponseSource {
    Backend(BackendProtocol),
    /// The front's cache. Only the first requests reach a backend.
    Cache,
    /// A limit, which refuses all requests but the first.
    Refusal,
}

/// The settings of the front besides a route to one backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extras {
    Nothing,
    CombinedLog,
    JsonLog,
    /// A log in a format of the operator's own, with the facts of Apache's combined one.
    TemplateLog,
    /// A limit by client, which all requests pass.
    Limit,
    /// A route that tests a field, which all requests have, beside one for all others.
    FieldMatch,
    /// A sign-on at a service over HTTP/1.1, which lets all requests pass.
    Subrequest,
    /// A sign-on by a password, which is remembered.
    Password,
    /// Settings as in production: two backends with sessions, two fields set in each response, compression, `allow`
    /// and a combined log.
    InUse,
}

impl Extras {
    /// The format of the access log, as the front's target names it.
    pub(super) fn log(self) -> &'static str {
        match self {
            Self::Nothing | Self::Limit | Self::FieldMatch | Self::Subrequest | Self::Password => {
                "off"
            }
            Self::CombinedLog | Self::InUse => "combined",
            Self::JsonLog => "json",
            Self::TemplateLog => "template",
        }
    }
}

impl Case {
    /// The cases whose names contain `text`.
    pub(super) fn named(text: &str) -> Vec<Self> {
        let cases = ALL.iter().copied();
        cases
            .filter(|case| case.to_string().contains(text))
            .collect()
    }

    /// The numbers of requests of the two runs. The first requests of a run fill pools and buffers, which the
    /// difference of the runs leaves out.
    pub(super) fn requests(self) -> (u64, u64) {
        match self.request {
            RequestHead::Long { .. } => (300, 1_500),
            RequestHead::Bare | RequestHead::Browser => (1_000, 9_000),
        }
    }
}

impl fmt::Display for Case {
    /// The name of the row, such as `HTTP/1.1 to AJP13, 2+3 fields`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let client = match self.client {
            ClientProtocol::Http1 => "HTTP/1.1",
            ClientProtocol::Http2 => "HTTP/2",
        };
        let source = match self.source {
            ResponseSource::Backend(BackendProtocol::Ajp) => "AJP13",
            ResponseSource::Backend(BackendProtocol::Http) => "HTTP/1.1",
            ResponseSource::Cache => "the cache",
            ResponseSource::Refusal => "a refusal",
        };
        let fields = self.request.fields();
        write!(f, "{client} to {source}, {}", fields.len())?;
        if self.source != ResponseSource::Refusal {
            write!(f, "+{}", self.response.fields().count())?;
        }
        f.write_str(" fields")?;
        if matches!(self.request, RequestHead::Long { .. }) {
            let bytes: usize = fields.iter().map(String::len).sum();
            write!(f, ", {} KiB", bytes.div_ceil(1 << 10))?;
        }
        f.write_str(match self.extras {
            Extras::Nothing => "",
            Extras::CombinedLog => ", combined log",
            Extras::JsonLog => ", JSON log",
            Extras::TemplateLog => ", template log",
            Extras::Limit => ", a limit",
            Extras::FieldMatch => ", a match",
            Extras::Subrequest => ", a service asked",
            Extras::Password => ", a password",
            Extras::InUse => ", as people run it",
        })
    }
}

const fn case(
    client: ClientProtocol,
    request: RequestHead,
    source: ResponseSource,
    response: ResponseHead,
    extras: Extras,
) -> Case {
    Case {
        client,
        request,
        source,
        response,
        extras,
    }
}

const H1: ClientProtocol = ClientProtocol::Http1;
const H2: ClientProtocol = ClientProtocol::Http2;
const AJP: ResponseSource = ResponseSource::Backend(BackendProtocol::Ajp);
const HTTP: ResponseSource = ResponseSource::Backend(BackendProtocol::Http);
const CACHE: ResponseSource = ResponseSource::Cache;
const REFUSAL: ResponseSource = ResponseSource::Refusal;
const BARE: RequestHead = RequestHead::Bare;
const BROWSER: RequestHead = RequestHead::Browser;
const HALF: RequestHead = RequestHead::Long { fields: 50 };
const LONG: RequestHead = RequestHead::Long { fields: 100 };
const LITTLE: ResponseHead = ResponseHead::Bare;
const APPLICATION: ResponseHead = ResponseHead::Application;
const STORED: ResponseHead = ResponseHead::Stored;

const ALL: &[Case] = &[
    case(H1, BARE, AJP, LITTLE, Extras::Nothing),
    case(H1, BARE, AJP, LITTLE, Extras::CombinedLog),
    case(H1, BARE, AJP, LITTLE, Extras::TemplateLog),
    case(H1, BARE, AJP, LITTLE, Extras::Limit),
    case(H1, BARE, AJP, LITTLE, Extras::FieldMatch),
    case(H1, BARE, AJP, LITTLE, Extras::Subrequest),
    case(H1, BARE, AJP, LITTLE, Extras::Password),
    case(H1, BARE, REFUSAL, LITTLE, Extras::Nothing),
    case(H1, BARE, HTTP, LITTLE, Extras::Nothing),
    case(H1, BARE, CACHE, LITTLE, Extras::Nothing),
    case(H2, BARE, AJP, LITTLE, Extras::Nothing),
    case(H2, BARE, HTTP, LITTLE, Extras::Nothing),
    case(H2, BARE, CACHE, LITTLE, Extras::Nothing),
    case(H1, BROWSER, AJP, LITTLE, Extras::Nothing),
    case(H1, BROWSER, AJP, LITTLE, Extras::CombinedLog),
    case(H1, BROWSER, AJP, LITTLE, Extras::JsonLog),
    case(H1, BROWSER, AJP, LITTLE, Extras::InUse),
    case(H1, BROWSER, HTTP, LITTLE, Extras::Nothing),
    case(H2, BROWSER, AJP, LITTLE, Extras::Nothing),
    case(H2, BROWSER, HTTP, LITTLE, Extras::Nothing),
    case(H1, BROWSER, AJP, APPLICATION, Extras::Nothing),
    case(H1, BROWSER, HTTP, APPLICATION, Extras::Nothing),
    case(H2, BROWSER, AJP, APPLICATION, Extras::Nothing),
    case(H2, BROWSER, HTTP, APPLICATION, Extras::Nothing),
    case(H1, BROWSER, CACHE, STORED, Extras::Nothing),
    case(H2, BROWSER, CACHE, STORED, Extras::Nothing),
    // The second case has twice the fields and bytes of the first, and should take about twice as many instructions.
    // An AJP13 response has at most 100 fields with those that the front adds.
    case(H1, HALF, HTTP, LITTLE, Extras::Nothing),
    case(H1, LONG, HTTP, LITTLE, Extras::Nothing),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_row_has_a_name_of_its_own() {
        let names: BTreeSet<String> = ALL.iter().map(Case::to_string).collect();
        assert_eq!(names.len(), ALL.len(), "{names:?}");
        for name in [
            "HTTP/1.1 to AJP13, 3+3 fields",
            "HTTP/2 to HTTP/1.1, 15+13 fields",
            "HTTP/1.1 to AJP13, 15+3 fields, as people run it",
            "HTTP/1.1 to AJP13, 15+3 fields, JSON log",
            "HTTP/2 to the cache, 15+13 fields",
            "HTTP/1.1 to AJP13, 3+3 fields, a limit",
            "HTTP/1.1 to AJP13, 3+3 fields, a service asked",
            "HTTP/1.1 to AJP13, 3+3 fields, a password",
            "HTTP/1.1 to a refusal, 3 fields",
            "HTTP/1.1 to HTTP/1.1, 50+3 fields, 30 KiB",
            "HTTP/1.1 to HTTP/1.1, 100+3 fields, 60 KiB",
        ] {
            assert!(names.contains(name), "{name} is not in {names:?}");
        }
    }

    #[test]
    fn a_text_chooses_the_cases_whose_names_contain_it() {
        let names =
            |text: &str| -> Vec<String> { Case::named(text).iter().map(Case::to_string).collect() };
        assert_eq!(names("").len(), ALL.len());
        assert_eq!(names("JSON"), ["HTTP/1.1 to AJP13, 15+3 fields, JSON log"]);
        assert_eq!(names("to the cache").len(), 4);
        assert!(names("HTTP/3").is_empty());
    }
}
