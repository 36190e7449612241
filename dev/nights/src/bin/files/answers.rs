//! Makes the page about what each server answers to the requests for files that the tests send.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use catamaran_testkit::files::{FileCase, FileTree, OUTSIDE};
use catamaran_testkit::{Deadline, Failure, Response};

use crate::reasons;
use crate::server::{Kind, Server};

/// Prints the page.
///
/// # Errors
/// A server does not start, our front does not answer as the tests expect, or a difference has no reason in
/// `reasons`.
pub(crate) fn page() -> anyhow::Result<()> {
    let tree = FileTree::new();
    let root = tree.root();
    // httpd does not run as root, so it needs the right to enter the directory.
    let above = root.parent().context("a directory above")?;
    fs::set_permissions(above, fs::Permissions::from_mode(0o755))?;
    let mut servers = Vec::new();
    let mut titles = Vec::new();
    for kind in [Kind::Front, Kind::Nginx(false), Kind::Httpd] {
        servers.push(kind.start(&root)?);
        titles.push(kind.title()?);
    }
    // The requests by the answer that all servers give.
    let mut alike: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut differing = String::new();
    let mut differ = 0;
    let mut reason_above = "";
    for case in FileCase::ALL {
        let mut cells = cells(case, &servers)?;
        if cells.iter().all(|cell| *cell == cells[0]) {
            let requests = alike.entry(cells.swap_remove(0)).or_default();
            requests.push(shown(case));
            continue;
        }
        let reason = reasons::of(case.name)
            .with_context(|| format!("{} differs without a reason: {cells:?}", case.name))?;
        let reason_cell = if reason == reason_above {
            "As above."
        } else {
            reason
        };
        reason_above = reason;
        differ += 1;
        let (request, cells) = (shown(case), cells.join(" | "));
        writeln!(differing, "| {request} | {cells} | {reason_cell} |")?;
    }
    ensure!(FileCase::ALL.len() == 126, "some requests are missing");
    print!("{INTRODUCTION}");
    println!("\n## {differ} requests that are answered differently\n");
    println!("| request | {} | why |", titles.join(" | "));
    print!("|---|---|---|---|---|\n{differing}");
    let same = FileCase::ALL.len() - differ;
    println!("\n## {same} requests that all answer alike\n");
    println!("| answer | requests |\n|---|---|");
    for (answer, requests) in alike {
        println!("| {answer} | {} |", requests.join("<br>"));
    }
    Ok(())
}

/// The answers of all servers to one request. The first server is our front, whose answer must be as the tests expect.
fn cells(case: &FileCase, servers: &[Server]) -> anyhow::Result<Vec<String>> {
    let mut cells = Vec::new();
    for (index, server) in servers.iter().enumerate() {
        let answer = ask(server, case)?;
        if index == 0 {
            let own = answer.as_ref().context("an answer of our front")?;
            case.judge(own)
                .map_err(|reason| anyhow::anyhow!("{}: {reason}", case.name))?;
        }
        cells.push(match answer {
            Some(answer) => cell(case, &answer),
            None => "no answer".to_owned(),
        });
    }
    Ok(cells)
}

/// The request as one line of text.
fn shown(case: &FileCase) -> String {
    // Long paths and values are cut, so that the table stays readable.
    let path = match case.path.len() {
        0..=40 => case.path.to_owned(),
        _ => format!("{}…", &case.path[..20]),
    };
    let mut line = format!("`{} {path}`", case.method);
    for (name, value) in case.asked() {
        let value = match value.len() {
            0..=60 => (*value).to_owned(),
            _ => format!("{}…", &value[..40]),
        };
        line.push_str(&format!(" `{name}: {value}`"));
    }
    line.replace('|', "\\|")
}

/// Asks a server; `None` if it does not answer within [`PATIENCE`]. Fields may need validators of the file, such as
/// its ETag: then a HEAD request gets them first.
fn ask(server: &Server, case: &FileCase) -> anyhow::Result<Option<Response>> {
    let mut failed = None;
    let fields = case.fields(|fields| {
        let head = send(server, &case.head(), fields);
        head.unwrap_or_else(|error| {
            failed = Some(error);
            None
        })
        .unwrap_or_default()
    });
    match failed {
        Some(error) => Err(error),
        None => send(server, case, &fields),
    }
}

/// Sends the request with these fields on a new connection; `None` if no answer comes within [`PATIENCE`].
fn send(
    server: &Server,
    case: &FileCase,
    fields: &[(&'static str, String)],
) -> anyhow::Result<Option<Response>> {
    let mut client = server.connect()?;
    client.set_deadline(Deadline::after(PATIENCE));
    let lines: String = fields
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let (method, path) = (case.method, case.path);
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{lines}\r\n");
    client.send(request.as_bytes())?;
    let answer = match method {
        "HEAD" => client.receive_head(),
        _ => client.receive(),
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(Failure::TimedOut { .. }) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{method} {path}")),
    }
}

/// The parts of a response that this kind of request is about, as text.
fn cell(case: &FileCase, answer: &Response) -> String {
    let mut words = vec![answer.status.to_string()];
    let mut push = |word: &str| words.push(word.to_owned());
    let field = |name| answer.header(name);
    if String::from_utf8_lossy(&answer.body).contains(OUTSIDE) {
        push("**the outside**");
    }
    if let Some(range) = field("content-range") {
        push(range.strip_prefix("bytes ").unwrap_or(range));
    }
    let parts = String::from_utf8_lossy(&answer.body)
        .lines()
        .filter(|line| line.to_ascii_lowercase().starts_with("content-range:"))
        .count();
    if parts > 0 {
        push(&format!("{parts} parts"));
    }
    if let Some(coding) = field("content-encoding") {
        push(coding);
    }
    if let Some(location) = field("location") {
        // The port differs from server to server.
        push(if location.contains("://") {
            "to an absolute URL"
        } else {
            location
        });
    }
    if field("allow").is_some() {
        push("Allow");
    }
    // The names of cases about compression begin with `c-`, those about types with `t-`.
    if case.name.starts_with("c-") && field("vary").is_some() {
        push("Vary");
    }
    if case.name.starts_with("t-") {
        let content_type = field("content-type").unwrap_or("no type");
        push(&content_type.replace("; ", ";"));
    }
    words.join(" ")
}

/// How long a response may take; none of them should take long.
const PATIENCE: Duration = Duration::from_secs(3);

const INTRODUCTION: &str = "\
# Files: what the front, nginx and httpd answer

126 requests for files of one directory, and what each server answers, with the reason where they differ. The tests
ask the front the same requests over HTTP/1.1 and HTTP/2, in clear and over TLS.

nginx has `gzip_static`, `gzip_vary` and `open_file_cache`; Debian's has no Brotli. httpd has the rewrite rules of its
own documentation for compressed files. Neither is told to refuse dotfiles or links. [files.md](files.md) says how to
configure the front.

`{etag}`, `{gz}` and `{date}` stand for the validators of the file: the tag, the tag of its gzip coding, and the date. A
range that is shown is `Content-Range`. \"Vary\" is shown where compressed files exist.

(Written by `cargo run -p catamaran-nights --bin files -- answers > docs/files-answers.md`.)
";
