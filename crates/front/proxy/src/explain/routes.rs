//! Describes the route that was chosen, and those that were not.

use catamaran_admin_api::{OtherRoute, RouteStatus};
use catamaran_message::RequestHead;

use crate::config::{ListenerConfig, RouteConfig, RouteScheme, RouteTarget};
use crate::exchange::fields::forwarded::Sender;
use crate::exchange::grounds::Grounds;
use crate::exchange::verdict;
use crate::path::NormalPath;

/// Describes a route with the keys and values that its table in the file has.
pub(crate) fn status(config: &RouteConfig, listeners: &[ListenerConfig]) -> RouteStatus {
    let indices = config.listen.iter();
    let listen = indices.filter_map(|&index| Some(listeners.get(index)?.label()));
    let scheme = config.scheme.map(|scheme| match scheme {
        RouteScheme::Http => "http",
        RouteScheme::Https => "https",
    });
    RouteStatus {
        listen: listen.collect(),
        place: config.place.as_ref().map(ToString::to_string),
        hosts: config.hosts.clone(),
        path: config.path.clone(),
        exact: config.exact,
        suffix: config.suffix.clone(),
        pattern: config.pattern.clone(),
        regex: config.regex.as_ref().map(|it| it.as_str().to_owned()),
        refuse_parameters: config.refuse_parameters,
        before_regex: config.before_regex,
        methods: config.methods.iter().map(ToString::to_string).collect(),
        conditions: config.conditions.to_string(),
        scheme: scheme.map(str::to_owned),
        target: match &config.target {
            RouteTarget::Upstream(name) => format!("upstream {name}"),
            RouteTarget::Split(parts) => shares(parts),
            RouteTarget::Status(status) => format!("status {}", status.as_u16()),
            RouteTarget::Files => "files".to_owned(),
            RouteTarget::Redirect(to) => format!("redirect {}", to.status.as_u16()),
        },
    }
}

/// The shares of a split, such as `split a 90 %, b 10 %`.
pub(super) fn shares(parts: &[(String, u32)]) -> String {
    let sum: f64 = parts.iter().map(|(_, weight)| f64::from(*weight)).sum();
    let share = |(name, weight): &(String, u32)| {
        let tenths = f64::from(*weight) * 100.0 / sum * 10.0;
        format!("{name} {} %", tenths.round() / 10.0)
    };
    let shares: Vec<String> = parts.iter().map(share).collect();
    format!("split {}", shares.join(", "))
}

/// The routes that come next in order of precedence after the chosen one, each with the reason why
/// it was not chosen.
pub(super) fn runners(
    grounds: &Grounds<'_>,
    sender: &Sender,
    head: &RequestHead,
    path: &NormalPath,
) -> Vec<OtherRoute> {
    let Ok(wanted) = verdict::wanted(grounds, sender, head) else {
        return Vec::new();
    };
    let site = grounds.site;
    let runners = site.routes.runners(wanted, path.route(), RUNNERS);
    let shown = |runner: crate::site::route::runners::Runner| OtherRoute {
        route: status(&site.routes.routes()[runner.route].config, &site.listeners),
        matches: runner.matches,
        why_not: runner.why_not,
    };
    runners.into_iter().map(shown).collect()
}

/// Says in words why the front itself answers, for the token of its reason; empty for other tokens.
pub(super) fn why_answered(token: &str) -> &'static str {
    match token {
        "no-route" => "no route matches",
        "route-method" => "no route of this path has this method",
        "route-status" => "the route says so",
        "method-trace" => "TRACE is refused",
        "max-forwards" => "its Max-Forwards is 0",
        "route-redirect" => "the route redirects",
        "redirect-loop" => "it would lead to itself",
        "file-options" => "a file has the methods that `Allow` says",
        "file-method" => "a file has no such method",
        "cors-preflight" => "a preflight that [route.cors] grants",
        "cors-origin" => "a preflight, and `origins` of [route.cors] does not have its `Origin`",
        "cors-method" => "a preflight, and `methods` of [route.cors] does not have its method",
        "cors-headers" => {
            "a preflight, and `headers` of [route.cors] does not have all of its fields"
        }
        "cors-route" => {
            "a preflight, and the routes that its request may get do not all have the same [route.cors]"
        }
        "auth-denied" => "the route's sign-on does not let it pass",
        "auth-password" => "the user or the password is wrong",
        "auth-sign-in" => "the client has to sign on",
        "redirect-https" => "`redirect_https` of the listener",
        "acme-challenge" => {
            "`acme_webroot` of the listener, or a certificate that the front orders; 404 if there is no such file"
        }
        _ => "",
    }
}

/// The most routes that are shown besides the one that was chosen.
const RUNNERS: usize = 3;
