//! The keys of `[[listen]]` about `https://`.

use catamaran_front::config::ListenerConfig;
use http::HeaderValue;

use super::super::Surroundings;
use crate::key::{Doc, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::text::{FilePath, TextError, file_path, parse_hsts, parse_name};
use crate::value::{Counts, OrOff, OrSwitch, Parsed};

/// Reads the keys, and finds those that have no use on this listener.
pub(super) fn read(
    table: &mut Table<'_>,
    surroundings: &Surroundings<'_>,
    listener: &mut ListenerConfig,
) {
    listener.tls = table.take(&TLS);
    table.set(&REDIRECT_HTTPS, &mut listener.redirect_https);
    table.set(&HSTS, &mut listener.hsts);
    let webroot = table.take(&ACME_WEBROOT);
    listener.acme_webroot = webroot.map(|path| surroundings.base.join(path));
    let has_tls = table.has(&TLS);
    if has_tls && listener.redirect_https.is_some() {
        let place = table.place_of(&REDIRECT_HTTPS);
        let message = "`redirect_https` has no use beside `tls`: clients come over https already";
        let hint = "write `redirect_https` in the [[listen]] of port 80, without `tls`";
        table.push(Finding::fault(message, place).hint(hint));
    }
    if !has_tls && !listener.proxy_protocol && listener.hsts.is_some() {
        let place = table.place_of(&HSTS);
        let message = "`hsts` is sent over TLS only, and this [[listen]] has no `tls`";
        let hint = "write it in the [[listen]] with `tls`; here `redirect_https` may be meant";
        table.push(Finding::fault(message, place).hint(hint));
    }
}

pub(super) static TLS: Key<Parsed<String, TextError>> = Key {
    name: "tls",
    values: Parsed {
        what: "the name of a [tls.NAME]",
        parse: parse_name,
    },
    doc: Doc {
        preset: Preset::Unset("clear text"),
        sample: "\"NAME\"",
        effect: "The profile of TLS that clients are served with. A client that speaks HTTP without \
                 TLS is answered 400 in clear.",
        extremes: "Without it everybody on the way reads and changes what is sent.",
        elsewhere: "nginx `listen ... ssl`; httpd `SSLEngine`; HAProxy `bind ... ssl`",
    },
};

pub(super) static REDIRECT_HTTPS: Key<OrSwitch<Counts<u16>>> = Key {
    name: "redirect_https",
    values: OrSwitch {
        values: Counts {
            min: 1,
            max: 65_535,
        },
        on: 443,
    },
    doc: Doc {
        preset: Preset::Value("false"),
        sample: "true",
        effect: "Answers each request with 308 and the same address at `https://`: on port 443, or on \
                 the one that is written. A request without a host is answered 400. Requests below \
                 `/.well-known/acme-challenge/` are served, and those for which a trusted proxy says \
                 `X-Forwarded-Proto: https`.",
        extremes: "The port must be the one that clients see, if others are between.",
        elsewhere: "nginx `return 308`; httpd `Redirect permanent`; HAProxy `redirect scheme https`",
    },
};

pub(super) static HSTS: Key<OrOff<Parsed<HeaderValue, TextError>>> = Key {
    name: "hsts",
    values: OrOff(Parsed {
        what: "a value of Strict-Transport-Security such as \"max-age=31536000\"",
        parse: parse_hsts,
    }),
    doc: Doc {
        preset: Preset::Value("\"off\""),
        sample: "\"max-age=31536000; includeSubDomains\"",
        effect: "`Strict-Transport-Security` of every response, unless the application says it: for so \
                 many seconds browsers come over TLS only, and do not let users ignore a wrong \
                 certificate.",
        extremes: "Browsers keep to it until it has passed, even if TLS is turned off: begin with \
                   minutes. `includeSubDomains` binds hosts that others run.",
        elsewhere: "nginx `add_header`; httpd `Header always set`; Tomcat `HttpHeaderSecurityFilter`",
    },
};

pub(super) static ACME_WEBROOT: Key<FilePath> = Key {
    name: "acme_webroot",
    values: file_path("a path such as \"/var/lib/acme\""),
    doc: Doc {
        preset: Preset::Unset("challenges go to backends, like any request"),
        sample: "\"/var/lib/acme\"",
        effect: "The directory below which an ACME client (certbot `--webroot`, acme.sh, lego) puts \
                 its answers to challenges, in `.well-known/acme-challenge`. They are served before \
                 any route. A relative path starts from the directory of the configuration file.",
        extremes: "Names other than tokens are answered 404, and nothing else of the directory is \
                   served.",
        elsewhere: "nginx `location` with `root`; httpd `Alias`",
    },
};
