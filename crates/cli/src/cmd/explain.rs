//! `explain`: what would become of a request, without its being sent.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;

use catamaran_config::parse_listen_address;
use catamaran_front::config::ListenAddress;
use catamaran_front::explain::{Question, explain};
use serde_json::Value;

use super::client::At;
use super::operate::escape;
use crate::failure::Failure;

/// Say which route and backend a request would get, and why
///
/// The front that runs is asked. Nothing is sent to a backend, and no counter changes.
#[derive(clap::Args)]
pub(crate) struct Args {
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

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let explanation = match &args.config {
        Some(path) => {
            let config = super::check::load(path)?.config;
            let explained = explain(&config, &args.question()).map_err(Failure::Fault)?;
            serde_json::to_value(&explained).map_err(|error| Failure::of(&error))?
        }
        None => {
            let at = At::new(args.admin.clone(), args.token_file.clone());
            at.client()?.expect("GET", &args.path(), None)?
        }
    };
    let text = match args.json {
        true => format!("{explanation:#}\n"),
        false => show(&explanation),
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

impl Args {
    fn question(&self) -> Question {
        Question {
            url: self.url.clone(),
            method: self.method.clone(),
            headers: self.header.clone(),
            from: self.from.clone(),
            listen: self.listen.clone(),
            client_certificate: self.client_certificate,
            http2: self.http2,
        }
    }

    /// The question to the admin API.
    fn path(&self) -> String {
        let given = [
            ("url", &self.url),
            ("method", &self.method),
            ("from", &self.from),
            ("listen", &self.listen),
            ("client_certificate", &self.client_certificate.to_string()),
            ("http2", &self.http2.to_string()),
        ];
        let headers = self.header.iter().map(|it| ("header", it));
        let pairs = given.into_iter().chain(headers);
        let pairs: Vec<String> = pairs
            .map(|(name, value)| format!("{name}={}", escape(value)))
            .collect();
        format!("/api/v1/explain?{}", pairs.join("&"))
    }
}

/// The explanation for people, a fact a line.
fn show(it: &Value) -> String {
    let mut lines = Lines::default();
    let request = &it["request"];
    if request.is_object() {
        let mut client = format!("from {}", word(&request["from"]));
        if request["client"] != request["from"] {
            client += &format!(" for {}", word(&request["client"]));
        }
        let port = match request["port"].as_u64() {
            Some(port) => format!(":{port}"),
            None => String::new(),
        };
        let host = match request["host"].as_str() {
            Some(host) => format!("{}://{host}{port}", word(&request["scheme"])),
            None => String::new(),
        };
        let target = query(word(&request["path"]), &request["query"]);
        let method = word(&request["method"]);
        lines.push("request", &format!("{method} {host}{target} {client}"));
        lines.push("listener", &word(&request["listener"]));
    }
    show_path(it, &mut lines);
    show_routes(it, &mut lines);
    show_answer(it, &mut lines);
    show_choice(it, &mut lines);
    show_sent(&it["sent"], &mut lines);
    for step in list(&it["then"]) {
        lines.push("then", &word(step));
    }
    // A reader of two explanations sees where the first one ends.
    format!("{}\n\n{}\n", word(&it["summary"]), lines.0)
}

fn show_path(it: &Value, lines: &mut Lines) {
    let path = &it["path"];
    if !path.is_object() {
        return;
    }
    let mut text = word(&path["normal"]);
    if path["compared"] != path["normal"] {
        text += &format!(", compared as {}", word(&path["compared"]));
    }
    if path["forwarded"] != path["normal"] {
        text += &format!(", forwarded as {}", word(&path["forwarded"]));
    }
    lines.push("path", &text);
}

fn show_routes(it: &Value, lines: &mut Lines) {
    if it["route"].is_object() {
        lines.push("route", &route(&it["route"]));
    }
    for other in list(&it["others"]) {
        let text = format!("{}: {}", route(other), word(&other["why_not"]));
        lines.push("other", &text);
    }
}

/// A route in the words of the file.
fn route(it: &Value) -> String {
    let mut text = match it["place"].as_str() {
        Some(place) => format!("{} ", place.escape_debug()),
        None => String::new(),
    };
    let hosts: Vec<String> = list(&it["hosts"]).iter().map(word).collect();
    text += &hosts.join(",");
    match it["pattern"].as_str() {
        Some(_) => text += &word(&it["pattern"]),
        None => text += &word(&it["path"]),
    }
    if it["exact"] == true {
        text += " (exact)";
    }
    let listen: Vec<String> = list(&it["listen"]).iter().map(word).collect();
    if !listen.is_empty() {
        text += &format!(" listen {}", listen.join(","));
    }
    for key in ["suffix", "scheme"] {
        if let Some(value) = it[key].as_str() {
            text += &format!(" {key} {}", value.escape_debug());
        }
    }
    format!("{text} -> {}", word(&it["target"]))
}

fn show_answer(it: &Value, lines: &mut Lines) {
    let answer = &it["answer"];
    if !answer.is_object() {
        return;
    }
    let (status, reason) = (word(&answer["status"]), word(&answer["reason"]));
    lines.push("answer", &format!("{status}, {reason}"));
    if answer["location"].is_string() {
        lines.push("location", &word(&answer["location"]));
    }
}

fn show_choice(it: &Value, lines: &mut Lines) {
    let upstream = &it["upstream"];
    if upstream.is_object() {
        let mut text = format!(
            "{} ({})",
            word(&upstream["name"]),
            word(&upstream["policy"])
        );
        if upstream["panic"] == true {
            text += ", panic: too many backends are unwell";
        }
        lines.push("upstream", &text);
    }
    for step in list(&it["affinity"]["steps"]) {
        let value = step["value"].as_str().unwrap_or_default().escape_debug();
        let equals = if step["value"].is_string() { "=" } else { "" };
        let text = format!(
            "{}{equals}{value} {}",
            word(&step["source"]),
            word(&step["text"])
        );
        lines.push("session", &text);
    }
    if it["affinity"].is_object() {
        lines.push("sticky", &word(&it["affinity"]["outcome"]));
    }
    for member in list(&it["members"]) {
        let name = word(&member["backend"]);
        let text = match member["why_not"].as_str() {
            Some(why) => format!("{name}: no, {}", why.escape_debug()),
            None => format!("{name}: {} %", word(&member["share"])),
        };
        lines.push("backend", &text);
    }
}

fn show_sent(sent: &Value, lines: &mut Lines) {
    if !sent.is_object() {
        return;
    }
    let (protocol, address) = (word(&sent["protocol"]), word(&sent["address"]));
    let text = format!("{} to {protocol}://{address}", word(&sent["request"]));
    lines.push("sent", &text);
    if sent["tunnel"].is_string() {
        let text = format!("for {}, once the backend agrees", word(&sent["tunnel"]));
        lines.push("tunnel", &text);
    }
    for (key, name) in [("fields", "field"), ("attributes", "attribute")] {
        for pair in list(&sent[key]) {
            lines.push(name, &format!("{}: {}", word(&pair[0]), word(&pair[1])));
        }
    }
    if sent["set_cookie"].is_string() {
        lines.push(
            "returns",
            &format!("set-cookie: {}", word(&sent["set_cookie"])),
        );
    }
    let timeouts: Vec<String> = list(&sent["timeouts"])
        .iter()
        .map(|pair| format!("{} {}", word(&pair[0]), word(&pair[1])))
        .collect();
    lines.push(
        "limits",
        &format!("{}, retries {}", timeouts.join(", "), sent["retries"]),
    );
}

/// Lines with their names before them.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn push(&mut self, name: &str, text: &str) {
        writeln!(self.0, "{name:<10}{text}").expect("a string takes all");
    }
}

fn query(path: String, query: &Value) -> String {
    match query.as_str() {
        Some(query) => format!("{path}?{}", query.escape_debug()),
        None => path,
    }
}

/// A value as a word, escaped for a terminal; `-` for none.
fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => super::status::word(text),
        other => other.to_string(),
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
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
        assert_eq!(show(&refusal), expected);
    }
}
