//! CORS on routes with `[route.cors]`: which pages of other origins may read a response, and send a request.
//!
//! The front answers preflights itself, before anything that needs credentials, since browsers send none with them. In
//! every other response it replaces the backend's fields of CORS by its own. It does so after a cache, because they
//! depend on the origin that asks. An origin that is not listed, malformed, `null` or sent twice gets no fields.
//!
//! CORS keeps nobody from sending requests; it tells browsers which responses a page may read.

use bytes::Bytes;
use catamaran_message::name::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, ORIGIN,
};
use catamaran_message::{FieldName, Fields, RequestHead, ResponseHead};
use http::{Method, StatusCode};

use crate::config::CorsConfig;
use crate::exchange::compression;
use crate::path::NormalPath;
use crate::site::route::{ANNOUNCED_MAX, Route, RouteTable, Wanted};

/// The fields of CORS that the responses to one request get.
#[derive(Debug)]
pub(crate) struct CorsFields<'s> {
    config: &'s CorsConfig,
    /// The value of `Access-Control-Allow-Origin`; `None`: the origin gets no fields.
    origin: Option<Bytes>,
    /// The method that a preflight was granted; `None`: the request is no preflight.
    preflight: Option<Method>,
}

/// Why a preflight is not granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PreflightFault {
    /// The origin is not listed.
    Origin,
    /// The method is not listed.
    Method,
    /// A field is not listed, or there are too many.
    Headers,
    /// The request may reach routes that differ in `[route.cors]`, or none.
    Route,
}

/// The front's answer to a preflight.
#[derive(Debug)]
pub(crate) struct PreflightAnswer<'s> {
    /// The route whose guards and limits the preflight is subject to.
    pub(crate) route: &'s Route,
    pub(crate) fields: CorsFields<'s>,
    /// The reason for the log.
    pub(crate) token: &'static str,
}

impl<'s> PreflightAnswer<'s> {
    /// Answers a preflight by the `[route.cors]` of the route that the announced request gets. If its fields or cookies,
    /// which a preflight does not tell, could lead it to others, all of these must have an equal one.
    ///
    /// `own` is the route of the preflight itself, and `wanted` has [`ConditionFacts::Announced`]. `None`: none of these
    /// routes has `[route.cors]`, so the preflight is a request like any other.
    ///
    /// [`ConditionFacts::Announced`]: crate::site::route::ConditionFacts::Announced
    pub(crate) fn new(
        routes: &'s RouteTable,
        own: Option<&'s Route>,
        wanted: Wanted<'_>,
        path: &NormalPath,
        head: &RequestHead,
    ) -> Option<Self> {
        let method = announced_method(head);
        let indices = match &method {
            Some(method) => routes.announced(Wanted { method, ..wanted }, path),
            None => Vec::new(),
        };
        // First the one that the announced request gets if its fields and cookies lead to none of the others.
        let mut announced = indices.iter().rev().map(|&index| &routes.routes()[index]);
        let mut concerned = announced.clone().chain(own);
        let (route, config) = concerned.find_map(|route| Some((route, config_of(route)?)))?;
        // There may be more routes than are looked for.
        let are_known = !indices.is_empty() && indices.len() < ANNOUNCED_MAX;
        let agree = are_known && announced.all(|route| config_of(route) == Some(config));
        let granted = match method {
            None => Err(PreflightFault::Method),
            Some(_) if !agree => Err(PreflightFault::Route),
            Some(method) => CorsFields::of_preflight(config, head, method),
        };
        let (fields, token) = match granted {
            Ok(fields) => (fields, GRANTED),
            Err(fault) => (CorsFields::refused(config), fault.token()),
        };
        Some(Self {
            route,
            fields,
            token,
        })
    }
}

fn config_of(route: &Route) -> Option<&CorsConfig> {
    route.rules.as_ref()?.cors()
}

impl PreflightFault {
    /// The reason for the log.
    fn token(self) -> &'static str {
        match self {
            Self::Origin => "cors-origin",
            Self::Method => "cors-method",
            Self::Headers => "cors-headers",
            Self::Route => "cors-route",
        }
    }
}

impl<'s> CorsFields<'s> {
    /// The fields for responses to a request that is no preflight.
    pub(crate) fn of_request(config: &'s CorsConfig, head: &RequestHead) -> Self {
        let origin = if config.is_open() {
            Some(Bytes::from_static(b"*"))
        } else {
            let only_line = head.headers.only(ORIGIN);
            let allowed = only_line.filter(|origin| config.allows(origin));
            allowed.map(|origin| head.headers.share(origin))
        };
        Self {
            config,
            origin,
            preflight: None,
        }
    }

    /// The fields for a preflight that is not granted: none but `Vary`.
    fn refused(config: &'s CorsConfig) -> Self {
        Self {
            config,
            origin: None,
            preflight: None,
        }
    }

    /// The fields for a preflight that asks for `method`.
    ///
    /// # Errors
    /// Why it is not granted.
    fn of_preflight(
        config: &'s CorsConfig,
        head: &RequestHead,
        method: Method,
    ) -> Result<Self, PreflightFault> {
        let fields = Self::of_request(config, head);
        if fields.origin.is_none() {
            return Err(PreflightFault::Origin);
        }
        if !config.methods.contains(&method) {
            return Err(PreflightFault::Method);
        }
        if !are_listed(&config.headers, &head.headers) {
            return Err(PreflightFault::Headers);
        }
        Ok(Self {
            preflight: Some(method),
            ..fields
        })
    }

    /// Writes the fields into the head of a response, in the place of those that the backend sent.
    #[inline(never)]
    pub(crate) fn edit(&self, head: &mut ResponseHead) {
        // A tunnel is no response that a page could read: browsers open WebSockets to any origin.
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            return;
        }
        let headers = &mut head.headers;
        headers.retain(|field| !is_cors_field(field.name()));
        compression::vary(headers, ORIGIN);
        let Some(origin) = &self.origin else {
            return;
        };
        headers.append(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        let config = self.config;
        if config.credentials {
            headers.append(ACCESS_CONTROL_ALLOW_CREDENTIALS, "true");
        }
        let Some(method) = &self.preflight else {
            if !config.expose.is_empty() {
                headers.append(ACCESS_CONTROL_EXPOSE_HEADERS, list(&config.expose));
            }
            return;
        };
        // Only this one: another route, with other rules, may have the other methods of the path.
        headers.append(ACCESS_CONTROL_ALLOW_METHODS, method.as_str());
        if !config.headers.is_empty() {
            headers.append(ACCESS_CONTROL_ALLOW_HEADERS, list(&config.headers));
        }
        let seconds = config.max_age.as_secs();
        headers.append(ACCESS_CONTROL_MAX_AGE, seconds.to_string());
    }

    /// What the fields allow, in a sentence for explanations.
    pub(crate) fn words(&self) -> String {
        let Some(origin) = &self.origin else {
            return "no page of another origin may read the response: `origins` of [route.cors] does not have its \
                    `Origin`, or it has none, or several"
                .to_owned();
        };
        let pages = match &origin[..] {
            b"*" => "pages of every origin".to_owned(),
            origin => format!("pages of {}", String::from_utf8_lossy(origin)),
        };
        let action = match &self.preflight {
            Some(method) => format!("send {method}"),
            None => "read the response".to_owned(),
        };
        let credentials = if self.config.credentials {
            ", with credentials"
        } else {
            ""
        };
        format!("{pages} may {action}{credentials} ([route.cors])")
    }
}

/// Whether a request is a preflight: a browser asks, before a page's own request, whether it may send that.
pub(crate) fn is_preflight(head: &RequestHead) -> bool {
    head.method == Method::OPTIONS
        && head.headers.contains(ACCESS_CONTROL_REQUEST_METHOD)
        && head.headers.contains(ORIGIN)
}

/// The method of the request that a preflight announces; `None`: it names none, or several.
fn announced_method(head: &RequestHead) -> Option<Method> {
    let method = head.headers.only(ACCESS_CONTROL_REQUEST_METHOD)?;
    Method::from_bytes(method).ok()
}

/// Whether a preflight asks for no other fields than these, and for at most [`ASKED_MAX`].
fn are_listed(allowed: &[FieldName], headers: &Fields) -> bool {
    let lines = headers.get_all(ACCESS_CONTROL_REQUEST_HEADERS);
    let elements = lines.flat_map(|line| line.split(|&byte| byte == b','));
    let names = elements
        .map(<[u8]>::trim_ascii)
        .filter(|name| !name.is_empty());
    for (count, name) in names.enumerate() {
        let mut allowed = allowed.iter().map(|field| field.as_str().as_bytes());
        if count == ASKED_MAX || !allowed.any(|field| field.eq_ignore_ascii_case(name)) {
            return false;
        }
    }
    true
}

/// Whether a field belongs to CORS, in this version or a later one: its name begins with `Access-Control-`.
fn is_cors_field(name: &[u8]) -> bool {
    let beginning = name.get(..CORS_PREFIX.len()).unwrap_or_default();
    beginning.eq_ignore_ascii_case(CORS_PREFIX)
}

fn list(names: &[FieldName]) -> String {
    let names: Vec<&str> = names.iter().map(FieldName::as_str).collect();
    names.join(", ")
}

/// The reason for the log of a preflight that is granted.
const GRANTED: &str = "cors-preflight";

const CORS_PREFIX: &[u8] = b"access-control-";

/// The most fields that a preflight may ask for.
const ASKED_MAX: usize = 64;

#[cfg(test)]
mod tests;
