//! `status`: prints the backends of a running front as a table or as JSON.

mod limits;

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _, Write as _};
use std::time::Duration;

use catamaran_admin_api::{
    Backend, BackendMember, FoundMembers, FrontStatus, LimitList, Override, ReachedLimit,
    UpstreamStatus,
};
use rustix::termios::tcgetwinsize;

use super::client::{At, Client, pretty, understood};
use super::operate::{Target, drain_progress};
use crate::failure::Failure;

/// Show the backends of a front that runs; exit 1 if it accepts no new clients
///
/// Of each backend: its state, its weight, the sessions seen lately, the requests in flight (`+` those that
/// wait for a connection), the connections open of those it may have, requests in a second, what 99 of 100
/// responses of the last minute did not exceed, and of the last minute its responses 5xx and the requests
/// that failed on it. --json has everything.
///
/// The exit code is that of /readyz: 1 when it is 503. For one upstream it is 1 if that accepts no new
/// clients, for one backend 0.
#[derive(clap::Args)]
pub(crate) struct StatusArgs {
    /// One upstream, or one backend as UPSTREAM/BACKEND [default: all]
    #[arg(value_name = "UPSTREAM[/BACKEND]")]
    target: Option<String>,

    /// Show the limits of requests instead, and the ten keys that they refused most often
    #[arg(long, conflicts_with = "target")]
    limits: bool,

    /// Print what the admin listener answers
    #[arg(long)]
    json: bool,

    /// Print anew every second until interrupted
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    at: At,
}

pub(crate) fn run(args: &StatusArgs) -> Result<(), Failure> {
    let client = args.at.client()?;
    if args.limits {
        return show_limits(args, &client);
    }
    loop {
        let answer = client.expect("GET", "/api/v1/status", None)?;
        let status: FrontStatus = understood(answer.clone())?;
        let upstreams = selected(&status, args.target.as_deref())?;
        let text = if !args.json {
            table(&status, &upstreams, Drawing::of_stdout())
        } else if args.target.is_some() {
            pretty(&upstreams)?
        } else {
            // All of the answer, also what this version does not know.
            format!("{answer:#}\n")
        };
        let mut stdout = io::stdout();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        if !args.watch {
            return if is_ready(&status, args.target.as_deref(), &upstreams) {
                Ok(())
            } else {
                Err(Failure::Said(String::new()))
            };
        }
        std::thread::park_timeout(PERIOD);
        writeln!(stdout)?;
    }
}

/// Prints the limits, with `--watch` every second.
fn show_limits(args: &StatusArgs, client: &Client) -> Result<(), Failure> {
    loop {
        let list: LimitList = client.object("GET", "/api/v1/limits", None)?;
        let text = if args.json {
            pretty(&list)?
        } else {
            limits::text(&list)
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

/// Whether the front, or the upstream that was asked about, accepts new clients. It is always true if a
/// backend was asked about.
fn is_ready(status: &FrontStatus, target: Option<&str>, upstreams: &[UpstreamStatus]) -> bool {
    let is_leaving = status.draining || status.leaving;
    match target {
        None => status.ready,
        Some(target) if target.contains('/') => true,
        Some(_) => !is_leaving && upstreams.iter().all(takes_new),
    }
}

/// Asks the front for the current state of one backend.
pub(super) fn expect_whole(client: &Client, target: &Target) -> Result<BackendMember, Failure> {
    client.object("GET", &target.path(), None)
}

/// The upstreams that `target` selects, each with the backends that it selects.
fn selected(status: &FrontStatus, target: Option<&str>) -> Result<Vec<UpstreamStatus>, Failure> {
    let Some(target) = target else {
        return Ok(status.upstreams.clone());
    };
    let (upstream, backend) = match target.split_once('/') {
        Some((upstream, backend)) => (upstream, Some(backend)),
        None => (target, None),
    };
    let missing = || Failure::Fault(format!("there is no {target}"));
    let mut upstreams = status.upstreams.iter();
    let same_name = upstreams.find(|candidate| candidate.name == upstream);
    let mut selected = same_name.ok_or_else(missing)?.clone();
    if let Some(backend) = backend {
        let members = &mut selected.backends;
        members.retain(|member| member.backend.name == backend);
        if members.is_empty() {
            return Err(missing());
        }
    }
    Ok(vec![selected])
}

/// How a table is drawn: its width, and whether it has colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drawing {
    /// The width of the terminal in characters; `None` if the output is not a terminal, where nothing is
    /// shortened.
    width: Option<usize>,
    colour: bool,
}

impl Drawing {
    /// How to draw on the current standard output.
    fn of_stdout() -> Self {
        let stdout = io::stdout();
        let is_terminal = stdout.is_terminal();
        let columns = || Some(usize::from(tcgetwinsize(&stdout).ok()?.ws_col));
        Self {
            width: is_terminal
                .then(columns)
                .flatten()
                .filter(|columns| *columns > 0),
            colour: is_terminal && std::env::var_os("NO_COLOR").is_none(),
        }
    }
}

fn table(status: &FrontStatus, upstreams: &[UpstreamStatus], drawing: Drawing) -> String {
    let mut text = String::new();
    let (readiness, colour) = readiness(status);
    let ready = painted(readiness, colour, drawing);
    let requests = plural(status.requests, "request");
    let open = plural(status.connections.open as u64, "client");
    writeln!(text, "{ready}; {requests}, {open} connected").expect("a string");
    for limit in &status.limits {
        text.push_str(&wrapped(&turned_away(limit), drawing.width));
    }
    for trouble in &status.troubles {
        text.push_str(&wrapped(&format!("  {trouble}\n"), drawing.width));
    }
    for upstream in upstreams {
        // `upstream` may contain only the backends that were asked for; whether it takes clients depends on all.
        let mut all_upstreams = status.upstreams.iter();
        let complete = all_upstreams.find(|candidate| candidate.name == upstream.name);
        let is_closed = !takes_new(complete.unwrap_or(upstream));
        text.push_str(&of_upstream(upstream, is_closed, drawing));
    }
    text + &retired_backends(&status.retired)
}

/// Whether the front accepts clients, in words, and the colour of these words.
fn readiness(status: &FrontStatus) -> (&'static str, &'static str) {
    let turns_away = |whom: &str| status.limits.iter().any(|limit| limit.whom == whom);
    match [status.draining, status.leaving, status.ready] {
        [true, ..] => ("draining", BAD),
        [_, true, _] => ("about to drain", BAD),
        [.., false] => ("not ready", BAD),
        _ if turns_away("clients") => ("ready, but turns clients away", BAD),
        _ if turns_away("address") => ("ready, but turns clients of an address away", DOUBTFUL),
        _ => ("ready", GOOD),
    }
}

/// The backends that a reload removed and that still have requests, below a heading; empty if there are none.
fn retired_backends(retired: &[Backend]) -> String {
    let mut text = String::new();
    if !retired.is_empty() {
        text.push_str("\nremoved by a reload, until their last request ends\n");
    }
    for backend in retired {
        let [upstream, name, address] =
            [&backend.upstream, &backend.name, &backend.address].map(|text| word(text));
        let in_flight = backend.in_flight;
        writeln!(
            text,
            "  {upstream}/{name} at {address}: {in_flight} in flight"
        )
        .expect("a string takes all");
    }
    text
}

/// The text about a limit of the front at which clients were turned away.
fn turned_away(limit: &ReachedLimit) -> String {
    let clients = match limit.clients {
        1 => "1 client was".to_owned(),
        count => format!("{count} clients were"),
    };
    let (since, last, text) = (limit.since_s, limit.last_s, &limit.text);
    format!(
        "  {clients} turned away within the last {since} s, the last one {last} s ago: {text}\n"
    )
}

/// The table of an upstream with the backends that are shown. `is_closed` says that it accepts no new
/// clients.
fn of_upstream(upstream: &UpstreamStatus, is_closed: bool, drawing: Drawing) -> String {
    let mut text = String::new();
    let sticky = if upstream.sticky { ", sticky" } else { "" };
    let (name, policy) = (word(&upstream.name), word(&upstream.policy));
    writeln!(text, "\nupstream {name} ({policy}{sticky})").expect("a string");
    if let Some(members) = &upstream.members {
        writeln!(text, "  {}", member_source(members)).expect("a string");
    }
    if is_closed {
        let warning = painted("it accepts no new clients", BAD, drawing);
        writeln!(text, "  {warning}").expect("a string");
    }
    if upstream.panic {
        writeln!(text, "  {}", painted(PANIC, BAD, drawing)).expect("a string");
    }
    let backends = &upstream.backends;
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    rows.extend(backends.iter().map(row));
    fit(&mut rows, drawing.width);
    // The headings are the row of no backend.
    let members = std::iter::once(None).chain(backends.iter().map(Some));
    for (row, member) in rows.iter().zip(members) {
        text.push_str(&line(row, &rows, member, drawing));
    }
    for backend in backends {
        text.push_str(&wrapped(&remarks(backend), drawing.width));
    }
    text
}

/// Says from which source an upstream has its members, and whether the source answers.
fn member_source(members: &FoundMembers) -> String {
    let age = match members.age_s {
        Some(seconds) => format!("the last good answer came {seconds} s ago"),
        None => "there was no good answer yet".to_owned(),
    };
    let failed = match &members.failed {
        Some(reason) => format!("; {}", reason.lines().next().unwrap_or_default()),
        None => String::new(),
    };
    format!("members from {}: {age}{failed}", members.from)
}

/// Whether any backend of the upstream gets new clients.
fn takes_new(upstream: &UpstreamStatus) -> bool {
    let mut backends = upstream.backends.iter();
    backends.any(|it| it.backend.share != 0 && it.settings.activation == "active")
}

fn row(member: &BackendMember) -> [String; COLUMNS] {
    let backend = &member.backend;
    let connections = &backend.connections;
    let busy = match backend.waiting {
        0 => backend.in_flight.to_string(),
        waiting => format!("{}+{waiting}", backend.in_flight),
    };
    // With one decimal place, as in the JSON.
    let rate = backend
        .rates
        .as_ref()
        .map(|rates| format!("{:?}", rates.requests_s));
    let latency = backend
        .latency
        .as_ref()
        .map(|latency| millis(latency.p99_ms));
    let failures: u64 = failed(backend).iter().map(|(count, _)| count).sum();
    [
        word(&backend.name),
        state(member),
        member.settings.weight.to_string(),
        or_dash(member.sessions),
        busy,
        format!("{}/{}", connections.open, connections.max),
        or_dash(rate),
        or_dash(latency),
        backend.server_errors.minute.to_string(),
        failures.to_string(),
    ]
}

/// A number of milliseconds, with no more digits than are meaningful.
fn millis(millis: f64) -> String {
    if millis < 10.0 {
        format!("{millis:.1}")
    } else {
        format!("{millis:.0}")
    }
}

/// The state of a backend as shown in the table: its health, and what an operator has set.
fn state(member: &BackendMember) -> String {
    let health = match word(&member.backend.condition) {
        health if health == "up" && is_failing(member) => "up, 5xx".to_owned(),
        health => health,
    };
    match &member.settings.activation[..] {
        "" | "active" => health,
        other if health == "up" => other.to_owned(),
        other => format!("{other}, {health}"),
    }
}

/// The reasons for which attempts failed within the last minute, each with the number of these attempts.
fn failed(backend: &Backend) -> Vec<(u64, &String)> {
    let reasons = backend.errors.iter();
    let recent = reasons.filter(|(_, counts)| counts.minute > 0);
    recent
        .map(|(reason, counts)| (counts.minute, reason))
        .collect()
}

/// Shortens the columns of names and states if the table is wider than the terminal.
fn fit(rows: &mut [[String; COLUMNS]], width: Option<usize>) {
    let Some(width) = width else {
        return;
    };
    for column in [NAME, STATE] {
        let widths: Vec<usize> = (0..COLUMNS).map(|column| wide(rows, column)).collect();
        let all = INDENT + widths.iter().sum::<usize>() + COLUMNS - 1;
        let room = widths[column].saturating_sub(all.saturating_sub(width));
        for row in rows.iter_mut() {
            row[column] = shortened(&row[column], room.max(NAME_MIN));
        }
    }
}

fn wide(rows: &[[String; COLUMNS]], column: usize) -> usize {
    let widths = rows.iter().map(|row| row[column].chars().count());
    widths.max().unwrap_or(0)
}

/// Breaks a text between words into lines that fit into the width. Continued lines are indented further.
fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let mut wrapped = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let mut column = 0;
        for word in line.split_whitespace() {
            let length = word.chars().count();
            if column == 0 {
                wrapped.push_str(&line[..indent]);
                column = indent;
            } else if column + 1 + length > width {
                wrapped.push('\n');
                column = indent + INDENT;
                wrapped.push_str(&" ".repeat(column));
            } else {
                wrapped.push(' ');
                column += 1;
            }
            wrapped.push_str(word);
            column += length;
        }
        wrapped.push('\n');
    }
    wrapped
}

/// Shortens a text to at most `room` characters in the middle, since names usually differ at their ends.
fn shortened(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let before = room / 3;
    let after = room - before - 1;
    let start: String = text.chars().take(before).collect();
    let end: String = text.chars().skip(count - after).collect();
    format!("{start}\u{2026}{end}")
}

/// One row, in columns wide enough for all rows. The row of a backend is in the colour of its state.
fn line(
    row: &[String; COLUMNS],
    rows: &[[String; COLUMNS]],
    backend: Option<&BackendMember>,
    drawing: Drawing,
) -> String {
    let mut text = " ".repeat(INDENT - 1);
    for (column, cell) in row.iter().enumerate() {
        let width = wide(rows, column);
        let padded = match column {
            NAME | STATE => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        };
        text.push(' ');
        match backend {
            Some(backend) if column == STATE => {
                text.push_str(&painted(&padded, colour(backend), drawing));
            }
            _ => text.push_str(&padded),
        }
    }
    text.trim_end().to_owned() + "\n"
}

/// Whether most of the backend's responses are 5xx.
fn is_failing(member: &BackendMember) -> bool {
    member.backend.server_errors.mostly
}

/// Whether the backend is out: its checks or its requests failed.
pub(super) fn is_out(member: &BackendMember) -> bool {
    member.backend.state.starts_with("out")
}

fn colour(member: &BackendMember) -> &'static str {
    let is_active = matches!(&member.settings.activation[..], "" | "active");
    if is_out(member) || is_failing(member) {
        BAD
    } else if is_active && member.backend.state == "up" {
        GOOD
    } else {
        DOUBTFUL
    }
}

fn painted(text: &str, colour: &str, drawing: Drawing) -> String {
    if drawing.colour {
        format!("\u{1b}[{colour}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

fn plural(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// The remarks about a backend that are printed in addition to its row.
fn remarks(member: &BackendMember) -> String {
    let backend = &member.backend;
    let name = word(&backend.name);
    let mut text = String::new();
    if is_out(member) {
        writeln!(text, "    {name} is {}", word(&backend.state)).expect("a string takes all");
    }
    for remark in &backend.remarks {
        writeln!(text, "    {name}: {}", word(remark)).expect("a string takes all");
    }
    if member.drain.is_some() {
        let progress = drain_progress(member);
        writeln!(text, "    {name} drains: {progress}").expect("a string takes all");
    }
    if let Some(change) = &member.changed {
        writeln!(text, "    {name} was {}", change_at_run_time(change))
            .expect("a string takes all");
    }
    text + &failure_remarks(&name, backend)
}

/// The remarks about responses 5xx and failures of the backend `name`, one on each line.
fn failure_remarks(name: &str, backend: &Backend) -> String {
    let mut text = String::new();
    let errors = &backend.server_errors;
    if errors.minute > 0 {
        let (count, responses) = (errors.minute, errors.responses_minute);
        writeln!(
            text,
            "    {name} answered {count} of {responses} with 5xx within the last minute"
        )
        .expect("a string takes all");
    }
    let failures = failed(backend);
    if !failures.is_empty() {
        let counts = failures
            .iter()
            .map(|(count, token)| format!("{count} {token}"));
        let counts = counts.collect::<Vec<_>>().join(", ");
        writeln!(text, "    {name} failed within the last minute: {counts}")
            .expect("a string takes all");
    }
    if let Some(failure) = &backend.last_failure {
        let parts = [
            &failure.token,
            &failure.stage,
            &failure.request,
            &failure.detail,
        ];
        let [token, stage, request, detail] = parts.map(|text| word(text));
        let time = moment(&failure.at);
        writeln!(
            text,
            "    {name} failed last at {time}: {token} ({stage}), request {request}: {detail}"
        )
        .expect("a string takes all");
    }
    text
}

/// Says who changed a backend at run time, when, until when, and for which reason.
fn change_at_run_time(change: &Override) -> String {
    let mut text = format!("changed by {} at {}", word(&change.by), moment(&change.at));
    if let Some(until) = &change.until {
        write!(text, ", until {}", moment(until)).expect("a string takes all");
    }
    if let Some(reason) = &change.reason {
        // Escaped, because anybody may have written it and the terminal would obey control characters.
        write!(text, ", reason {}", reason.escape_debug()).expect("a string takes all");
    }
    text
}

/// A time from the API (`2030-01-31T04:00:00Z`), written so that it is clear at once that it is UTC.
pub(super) fn moment(text: &str) -> String {
    let text = word(text);
    match text.strip_suffix('Z').and_then(|time| time.split_once('T')) {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => text,
    }
}

/// A text that is escaped so that it is safe for a terminal.
pub(super) fn word(text: &str) -> String {
    // `escape_debug` also escapes apostrophes, which are harmless and frequent in sentences.
    text.escape_debug().to_string().replace("\\'", "'")
}

/// The value as text, or a dash for `None`.
fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The warning that is shown for an upstream with `panic`.
const PANIC: &str = "so many backends fail their checks that it uses them all the same";

/// The time between two outputs of `--watch`.
const PERIOD: Duration = Duration::from_secs(1);

/// The headings of the columns. They are narrow enough for a terminal of 80 columns with names of twenty
/// letters.
const HEADINGS: [&str; COLUMNS] = [
    "BACKEND", "STATE", "WT", "SESS", "BUSY", "CONNS", "REQ/S", "P99 MS", "5XX/M", "FAIL/M",
];
const COLUMNS: usize = 10;

/// The columns that contain text; all others contain numbers.
const NAME: usize = 0;
const STATE: usize = 1;

/// The number of spaces before a row.
const INDENT: usize = 2;

/// How many characters of a name are shown on the narrowest terminal.
const NAME_MIN: usize = 8;

/// The codes of green, red and yellow for terminals (ECMA-48, section 8.3.117).
const GOOD: &str = "32";
const BAD: &str = "31";
const DOUBTFUL: &str = "33";

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn front(status: Value) -> FrontStatus {
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn the_first_line_says_that_clients_are_turned_away_but_not_administrators() {
        for (whom, line) in [
            ("clients", "ready, but turns clients away; "),
            ("address", "ready, but turns clients of an address away; "),
            ("administrators", "ready; "),
        ] {
            let status = front(json!({"ready": true, "limits": [{"whom": whom, "text": "why"}]}));
            let drawing = Drawing {
                width: None,
                colour: false,
            };
            let table = table(&status, &[], drawing);
            assert!(table.starts_with(line), "{table}");
            assert!(table.contains("why"), "{table}");
        }
    }

    #[test]
    fn a_table_shows_who_serves_and_what_was_said() {
        let backend = json!({
            "name": "blue", "state": "up", "condition": "up", "remarks": ["it is odd"], "sessions": 7, "in_flight": 2, "waiting": 0,
            "settings": {"activation": "drain", "weight": 1},
            "connections": {"open": 3, "max": 200},
            "rates": {"requests_s": 12.5}, "latency": {"p50_ms": 1.25, "p99_ms": 39.936},
            "share": 100, "server_errors": {"total": 8, "minute": 3, "responses_minute": 5},
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
        let status = front(json!({
            "ready": true, "draining": false, "requests": 5, "connections": {"open": 1},
            "retired": [{
                "upstream": "shop", "name": "green", "address": "10.0.0.9:8009", "in_flight": 3,
            }],
            "upstreams": [{
                "name": "shop", "policy": "round-robin", "sticky": true, "backends": [backend],
            }],
        }));
        let upstreams = selected(&status, Some("shop/blue")).unwrap();
        let expected = "\
ready; 5 requests, 1 client connected

upstream shop (round-robin, sticky)
  it accepts no new clients
  BACKEND STATE WT SESS BUSY CONNS REQ/S P99 MS 5XX/M FAIL/M
  blue    drain  1    7    2 3/200  12.5     40     3      2
    blue: it is odd
    blue drains: 7 of 9 sessions left, 2 requests in flight; stops when they are over, at D in any case
    blue was changed by uid 0 at T, reason \\u{1b}[2J
    blue answered 3 of 5 with 5xx within the last minute
    blue failed within the last minute: 2 backend:reset
    blue failed last at T: reset (sent), request 00ff: connection reset\\u{1b}

removed by a reload, until their last request ends
  shop/green at 10.0.0.9:8009: 3 in flight
";
        assert_eq!(table(&status, &upstreams, PIPE), expected);
        assert!(selected(&status, Some("shop/red")).is_err());
        assert!(selected(&status, Some("red")).is_err());
    }

    #[test]
    fn of_one_backend_nothing_is_said_that_another_one_makes_untrue() {
        let backend = |name: &str, activation: &str| {
            json!({
                "name": name, "state": "up", "condition": "up", "share": 100,
                "settings": {"activation": activation, "weight": 1},
            })
        };
        let all = |green: &str| {
            json!({
                "upstreams": [{
                    "name": "shop", "backends": [backend("blue", "drain"), backend("green", green)],
                }],
            })
        };
        for (green, warned) in [("active", false), ("stopped", true)] {
            let status = front(all(green));
            for target in [None, Some("shop/blue"), Some("shop/green")] {
                let upstreams = selected(&status, target).unwrap();
                let text = table(&status, &upstreams, PIPE);
                assert_eq!(text.contains("it accepts no new clients"), warned, "{text}");
            }
        }
    }

    const PIPE: Drawing = Drawing {
        width: None,
        colour: false,
    };

    #[test]
    fn a_row_of_large_numbers_fits_eighty_columns() {
        let backend = json!({
            "name": "ajp://tomcat-17.customers.example.org:8009", "condition": "out",
            "state": "out for 17s: it cannot be connected to",
            "sessions": 12345, "in_flight": 200, "waiting": 450, "share": 0,
            "settings": {"activation": "active", "weight": 100},
            "connections": {"open": 200, "max": 200},
            "rates": {"requests_s": 12345.5}, "latency": {"p50_ms": 1.25, "p99_ms": 60000.125},
            "server_errors": {
                "total": 99999, "minute": 99999, "responses_minute": 99999, "mostly": true,
            },
            "errors": {}, "drain": null, "override": null,
            "last_failure": {
                "at": "2030-01-31T04:00:00Z", "token": "connect-failed", "stage": "not-sent",
                "request": "0123456789abcdef", "detail": "connection refused (os error 111)",
            },
        });
        let status = front(json!({
            "ready": false, "requests": 1, "connections": {"open": 2}, "retired": [],
            "upstreams": [{
                "name": "shop", "policy": "round-robin", "panic": true, "backends": [backend],
            }],
        }));
        let upstreams = selected(&status, None).unwrap();
        let drawn = |width| {
            table(
                &status,
                &upstreams,
                Drawing {
                    width,
                    colour: false,
                },
            )
        };
        let narrow = drawn(Some(80));
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 80),
            "{narrow}"
        );
        let end = "\n      connection refused (os error 111)\n";
        assert!(narrow.contains(end), "{narrow}");
        assert!(narrow.contains("\n  it accepts no new clients\n  so many backends fail"));
        assert!(
            narrow.starts_with("not ready; 1 request, 2 clients connected\n"),
            "{narrow}"
        );
        assert!(
            narrow.contains("ajp://\u{2026}") && narrow.contains(":8009 out "),
            "{narrow}"
        );
        let whole = drawn(None);
        assert!(
            whole.contains("ajp://tomcat-17.customers.example.org:8009 out"),
            "{whole}"
        );
        assert!(!whole.contains('\u{1b}'), "no colour in a pipe");
        assert!(
            whole.contains("request 0123456789abcdef: connection refused"),
            "one line"
        );
        let painted = table(
            &status,
            &upstreams,
            Drawing {
                width: Some(200),
                colour: true,
            },
        );
        assert!(painted.contains("\u{1b}[31mout  \u{1b}[0m"), "{painted}");
    }

    #[test]
    fn a_backend_that_is_up_and_answers_mostly_5xx_is_not_shown_as_well() {
        let backend = |condition: &str, activation: &str, mostly: bool| -> BackendMember {
            let backend = json!({
                "condition": condition, "state": condition, "settings": {"activation": activation},
                "server_errors": {"mostly": mostly},
            });
            serde_json::from_value(backend).unwrap()
        };
        for (condition, activation, mostly, shown, colours) in [
            ("up", "active", false, "up", GOOD),
            ("up", "active", true, "up, 5xx", BAD),
            ("up", "drain", false, "drain", DOUBTFUL),
            ("up", "drain", true, "drain, up, 5xx", BAD),
            ("suspect", "active", true, "suspect", BAD),
        ] {
            let backend = backend(condition, activation, mostly);
            assert_eq!(
                (state(&backend).as_str(), colour(&backend)),
                (shown, colours)
            );
        }
    }

    #[test]
    fn a_word_is_escaped_but_for_its_apostrophes() {
        assert_eq!(word("the client's\u{1b}\\"), "the client's\\u{1b}\\\\");
    }

    #[test]
    fn a_moment_says_that_it_is_utc() {
        assert_eq!(moment("2030-01-31T04:00:00Z"), "2030-01-31 04:00:00 UTC");
        assert_eq!(moment("T"), "T");
    }
}
