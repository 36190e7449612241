//! The listeners and routes of the configuration in force, as the API shows them.

use catamaran_admin_api::{ListenerList, ListenerStatus, RouteList};

use crate::config::{ListenAddress, ListenerConfig, Protocols};
use crate::explain::route_status;
use crate::site::Site;

/// `GET /api/v1/listeners`: every listener, in the file's order.
pub(super) fn listeners(site: &Site) -> ListenerList {
    ListenerList {
        listeners: site.listeners.iter().map(listener).collect(),
    }
}

/// `GET /api/v1/routes`: every route, in the file's order, as [`crate::explain`] shows it.
pub(super) fn routes(site: &Site) -> RouteList {
    let given = site.routes.given().iter();
    let routes = given.map(|route| route_status(&route.config, &site.listeners));
    RouteList {
        routes: routes.collect(),
    }
}

fn protocols(protocols: Protocols) -> &'static [&'static str] {
    match protocols {
        Protocols::Http1 => &["http/1.1"],
        Protocols::Http2 => &["h2"],
        Protocols::Both => &["h2", "http/1.1"],
    }
}

fn listener(config: &ListenerConfig) -> ListenerStatus {
    let protocols = protocols(config.protocols).iter();
    ListenerStatus {
        name: config.name.clone(),
        address: config.address.to_string(),
        unix: matches!(config.address, ListenAddress::Unix(_)),
        protocols: protocols.map(|it| (*it).to_owned()).collect(),
        tls: config.tls.clone(),
        proxy_protocol: config.proxy_protocol,
        redirect_https: config.redirect_https,
    }
}
