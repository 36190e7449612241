//! `status`: the backends of a front that runs, as a table or as JSON.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use serde_json::Value;

use super::client::{At, Client};
use super::operate::{Target, drain_progress};
use crate::failure::Failure;

/// Show the backends of a front that runs
#[derive(clap::Args)]
pub(crate) struct Args {
    /// One upstream, or one backend as UPSTREAM/BACKEND [default: all]
    #[arg(value_name = "UPSTREAM[/BACKEND]")]
    target: Option<String>,

    /// Print what the admin listener answers
    #[arg(long)]
    json: bool,

    /// Print anew every second until interrupted
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    at: At,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let client = args.at.client()?;
    loop {
        let status = client.expect("GET", "/api/v1/status", None)?;
        let upstreams = selected(&status, args.target.as_deref())?;
        let text = match args.json {
            true if args.target.is_none() => format!("{status:#}\n"),
            true => format!("{:#}\n", Value::Array(upstreams)),
            false => table(&status, &upstreams),
        };
        let mut stdout = io::stdout();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        if !args.watch {
            return Ok(());
        }
        std::thread::park_timeout(PERIOD);
        writeln!(stdout)?;
    }
}

/// One backend as it is now.
pub(super) fn expect_whole(client: &Client, target: &Target) -> Result<Value, Failure> {
    client.expect("GET", &target.path(), None)
}

/// The upstreams asked for, each with the backends asked for.
fn selected(status: &Value, target: Option<&str>) -> Result<Vec<Value>, Failure> {
    let all = status["upstreams"].as_array().cloned().unwrap_or_default();
    let Some(target) = target else {
        return Ok(all);
    };
    let (upstream, backend) = match target.split_once('/') {
        Some((upstream, backend)) => (upstream, Some(backend)),
        None => (target, None),
    };
    let missing = || Failure::Fault(format!("there is no {target}"));
    let found = all.into_iter().find(|it| it["name"] == upstream);
    let mut found = found.ok_or_else(missing)?;
    if let (Some(backend), Some(backends)) = (backend, found["backends"].as_array_mut()) {
        backends.retain(|it| it["name"] == backend);
        if backends.is_empty() {
            return Err(missing());
        }
    }
    Ok(vec![found])
}

fn table(status: &Value, upstreams: &[Value]) -> String {
    let mut text = String::new();
    let requests = &status["requests"];
    let open = &status["connections"]["open"];
    let ready = match ["draining", "leaving", "ready"].map(|key| status[key] == true) {
        [true, ..] => "draining",
        [_, true, _] => "about to drain",
        [.., true] => "ready",
        _ => "not ready",
    };
    writeln!(
        text,
        "{ready}; {requests} requests, {open} clients connected"
    )
    .expect("a string");
    for upstream in upstreams {
        let sticky = match upstream["sticky"].as_bool() {
            Some(true) => ", sticky",
            _ => "",
        };
        let panic = match upstream["panic"].as_bool() {
            Some(true) => ", PANIC: so much is out that unwell backends serve",
            _ => "",
        };
        let (name, policy) = (word(&upstream["name"]), word(&upstream["policy"]));
        writeln!(text, "\nupstream {name} ({policy}{sticky}{panic})").expect("a string");
        let backends = upstream["backends"].as_array().cloned().unwrap_or_default();
        let mut rows = vec![HEADINGS.map(str::to_owned)];
        rows.extend(backends.iter().map(row));
        for row in &rows {
            text.push_str(&line(row, &rows));
        }
        for backend in &backends {
            text.push_str(&remarks(backend));
        }
    }
    let retired = status["retired"].as_array().into_iter().flatten();
    for (at, backend) in retired.enumerate() {
        let heading = if at == 0 {
            "\nremoved by a reload, until their last request ends\n"
        } else {
            ""
        };
        let [upstream, name, address, in_flight] =
            ["upstream", "name", "address", "in_flight"].map(|key| word(&backend[key]));
        writeln!(
            text,
            "{heading}  {upstream}/{name} at {address}: {in_flight} in flight"
        )
        .expect("a string takes all");
    }
    text
}

fn row(backend: &Value) -> [String; 12] {
    let connections = &backend["connections"];
    [
        word(&backend["name"]),
        word(&backend["state"]),
        word(&backend["settings"]["activation"]),
        word(&backend["settings"]["weight"]),
        word(&backend["sessions"]),
        word(&backend["in_flight"]),
        word(&backend["waiting"]),
        format!("{}/{}", connections["open"], connections["max"]),
        word(&backend["rates"]["requests_s"]),
        word(&backend["latency"]["p50_ms"]),
        word(&backend["latency"]["p99_ms"]),
        errors(backend),
    ]
}

/// How many attempts failed within the last minute, and why.
fn errors(backend: &Value) -> String {
    let reasons = backend["errors"].as_object().into_iter().flatten();
    let recent = reasons.filter_map(|(reason, counts)| {
        let count = counts["minute"].as_u64().filter(|&count| count > 0)?;
        Some(format!("{count} {reason}"))
    });
    let recent: Vec<String> = recent.collect();
    match recent.is_empty() {
        true => "0".to_owned(),
        false => recent.join(", "),
    }
}

/// A row, in columns as wide as all rows need.
fn line(row: &[String; 12], rows: &[[String; 12]]) -> String {
    let mut text = String::new();
    for (column, cell) in row.iter().enumerate() {
        let width = rows.iter().map(|row| row[column].chars().count()).max();
        write!(text, "  {cell:<0$}", width.unwrap_or(0)).expect("a string takes all");
    }
    text.trim_end().to_owned() + "\n"
}

/// What there is to say of a backend beside its row.
fn remarks(backend: &Value) -> String {
    let name = word(&backend["name"]);
    let mut text = String::new();
    if !backend["drain"].is_null() {
        let progress = drain_progress(backend);
        writeln!(text, "    {name} drains: {progress}").expect("a string takes all");
    }
    let said = &backend["override"];
    if said.is_object() {
        let (by, at) = (word(&said["by"]), word(&said["at"]));
        write!(text, "    {name} was changed by {by} at {at}").expect("a string takes all");
        for key in ["until", "reason"] {
            if let Some(value) = said[key].as_str() {
                // Escaped: it is somebody's text, and this is a terminal.
                write!(text, ", {key} {}", value.escape_debug()).expect("a string takes all");
            }
        }
        text.push('\n');
    }
    let failure = &backend["last_failure"];
    if failure.is_object() {
        let [at, token, stage, request, detail] =
            ["at", "token", "stage", "request", "detail"].map(|key| word(&failure[key]));
        writeln!(
            text,
            "    {name} failed last at {at}: {token} ({stage}), request {request}: {detail}"
        )
        .expect("a string takes all");
    }
    text
}

/// A value as a word, escaped for a terminal; `-` for none.
pub(super) fn word(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.escape_debug().to_string(),
        other => other.to_string(),
    }
}

/// How often `--watch` prints.
const PERIOD: Duration = Duration::from_secs(1);

const HEADINGS: [&str; 12] = [
    "BACKEND",
    "STATE",
    "ACTIVATION",
    "WEIGHT",
    "SESSIONS",
    "IN FLIGHT",
    "WAITING",
    "CONNECTIONS",
    "REQ/S",
    "P50 MS",
    "P99 MS",
    "ERRORS/MIN",
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_shows_who_serves_and_what_was_said() {
        let backend = json!({
            "name": "blue", "state": "up", "sessions": 7, "in_flight": 2, "waiting": 0,
            "settings": {"activation": "drain", "weight": 1},
            "connections": {"open": 3, "max": 200},
            "rates": {"requests_s": 12.5}, "latency": {"p50_ms": 1.25, "p99_ms": 40.0},
            "errors": {
                "backend:reset": {"total": 9, "minute": 2}, "client:gone": {"total": 1, "minute": 0},
            },
            "last_failure": {
                "at": "T", "token": "reset", "stage": "sent", "request": "00ff",
                "detail": "connection reset\u{1b}",
            },
            "drain": {
                "sessions_now": 7, "sessions_at_start": 9, "earliest": "T", "deadline": "D",
            },
            "override": {"by": "uid 0", "at": "T", "reason": "\u{1b}[2J"},
        });
        let status = json!({
            "ready": true, "draining": false, "requests": 5, "connections": {"open": 1},
            "retired": [{
                "upstream": "shop", "name": "green", "address": "10.0.0.9:8009", "in_flight": 3,
            }],
            "upstreams": [{
                "name": "shop", "policy": "round-robin", "sticky": true, "backends": [backend],
            }],
        });
        let upstreams = selected(&status, Some("shop/blue")).unwrap();
        let expected = "\
ready; 5 requests, 1 clients connected

upstream shop (round-robin, sticky)
  BACKEND  STATE  ACTIVATION  WEIGHT  SESSIONS  IN FLIGHT  WAITING  CONNECTIONS  REQ/S  P50 MS  P99 MS  ERRORS/MIN
  blue     up     drain       1       7         2          0        3/200        12.5   1.25    40.0    2 backend:reset
    blue drains: 7 of 9 sessions, 2 requests in flight; not before T, at D in any case
    blue was changed by uid 0 at T, reason \\u{1b}[2J
    blue failed last at T: reset (sent), request 00ff: connection reset\\u{1b}

removed by a reload, until their last request ends
  shop/green at 10.0.0.9:8009: 3 in flight
";
        assert_eq!(table(&status, &upstreams), expected);
        assert!(selected(&status, Some("shop/red")).is_err());
        assert!(selected(&status, Some("red")).is_err());
    }
}
