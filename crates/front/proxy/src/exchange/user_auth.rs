//! Users in a file: the credentials that a client sends, and what the result of their check means.
//!
//! Pure: the exchange has passwords checked ([`crate::exchange::sign_on`]), and `explain` supposes a result. A client
//! without credentials, with wrong ones, or who may not pass, gets a 401 with the challenge, so that a browser asks for
//! a user and a password.

use bytes::Bytes;
use catamaran_credentials::{BasicCredentials, BasicFault};
use catamaran_message::name::AUTHORIZATION;
use catamaran_message::{Fields, RequestHead};

use crate::config::UsersAuth;
use crate::exchange::fields::signed_on::SignedOn;
use crate::exchange::forward_auth::{AuthOutcome, AuthRequest};
use crate::exchange::verdict::OwnAnswer;
use crate::site::Site;
use crate::site::auth::SiteAuth;
use crate::users::LiveUsers;

/// The user and the password in a request; `None`: it has none.
pub(crate) fn credentials(head: &RequestHead) -> Option<Result<BasicCredentials, BasicFault>> {
    let value = head.headers.get(AUTHORIZATION)?;
    BasicCredentials::parse(value).transpose()
}

/// The user that a request says it is from; `None`: it has no credentials, or they cannot be read.
pub(crate) fn claimed_user(head: &RequestHead) -> Option<String> {
    let credentials = credentials(head)?.ok()?;
    Some(credentials.user().to_owned())
}

/// The outcome for a user with the right password, who may pass.
pub(crate) fn grant(site: &Site, auth: &SiteAuth, users: &UsersAuth, user: &str) -> AuthOutcome {
    let auths = site.auths.as_deref();
    let told = auths.map_or(&[][..], |auths| auths.told());
    let user = Bytes::copy_from_slice(user.as_bytes());
    let signed_on = SignedOn::of_user(&auth.config, user, &users.fields, told);
    AuthOutcome::Granted(Box::new(signed_on), Fields::new())
}

/// The outcome for a client that sends no credentials, or those of a user who may not pass.
pub(crate) fn deny(users: &UsersAuth) -> AuthOutcome {
    ask_for_password(users, "auth-denied")
}

/// The outcome for a client with wrong credentials.
pub(crate) fn refuse_password(users: &UsersAuth) -> AuthOutcome {
    ask_for_password(users, "auth-password")
}

/// The outcome for a request of which it is supposed whether its password is right. Credentials that cannot be read are
/// wrong in any case.
pub(crate) fn suppose(
    about: AuthRequest<'_, '_>,
    auth: &SiteAuth,
    users: &LiveUsers,
    is_right: bool,
) -> AuthOutcome {
    let user = match credentials(about.head) {
        None => return deny(&users.config),
        Some(Err(_)) => return refuse_password(&users.config),
        Some(Ok(credentials)) => credentials.user().to_owned(),
    };
    // For a configuration that is not in force, no files were read.
    let may_pass = users.current().is_none_or(|read| read.permits(&user));
    match (is_right, may_pass) {
        (false, _) => refuse_password(&users.config),
        (true, false) => deny(&users.config),
        (true, true) => grant(about.grounds.site, auth, &users.config, &user),
    }
}

fn ask_for_password(users: &UsersAuth, token: &'static str) -> AuthOutcome {
    let challenge = users.challenge.value().clone();
    AuthOutcome::Answered(OwnAnswer::unauthorized(challenge, token))
}
