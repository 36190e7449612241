//! The front's own session cookie in a request: finds the member that it names. The values for all members
//! are computed once, when the site is built.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use catamaran_message::name::COOKIE;
use catamaran_message::{Fields, pairs};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::config::{StickyCookie, UpstreamConfig};

/// The front's own session cookie, with its value for each member.
#[derive(Debug)]
pub(crate) struct OwnCookie {
    pub(crate) name: String,
    /// The member that each cookie value names.
    members: HashMap<Box<[u8]>, usize>,
}

/// The member that a request's own cookie names; `None`: no such cookie, `Some(None)`: its value names no
/// member.
pub(crate) type Own = Option<Option<usize>>;

impl OwnCookie {
    pub(super) fn new(config: &StickyCookie, upstream: &UpstreamConfig) -> Self {
        Self {
            name: config.name.clone(),
            members: values_of(config, upstream)
                .map(|value| value.into_bytes().into())
                .zip(0..)
                .collect(),
        }
    }

    /// Reads the cookie. One without a value counts as if there were none.
    pub(crate) fn read(&self, headers: &Fields) -> Own {
        let value = self.values(headers).find(|value| !value.is_empty())?;
        Some(self.members.get(value).copied())
    }

    /// Reads the cookie and removes it from the fields, even if it has no value.
    pub(crate) fn take(&self, headers: &mut Fields) -> Own {
        self.values(headers).next()?;
        let own = self.read(headers);
        headers.change(COOKIE, |field| pairs::without(field, &self.name));
        headers.retain(|field| !field.is(COOKIE) || !field.value().is_empty());
        own
    }

    /// All values of the cookie, even empty ones.
    fn values<'f>(&'f self, headers: &'f Fields) -> impl Iterator<Item = &'f [u8]> {
        pairs::cookies(headers, std::slice::from_ref(&self.name)).map(|(_, value)| value)
    }
}

/// The cookie's value for each member, in the order of the members.
pub(super) fn values_of(
    config: &StickyCookie,
    upstream: &UpstreamConfig,
) -> impl Iterator<Item = String> {
    let key = config.key.as_ref().map_or(FIXED_KEY, |key| key.as_bytes());
    let names = upstream.all().map(|it| it.name.as_str());
    names.map(|backend| value(key, &upstream.name, backend))
}

/// Computes the cookie value of a backend: a keyed digest, which hides the backend's name.
fn value(key: &[u8], upstream: &str, backend: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(upstream.as_bytes());
    mac.update(&[0]);
    mac.update(backend.as_bytes());
    let mut value = URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    value.truncate(VALUE_LEN);
    value
}

/// The key that is used if none is configured. It keeps no secret; with it all fronts compute the same
/// values.
const FIXED_KEY: &[u8] = b"catamaran sticky cookie";

/// The characters of a value, which carry 72 bits.
pub(super) const VALUE_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_depends_on_the_key_alone() {
        // Fronts, restarts and versions agree on values made with the fixed key.
        assert_eq!(value(FIXED_KEY, "app", "a"), value(FIXED_KEY, "app", "a"));
        let own = |key: &[u8]| value(key, "app", "a");
        assert_ne!(own(FIXED_KEY), own(b"another"));
        assert_ne!(value(FIXED_KEY, "ap", "pa"), value(FIXED_KEY, "app", "a"));
    }
}
