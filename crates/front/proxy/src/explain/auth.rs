//! Explains what the sign-on of a route is asked, and what an answer that is supposed would mean. Nothing is sent.

use bytes::Bytes;
use catamaran_admin_api::AuthOutlook;
use catamaran_message::{FieldName, Fields, RequestHead, ResponseHead};
use http::StatusCode;

use super::text;
use crate::exchange::forward_auth::{self, AuthOutcome, AuthRequest};
use crate::exchange::user_auth;
use crate::exchange::verdict::Verdict;
use crate::site::auth::{SiteAuth, SiteAuthKind};

/// The request that the service would get, or the file in which the user would be looked up. `supposed` is the answer that
/// the question supposes.
pub(super) fn outlook(
    verdict: &Verdict<'_>,
    auth: &SiteAuth,
    supposed: Option<&ResponseHead>,
) -> AuthOutlook {
    let supposed = supposed.map(|head| head.status.as_u16());
    let name = auth.config.name.clone();
    match &auth.kind {
        SiteAuthKind::Forward(service) => {
            let request = forward_auth::request(AuthRequest::of(verdict), service);
            let fields = request.head.headers.iter();
            let path = text(&service.path.forward);
            AuthOutlook {
                name,
                upstream: service.config.upstream.clone(),
                request: format!("{} {path}", request.head.method),
                fields: fields
                    .map(|field| (field.lower_name(), text(field.value())))
                    .collect(),
                supposed,
                ..AuthOutlook::default()
            }
        }
        SiteAuthKind::Users(users) => AuthOutlook {
            name,
            users_file: Some(users.config.users_file.display().to_string()),
            user: user_auth::claimed_user(&verdict.head),
            supposed,
            ..AuthOutlook::default()
        },
    }
}

/// An outlook as a sentence. `head` is the request's.
pub(super) fn sentence(outlook: &AuthOutlook, head: &RequestHead) -> String {
    let AuthOutlook {
        name,
        upstream,
        request,
        ..
    } = outlook;
    let (asked, yes) = match (&outlook.users_file, &outlook.user) {
        (None, _) => (
            format!("{request} of upstream {upstream}"),
            "it answers 2xx",
        ),
        (Some(file), Some(user)) => (format!("the password of {user}, in {file}"), "it is right"),
        (Some(_), None) => {
            let why = match user_auth::credentials(head) {
                Some(Err(fault)) => format!("{fault}, which counts as a wrong password"),
                Some(Ok(_)) | None => "the request has no user and password".to_owned(),
            };
            return format!("sign-on {name} is asked first: {why}");
        }
    };
    let sentence = format!("sign-on {name} is asked first: {asked}");
    match outlook.supposed {
        Some(status) => format!("{sentence}; it is supposed to answer {status}"),
        None => format!("{sentence}; all else holds if {yes}"),
    }
}

/// Has the verdict be the one after this answer of the service; without an answer it stays as it is. For a file of users
/// a 2xx says that the password is right, as is supposed without an answer, and every other status that it is wrong.
pub(super) fn suppose(verdict: &mut Verdict<'_>, auth: &SiteAuth, answer: Option<ResponseHead>) {
    let about = AuthRequest::of(verdict);
    let outcome = match (&auth.kind, answer) {
        (SiteAuthKind::Forward(_), None) => return,
        (SiteAuthKind::Forward(service), Some(answer)) => {
            forward_auth::judge(about, auth, &service.config, answer, Bytes::new())
        }
        (SiteAuthKind::Users(users), answer) => {
            let is_right = answer.is_none_or(|answer| answer.status.is_success());
            user_auth::suppose(about, auth, users, is_right)
        }
    };
    match outcome {
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
