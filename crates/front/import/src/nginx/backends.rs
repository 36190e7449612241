//! How backends are called: timeouts, TLS, and the host that they see.

use std::path::Path;

use crate::directive::Directive;
use crate::files::Files;
use crate::ledger::Ledger;
use crate::mod_jk::workers::{duration, number};
use crate::nginx::location::Scope;
use crate::plan::{Backend, DepthCount, Keys, Upstream, depth_key};
use crate::target::{OWN_HOST, is_host_keyword};
use crate::toml_text::{quoted, quoted_list};

/// Sets the keys of an upstream by which a location calls its backends; `authority` is that of the `proxy_pass`.
pub(super) fn call(
    scope: Scope<'_>,
    authority: &str,
    upstream: &mut Upstream,
    files: &dyn Files,
    ledger: &mut Ledger,
) {
    limit_times(scope, upstream, ledger);
    ask_others(scope, upstream, ledger);
    verify(scope, upstream, files, ledger);
    show_itself(scope, upstream, files, ledger);
    host(scope, authority, upstream, ledger);
}

/// Converts timeouts into keys of the upstream. Those of nginx are in seconds without a unit.
fn limit_times(scope: Scope<'_>, upstream: &mut Upstream, ledger: &mut Ledger) {
    for (name, key) in [
        ("proxy_connect_timeout", "connect_timeout"),
        ("proxy_read_timeout", "first_byte_timeout"),
        ("proxy_read_timeout", "idle_body_timeout"),
    ] {
        if let Some(directive) = scope.find(name) {
            let text = directive.word(0);
            let unit_text = text.trim_start_matches(|it: char| it.is_ascii_digit());
            let digits = &text[..text.len() - unit_text.len()];
            let milliseconds = match unit_text {
                "ms" => 1,
                "m" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => 1000,
            };
            if let Some(time) = number(digits).and_then(|it| duration(it, milliseconds)) {
                upstream.keys.insert(key.to_owned(), time);
            }
            ledger.mapped(directive.id);
        }
    }
}

/// Converts which failures and statuses make the front ask another backend (`proxy_next_upstream`).
fn ask_others(scope: Scope<'_>, upstream: &mut Upstream, ledger: &mut Ledger) {
    let Some(directive) = scope.find("proxy_next_upstream") else {
        return;
    };
    if upstream.backends.len() < 2 {
        return ledger.dropped(directive.id, "there is no other backend to ask");
    }
    let mut statuses = Vec::new();
    for word in &directive.words {
        match word.as_str() {
            // For these the front always asks another one.
            "error" | "timeout" | "invalid_header" => {}
            "off" => drop(upstream.keys.insert("retries".to_owned(), "0".to_owned())),
            "http_403" | "http_404" => {
                let text = format!(
                    "`{word}` would send each page that is not there, or not for the client, to every backend: \
                     it was left out"
                );
                ledger.lost(directive.id, text);
            }
            "non_idempotent" => ledger.lost(
                directive.id,
                "requests that a backend may have received are sent again only if their method is idempotent",
            ),
            word => statuses.extend(word.strip_prefix("http_").map(str::to_owned)),
        }
    }
    if !statuses.is_empty() {
        let keys = &mut upstream.keys;
        keys.insert("retry_status".to_owned(), quoted_list(&statuses));
    }
    ledger.mapped(directive.id);
}

/// Sets whether backends' certificates are verified, and by which authority. A backend of TLS has the key `verify`,
/// which turns verification off as nginx does by default.
fn verify(scope: Scope<'_>, upstream: &mut Upstream, files: &dyn Files, ledger: &mut Ledger) {
    let verifies = |it: &&Directive| it.word(0) == "on";
    let Some(directive) = scope.find("proxy_ssl_verify").filter(verifies) else {
        let idle = [
            "proxy_ssl_verify",
            "proxy_ssl_trusted_certificate",
            "proxy_ssl_verify_depth",
        ];
        let found = idle.into_iter().filter_map(|it| scope.find(it));
        found.for_each(|it| {
            ledger.dropped(it.id, "certificates of these backends are not verified");
        });
        return;
    };
    ledger.mapped(directive.id);
    let authority = scope.find("proxy_ssl_trusted_certificate");
    let mut keys = Keys::new();
    let mut pem = Vec::new();
    if let Some(authority) = authority {
        ledger.mapped(authority.id);
        let path = Path::new(authority.word(0));
        pem = files.read(path).unwrap_or_default();
        keys.insert("ca_file".to_owned(), quoted(&files.located(path)));
    }
    let number = scope.find("proxy_ssl_verify_depth");
    let of = number.or(authority).unwrap_or(directive);
    let text = number.map(|it| it.word(0));
    keys.extend(depth_key(text, DepthCount::Between, &pem, of.id, ledger));
    for backend in &mut upstream.backends {
        if backend.keys.remove("verify").is_some() {
            backend.keys.extend(keys.clone());
        }
    }
}

/// Sets the name that backends are asked for in TLS (SNI), and the certificate that they are shown.
fn show_itself(scope: Scope<'_>, upstream: &mut Upstream, files: &dyn Files, ledger: &mut Ledger) {
    let [name, certificate, key] = [
        "proxy_ssl_name",
        "proxy_ssl_certificate",
        "proxy_ssl_certificate_key",
    ]
    .map(|it| scope.find(it));
    let backends = upstream.backends.iter_mut();
    let tls: Vec<&mut Backend> = backends
        .filter(|it| it.url.starts_with("https://"))
        .collect();
    if tls.is_empty() {
        let idle = [name, certificate, key].into_iter().flatten();
        idle.for_each(|it| ledger.dropped(it.id, "these backends speak no TLS"));
        return;
    }
    let is_there = |it: &Directive| files.read(Path::new(it.word(0))).is_ok();
    let name = name.filter(|it| is_host_name(it.word(0)));
    let pair = certificate
        .zip(key)
        .filter(|(chain, key)| is_there(chain) && is_there(key));
    if let Some(name) = name {
        ledger.mapped(name.id);
    }
    // Without one of both files no certificate is shown, and the ledger reports the directives.
    if let Some((chain, key)) = pair {
        ledger.mapped(chain.id);
        ledger.mapped(key.id);
    }
    let place = |it: &Directive| quoted(&files.located(Path::new(it.word(0))));
    for backend in tls {
        let keys = &mut backend.keys;
        if let Some(name) = name {
            keys.insert("server_name".to_owned(), quoted(name.word(0)));
        }
        if let Some((chain, key)) = pair {
            keys.insert("client_certificate".to_owned(), place(chain));
            keys.insert("client_key".to_owned(), place(key));
        }
    }
}

/// Sets the host name that backends get as `Host`; without the key `host` they get the client's. `authority` is that of
/// the `proxy_pass`, or the name of an `upstream` block.
fn host(scope: Scope<'_>, authority: &str, upstream: &mut Upstream, ledger: &mut Ledger) {
    let fields = scope.level(|it| it.name == "proxy_set_header");
    let field = fields
        .into_iter()
        .find(|it| it.word(0).eq_ignore_ascii_case("host"));
    let value = match field {
        Some(field) => {
            ledger.mapped(field.id);
            field.word(1)
        }
        None => "$proxy_host",
    };
    let server_name = scope.find("server_name").map_or("", |it| it.word(0));
    let is_name = |text: &str| is_host_name(text) && !is_host_keyword(text);
    // A Unix socket has no name of its own.
    let fallback = || {
        if upstream.backends.iter().any(|it| it.url.contains("unix:")) {
            "localhost"
        } else {
            OWN_HOST
        }
    };
    let named = match value.replace(['{', '}'], "").as_str() {
        "$host" | "$http_host" | "$host:$server_port" => return,
        "$server_name" if is_name(server_name) => server_name,
        "$proxy_host" if scope.upstreams.contains_key(authority) && is_name(authority) => authority,
        "$proxy_host" => fallback(),
        name if is_name(name) => value,
        // If clients could choose the host, they could choose which site of the application answers.
        _ => {
            if let Some(field) = field {
                let text = format!(
                    "the value `{value}` of `Host` was not converted: the backend is called by its own \
                                    host. Name the right one in `host` of its upstream"
                );
                ledger.lost(field.id, text);
            }
            fallback()
        }
    };
    upstream.keys.insert("host".to_owned(), quoted(named));
}

/// The value of a variable about the URL of the location's own `proxy_pass`, `$proxy_host` or `$proxy_port`; `None`: the
/// URL does not say it.
pub(super) fn of_pass(name: &str, scope: Scope<'_>) -> Option<String> {
    let url = scope.own("proxy_pass")?.word(0);
    let (scheme, behind) = url.split_once("://")?;
    let authority = behind.split('/').next()?;
    if authority.contains(['$', '{']) || authority.starts_with("unix:") {
        return None;
    }
    match name {
        "proxy_host" => Some(authority.to_owned()),
        // Members of an upstream have ports of their own.
        "proxy_port" if scope.upstreams.contains_key(authority) => None,
        "proxy_port" => match authority.rsplit_once(':') {
            Some((_, port)) if !port.ends_with(']') => Some(port.to_owned()),
            _ if scheme == "https" => Some("443".to_owned()),
            _ => Some("80".to_owned()),
        },
        _ => None,
    }
}

/// Whether a text is a plain host name, of labels between dots.
fn is_host_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    text.split('.')
        .all(|label| !label.is_empty() && label.bytes().all(is_plain))
}
