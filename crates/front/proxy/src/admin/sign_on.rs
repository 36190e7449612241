//! The sign-on of the admin listener (`auth` of `[admin]`): a user and a password, as on a route with the same sign-on.
//!
//! A client over TCP that sends a user and a password is looked up in the file of the sign-on; wrong ones are counted
//! with those of its routes. The Unix socket needs none of this: who may open it may do everything.

use std::time::Duration;

use catamaran_message::RequestHead;
use http::{HeaderValue, StatusCode};
use tokio::time::timeout;

use super::Desk;
use super::reply::Reply;
use super::request::Peer;
use crate::config::AdminConfig;
use crate::exchange::user_auth;
use crate::worker::passwords::{PasswordQuestion, PasswordVerdict};

/// Who sends a request, as far as the sign-on of the listener tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Caller {
    /// The listener has no sign-on.
    NotAsked,
    /// The request has no user and no password. It gets this challenge, unless it has the token.
    Anonymous(HeaderValue),
    /// A user who may pass.
    User(String),
}

/// Looks up who sends a request. The error is the answer that refuses it.
pub(super) async fn caller(
    desk: &Desk,
    config: &AdminConfig,
    peer: Peer,
    head: &RequestHead,
) -> Result<Caller, Reply> {
    let (Some(name), Peer::Tcp(client)) = (&config.auth, peer) else {
        return Ok(Caller::NotAsked);
    };
    let site = desk.shared.site.load_full();
    let mut all = site.auths.iter().flat_map(|auths| auths.users());
    let known = all.find(|users| users.name == *name);
    let read = known.and_then(|users| Some((users, users.current()?)));
    // A sign-on that the front does not have lets nobody pass.
    let Some((users, read)) = read else {
        let detail = "`auth` of [admin] names a sign-on that the front does not have; reload";
        return Err(unavailable("auth-unknown", detail));
    };
    let challenge = users.config.challenge.value();
    let Some(credentials) = user_auth::credentials(head) else {
        return Ok(Caller::Anonymous(challenge.clone()));
    };
    let user = credentials.as_ref().map(|it| it.user().to_owned()).ok();
    let question = PasswordQuestion {
        site: &site,
        auth: name,
        users: &read,
        client: client.ip(),
    };
    let check = desk.shared.passwords.check(question, credentials);
    let checked = timeout(HASH_WAIT_MAX, check).await;
    match (checked.unwrap_or(PasswordVerdict::Busy), user) {
        (PasswordVerdict::Right, Some(user)) if read.permits(&user) => Ok(Caller::User(user)),
        (PasswordVerdict::Right, _) => {
            let detail = "this user may not use the admin listener";
            Err(Reply::challenge(challenge, "auth-denied", detail))
        }
        (PasswordVerdict::Wrong, _) => {
            let detail = "the user or the password is wrong";
            Err(Reply::challenge(challenge, "auth-password", detail))
        }
        (PasswordVerdict::Limited(wait), _) => {
            let detail = "this address has sent too many wrong passwords";
            let status = StatusCode::TOO_MANY_REQUESTS;
            Err(Reply::problem(status, "auth-limited", detail).retry_after(wait))
        }
        (PasswordVerdict::Busy, _) => Err(unavailable(
            "auth-busy",
            "too many passwords wait to be checked",
        )),
    }
}

fn unavailable(token: &str, detail: &str) -> Reply {
    Reply::problem(StatusCode::SERVICE_UNAVAILABLE, token, detail)
}

/// The longest time for which a request waits for the hash of its password.
const HASH_WAIT_MAX: Duration = Duration::from_secs(5);
