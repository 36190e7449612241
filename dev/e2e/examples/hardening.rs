//! Writes `docs/hardening.md`: what nginx and Apache do with the rows of the hardening tables.
//!
//! The rows are those of the tests (`tests/it/hardening`). Each is sent in one piece over TCP to each server before
//! the same recording backend. nginx and Apache must be installed and the binary built, both of which `cargo xtask
//! test` does. The section "Under fire" is written by the program `under_fire`. Run it as `cargo run -p catamaran-e2e
//! --example hardening > docs/hardening.md`.

#![expect(
    dead_code,
    reason = "the modules of the tests, of which this needs the rows and the backend"
)]
#![expect(clippy::print_stdout, reason = "its output is the page")]

#[path = "../tests/it/hardening/ajp_response_rows.rs"]
mod ajp_response_rows;
#[path = "../tests/it/hardening/backend.rs"]
mod backend;
#[path = "../tests/it/hardening/http_response_rows.rs"]
mod http_response_rows;
#[path = "../tests/it/hardening/request_rows.rs"]
mod request_rows;
#[path = "../tests/it/hardening/response_row.rs"]
mod response_row;
#[path = "../tests/it/hardening/row.rs"]
mod row;
#[path = "../tests/it/hardening/wire.rs"]
mod wire;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use backend::{Backend, Front as Whose, Id, Protocol};
use catamaran_e2e::{Front, Httpd, Nginx};
use catamaran_testkit::{Deadline, Failure, HttpClient, Response};
use response_row::{Outcome, Request, ResponseCase, ResponseRow, seen};
use row::{Case, Required, title};

/// A server with a recording backend behind it.
struct Subject {
    /// Its name, then its version.
    title: String,
    address: SocketAddr,
    backend: Backend,
    /// Keeps the server running.
    _server: Box<dyn std::any::Any + Send + Sync>,
}

impl Subject {
    fn name(&self) -> &str {
        self.title.split(' ').next().unwrap_or(&self.title)
    }
}

/// What a server does with a case; `None` if it does what is required.
type Cell = Option<String>;

/// Starts a new server.
type Start<'a> = &'a (dyn Fn() -> anyhow::Result<Subject> + Sync);

fn main() -> anyhow::Result<()> {
    let (nginx, httpd) = (version("nginx", "-v")?, version("apache2", "-v")?);
    let start_nginx = || other(&nginx, Protocol::Http, Nginx::to, Nginx::address);
    let start_httpd = |protocol, name: &str, start: fn(SocketAddr) -> anyhow::Result<Httpd>| {
        let title = format!("{name} of {httpd}");
        other(&title, protocol, start, Httpd::address)
    };
    let start_proxy_http =
        || start_httpd(Protocol::Http, "mod_proxy_http", Httpd::with_mod_proxy_http);
    let start_proxy_ajp = || start_httpd(Protocol::Ajp, "mod_proxy_ajp", Httpd::with_mod_proxy_ajp);
    let start_jk = || start_httpd(Protocol::Ajp, "mod_jk", Httpd::with_mod_jk);
    let (start_http, start_ajp) = (|| ours(Protocol::Http), || ours(Protocol::Ajp));
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## 1. Requests\n\n");
    let servers: &[Start<'_>] = &[
        &start_http,
        &start_nginx,
        &start_proxy_http,
        &start_proxy_ajp,
    ];
    request_table(&mut page, servers)?;
    page.push_str("\n## 2a. Responses of HTTP/1.1 backends\n\n");
    let servers_of_http: &[Start<'_>] = &[&start_http, &start_nginx, &start_proxy_http];
    response_table(&mut page, http_response_rows::ROWS, servers_of_http)?;
    page.push_str("\n## 2b. Responses of AJP13 backends\n\n");
    let servers_of_ajp: &[Start<'_>] = &[&start_ajp, &start_proxy_ajp, &start_jk];
    response_table(&mut page, ajp_response_rows::ROWS, servers_of_ajp)?;
    page.push('\n');
    page.push_str(include_str!("../../nights/src/bin/under_fire/section.md"));
    print!("{page}");
    Ok(())
}

fn ours(protocol: Protocol) -> anyhow::Result<Subject> {
    let backend = Backend::start(protocol)?;
    let front = Front::with_config(&format!(
        "[server]\nworkers = 1\n[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[route]]\npath = \"/forbidden\"\nstatus = 404\n[[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nurl = \"{}\"\n",
        backend.url()
    ))?;
    Ok(Subject {
        title: OURS.to_owned(),
        address: front.address(),
        backend,
        _server: Box::new(front),
    })
}

fn other<S: Send + Sync + 'static>(
    title: &str,
    protocol: Protocol,
    start: impl Fn(SocketAddr) -> anyhow::Result<S>,
    address: impl Fn(&S) -> SocketAddr,
) -> anyhow::Result<Subject> {
    let backend = Backend::start_for(protocol, Whose::Another)?;
    let server = start(backend.address)?;
    Ok(Subject {
        title: title.to_owned(),
        address: address(&server),
        backend,
        _server: Box::new(server),
    })
}

/// `nginx 1.22.1`, from `nginx version: nginx/1.22.1` and the like.
fn version(program: &str, flag: &str) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg(flag)
        .output()
        .with_context(|| format!("{program} is missing: run `cargo xtask test`"))?;
    let bytes = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&bytes);
    let word = text.split_whitespace().find(|word| word.contains('/'));
    Ok(word.unwrap_or(program).replace('/', " "))
}

/// Makes the table of requests. All cases are sent to the same servers.
fn request_table(page: &mut String, starts: &[Start<'_>]) -> anyhow::Result<()> {
    let subjects = start_all(starts)?;
    header(page, "Client sends", &subjects);
    let mut cases: Vec<(&str, Case)> = Vec::new();
    for row in request_rows::ROWS {
        cases.extend((row.cases)().into_iter().map(|case| (row.name, case)));
    }
    let cells = in_parallel(&cases, |(_, case)| {
        let cells = subjects.iter().map(|subject| request_cell(subject, case));
        Ok(cells.collect())
    })?;
    let mut lines = Vec::new();
    for ((name, case), cells) in cases.iter().zip(cells) {
        lines.push(Line {
            name: title(name),
            bytes: code(&case.bytes.escape_ascii().to_string()),
            required: required(&case.required),
            differing: differing(&subjects, &cells, &case.bytes)?,
        });
    }
    write_lines(page, lines);
    Ok(())
}

fn start_all(starts: &[Start<'_>]) -> anyhow::Result<Vec<Subject>> {
    starts.iter().map(|start| start()).collect()
}

/// Makes the table of responses. Every case gets a new server, because an earlier case may have changed the state of
/// the old one.
fn response_table(
    page: &mut String,
    rows: &[ResponseRow],
    starts: &[Start<'_>],
) -> anyhow::Result<()> {
    let subjects = start_all(starts)?;
    header(page, "Backend sends", &subjects);
    let mut cases: Vec<(&str, ResponseCase)> = Vec::new();
    for row in rows {
        cases.extend((row.cases)().into_iter().map(|case| (row.name, case)));
    }
    let cells = in_parallel(&cases, |(_, case)| {
        let cells = starts
            .iter()
            .map(|start| Ok(response_cell(&start()?, case)));
        cells.collect()
    })?;
    let mut lines = Vec::new();
    for ((name, case), cells) in cases.iter().zip(cells) {
        let request = match case.request {
            Request::Get => String::new(),
            request => format!(" ({request:?})"),
        };
        lines.push(Line {
            name: title(name) + &request,
            bytes: code(&case.bytes.escape_ascii().to_string()),
            required: outcome(&case.required),
            differing: differing(&subjects, &cells, &case.bytes)?,
        });
    }
    write_lines(page, lines);
    Ok(())
}

/// The cells of each case, in order. Most of the time is spent waiting for nothing to happen, so cases run in
/// parallel.
fn in_parallel<T: Sync>(
    cases: &[T],
    cells: impl Fn(&T) -> anyhow::Result<Vec<Cell>> + Sync,
) -> anyhow::Result<Vec<Vec<Cell>>> {
    // The results have the index of their case, since cases end in another order than they begin.
    let (next, results) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..PARALLEL {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(case) = cases.get(index)
                {
                    let result = cells(case);
                    let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                    results.insert(index, result);
                }
            });
        }
    });
    let by_index = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    by_index.into_values().collect()
}

fn header(page: &mut String, sends: &str, subjects: &[Subject]) {
    let others = subjects.iter().skip(1);
    let titles: Vec<&str> = others.map(|subject| subject.title.as_str()).collect();
    let _ = writeln!(
        page,
        "Compared with {}.\n\n| Row | {sends} | Required | What differs |\n|---|---|---|---|",
        titles.join(", ")
    );
}

/// What the other servers do; those that do the same are named together. The first subject is the front, which does
/// what is required.
fn differing(subjects: &[Subject], cells: &[Cell], bytes: &[u8]) -> anyhow::Result<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for (subject, cell) in subjects.iter().zip(cells) {
        let Some(text) = cell else { continue };
        ensure!(
            subject.title != OURS,
            "{} is answered by the front with {text}",
            bytes.escape_ascii()
        );
        match groups.iter_mut().find(|(group, _)| group == text) {
            Some((_, names)) => names.push(subject.name()),
            None => groups.push((text, vec![subject.name()])),
        }
    }
    let groups = groups.iter();
    let texts = groups.map(|(text, names)| format!("{}: {text}", names.join(", ")));
    Ok(texts.collect::<Vec<_>>().join("; "))
}

/// A case in a table.
struct Line {
    name: String,
    bytes: String,
    required: String,
    /// What the other servers do.
    differing: String,
}

/// Writes the rows of a table. Cases of one name with the same results share a row.
fn write_lines(page: &mut String, lines: Vec<Line>) {
    let mut rows: Vec<Line> = Vec::new();
    for line in lines {
        let alike = rows.iter_mut().find(|row| {
            row.name == line.name
                && row.required == line.required
                && row.differing == line.differing
        });
        match alike {
            Some(row) => {
                row.bytes.push_str("<br>");
                row.bytes.push_str(&line.bytes);
            }
            None => rows.push(line),
        }
    }
    let mut last = String::new();
    for row in rows {
        let name = if row.name == last { "" } else { &row.name };
        let _ = writeln!(
            page,
            "| {name} | {} | {} | {} |",
            row.bytes, row.required, row.differing
        );
        last = row.name;
    }
}

/// A code span for a table, shortened, of a text in which each character is a byte.
fn code(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.chars() {
        match byte {
            ' '..='~' => escaped.push(byte),
            _ => escaped += &format!("\\x{:02x}", u32::from(byte)),
        }
    }
    let short = without_repetition(&escaped);
    let mut shown: String = short.chars().take(SHOWN_BYTES_MAX).collect();
    if short.chars().nth(SHOWN_BYTES_MAX).is_some() {
        shown.push('…');
    }
    // A bar would end the table's cell.
    let cell = shown.replace('|', "\\|");
    if cell.contains('`') {
        format!("`` {cell} ``")
    } else {
        format!("`{cell}`")
    }
}

/// A text in which a repeated piece is written once, with its number of repetitions: `X: 1\r\n…(×101)`.
fn without_repetition(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    let mut shown = String::new();
    let mut rest = letters.as_slice();
    while let [first, after @ ..] = rest {
        let lengths = 1..=REPEATED_MAX.min(rest.len());
        let repetitions = lengths.map(|length| (length, repetitions(rest, length)));
        let mut often = repetitions.filter(|(_, times)| *times >= REPEATED_MIN);
        if let Some((length, times)) = often.next() {
            shown.extend(&rest[..length]);
            let _ = write!(shown, "…(×{times})");
            rest = &rest[length * times..];
        } else {
            shown.push(*first);
            rest = after;
        }
    }
    shown
}

/// How often the piece of this length with which the letters begin is there in a row.
fn repetitions(letters: &[char], length: usize) -> usize {
    let piece = &letters[..length];
    letters
        .chunks(length)
        .take_while(|chunk| *chunk == piece)
        .count()
}

fn required(required: &Required) -> String {
    match required {
        Required::Refused { status: 404, .. } => "404".to_owned(),
        Required::Refused { status, .. } => format!("{status}, close"),
        Required::CutOff { status, .. } => format!("{status}, close, abort"),
        Required::Served { requests, closes } => {
            let texts = requests
                .iter()
                .map(|text| code(without_empty_body(&request_rows::spelled_out(text))));
            let texts: Vec<String> = texts.collect();
            let then = if *closes { ", close" } else { "" };
            format!("200{then}: {}", texts.join(", "))
        }
    }
}

fn outcome(required: &Outcome) -> String {
    match required {
        Outcome::BadGateway(_) => "502".to_owned(),
        Outcome::Truncated(status, _) => format!("{status}, cut"),
        Outcome::Relayed { text, reused } => {
            let then = if *reused { "" } else { ", not kept" };
            format!("{}{then}", code(&http_response_rows::spelled_out(text)))
        }
    }
}

/// Sends a request, and compares the answer, and what reached the backend, with what is required.
fn request_cell(subject: &Subject, case: &Case) -> Cell {
    let is_about_routes = matches!(
        case.required,
        Required::Refused {
            reason: "route-status" | "path-ambiguous",
            ..
        }
    );
    // Routes are the front's own.
    if is_about_routes && subject.title != OURS {
        return Some("not compared".to_owned());
    }
    let id = Id::new();
    let Ok(mut client) = HttpClient::connect(subject.address) else {
        return Some("refuses the connection".to_owned());
    };
    client.set_deadline(Deadline::after(SILENCE));
    // A server that refuses may close the connection while the client still sends.
    let _ = client.send(&row::named(&case.bytes, id.as_str()));
    let answer = client.receive();
    let (status, closes) = match &answer {
        Ok(answer) => (answer.status.to_string(), is_closed(&mut client)),
        Err(failure) => (failed(failure), true),
    };
    let backend = &subject.backend;
    // The response may arrive before the backend has received all.
    let has_arrived = || (!backend.seen(&id).is_empty()).then_some(());
    let _ = Deadline::after(CLOSING).poll("a request", has_arrived);
    let is_reached = !backend.connections_of(&id).is_empty();
    let mut requests = backend.seen(&id);
    for text in &mut requests {
        *text = text.replace(id.as_str(), "$");
        *text = text.replace(&backend.address.to_string(), "BACKEND");
    }
    let result = RequestResult {
        has_response: answer.is_ok(),
        status,
        closes,
        is_reached,
        requests,
    };
    if result.is_as_required(&case.required) {
        None
    } else {
        Some(result.cell(case))
    }
}

/// What a server did with a request.
struct RequestResult {
    has_response: bool,
    /// The status, or in words what came in the place of a response.
    status: String,
    closes: bool,
    /// Whether the backend has received anything of it.
    is_reached: bool,
    /// The complete requests that the backend has received.
    requests: Vec<String>,
}

impl RequestResult {
    fn is_as_required(&self, required: &Required) -> bool {
        match required {
            Required::Refused { status, .. } => {
                let may_stay_open = *status == 404;
                self.status == status.to_string()
                    && (self.closes || may_stay_open)
                    && !self.is_reached
            }
            Required::CutOff { status, .. } => {
                self.status == status.to_string() && self.closes && self.requests.is_empty()
            }
            Required::Served { requests, closes } => {
                let expected = requests
                    .iter()
                    .map(|text| essence(&request_rows::spelled_out(text)));
                let is_same = expected.eq(self.requests.iter().map(|text| essence(text)));
                self.status == "200" && is_same && self.closes == *closes
            }
        }
    }

    fn cell(&self, case: &Case) -> String {
        let is_to_stay = matches!(case.required, Required::Served { closes: false, .. });
        let mut cell = self.status.clone();
        if self.has_response && is_to_stay && self.closes {
            cell.push_str(", close");
        }
        if self.has_response && !is_to_stay && !self.closes && cell != "200" {
            cell.push_str(", stays open");
        }
        if !self.requests.is_empty() {
            let texts = self.requests.iter();
            let texts = texts.map(|text| code(&relayed(text, &case.bytes)));
            let _ = write!(cell, ", relays {}", texts.collect::<Vec<_>>().join(", "));
        } else if self.is_reached {
            cell.push_str(", relays a part");
        }
        cell
    }
}

/// Lets the backend send a response, and compares what the client receives with what is required.
fn response_cell(subject: &Subject, case: &ResponseCase) -> Cell {
    let id = Id::new();
    let backend = &subject.backend;
    backend.answer(&id, case.answer(vec![usize::MAX]));
    let Ok(mut client) = HttpClient::connect(subject.address) else {
        return Some("refuses the connection".to_owned());
    };
    client.set_deadline(Deadline::after(SILENCE));
    let _ = client.send(&case.request.bytes(&id));
    let answer = match case.request {
        Request::Head => client.receive_head(),
        _ => client.receive(),
    };
    let is_kept = match backend.connections_of(&id).last() {
        Some(connection) => !ended_soon(backend, *connection),
        None => false,
    };
    let is_next_right = next(subject);
    let (mut cell, is_right) = match (&answer, &case.required) {
        (Ok(answer), Outcome::BadGateway(_)) => {
            (answer.status.to_string(), answer.status == 502 && !is_kept)
        }
        (Ok(answer), Outcome::Truncated(..)) => (code(&shown(answer, "", &id)), false),
        (Ok(answer), Outcome::Relayed { text, reused }) => {
            let relayed = shown(answer, text, &id);
            let is_same = relayed == http_response_rows::spelled_out(text);
            (code(&relayed), is_same && (*reused || !is_kept))
        }
        (
            Err(Failure::Truncated {
                status: Some(status),
                ..
            }),
            Outcome::Truncated(required, _),
        ) => (format!("{status}, cut"), status == required && !is_kept),
        (Err(failure), _) => (failed(failure), false),
    };
    if is_right && is_next_right {
        return None;
    }
    if is_kept && !matches!(case.required, Outcome::Relayed { reused: true, .. }) {
        cell.push_str(", kept");
    }
    if !is_next_right {
        cell.push_str(", **next wrong**");
    }
    Some(cell)
}

/// A response on one line, without `Server`. The response to a second attempt is marked as such.
fn shown(answer: &Response, required: &str, id: &Id) -> String {
    if answer.text() == id.as_str() {
        return format!("{} at a second attempt", answer.status);
    }
    let mut answer = answer.clone();
    answer
        .headers
        .retain(|(name, _)| !name.eq_ignore_ascii_case("server"));
    if answer.text().starts_with("<") {
        answer.headers.clear();
        answer.body = b"(a page of its own)".to_vec();
    }
    seen(&answer, required)
}

/// Whether each of the next clients gets the response to its own request. There are several, because chance decides
/// which process of a server, and so which connection to the backend, a client gets.
fn next(subject: &Subject) -> bool {
    (0..NEXT_CLIENTS).all(|_| {
        let id = Id::new();
        let Ok(mut client) = HttpClient::connect(subject.address) else {
            return false;
        };
        client.set_deadline(Deadline::after(SILENCE));
        let _ = client.send(&Request::Get.bytes(&id));
        client
            .receive()
            .is_ok_and(|answer| answer.text() == id.as_str())
    })
}

fn ended_soon(backend: &Backend, place: usize) -> bool {
    let deadline = Deadline::after(CLOSING);
    let ended = || backend.connection(place).ended.then_some(());
    deadline.poll("a close", ended).is_ok()
}

fn is_closed(client: &mut HttpClient) -> bool {
    client.set_deadline(Deadline::after(CLOSING));
    !matches!(client.receive_to_end(), Err(Failure::TimedOut { .. }))
}

fn failed(failure: &Failure) -> String {
    match failure {
        Failure::Closed | Failure::Reset { .. } => "closes without a word".to_owned(),
        Failure::Truncated {
            status: Some(status),
            ..
        } => format!("{status}, cut"),
        Failure::Truncated { .. } => "an answer without a head".to_owned(),
        Failure::Malformed(_) => "no HTTP/1.1 response".to_owned(),
        Failure::TimedOut { received } if received.is_empty() => "silence".to_owned(),
        Failure::TimedOut { .. } => "silence within a response".to_owned(),
        Failure::Io(error) => error.to_string(),
    }
}

/// A request that reached the backend, without an empty body, and without a `Host` that is the server's own or the
/// client's.
fn relayed(text: &str, sent: &[u8]) -> String {
    let mut text = text
        .replace(" | host: app", "")
        .replace(" | host: BACKEND", "");
    let names_a = sent.escape_ascii().to_string().contains("Host: a\\r\\n");
    if names_a {
        text = text.replace(" | host: a |", " |");
    }
    without_empty_body(&text).to_owned()
}

/// A request without the framing of an empty body.
fn without_empty_body(text: &str) -> &str {
    let text = text.strip_suffix(" | 0:").unwrap_or(text);
    text.strip_suffix(" | ?:").unwrap_or(text)
}

/// A request without its `Host`, and without the fields that frame its body.
fn essence(text: &str) -> String {
    let (head, framed_body) = text.rsplit_once(" | ").unwrap_or((text, ""));
    let body = framed_body
        .split_once(':')
        .map_or(framed_body, |(_, body)| body);
    let mut parts: Vec<&str> = head.split(" | ").collect();
    parts.retain(|part| !part.starts_with("host: "));
    parts.push(body);
    parts.join(" | ")
}

/// How long a server may send nothing before the result is silence.
const SILENCE: Duration = Duration::from_secs(3);

/// How long a server may take to close the connection after a response.
const CLOSING: Duration = Duration::from_millis(500);

const OURS: &str = "Catamaran";

/// How many clients come after each response.
const NEXT_CLIENTS: usize = 8;

/// How many cases run at a time.
const PARALLEL: usize = 8;

/// The longest piece of text that is searched for repetitions, and the number of repetitions from which it is
/// shortened.
const REPEATED_MAX: usize = 16;
const REPEATED_MIN: usize = 8;

/// The highest number of bytes that are shown.
const SHOWN_BYTES_MAX: usize = 160;

const INTRODUCTION: &str = "# Hostile bytes: what a front does with them

Use this page to see which malformed or ambiguous messages Catamaran refuses before they reach your
application server, and which it forwards, in which form. Attackers use such bytes for request smuggling,
for cache poisoning and to mix up the responses of clients. If you run nginx or Apache today, the column
\"What differs\" shows what changes for you.

- [Requests](#1-requests) of clients
- [Responses over HTTP/1.1](#2a-responses-of-http11-backends) and [over AJP13](#2b-responses-of-ajp13-backends) of backends
- [Under fire](#3-under-fire): what a few clients can take from the others, beside nginx and HAProxy

Every row of sections 1 and 2 is an end-to-end test (`dev/e2e/tests/it/hardening`), and Catamaran does what
the column \"Required\" says in all of them: over TCP and Unix sockets, and wherever the bytes are split. For the
comparison each row was sent whole over TCP to Debian's nginx and Apache with their default settings for parsing,
in front of the same recording backend.

This page is generated; do not edit it. These commands write it anew:

```
cargo xtask test                                                     # installs the servers, builds
cargo run -p catamaran-e2e --example hardening > docs/hardening.md
```

How to read the tables:

- The number in a row's name is that of the catalogue. A row may cover several numbers, and several messages that
  are answered alike. `…(×100)` stands for as many of the piece before it, and `$` for a name by which the backend
  recognises the request.
- A server that is not named under \"What differs\" does what is required. A request that is served must look
  the same at the backend, except for `Host` and for the framing of its body. \"Not compared\" marks rows about
  routes, which only Catamaran had. A difference is not always a fault: a row may be stricter than its RFC, or
  choose between two good ways.
- A request is written as `METHOD TARGET | field: value | LENGTH:BODY`, as the backend saw it, without the
  fields that fronts add (`Via`, `X-Forwarded-*`, `Connection`) and without an empty body. What a server relays is
  shown without `Host` if that is its own or the client's. `?` stands for a length that only the body's own framing
  tells. A field that begins with `!` should not be there at all.
- A response is written as `STATUS | field: value | body`, without `Server`. \"cut\" means that the client can see
  that something is missing.
- \"kept\" means that the connection to the backend is still open half a second later although it should be
  closed. \"next wrong\" means that one of the next eight clients gets something else than the answer to its
  request. Where it is missing, a later client may still have got the wrong answer.
- \"Bytes after the end\" holds for bytes that had arrived when the end of the response was read. The front
  finds later bytes at once by its event loop, or when it takes the connection from the pool. Bytes that
  arrive between that check and the next request are read as the beginning of its response, as by every
  client of these protocols.
";
