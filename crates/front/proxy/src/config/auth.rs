//! The settings of sign-on before the application.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
pub use catamaran_credentials::RealmFault;
use catamaran_credentials::challenge;
use catamaran_limit::Quota;
use catamaran_message::FieldName;
use http::HeaderValue;

use super::template::Template;

/// A sign-on, which routes use by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthConfig {
    /// The unique name.
    pub name: String,
    /// Who says whether a client is signed on.
    pub kind: AuthKind,
}

/// Who says whether a client is signed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthKind {
    /// A service, which is asked by a request of its own before each request.
    Forward(ForwardAuth),
    /// A file of users with hashed passwords, which clients send by the Basic scheme.
    Users(UsersAuth),
}

/// A service that says whether a client is signed on.
///
/// Each field is the key of that name of `[auth.NAME]` in `docs/reference.md`, which has its meaning, unit, default and
/// the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardAuth {
    /// The name of the service's upstream.
    pub upstream: String,
    /// The path that is asked for.
    pub path: Bytes,
    /// The field of the service's response that has the user; `None`: no user is known.
    pub user: Option<FieldName>,
    /// The fields of the request for the application, each with the source of its value.
    pub fields: Vec<(FieldName, AuthSource)>,
    /// Further fields of the client's request that the service gets.
    pub request_fields: Vec<FieldName>,
    /// Where browsers are sent to sign on; `None`: they get the service's answer.
    pub sign_in: Option<Template>,
    /// The longest time for the service's answer.
    pub timeout: Duration,
    /// The most bytes of the body of the service's answer.
    pub answer_max: usize,
    /// The cookies that backends do not get: names, or the beginnings of names before a `*`.
    pub hide_cookies: Vec<String>,
}

/// Users with hashed passwords in a file.
///
/// Each field is the key of that name of `[auth.NAME]` in `docs/reference.md`, which has its meaning, unit, default and
/// the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsersAuth {
    /// The file of users, as `htpasswd` writes it.
    pub users_file: PathBuf,
    /// The file of groups, as httpd's `AuthGroupFile`; `None`: there are no groups.
    pub groups_file: Option<PathBuf>,
    /// The users of the file who may pass, besides those of `groups`. If both are empty, all may.
    pub users: Vec<String>,
    /// The groups whose members may pass.
    pub groups: Vec<String>,
    /// The challenge with the `realm`, which clients get with a 401.
    pub challenge: Challenge,
    /// How many wrong passwords an address may send: the key `failures`.
    pub failures: Quota,
    /// Whether backends get the field `Authorization`.
    pub pass_credentials: bool,
    /// The fields of the request in which the application is told the user.
    pub fields: Vec<FieldName>,
}

/// The value of `WWW-Authenticate` that asks for a user and a password of a realm (RFC 7617).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge(HeaderValue);

impl Challenge {
    /// The challenge with this realm, which browsers may show.
    ///
    /// # Errors
    /// The realm cannot be sent.
    pub fn new(realm: &str) -> Result<Self, RealmFault> {
        let text = challenge(realm)?;
        // It has no control characters.
        let value = HeaderValue::from_bytes(text.as_bytes());
        value.map(Self).map_err(|_| RealmFault::ControlCharacter)
    }

    /// The value of the field.
    #[must_use]
    pub fn value(&self) -> &HeaderValue {
        &self.0
    }
}

impl AuthConfig {
    /// The upstream of the service that is asked; `None`: there is none.
    #[must_use]
    pub fn upstream(&self) -> Option<&str> {
        match &self.kind {
            AuthKind::Forward(service) => Some(&service.upstream),
            AuthKind::Users(_) => None,
        }
    }

    /// Whether clients that pass have a user.
    #[must_use]
    pub fn has_user(&self) -> bool {
        match &self.kind {
            AuthKind::Forward(service) => service.user.is_some(),
            AuthKind::Users(_) => true,
        }
    }
}

/// The source of a value in the service's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSource {
    /// The user.
    User,
    /// The field of this name; several lines are joined by commas.
    Field(FieldName),
}
