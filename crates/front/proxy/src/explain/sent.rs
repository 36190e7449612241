//! Shows the request that a backend would be sent.

use std::time::Duration;

use catamaran_admin_api::BackendRequest;
use catamaran_units::show_duration;
use catamaran_upstream::RequestError;

use crate::config::{BackendConfig, RouteRules};
use crate::exchange::outgoing::Outgoing;
use crate::site::rules::Rules;
use crate::site::{Choice, Upstream};

/// Encodes the request to the member of a choice, and lists the timeouts that apply.
pub(super) fn request(
    upstream: &Upstream,
    rules: Option<&Rules>,
    choice: &Choice<'_>,
    outgoing: &Outgoing<'_>,
) -> Result<BackendRequest, RequestError> {
    let settings = &upstream.members[choice.member].settings;
    let tunnel = outgoing.upgrade;
    let preview = outgoing.preview(settings, upstream.tell(choice))?;
    let end = outgoing.end(settings);
    let cookie = upstream.cookie(choice, outgoing.identity.secure);
    Ok(BackendRequest {
        backend: settings.name.clone(),
        protocol: end.protocol.to_owned(),
        address: end.address.to_string(),
        tunnel: tunnel.map(str::to_owned),
        request: preview.line,
        fields: preview.fields,
        attributes: preview.attributes,
        set_cookie: cookie.map(|it| super::text(it)),
        timeouts: timeouts(settings, rules),
        retries: upstream.retries_by(rules),
    })
}

/// Lists the timeouts that apply to a backend's exchange, each with its value: the route's, or else the backend's.
fn timeouts(settings: &BackendConfig, rules: Option<&Rules>) -> Vec<(String, String)> {
    let of_route = |key: fn(&RouteRules) -> Option<Duration>| key(rules?.config());
    let first_byte = of_route(|it| it.first_byte_timeout).unwrap_or(settings.first_byte_timeout);
    let idle_body = of_route(|it| it.idle_body_timeout).unwrap_or(settings.idle_body_timeout);
    let limit = of_route(|it| it.exchange_timeout).or(settings.exchange_timeout);
    // `Duration::MAX` stands for no limit.
    let exchange = limit.filter(|it| *it < Duration::MAX);
    let ajp = (!settings.speaks_http()).then_some(&settings.ajp);
    let timeouts = [
        ("connect_timeout", Some(settings.connect_timeout)),
        ("queue_timeout", Some(settings.queue_timeout)),
        ("first_byte_timeout", Some(first_byte)),
        ("idle_body_timeout", Some(idle_body)),
        ("exchange_timeout", exchange),
        ("attempt_timeout", of_route(|it| it.attempt_timeout)),
        ("suspect_after", settings.suspect_after),
        ("ping_after_idle", ajp.and_then(|ajp| ajp.ping_after_idle)),
        ("ping_timeout", ajp.map(|ajp| ajp.ping_timeout)),
    ];
    timeouts
        .into_iter()
        .filter_map(|(key, limit)| Some((key.to_owned(), show_duration(limit?))))
        .collect()
}
