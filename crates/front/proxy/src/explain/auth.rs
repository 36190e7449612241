//! Explains what the sign-on of a route is asked, and what an answer that is supposed would mean. Nothing is sent.

use bytes::Bytes;
use catamaran_admin_api::AuthOutlook;
use catamaran_message::{FieldName, Fields, ResponseHead};
use http::StatusCode;

use super::text;
use crate::config::AuthKind;
use crate::exchange::forward_auth::{self, AuthOutcome};
use crate::exchange::verdict::Verdict;
use crate::site::auth::SiteAuth;

/// The request that the service would get. `supposed` is the answer that the question supposes.
pub(super) fn outlook(
    verdict: &Verdict<'_>,
    auth: &SiteAuth,
    supposed: Option<&ResponseHead>,
) -> AuthOutlook {
    let AuthKind::Forward(service) = &auth.config.kind;
    let request = forward_auth::request(verdict, auth, service);
    let fields = request.head.headers.iter();
    AuthOutlook {
        name: auth.config.name.clone(),
        upstream: service.upstream.clone(),
        request: format!("{} {}", request.head.method, text(&auth.asked.path.forward)),
        fields: fields
            .map(|field| (field.lower_name(), text(field.value())))
            .collect(),
        supposed: supposed.map(|head| head.status.as_u16()),
    }
}

/// An outlook as a sentence.
pub(super) fn sentence(outlook: &AuthOutlook) -> String {
    let AuthOutlook {
        name,
        upstream,
        request,
        ..
    } = outlook;
    let asked = format!("sign-on {name} is asked first: {request} of upstream {upstream}");
    match outlook.supposed {
        Some(status) => format!("{asked}; it is supposed to answer {status}"),
        None => format!("{asked}; all else holds if it answers 2xx"),
    }
}

/// Has the verdict be the one after this answer of the service.
pub(super) fn suppose(verdict: &mut Verdict<'_>, auth: &SiteAuth, answer: ResponseHead) {
    let AuthKind::Forward(service) = &auth.config.kind;
    match forward_auth::judge(verdict, auth, service, answer, Bytes::new()) {
        AuthOutcome::Granted(signed_on, _) => verdict.identify(signed_on),
        AuthOutcome::Answered(answer) => verdict.refuse_by(answer),
        AuthOutcome::Failed(failure) => verdict.fail(failure),
    }
}

/// Reads an answer such as `200,X-Auth-Request-User=ann`; `None` if the text is empty.
///
/// # Errors
/// The text is no such answer.
pub(super) fn read_answer(answer: &str) -> Result<Option<ResponseHead>, String> {
    if answer.is_empty() {
        return Ok(None);
    }
    let wrong = |what: &str| format!("the answer {answer:?} {what}");
    let mut parts = answer.split(',');
    let number = parts.next().and_then(|digits| digits.parse().ok());
    let status = number.and_then(|number: u16| StatusCode::from_u16(number).ok());
    let mut headers = Fields::new();
    for part in parts {
        let pair = part.split_once('=');
        let (name, value) = pair.ok_or_else(|| wrong("has a field without `=`"))?;
        let field = FieldName::parse(name.as_bytes());
        headers.append(&field.ok_or_else(|| wrong("names no field"))?, value);
    }
    Ok(Some(ResponseHead {
        status: status.ok_or_else(|| wrong("begins with no status"))?,
        headers,
        ..ResponseHead::default()
    }))
}
