//! Removes the fields of a request that must not be forwarded to a backend.
//!
//! The codecs clean the responses that they read. The front's own fields are added after this
//! cleaning (see [`crate::exchange::fields::own`]), so a client cannot remove them by naming them in
//! `Connection`.

use catamaran_message::name::{AUTHORIZATION, COOKIE, HOST, MAX_FORWARDS};
use catamaran_message::{Field, Fields, Traits};

use crate::exchange::fields::claims;

/// Removes the fields that `is_such` accepts from a request. If there is a list `withheld`, adds them to it, for a
/// cache: it tells requests apart by the fields that clients sent.
pub(crate) fn withhold(
    headers: &mut Fields,
    withheld: &mut Option<Fields>,
    mut is_such: impl FnMut(Field<'_>) -> bool,
) {
    headers.retain(|field| {
        let is_doomed = is_such(field);
        if is_doomed && let Some(withheld) = withheld {
            withheld.append(field.name_ref(), field.value());
        }
        !is_doomed
    });
}

/// Removes fields that concern only the client's connection, fields that a backend could misread, and claims about
/// the client that an untrusted peer sent.
///
/// Claims of a trusted peer stay if they are spelled as proxies write them. Returns the number of fields dropped
/// because of an underscore or another odd sign in their name; `underscored_names`, in lower case, are those that stay.
pub(crate) fn clean_request(
    headers: &mut Fields,
    underscored_names: &[String],
    is_trusted: bool,
    withheld: &mut Option<Fields>,
) -> usize {
    // Most requests have no field to remove.
    if !headers.may_have(SUSPECT.with(Traits::NOT_FORWARDED)) {
        return 0;
    }
    // `Connection` cannot remove these: a client must not be able to hide them from the backend.
    headers.mark_nominated(&[HOST, COOKIE, AUTHORIZATION]);
    let is_claim = if is_trusted {
        claims::is_disguised
    } else {
        claims::is_claim
    };
    headers.remove_all(Traits::NOT_FORWARDED);
    let mut underscored = 0;
    if headers.may_have(SUSPECT) {
        withhold(headers, withheld, |field| {
            let traits = field.traits();
            if !traits.has_any(SUSPECT) {
                return false;
            }
            let has_odd_sign = claims::has_odd_sign(field.name())
                && !underscored_names.iter().any(|name| field.is(&name[..]));
            underscored += usize::from(has_odd_sign);
            has_odd_sign || traits.has_any(Traits::NOMINATED) || is_claim(field.name_ref())
        });
    }
    underscored
}

/// Decrements `Max-Forwards` (RFC 9110, section 7.6.2); `false`: the request must not be forwarded. A value that
/// is not a number is ignored.
pub(crate) fn count_forwards(headers: &mut Fields) -> bool {
    let Some(value) = headers.get(MAX_FORWARDS) else {
        return true;
    };
    // A sign before the digits is no number here.
    let is_number = value.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(value).ok().filter(|_| is_number);
    let Some(forwards) = number.and_then(|digits| digits.parse::<u64>().ok()) else {
        return true;
    };
    let Some(left) = forwards.checked_sub(1) else {
        return false;
    };
    headers.insert(MAX_FORWARDS, left.to_string());
    true
}

/// The traits of fields whose names are looked at.
const SUSPECT: Traits = Traits::CLAIM.with(Traits::UNKNOWN).with(Traits::NOMINATED);

#[cfg(test)]
mod tests;
