//! What the configuration in force makes the front accept and where it sends it, as JSON.

use serde_json::{Value, json};

use crate::config::{ListenAddress, ListenerConfig, Protocols};
use crate::explain::RouteShown;
use crate::site::Site;

/// `GET /api/v1/listeners`: every listener, in the file's order.
pub(super) fn listeners(site: &Site) -> Value {
    json!({ "listeners": site.listeners.iter().map(listener).collect::<Vec<_>>() })
}

/// `GET /api/v1/routes`: every route, in the file's order, as [`crate::explain`] shows it.
pub(super) fn routes(site: &Site) -> Value {
    let routes = site.routes.routes().iter();
    let routes = routes.map(|route| json!(RouteShown::new(&route.config, &site.listeners)));
    json!({ "routes": routes.collect::<Vec<_>>() })
}

fn protocols(protocols: Protocols) -> &'static [&'static str] {
    match protocols {
        Protocols::Http1 => &["http/1.1"],
        Protocols::Http2 => &["h2"],
        Protocols::Both => &["h2", "http/1.1"],
    }
}

fn listener(config: &ListenerConfig) -> Value {
    json!({
        "name": config.name,
        "address": config.address.to_string(),
        "unix": matches!(config.address, ListenAddress::Unix(_)),
        "protocols": protocols(config.protocols),
        "tls": config.tls,
        "proxy_protocol": config.proxy_protocol,
        "redirect_https": config.redirect_https,
    })
}
