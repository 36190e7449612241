//! The settings of limits of requests.

pub use catamaran_limit::Quota;
use catamaran_message::FieldName;
use http::Method;
use ipnet::IpNet;

/// A limit of requests, which listeners and routes use by its name.
///
/// Each field is the key of that name of `[limit.NAME]` in `docs/reference.md`, which has its meaning, unit, default and
/// the directives of other servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitConfig {
    /// The unique name, which is also the limit's scope: all that use it share what its keys owe.
    pub name: String,
    /// What each key is granted: the keys `rate` and `burst`, or `in_flight`.
    pub quota: Quota,
    /// What makes requests one key.
    pub by: LimitBy,
    /// The methods whose requests are limited. Empty: all methods.
    pub methods: Vec<Method>,
    /// The networks whose clients are not limited.
    pub except: Vec<IpNet>,
    /// The bits of an IPv4 and of an IPv6 address that make a key.
    pub prefix: [u8; 2],
    /// Whether requests are refused; otherwise it is only counted and logged which ones would be.
    pub enforce: bool,
    /// Whether responses tell the client what is left.
    pub fields: bool,
}

impl LimitConfig {
    /// The reason for which a request beyond the limit is refused, as a token of the log.
    pub(crate) fn token(&self) -> &'static str {
        match self.quota {
            Quota::Rate { .. } => "rate-limited",
            Quota::InFlight(_) => "in-flight",
        }
    }
}

/// What makes requests one key of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LimitBy {
    /// The client's address, as trusted proxies tell it.
    Client,
    /// The host that the request names; without one, the client's address.
    Host,
    /// The value of this field; if it is empty, missing or sent more than once, the client's address.
    Header(FieldName),
    /// The user that the sign-on of the request's route told; without one, the client's address.
    User,
    /// Nothing: all requests are one key.
    All,
}
