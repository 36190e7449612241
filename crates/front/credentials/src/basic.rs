//! The Basic scheme of HTTP (RFC 7617): the field `Authorization` with a user and a password, and the challenge.
//!
//! Names and passwords are compared as they are sent, in UTF-8. They are not normalised (RFC 8265): `htpasswd` hashes
//! what was typed, too.

use std::fmt;

use base64ct::{Base64, Encoding as _};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::lines::NAME_BYTES_MAX;

/// A user and a password that a client sent. Their memory is overwritten when they are dropped.
#[derive(Clone)]
pub struct BasicCredentials {
    /// `user:password`.
    text: Zeroizing<String>,
    colon: usize,
}

/// Why credentials of the Basic scheme cannot be read. The request is answered 401, as with a wrong password.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum BasicFault {
    /// The field, the user or the password is longer than any that can be right.
    #[error("the credentials are too long")]
    TooLong,
    /// Not base64 with padding (RFC 4648, section 4).
    #[error("the credentials are not base64")]
    NotBase64,
    /// Not UTF-8, which the challenge asks for.
    #[error("the credentials are not UTF-8")]
    NotUtf8,
    /// A control character, which RFC 7617 forbids.
    #[error("the credentials have a control character")]
    ControlCharacter,
    /// Nothing divides the user from the password.
    #[error("the credentials have no colon")]
    NoColon,
    /// The user is empty.
    #[error("the credentials have no user")]
    NoUser,
}

/// Why a realm cannot be sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum RealmFault {
    /// A control character, which no field may have.
    #[error("has a control character")]
    ControlCharacter,
    /// More bytes than a dialogue shows.
    #[error("has more than {REALM_BYTES_MAX} bytes")]
    TooLong,
}

impl BasicCredentials {
    /// Reads the value of the field `Authorization`. `None`: it has another scheme.
    ///
    /// # Errors
    /// The scheme is Basic and the credentials cannot be those of a user.
    pub fn parse(value: &[u8]) -> Result<Option<Self>, BasicFault> {
        let Some(token) = basic_token(value) else {
            return Ok(None);
        };
        if value.len() > AUTHORIZATION_BYTES_MAX {
            return Err(BasicFault::TooLong);
        }
        let mut buffer = Zeroizing::new(vec![0; token.len()]);
        let bytes = Base64::decode(token, &mut buffer).map_err(|_| BasicFault::NotBase64)?;
        let text = std::str::from_utf8(bytes).map_err(|_| BasicFault::NotUtf8)?;
        if text.contains(char::is_control) {
            return Err(BasicFault::ControlCharacter);
        }
        let (user, password) = text.split_once(':').ok_or(BasicFault::NoColon)?;
        if user.is_empty() {
            return Err(BasicFault::NoUser);
        }
        if user.len() > NAME_BYTES_MAX || password.len() > PASSWORD_BYTES_MAX {
            return Err(BasicFault::TooLong);
        }
        Ok(Some(Self {
            text: Zeroizing::new(text.to_owned()),
            colon: user.len(),
        }))
    }

    /// The user, who is not yet known to exist.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.text[..self.colon]
    }

    /// The password, which is not yet known to be right.
    #[must_use]
    pub fn password(&self) -> &str {
        &self.text[self.colon + 1..]
    }

    /// Both with a colon between them.
    pub(crate) fn user_and_password(&self) -> &str {
        &self.text
    }
}

/// Without the password.
impl fmt::Debug for BasicCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BasicCredentials")
            .field(&self.user())
            .finish()
    }
}

/// The value of the field `WWW-Authenticate` with this realm, which browsers show when they ask for the password. It asks
/// for UTF-8 (RFC 7617, section 2.1).
///
/// # Errors
/// The realm cannot be sent.
pub fn challenge(realm: &str) -> Result<String, RealmFault> {
    if realm.len() > REALM_BYTES_MAX {
        return Err(RealmFault::TooLong);
    }
    let mut value = String::from("Basic realm=\"");
    for character in realm.chars() {
        if character.is_control() {
            return Err(RealmFault::ControlCharacter);
        }
        if matches!(character, '"' | '\\') {
            value.push('\\');
        }
        value.push(character);
    }
    value.push_str("\", charset=\"UTF-8\"");
    Ok(value)
}

/// What stands behind the scheme `Basic`, which is the same in all cases of letters. `None`: another scheme.
fn basic_token(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    let is_end = rest.first().is_none_or(|byte| *byte == b' ');
    if !scheme.eq_ignore_ascii_case(SCHEME) || !is_end {
        return None;
    }
    let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
    Some(&rest[spaces..])
}

/// The most bytes of the field `Authorization` that are decoded.
const AUTHORIZATION_BYTES_MAX: usize = 8 << 10;

/// The most bytes of a password. crypt(3) takes no more, and the work of `$5$` and `$6$` grows with them.
const PASSWORD_BYTES_MAX: usize = 511;

const REALM_BYTES_MAX: usize = 255;

const SCHEME: &[u8] = b"basic";

#[cfg(test)]
mod tests;
