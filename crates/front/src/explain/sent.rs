//! What a backend would be sent.

use std::time::Duration;

use catamaran_units::show_duration;
use catamaran_upstream::RequestError;
use serde::Serialize;

use crate::config::{BackendConfig, Protocol};
use crate::exchange::outgoing::Outgoing;
use crate::site::rules::Rules;
use crate::site::{Choice, Upstream};

/// A request to a backend, and how long it may take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// The backend's name.
    pub backend: String,
    /// `ajp`, `http` or `https`.
    pub protocol: &'static str,
    /// Where the backend is; for a tunnel beside AJP that of its `upgrade_url`.
    pub address: String,
    /// The protocol of the tunnel that the backend is asked for, if it is asked for one.
    pub tunnel: Option<String>,
    /// Method, path and query.
    pub request: String,
    /// Header fields.
    pub fields: Vec<(String, String)>,
    /// What AJP13 says besides. The secret is not shown; TLS is that of a client that was supposed.
    pub attributes: Vec<(String, String)>,
    /// The cookie of the front's own that the response would get.
    pub set_cookie: Option<String>,
    /// Keys of the file with their values.
    pub timeouts: Vec<(&'static str, String)>,
    /// Further attempts after a first failed one.
    pub retries: u32,
}

impl Sent {
    pub(super) fn new(
        upstream: &Upstream,
        rules: Option<&Rules>,
        choice: &Choice<'_>,
        outgoing: &Outgoing<'_>,
    ) -> Result<Self, RequestError> {
        let settings = &upstream.members[choice.member].settings;
        let tunnel = outgoing.upgrade();
        let preview = outgoing.preview(settings, upstream.tell(choice))?;
        let (address, tls) = match tunnel {
            Some(_) => settings.tunnel_end(),
            None => settings.end(),
        };
        let cookie = upstream.cookie(choice, outgoing.identity.secure);
        Ok(Self {
            backend: settings.name.clone(),
            protocol: match settings.protocol {
                Protocol::Ajp if tunnel.is_none() => "ajp",
                _ if tls.is_some() => "https",
                _ => "http",
            },
            address: address.to_string(),
            tunnel: tunnel.map(str::to_owned),
            request: preview.line,
            fields: preview.fields,
            attributes: preview.attributes,
            set_cookie: cookie.map(|it| super::text(it.as_bytes())),
            timeouts: timeouts(settings, rules),
            retries: rules.and_then(Rules::retries).unwrap_or(upstream.retries),
        })
    }
}

fn timeouts(settings: &BackendConfig, rules: Option<&Rules>) -> Vec<(&'static str, String)> {
    let of_route = |limit: fn(&Rules) -> Option<Duration>| rules.and_then(limit);
    let is_ajp = settings.protocol == Protocol::Ajp;
    let first_byte = of_route(Rules::first_byte_timeout).unwrap_or(settings.first_byte_timeout);
    let idle_body = of_route(Rules::idle_body_timeout).unwrap_or(settings.idle_body_timeout);
    let all = [
        ("connect_timeout", Some(settings.connect_timeout)),
        ("queue_timeout", Some(settings.queue_timeout)),
        ("first_byte_timeout", Some(first_byte)),
        ("idle_body_timeout", Some(idle_body)),
        ("exchange_timeout", settings.exchange_timeout),
        ("suspect_after", settings.suspect_after),
        (
            "ping_after_idle",
            settings.ajp.ping_after_idle.filter(|_| is_ajp),
        ),
        (
            "ping_timeout",
            Some(settings.ajp.ping_timeout).filter(|_| is_ajp),
        ),
    ];
    let shown = |(key, limit): (_, Option<Duration>)| Some((key, show_duration(limit?)));
    all.into_iter().filter_map(shown).collect()
}
