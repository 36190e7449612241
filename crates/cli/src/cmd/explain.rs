//! `explain`: says what would happen to a request, without sending it.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use catamaran_admin_api::{
    AuthOutlook, BackendRequest, ExplainedRequest, Explanation, PathForms, RouteStatus,
};
use catamaran_config::parse_listen_address;
use catamaran_proxy::config::ListenAddress;
use catamaran_proxy::explain::{Question, explain};

use super::client::{At, pretty};
use super::operate::escape;
use super::status::word;
use crate::failure::Failure;

/// Say which route and backend a request would get, and why
///
/// The front that runs is asked. Nothing is sent to a backend, and no counter changes.
#[derive(clap::Args)]
pub(crate) struct ExplainArgs {
    /// http://HOST/PATH, https://HOST/PATH, or /PATH for the host localhost
    #[arg(value_name = "URL")]
    url: String,

    /// The method
    #[arg(long, value_name = "METHOD", default_value = "GET")]
    method: String,

    /// A further header, such as "Cookie: JSESSIONID=1.a"; may be repeated
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,

    /// The address that the connection comes from, with or without a port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    from: String,

    /// The listener that accepts the connection, by its `name` or `address` [default: the one that fits the
    /// URL best]
    #[arg(
        long,
        value_name = "LISTENER",
        default_value = "",
        hide_default_value = true
    )]
    listen: String,

    /// Suppose that the client has shown a certificate that was verified
    #[arg(long)]
    client_certificate: bool,

    /// Suppose this answer of the route's sign-on: its status, and fields as ",NAME=VALUE", such as
    /// 200,X-Auth-Request-User=ann
    #[arg(
        long,
        value_name = "STATUS,FIELD=VALUE",
        default_value = "",
        hide_default_value = true
    )]
    auth: String,

    /// Suppose that the client speaks HTTP/2; a tunnel is asked for by --method CONNECT and --header
    /// ":protocol: websocket"
    #[arg(long)]
    http2: bool,

    /// Print JSON, as the admin API answers
    #[arg(long)]
    json: bool,

    /// Ask this file instead of the front that runs, as if all its backends were up
    #[arg(long, value_name = "FILE", conflicts_with_all = ["admin", "token_file"])]
    config: Option<PathBuf>,

    /// The admin listener of the front that runs [default: unix:/run/catamaran/admin.sock]
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen_address)]
    admin: Option<ListenAddress>,

    /// A file with the token, for an admin listener that wants one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
}

pub(crate) fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let explanation: Explanation = match &args.config {
        Some(path) => {
            let config = super::check::load(path)?.config;
            explain(&config, &args.question()).map_err(Failure::Fault)?
        }
        None => {
            let at = At::new(args.admin.clone(), args.token_file.clone());
            at.client()?.object("GET", &args.path(), None)?
        }
    };
    let text = if args.json {
        pretty(&explanation)?
    } else {
        show(&explanation)
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

impl ExplainArgs {
    fn question(&self) -> Question {
        Question {
            url: self.url.clone(),
            method: self.method.clone(),
            headers: self.header.clone(),
            from: self.from.clone(),
            listen: self.listen.clone(),
            client_certificate: self.client_certificate,
            auth: self.auth.clone(),
            http2: self.http2,
        }
    }

    /// The path and query with which the admin API is asked.
    fn path(&self) -> String {
        let options = [
            ("url", &self.url),
            ("method", &self.method),
            ("from", &self.from),
            ("listen", &self.listen),
            ("client_certificate", &self.client_certificate.to_string()),
            ("auth", &self.auth),
            ("http2", &self.http2.to_string()),
        ];
        let headers = self.header.iter().map(|header| ("header", header));
        let parameters = options.into_iter().chain(headers);
        let pairs: Vec<String> = parameters
            .map(|(name, value)| format!("{name}={}", escape(value)))
            .collect();
        format!("/api/v1/explain?{}", pairs.join("&"))
    }
}

/// The explanation as text for people, with one fact on each line.
fn show(explanation: &Explanation) -> String {
    let mut lines = Lines::default();
    if let Some(request) = &explanation.request {
        show_request(request, &mut lines);
    }
    if let Some(path) = &explanation.path {
        show_path(path, &mut lines);
    }
    if let Some(chosen) = &explanation.route {
        lines.push("route", &route(chosen));
    }
    for other in &explanation.others {
        let text = format!("{}: {}", route(&other.route), word(&other.why_not));
        lines.push("other", &text);
    }
    if let Some(auth) = &explanation.auth {
        show_auth(auth, &mut lines);
    }
    if let Some(answer) = &explanation.answer {
        let reason = word(&answer.reason);
        lines.push("answer", &format!("{}, {reason}", answer.status));
        if let Some(location) = &answer.location {
            lines.push("location", &word(location));
        }
    }
    show_choice(explanation, &mut lines);
    if let Some(sent) = &explanation.sent {
        show_sent(sent, &mut lines);
    }
    for step in &explanation.then {
        lines.push("then", &word(step));
    }
    // A reader of two explanations sees where the first one ends.
    format!("{}\n\n{}\n", word(&explanation.summary), lines.0)
}

fn show_request(request: &ExplainedRequest, lines: &mut Lines) {
    let mut client = format!("from {}", word(&request.from));
    if request.client != request.from {
        client += &format!(" for {}", word(&request.client));
    }
    let port = match request.port {
        Some(port) => format!(":{port}"),
        None => String::new(),
    };
    let host = match &request.host {
        Some(host) => format!("{}://{host}{port}", word(&request.scheme)),
        None => String::new(),
    };
    let path = word(&request.path);
    let target = match &request.query {
        Some(query) => format!("{path}?{}", query.escape_debug()),
        None => path,
    };
    let method = word(&request.method);
    lines.push("request", &format!("{method} {host}{target} {client}"));
    lines.push("listener", &word(&request.listener));
}

fn show_path(path: &PathForms, lines: &mut Lines) {
    let mut text = word(&path.normal);
    if path.compared != path.normal {
        text += &format!(", compared as {}", word(&path.compared));
    }
    if path.forwarded != path.normal {
        text += &format!(", forwarded as {}", word(&path.forwarded));
    }
    lines.push("path", &text);
}

/// A route in the words of the configuration file.
fn route(status: &RouteStatus) -> String {
    let mut text = match &status.place {
        Some(place) => format!("{} ", place.escape_debug()),
        None => String::new(),
    };
    text += &words(&status.hosts).join(",");
    text += &match (&status.regex, &status.pattern) {
        (Some(regex), _) => format!("regex {}", word(regex)),
        (None, pattern) => word(pattern.as_ref().unwrap_or(&status.path)),
    };
    if status.exact {
        text += " (exact)";
    }
    if status.before_regex {
        text += " (before_regex)";
    }
    if !status.methods.is_empty() {
        text += &format!(" methods {}", words(&status.methods).join(","));
    }
    if !status.listen.is_empty() {
        text += &format!(" listen {}", words(&status.listen).join(","));
    }
    for (key, value) in [("suffix", &status.suffix), ("scheme", &status.scheme)] {
        if let Some(value) = value {
            text += &format!(" {key} {}", value.escape_debug());
        }
    }
    format!("{text} -> {}", word(&status.target))
}

fn show_choice(explanation: &Explanation, lines: &mut Lines) {
    if let Some(upstream) = &explanation.upstream {
        let mut text = format!("{} ({})", word(&upstream.name), word(&upstream.policy));
        if upstream.panic {
            text += ", panic: too many backends are unwell";
        }
        lines.push("upstream", &text);
    }
    if let Some(affinity) = &explanation.affinity {
        for step in &affinity.steps {
            let value = match &step.value {
                Some(value) => format!("={}", value.escape_debug()),
                None => String::new(),
            };
            let (source, text) = (word(&step.source), word(&step.text));
            lines.push("session", &format!("{source}{value} {text}"));
        }
        lines.push("sticky", &word(&affinity.outcome));
    }
    for member in &explanation.members {
        let name = word(&member.backend);
        let text = match &member.why_not {
            Some(why) => format!("{name}: no, {}", why.escape_debug()),
            None => format!("{name}: {:?} %", member.share),
        };
        lines.push("backend", &text);
    }
}

fn show_auth(auth: &AuthOutlook, lines: &mut Lines) {
    let name = word(&auth.name);
    let text = match (&auth.users_file, &auth.user) {
        (Some(file), Some(user)) => {
            format!(
                "{name} checks the password of {} in {}",
                word(user),
                word(file)
            )
        }
        (Some(_), None) => format!("{name} asks for a user and a password"),
        (None, _) => {
            let upstream = word(&auth.upstream);
            format!("{name} asks {} of upstream {upstream}", word(&auth.request))
        }
    };
    lines.push("auth", &text);
    for (key, value) in &auth.fields {
        lines.push("asks", &format!("{}: {}", word(key), word(value)));
    }
}

fn show_sent(sent: &BackendRequest, lines: &mut Lines) {
    let (protocol, address) = (word(&sent.protocol), word(&sent.address));
    let text = format!("{} to {protocol}://{address}", word(&sent.request));
    lines.push("sent", &text);
    if let Some(tunnel) = &sent.tunnel {
        let text = format!("for {}, once the backend agrees", word(tunnel));
        lines.push("tunnel", &text);
    }
    for (pairs, name) in [(&sent.fields, "field"), (&sent.attributes, "attribute")] {
        for (key, value) in pairs {
            lines.push(name, &format!("{}: {}", word(key), word(value)));
        }
    }
    if let Some(cookie) = &sent.set_cookie {
        lines.push("returns", &format!("set-cookie: {}", word(cookie)));
    }
    let timeouts: Vec<String> = sent
        .timeouts
        .iter()
        .map(|(key, value)| format!("{} {}", word(key), word(value)))
        .collect();
    lines.push(
        "limits",
        &format!("{}, retries {}", timeouts.join(", "), sent.retries),
    );
}

fn words(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| word(text)).collect()
}

/// A text of lines that each begin with the name of a fact.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, name: &str, text: &str) {
        writeln!(self.0, "{name:<10}{text}").expect("a string takes all");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_refusal_ends_with_its_answer_and_names_no_backend() {
        let refusal = json!({
            "summary": "403: the client showed none",
            "path": {"normal": "/account", "compared": "/account", "forwarded": "/account"},
            "answer": {"status": 403, "reason": "client-certificate-missing", "location": null},
            "members": [], "then": [],
        });
        let expected = "403: the client showed none\n\n\
                        path      /account\nanswer    403, client-certificate-missing\n\n";
        let refusal: Explanation = serde_json::from_value(refusal).unwrap();
        assert_eq!(show(&refusal), expected);
    }
}
