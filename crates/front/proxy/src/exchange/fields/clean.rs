//! Removes the fields of a request that must not be forwarded to a backend.
//!
//! The codecs clean the responses that they read. The front's own fields are added after this
//! cleaning (see [`crate::exchange::fields::own`]), so a client cannot remove them by naming them in
//! `Connection`.

use catamaran_message::name::{AUTHORIZATION, COOKIE, HOST, MAX_FORWARDS};
use catamaran_message::{Field, Fields, NameRef, Traits};

use crate::exchange::fields::claims;

/// Fields of a request that no backend gets as fields. They are kept only for a cache, which distinguishes
/// requests by the fields that clients sent.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    is_kept: bool,
    fields: Option<Box<Fields>>,
}

impl Withheld {
    /// An empty list. `is_kept`: removed fields are kept here; else they are only removed.
    pub(crate) fn new(is_kept: bool) -> Self {
        Self {
            is_kept,
            fields: None,
        }
    }

    /// Removes the fields whose names `is_such` accepts from a request.
    pub(crate) fn take(&mut self, headers: &mut Fields, is_such: impl Fn(NameRef<'_>) -> bool) {
        headers.retain(|field| {
            let is_doomed = is_such(field.name_ref());
            if is_doomed {
                self.note(field);
            }
            !is_doomed
        });
    }

    fn note(&mut self, field: Field<'_>) {
        if self.is_kept {
            let fields = self.fields.get_or_insert_default();
            fields.append(field.name_ref(), field.value());
        }
    }

    /// The fields that were kept; `None`: there are none.
    pub(crate) fn into_fields(self) -> Option<Box<Fields>> {
        self.fields
    }
}

/// Removes fields that concern only the client's connection, fields that a backend could misread, and claims about
/// the client that an untrusted peer sent.
///
/// Claims of a trusted peer stay if they are spelled as proxies write them. Returns the number of fields dropped
/// because of an underscore in their name; `underscored_names`, in lower case, are those that stay.
pub(crate) fn clean_request(
    headers: &mut Fields,
    underscored_names: &[String],
    is_trusted: bool,
    withheld: &mut Withheld,
) -> usize {
    // Of most requests nothing is removed.
    if !headers.may_have(JUDGED) {
        return 0;
    }
    // Except for those that a client must not be able to hide from the backend.
    headers.mark_nominated(&[HOST, COOKIE, AUTHORIZATION]);
    let is_claim = if is_trusted {
        claims::is_disguised
    } else {
        claims::is_claim
    };
    let mut underscored = 0;
    headers.retain(|field| {
        let traits = field.traits();
        if traits.has_any(Traits::NOT_FORWARDED) {
            return false;
        }
        if !traits.has_any(JUDGED.with(Traits::NOMINATED)) {
            return true;
        }
        let name = field.name_ref();
        let has_underscore = has_underscore(name, underscored_names);
        underscored += usize::from(has_underscore);
        let is_doomed = has_underscore || traits.has_any(Traits::NOMINATED) || is_claim(name);
        if is_doomed {
            withheld.note(field);
        }
        !is_doomed
    });
    underscored
}

/// Whether a name has an underscore and is not in `except`. Containers and CGI treat `_` like `-`, so `X_Real_IP`
/// could be read as `X-Real-IP`.
fn has_underscore(name: NameRef<'_>, except: &[String]) -> bool {
    match name {
        // No name of the table has one.
        NameRef::Known(_) => false,
        NameRef::Other(text) => {
            let mut except = except.iter();
            text.contains(&b'_') && !except.any(|it| text.eq_ignore_ascii_case(it.as_bytes()))
        }
    }
}

/// Decrements `Max-Forwards` (RFC 9110, section 7.6.2); `false`: the request must not be forwarded. A value that
/// is not a number is ignored.
pub(crate) fn count_forwards(headers: &mut Fields) -> bool {
    let Some(value) = headers.get(MAX_FORWARDS) else {
        return true;
    };
    let is_number = value.iter().all(u8::is_ascii_digit);
    let number = std::str::from_utf8(value).ok().filter(|_| is_number);
    let Some(forwards) = number.and_then(|digits| digits.parse::<u64>().ok()) else {
        return true;
    };
    if let Some(left) = forwards.checked_sub(1) {
        headers.insert(MAX_FORWARDS, left.to_string());
    }
    forwards > 0
}

/// The traits of fields that may have to be removed.
const JUDGED: Traits = Traits::NOT_FORWARDED
    .with(Traits::CLAIM)
    .with(Traits::UNKNOWN);

#[cfg(test)]
mod tests;
