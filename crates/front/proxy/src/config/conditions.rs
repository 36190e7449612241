//! The conditions of a route that concern a request's fields, query and cookies, and its client.

use std::fmt;
use std::net::IpAddr;

use catamaran_message::{FieldName, RequestHead, pairs};
use ipnet::IpNet;

use super::request_test::RequestTest;

/// The fields, parameters of the query, and cookies that a request must all have, with these exact values, the tests of
/// its values that must all hold, and the clients that the route leaves to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestConditions {
    /// The fields of the head. One that stands in the head more than once does not have the value.
    pub headers: Vec<(FieldName, String)>,
    /// The parameters of the query, decoded as those of a form. Of several with one name the first counts.
    pub query: Vec<(String, String)>,
    /// The cookies. Of several with one name the first counts.
    pub cookies: Vec<(String, String)>,
    /// The tests by expressions.
    pub tests: Vec<RequestTest>,
    /// The clients that get the next route, whatever else holds; `None`: none does.
    pub unless: Option<Box<Unless>>,
}

/// The clients that a route leaves to others: the table `[route.unless]`. One that fits either is left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unless {
    /// The networks of the clients.
    pub address: Vec<IpNet>,
    /// The cookie that the clients send, and its value.
    pub cookie: Option<(String, String)>,
}

/// How specific conditions are: more fields win, then more parameters, then more cookies, then more tests, then `unless`.
pub(crate) type ConditionRank = [usize; 5];

impl RequestConditions {
    /// Whether there are none, so that every request meets them.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.headers.is_empty() && self.concern_fields_alone()
    }

    /// Whether there are none but those on fields.
    #[inline]
    fn concern_fields_alone(&self) -> bool {
        let Self {
            headers: _,
            query,
            cookies,
            tests,
            unless,
        } = self;
        query.is_empty() && cookies.is_empty() && tests.is_empty() && unless.is_none()
    }

    pub(crate) fn rank(&self) -> ConditionRank {
        [
            self.headers.len(),
            self.query.len(),
            self.cookies.len(),
            self.tests.len(),
            usize::from(self.unless.is_some()),
        ]
    }

    /// A text that is equal for conditions that the same requests meet.
    #[must_use]
    pub fn identity(&self) -> String {
        // Neither the order of conditions nor the case of a field's name matters.
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            headers.push((name.as_str().to_ascii_lowercase(), value.clone()));
        }
        let (mut query, mut cookies) = (self.query.clone(), self.cookies.clone());
        for pairs in [&mut headers, &mut query, &mut cookies] {
            pairs.sort_unstable();
        }
        let mut tests: Vec<String> = self.tests.iter().map(RequestTest::identity).collect();
        tests.sort_unstable();
        let unless = &self.unless;
        format!("{headers:?} {query:?} {cookies:?} {tests:?} {unless:?}")
    }

    /// Whether the request of this client with this head, as the client sent it, meets all of them.
    #[inline]
    pub(crate) fn are_met(&self, head: &RequestHead, client: IpAddr) -> bool {
        let mut headers = self.headers.iter();
        headers.all(|(name, value)| has_field(head, name, value))
            && (self.concern_fields_alone() || self.others_are_met(head, client))
    }

    /// Whether the request meets the conditions that do not concern fields. Not inlined, because most routes have none.
    #[inline(never)]
    fn others_are_met(&self, head: &RequestHead, client: IpAddr) -> bool {
        let unless = self.unless.as_ref();
        let mut query = self.query.iter();
        let mut cookies = self.cookies.iter();
        unless.is_none_or(|it| !it.leaves_out(head, client))
            && query.all(|(name, value)| has_parameter(head, name, value))
            && cookies.all(|(name, value)| has_cookie(head, name, value))
            && self.tests.iter().all(|test| test.holds(head))
    }

    /// Whether the request that this CORS preflight announces may meet all conditions. Both have one target and one
    /// client, but a preflight has neither the fields nor the cookies of the request.
    pub(crate) fn may_be_met(&self, head: &RequestHead, client: IpAddr) -> bool {
        if let Some(unless) = &self.unless
            && unless.has_address(client)
        {
            return false;
        }
        let mut query = self.query.iter();
        let mut tests = self.tests.iter().filter(|it| it.is_known_at_preflight());
        query.all(|(name, value)| has_parameter(head, name, value))
            && tests.all(|test| test.holds(head))
    }

    /// Whether the conditions depend only on what a preflight shows, so that [`Self::may_be_met`] is certain.
    pub(crate) fn are_known_at_preflight(&self) -> bool {
        let unless = self.unless.as_ref();
        self.headers.is_empty()
            && self.cookies.is_empty()
            && self.tests.iter().all(RequestTest::is_known_at_preflight)
            && unless.is_none_or(|it| it.cookie.is_none())
    }
}

impl Unless {
    /// Whether the route leaves this request of this client to others.
    fn leaves_out(&self, head: &RequestHead, client: IpAddr) -> bool {
        let cookie = self.cookie.as_ref();
        self.has_address(client)
            || cookie.is_some_and(|(name, value)| has_cookie(head, name, value))
    }

    fn has_address(&self, client: IpAddr) -> bool {
        self.address.iter().any(|network| network.contains(&client))
    }
}

#[inline]
fn has_field(head: &RequestHead, name: &FieldName, value: &str) -> bool {
    head.headers.only(name) == Some(value.as_bytes())
}

fn has_parameter(head: &RequestHead, name: &str, value: &str) -> bool {
    let query = head.target.query.as_deref().unwrap_or_default();
    let first = form_urlencoded::parse(query).find(|(own_name, _)| own_name == name);
    first.is_some_and(|(_, own_value)| own_value == value)
}

fn has_cookie(head: &RequestHead, name: &String, value: &str) -> bool {
    let mut cookies = pairs::cookies(&head.headers, std::slice::from_ref(name));
    cookies.next() == Some((name.as_str(), value.as_bytes()))
}

impl fmt::Display for RequestConditions {
    /// Writes the conditions as `?v=2, a cookie beta, a field x-beta, not from 10.0.0.0/8`, sorted. Values of fields
    /// and cookies are left out: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let headers = self.headers.iter();
        let query = self.query.iter();
        let cookies = self.cookies.iter();
        let mut conditions: Vec<String> = headers
            .map(|(name, _)| format!("a field {}", name.as_str().to_ascii_lowercase()))
            .chain(query.map(|(name, value)| format!("?{name}={value}")))
            .chain(cookies.map(|(name, _)| format!("a cookie {name}")))
            .chain(self.tests.iter().map(ToString::to_string))
            .collect();
        if let Some(Unless { address, cookie }) = self.unless.as_deref() {
            conditions.extend(address.iter().map(|network| format!("not from {network}")));
            if let Some((name, _)) = cookie {
                conditions.push(format!("not with the cookie {name}"));
            }
        }
        conditions.sort_unstable();
        f.write_str(&conditions.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use catamaran_message::RequestHead;

    use super::*;

    const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    fn conditions() -> RequestConditions {
        RequestConditions {
            headers: vec![(FieldName::from_static("X-Beta"), "yes".to_owned())],
            query: vec![("v".to_owned(), "2 a".to_owned())],
            cookies: vec![("beta".to_owned(), "1".to_owned())],
            ..RequestConditions::default()
        }
    }

    fn head(fields: &[(&str, &str)], query: &'static str) -> RequestHead {
        let mut head = RequestHead::empty();
        head.target.query = Some(Bytes::from_static(query.as_bytes()));
        for (name, value) in fields {
            head.headers.append(*name, value);
        }
        head
    }

    #[test]
    fn a_request_meets_conditions_only_if_it_meets_all() {
        const BETA: (&str, &str) = ("x-beta", "yes");
        const COOKIES: (&str, &str) = ("Cookie", "a=b; beta=1");
        let met =
            |fields: &[(&str, &str)], query| conditions().are_met(&head(fields, query), CLIENT);
        assert!(met(&[BETA, COOKIES], "a=1&v=2+a"));
        assert!(
            met(&[BETA, COOKIES], "%76=2%20a&v=3"),
            "decoded, the first counts"
        );
        assert!(!met(&[BETA, COOKIES], "v=3&v=2+a"));
        assert!(!met(&[BETA, COOKIES], "v=2"));
        assert!(!met(&[COOKIES], "v=2+a"));
        assert!(!met(&[BETA], "v=2+a"));
        assert!(!met(&[("x-beta", "Yes"), COOKIES], "v=2+a"), "exact");
        assert!(!met(&[BETA, BETA, COOKIES], "v=2+a"), "it stands twice");
        assert!(!met(&[BETA, ("Cookie", "beta=2; beta=1")], "v=2+a"));
        assert!(met(
            &[BETA, ("Cookie", "a=b"), ("Cookie", "beta=\"1\"")],
            "v=2+a"
        ));
    }

    #[test]
    fn clients_of_unless_are_left_to_others() {
        let conditions = RequestConditions {
            unless: Some(Box::new(Unless {
                address: vec![
                    "10.0.0.0/8".parse().unwrap(),
                    "2001:db8::/32".parse().unwrap(),
                ],
                cookie: Some(("pass".to_owned(), "let-me-in".to_owned())),
            })),
            ..RequestConditions::default()
        };
        let met = |cookie, client: &str| {
            conditions.are_met(&head(&[("Cookie", cookie)], ""), client.parse().unwrap())
        };
        assert!(met("", "192.0.2.7"));
        assert!(met("pass=let-me-out", "192.0.2.7"));
        assert!(
            met("pass=x; pass=let-me-in", "192.0.2.7"),
            "the first counts"
        );
        assert!(!met("a=b; pass=let-me-in", "192.0.2.7"));
        assert!(!met("", "10.1.2.3"));
        assert!(!met("", "2001:db8::1"));
        assert!(!conditions.is_empty());
        assert!(
            !conditions.to_string().contains("let-me-in"),
            "{conditions}"
        );
    }

    #[test]
    fn no_conditions_are_met_by_every_request() {
        assert!(RequestConditions::default().are_met(&head(&[], ""), CLIENT));
        assert!(RequestConditions::default().is_empty());
    }

    #[test]
    fn equal_conditions_read_alike() {
        assert_eq!(
            conditions().to_string(),
            "?v=2 a, a cookie beta, a field x-beta"
        );
        let mut spelled = conditions();
        spelled.headers[0].0 = FieldName::from_static("X-BETA");
        assert_eq!(spelled.identity(), conditions().identity());
        spelled.cookies[0].1 = "2".to_owned();
        assert_ne!(spelled.identity(), conditions().identity());
    }
}
