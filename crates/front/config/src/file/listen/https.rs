//! The keys of `[[listen]]` about `https://`.

use catamaran_proxy::config::ListenerConfig;

use super::RawListen;
use crate::file::Surroundings;
use crate::fill;
use crate::key::{ALL, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::text::{file_path, parse_hsts};
use crate::value::{Counts, Optional, OrOff, OrSwitch, Syntax};

/// Reports keys that have no use on this listener.
pub(super) fn check(
    table: &mut Table<'_>,
    surroundings: &Surroundings<'_>,
    listener: &mut ListenerConfig,
) {
    if let Some(webroot) = &mut listener.acme_webroot {
        *webroot = surroundings.base.join(&*webroot);
    }
    let has_tls = table.has("tls");
    if has_tls && listener.redirect_https.is_some() {
        let message = "`redirect_https` has no use beside `tls`: clients come over https already";
        let hint = "write `redirect_https` in the [[listen]] of port 80, without `tls`";
        table.push(Finding::fault(message, table.place_of("redirect_https")).hint(hint));
    }
    if !has_tls && !listener.proxy_protocol && listener.hsts.is_some() {
        let message = "`hsts` is sent over TLS only, and this [[listen]] has no `tls`";
        let hint = "write it in the [[listen]] with `tls`; here `redirect_https` may be meant";
        table.push(Finding::fault(message, table.place_of("hsts")).hint(hint));
    }
}

pub(super) static KEYS: &[Key<RawListen>] = &[
    Key {
        name: "redirect_https",
        group: ALL,
        value: fill!(
            OrSwitch {
                values: Counts(1..=65_535),
                on: 443,
            },
            RawListen.listener.redirect_https
        ),
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Answers each request with 308 and the same address at `https://`: on port 443, or on \
                 the one that is written. A request without a host is answered 400. Requests below \
                 `/.well-known/acme-challenge/` are served, and those for which a trusted proxy says \
                 `X-Forwarded-Proto: https`.",
        extremes: "The port must be the one that clients see, if others are between.",
        elsewhere: "nginx `return 308`; httpd `Redirect permanent`; HAProxy `redirect scheme https`",
    },
    Key {
        name: "hsts",
        group: ALL,
        value: fill!(
            OrOff(Syntax {
                what: "a value of Strict-Transport-Security such as \"max-age=31536000\"",
                parse: parse_hsts,
            }),
            RawListen.listener.hsts
        ),
        preset: Preset::Value("\"off\""),
        sample: "\"max-age=31536000; includeSubDomains\"",
        effect: "`Strict-Transport-Security` of every response, unless the application says it: for so \
                 many seconds browsers come over TLS only, and do not let users ignore a wrong \
                 certificate.",
        extremes: "Browsers keep to it until it has passed, even if TLS is turned off: begin with \
                   minutes. `includeSubDomains` binds hosts that others run.",
        elsewhere: "nginx `add_header`; httpd `Header always set`; Tomcat `HttpHeaderSecurityFilter`",
    },
    Key {
        name: "acme_webroot",
        group: ALL,
        value: fill!(
            Optional(file_path("a path such as \"/var/lib/acme\"")),
            RawListen.listener.acme_webroot
        ),
        preset: Preset::Unset("challenges go to backends, like any request"),
        sample: "\"/var/lib/acme\"",
        effect: "The directory below which an ACME client (certbot `--webroot`, acme.sh, lego) puts \
                 its answers to challenges, in `.well-known/acme-challenge`. They are served before \
                 any route. A relative path starts from the directory of the configuration file.",
        extremes: "Names other than tokens are answered 404, and nothing else of the directory is \
                   served.",
        elsewhere: "nginx `location` with `root`; httpd `Alias`",
    },
];
