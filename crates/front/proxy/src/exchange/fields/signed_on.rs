//! What a sign-on tells of a client: its user, and values for fields and attributes of the request to a backend.
//!
//! Fields of these names that anybody else sent are removed from every request: [`withhold_claims`].

use std::sync::Arc;

use bytes::Bytes;
use catamaran_cache::key::matches;
use catamaran_message::name::COOKIE;
use catamaran_message::{FieldName, Fields, pairs};

use crate::config::{AuthConfig, AuthSource};
use crate::exchange::fields::claims;
use crate::exchange::fields::clean::withhold;

/// What the sign-on of a route told of a client that has signed on.
#[derive(Clone, Debug)]
pub(crate) struct SignedOn {
    pub(crate) auth: Arc<AuthConfig>,
    /// The user; `None`: the client is anonymous.
    pub(crate) user: Option<Bytes>,
    /// The fields for backends.
    fields: Vec<(FieldName, Bytes)>,
    /// The values for attributes of AJP13.
    told: Vec<(AuthSource, Bytes)>,
}

/// The rules by which values are taken from an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimRules<'r> {
    /// The field that has the user.
    pub(crate) user: Option<&'r FieldName>,
    /// The fields for backends.
    pub(crate) fields: &'r [(FieldName, AuthSource)],
    /// The values that may become attributes.
    pub(crate) told: &'r [AuthSource],
}

/// The reason why an answer is not believed: a value is too long, there are two users, or it has a control character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClaimFault;

impl SignedOn {
    /// Takes the values from the fields of an answer.
    pub(crate) fn new(
        auth: &Arc<AuthConfig>,
        rules: ClaimRules<'_>,
        answer: &Fields,
    ) -> Result<Self, ClaimFault> {
        let user = match rules.user {
            Some(name) => user(answer, name)?,
            None => None,
        };
        let mut bytes_left = VALUES_MAX;
        let mut value = |source: &AuthSource| {
            let joined_lines = match source {
                AuthSource::User => return Ok(user.clone()),
                AuthSource::Field(name) => joined(answer, name),
            };
            if !joined_lines.iter().all(|byte| is_plain(*byte)) {
                return Err(ClaimFault);
            }
            bytes_left = bytes_left
                .checked_sub(joined_lines.len())
                .ok_or(ClaimFault)?;
            Ok((!joined_lines.is_empty()).then(|| Bytes::from(joined_lines)))
        };
        let mut fields = Vec::with_capacity(rules.fields.len());
        for (name, source) in rules.fields {
            fields.extend(value(source)?.map(|value| (name.clone(), value)));
        }
        let mut told = Vec::new();
        for source in rules.told {
            told.extend(value(source)?.map(|value| (source.clone(), value)));
        }
        Ok(Self {
            auth: Arc::clone(auth),
            user,
            fields,
            told,
        })
    }

    /// A user with a right password, who is all that is known of the client.
    pub(crate) fn of_user(
        auth: &Arc<AuthConfig>,
        user: Bytes,
        fields: &[FieldName],
        told: &[AuthSource],
    ) -> Self {
        let fields = fields.iter().map(|name| (name.clone(), user.clone()));
        let of_user = told.iter().filter(|source| **source == AuthSource::User);
        let told = of_user.map(|source| (source.clone(), user.clone()));
        Self {
            auth: Arc::clone(auth),
            fields: fields.collect(),
            told: told.collect(),
            user: Some(user),
        }
    }

    /// Adds the fields to those of a request.
    pub(crate) fn add_to(&self, headers: &mut Fields) {
        for (name, value) in &self.fields {
            headers.insert(name, value);
        }
    }

    /// The value of an attribute; `None`: the answer has none.
    pub(crate) fn value(&self, source: &AuthSource) -> Option<Bytes> {
        let mut told = self.told.iter();
        Some(told.find(|(known, _)| known == source)?.1.clone())
    }
}

/// Removes all fields that only a sign-on may send, in whichever spelling some backends read them.
pub(crate) fn withhold_claims(
    claims: &[FieldName],
    headers: &mut Fields,
    withheld: &mut Option<Fields>,
) {
    withhold(headers, withheld, |field| {
        let mut names = claims.iter();
        names.any(|claim| claims::are_alike(claim.into(), field.name_ref()))
    });
}

/// Removes the cookies whose names match one of `rules`. A cache still learns of them.
pub(crate) fn hide_cookies(rules: &[String], headers: &mut Fields, withheld: &mut Option<Fields>) {
    let lines = headers.get_all(COOKIE).flat_map(pairs::pieces);
    let hidden: Vec<String> = lines
        .filter(|(name, _)| rules.iter().any(|rule| matches(rule, name)))
        .filter_map(|(name, _)| String::from_utf8(name.to_vec()).ok())
        .collect();
    if !hidden.is_empty()
        && let Some(withheld) = withheld
    {
        for line in headers.get_all(COOKIE) {
            withheld.append(COOKIE, line);
        }
    }
    for name in &hidden {
        headers.change(COOKIE, |line| pairs::without(line, name));
    }
    if !hidden.is_empty() {
        headers.retain(|field| !field.is(COOKIE) || !field.value().is_empty());
    }
}

/// The user in the only line of a field; `None`: there is no line, or it is empty.
fn user(answer: &Fields, name: &FieldName) -> Result<Option<Bytes>, ClaimFault> {
    let mut lines = answer.get_all(name);
    let Some(line) = lines.next() else {
        return Ok(None);
    };
    let is_only = lines.next().is_none();
    if !is_only || line.len() > USER_MAX || !line.iter().all(|byte| is_plain(*byte)) {
        return Err(ClaimFault);
    }
    Ok((!line.is_empty()).then(|| Bytes::copy_from_slice(line)))
}

/// All lines of a field, joined by commas.
fn joined(answer: &Fields, name: &FieldName) -> Vec<u8> {
    let lines: Vec<&[u8]> = answer.get_all(name).collect();
    lines.join(&b","[..])
}

fn is_plain(byte: u8) -> bool {
    !byte.is_ascii_control()
}

/// The most bytes of a user's name.
const USER_MAX: usize = 1024;

/// The most bytes of all other values together.
const VALUES_MAX: usize = 8 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{AuthKind, ForwardAuth};

    fn taken(answer: &[(&str, &str)]) -> Result<(Option<String>, Vec<String>), ClaimFault> {
        let name = FieldName::from_static;
        let config = Arc::new(AuthConfig {
            name: "staff".to_owned(),
            kind: AuthKind::Forward(ForwardAuth {
                upstream: "sso".to_owned(),
                path: Bytes::from_static(b"/auth"),
                user: None,
                fields: Vec::new(),
                request_fields: Vec::new(),
                sign_in: None,
                timeout: std::time::Duration::from_secs(5),
                answer_max: 1,
                hide_cookies: Vec::new(),
            }),
        });
        let fields = [
            (name("x-user"), AuthSource::User),
            (name("x-groups"), AuthSource::Field(name("remote-groups"))),
        ];
        let rules = ClaimRules {
            user: Some(&name("remote-user")),
            fields: &fields,
            told: &[],
        };
        let answer = Fields::from_iter(answer.iter().copied());
        let signed_on = SignedOn::new(&config, rules, &answer)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut headers = Fields::new();
        signed_on.add_to(&mut headers);
        let lines = headers.iter().map(|field| text(field.value())).collect();
        Ok((signed_on.user.as_deref().map(text), lines))
    }

    #[test]
    fn a_user_is_one_line_and_other_lines_are_joined() {
        let some = |user: &str, lines: &[&str]| {
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            Ok((Some(user.to_owned()), lines))
        };
        let of = |answer: &[(&str, &str)]| taken(answer);
        assert_eq!(of(&[("remote-user", "ann")]), some("ann", &["ann"]));
        let groups = [
            ("remote-user", "ann"),
            ("remote-groups", "a"),
            ("remote-groups", "b"),
        ];
        assert_eq!(of(&groups), some("ann", &["ann", "a,b"]));
        assert_eq!(of(&[]), Ok((None, vec![])));
        assert_eq!(of(&[("remote-user", "")]), Ok((None, vec![])));
        let long = "a".repeat(USER_MAX + 1);
        let longer = "a".repeat(VALUES_MAX / 2 + 1);
        for answer in [
            &[("remote-user", "ann"), ("remote-user", "bob")][..],
            &[("remote-user", "an\tn")],
            &[("remote-user", &long)],
            &[("remote-groups", "a\tb")],
            &[("remote-groups", &longer), ("remote-groups", &longer)],
        ] {
            assert_eq!(of(answer), Err(ClaimFault), "{answer:?}");
        }
    }

    #[test]
    fn cookies_are_hidden_by_name_and_by_beginning() {
        let rules = ["_oauth2_proxy*".to_owned(), "sso".to_owned()];
        for (cookies, expected) in [
            ("a=1; _oauth2_proxy_0=x; b=2; sso=3", Some("a=1; b=2")),
            ("_oauth2_proxy=x; sso=1; ssox=2", Some("ssox=2")),
            ("sso=1", None),
            ("a=1", Some("a=1")),
        ] {
            let mut headers = Fields::from_iter([("cookie", cookies)]);
            let mut withheld = Some(Fields::new());
            hide_cookies(&rules, &mut headers, &mut withheld);
            assert_eq!(headers.text_of(COOKIE), expected, "{cookies}");
            let is_changed = expected != Some(cookies);
            let of_cache = withheld.as_ref().and_then(|fields| fields.text_of(COOKIE));
            assert_eq!(of_cache, is_changed.then_some(cookies), "{cookies}");
        }
    }
}
