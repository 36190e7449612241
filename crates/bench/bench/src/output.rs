//! Writes the output of a run at its beginning and its end: texts, files and exit code.
//!
//! In ab mode it is ab's banner, report, error messages, files and exit codes. Otherwise it is one
//! report on standard output, as text, JSON or CSV. Files are opened before the run, so that no run
//! is lost because of a mistyped path.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Read as _, Write as _};
use std::time::SystemTime;

use catamaran_load::document::Gate;
use catamaran_load::gate::Verdict;
use catamaran_load::plan::{Plan, Request};
use catamaran_load::render::{self, ab};
use catamaran_load::report::{Ending, FailureKind, FatalError, Report, SpokenProtocol};
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::flag::output::{OutputSettings, Sink};
use crate::getopt::Mode;
use crate::settings::{Settings, reason};
use crate::{BenchFailure, help};

/// Writes all that is printed before the first request.
pub(crate) fn begin(settings: &Settings, plan: &Plan, has_heartbeat: bool) -> io::Result<()> {
    let output = &settings.output;
    let mut stdout = io::stdout().lock();
    if settings.mode == Mode::Ab && !output.no_banner {
        stdout.write_all(help::ab_banner(output.html).as_bytes())?;
    }
    if settings.mode == Mode::Ab && !output.html {
        write!(stdout, "Benchmarking {} ", plan.subject.hostname)?;
        if let Some((host, port)) = &settings.request.proxy {
            write!(stdout, "[through {host}:{port}] ")?;
        }
        let end = if has_heartbeat { "\n" } else { "..." };
        write!(stdout, "(be patient){end}")?;
    }
    // As ab does from `-v 2` on; memcached's requests have no head.
    if output.verbosity >= 2
        && plan.subject.memcached.is_none()
        && let Some(request) = plan
            .targets
            .first()
            .and_then(|target| target.requests.first())
    {
        let head = head_of(request, plan.subject.protocol);
        writeln!(
            stdout,
            "INFO: {} header == \n---\n{head}\n---",
            request.method
        )?;
    }
    stdout.flush()
}

/// The head of the request as it is sent; for HTTP/2, as HTTP/1.1 would write it.
fn head_of(request: &Request, spoken: SpokenProtocol) -> String {
    let Request {
        method,
        target,
        version,
        ..
    } = request;
    let lines = request.headers.iter().map(|field| {
        let value = String::from_utf8_lossy(&field.value);
        format!("{}: {value}\r\n", field.name)
    });
    let fields: String = lines.collect();
    let version = match spoken {
        SpokenProtocol::Http2 => spoken.name(),
        SpokenProtocol::Http10
        | SpokenProtocol::Http11
        | SpokenProtocol::Ajp13
        | SpokenProtocol::Memcached(_) => version.text(),
    };
    format!("{method} {target} {version}\r\n{fields}\r\n")
}

/// Opens every file that will be written, so that a wrong path is found before the run. ab finds
/// out after the run, so ab mode checks nothing.
pub(crate) fn check_files(settings: &Settings) -> Result<(), BenchFailure> {
    if settings.mode == Mode::Ab {
        return Ok(());
    }
    let output = &settings.output;
    let named = [&output.gnuplot, &output.percentiles, &output.hdr];
    let mut paths: Vec<&String> = named.into_iter().flatten().collect();
    if let Some(Sink::File(path)) = &output.json {
        paths.push(path);
    }
    for path in paths {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| cannot_write(path, &error))?;
    }
    if let Some(Sink::File(path)) = &output.csv {
        open_table(path).map_err(|error| cannot_write(path, &error))?;
    }
    Ok(())
}

/// Writes all that is printed or written after the last response; returns the exit code.
pub(crate) fn end(
    settings: &Settings,
    plan: &Plan,
    mut report: Report,
    has_heartbeat: bool,
) -> Result<u8, BenchFailure> {
    trace(&settings.output, &report)?;
    report.gate = judge(settings, &report);
    let report = &report;
    let code = match settings.mode {
        Mode::Ab => end_as_ab(settings, plan, report, has_heartbeat)?,
        Mode::Ours => {
            say(&text_of(settings, report))?;
            write_files(&settings.output, report).map_err(BenchFailure::Fault)?;
            gate_code(report).unwrap_or_else(|| exit_code(report))
        }
    };
    write_our_files(settings, report)?;
    Ok(code)
}

/// Prints the head of the first response if the level of `-v` is 2 or more.
fn trace(output: &OutputSettings, report: &Report) -> io::Result<()> {
    let server = &report.server;
    let Some(status) = server.first_status else {
        return Ok(());
    };
    // memcached's replies have no heads.
    if output.verbosity < 2 || report.operations.is_some() {
        return Ok(());
    }
    let mut stdout = io::stdout().lock();
    writeln!(
        stdout,
        "LOG: header received:\n{}",
        String::from_utf8_lossy(&server.first_head)
    )?;
    if !(200..300).contains(&status) {
        writeln!(stdout, "WARNING: Response code not 2xx ({status})")?;
    } else if output.verbosity >= 3 {
        writeln!(stdout, "LOG: Response code = {status}")?;
    }
    Ok(())
}

fn say(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// The report for standard output, as JSON, CSV, HTML or plain text.
fn text_of(settings: &Settings, report: &Report) -> String {
    let output = &settings.output;
    if output.json == Some(Sink::Stdout) {
        render::json::json(report)
    } else if output.csv == Some(Sink::Stdout) {
        render::csv::header() + &render::csv::row(report)
    } else if output.html {
        ab::html(report, &output.attributes)
    } else {
        let mut text = render::text::text(report);
        if let Some(gate) = &report.gate {
            text += &render::gate::gate(gate);
        }
        text
    }
}

/// The results of the conditions of `--fail-if`; `None` if there are none.
fn judge(settings: &Settings, report: &Report) -> Option<Gate> {
    let gate = &settings.checks.gate;
    (!gate.conditions.is_empty()).then(|| gate.judge(report))
}

/// The exit code that the gate decides; `None` without a gate, or if the run was interrupted, which has its own code.
fn gate_code(report: &Report) -> Option<u8> {
    let gate = report.gate.as_ref()?;
    if report.ending == Ending::Stopped {
        return None;
    }
    Some(match Verdict::named(&gate.verdict) {
        Some(Verdict::Passed) => 0,
        Some(Verdict::Failed) => 1,
        Some(Verdict::Undecided) | None => UNDECIDED,
    })
}

/// The exit code of a run without `--fail-if`: 1 if requests failed, hung or were never sent, if
/// there were only errors, or if the figures are invalid.
fn exit_code(report: &Report) -> u8 {
    match report.ending {
        Ending::Stopped => INTERRUPTED,
        Ending::Idle | Ending::Failure(_) => 1,
        Ending::Requests | Ending::Duration if report.is_sound() => 0,
        Ending::Requests | Ending::Duration => 1,
    }
}

/// Prints and writes in ab mode what follows the last response; returns ab's exit code.
fn end_as_ab(
    settings: &Settings,
    plan: &Plan,
    report: &Report,
    has_heartbeat: bool,
) -> Result<u8, BenchFailure> {
    let output = &settings.output;
    if let Some((message, code)) = fatal_message(settings, plan, report) {
        writeln!(io::stderr(), "{message}")?;
        let total = done_before_death(report);
        if total > 0 {
            say(&format!("Total of {total} requests completed\n"))?;
        }
        return Ok(code);
    }
    complain_of_tls(plan, report)?;
    let is_stopped = report.ending == Ending::Stopped;
    if !has_heartbeat && !is_stopped {
        say("..done\n")?;
    }
    if output.html && !is_stopped {
        say(&ab::html(report, &output.attributes))?;
        return Ok(0);
    }
    say(&ab::text(report))?;
    if ab::complete_requests(report) > 0
        && let Err(message) = write_files(output, report)
    {
        writeln!(io::stderr(), "{message}")?;
        return Ok(1);
    }
    Ok(u8::from(is_stopped))
}

/// Prints ab's line for each connection that TLS ended. For a refused connection there are two lines, because
/// ab reads twice from it: see [`AbCounts`](catamaran_load::report::AbCounts).
fn complain_of_tls(plan: &Plan, report: &Report) -> io::Result<()> {
    let mut targets = plan.targets.iter();
    if targets.all(|target| target.endpoint.tls.is_none()) {
        return Ok(());
    }
    let refused = report.failures.of(FailureKind::Refused).div_ceil(2) * 2;
    let failed = report.failures.of(FailureKind::Tls);
    let mut stderr = BufWriter::new(io::stderr().lock());
    for (count, line) in [(refused, SSL_READ_FAILED), (failed, SSL_HANDSHAKE_FAILED)] {
        for _ in 0..count {
            writeln!(stderr, "{line}")?;
        }
    }
    stderr.flush()
}

/// The number of requests that ab has counted when a fatal error ends it: it stops before it counts that one.
fn done_before_death(report: &Report) -> u64 {
    let fatal = match &report.ending {
        Ending::Failure(error) => report.failures.of(error.kind),
        _ => 0,
    };
    ab::complete_requests(report).saturating_sub(fatal)
}

/// The message that ab prints instead of a report, and its exit code; `None`: it prints a report.
fn fatal_message(settings: &Settings, plan: &Plan, report: &Report) -> Option<(String, u8)> {
    match &report.ending {
        Ending::Failure(error) => Some(fatal(settings, plan, error)),
        // 70007 is APR_TIMEUP.
        Ending::Idle => Some(apr("apr_pollset_poll", TIMED_OUT, 70_007)),
        Ending::Requests | Ending::Duration | Ending::Stopped => None,
    }
}

/// The message and the exit code of ab for the error that ended the run.
fn fatal(settings: &Settings, plan: &Plan, error: &FatalError) -> (String, u8) {
    let words = match error.errno {
        Some(errno) => reason(&io::Error::from_raw_os_error(errno)),
        None => error.message.clone(),
    };
    let number = error.errno.unwrap_or(1);
    match error.kind {
        FailureKind::Name => {
            let proxy = settings.request.proxy.as_ref().map(|(host, _)| host);
            let host = proxy.unwrap_or(&plan.subject.hostname);
            // APR's number of EAI_NONAME.
            let call = format!("apr_sockaddr_info_get() for {host}");
            apr(&call, "Name or service not known", 670_002)
        }
        FailureKind::Descriptors => apr("socket", &words, number),
        FailureKind::Source => apr("bind", &words, number),
        FailureKind::Ports if !plan.connections.sources.is_empty() => apr("bind", &words, number),
        // ab gives up after ten connects that failed. It notices a refused one only when it reads: see the last arm.
        kind if kind.is_connect() && kind != FailureKind::Refused => {
            let (words, code) = apr("apr_socket_connect()", &words, number);
            (format!("\nTest aborted after 10 failures\n\n{words}"), code)
        }
        _ => apr("apr_socket_recv", &words, number),
    }
}

/// An error in APR's form with the exit code: the low byte of the error's number, as the system passes it on.
fn apr(call: &str, words: &str, number: i32) -> (String, u8) {
    let [code, ..] = number.to_le_bytes();
    (format!("{call}: {words} ({number})"), code)
}

/// Writes ab's output files. The error is ab's message for a file that cannot be written.
fn write_files(output: &OutputSettings, report: &Report) -> Result<(), String> {
    let cannot_open =
        |what, error: &io::Error| format!("Cannot open {what} output file: {}", reason(error));
    if let Some(path) = &output.percentiles {
        let text = ab::percentiles_csv(report);
        fs::write(path, text).map_err(|error| cannot_open("CSV", &error))?;
    }
    if let Some(path) = &output.gnuplot {
        let zone = TimeZone::system();
        let text = ab::gnuplot(report, |time| ctime(time, &zone));
        fs::write(path, text).map_err(|error| cannot_open("gnuplot", &error))?;
    }
    Ok(())
}

/// Writes the files that only our own flags name; ab has no such files.
fn write_our_files(settings: &Settings, report: &Report) -> Result<(), BenchFailure> {
    let output = &settings.output;
    if let Some(Sink::File(path)) = &output.json {
        let text = render::json::json(report);
        write(path, &text)?;
    }
    if let Some(Sink::File(path)) = &output.csv {
        let row = render::csv::row(report);
        add_row(path, &row).map_err(|error| cannot_write(path, &error))?;
    }
    if let Some(path) = &output.hdr {
        write_hdr(path, report).map_err(|error| cannot_write(path, &error))?;
    }
    Ok(())
}

fn write_hdr(path: &str, report: &Report) -> io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    render::hdr::write(report, &mut file)?;
    file.flush()
}

/// Writes `text` to a file of ours, not one of ab's.
pub(crate) fn write(path: &str, text: &str) -> Result<(), BenchFailure> {
    fs::write(path, text).map_err(|error| cannot_write(path, &error))
}

/// Adds a row to a CSV file, with the header first if the file is empty: so runs can be collected in one file.
fn add_row(path: &str, row: &str) -> io::Result<()> {
    let mut file = open_table(path)?;
    if file.metadata()?.len() == 0 {
        file.write_all(render::csv::header().as_bytes())?;
    }
    file.write_all(row.as_bytes())
}

/// Opens a CSV file to which rows are added. A file with other columns is refused, since the row
/// would have other meanings there.
fn open_table(path: &str) -> io::Result<File> {
    let file = OpenOptions::new().append(true).create(true).open(path)?;
    let metadata = file.metadata()?;
    // Anything but a regular file, such as a pipe, is not read.
    if metadata.is_file() && metadata.len() > 0 {
        let header = render::csv::header().into_bytes();
        let mut first = Vec::new();
        File::open(path)?
            .take(header.len() as u64)
            .read_to_end(&mut first)?;
        if first != header {
            return Err(io::Error::other(
                "it has other columns; name a new file, or one that this version began",
            ));
        }
    }
    Ok(file)
}

/// Formats a time as C's `ctime` does, without the line end.
fn ctime(time: SystemTime, zone: &TimeZone) -> String {
    let timestamp = Timestamp::try_from(time).unwrap_or(Timestamp::UNIX_EPOCH);
    let time = timestamp.to_zoned(zone.clone());
    time.strftime("%a %b %d %H:%M:%S %Y").to_string()
}

pub(crate) fn cannot_write(path: &str, error: &io::Error) -> BenchFailure {
    BenchFailure::Fault(format!("cannot write {path}: {}", reason(error)))
}

/// The exit code if the run does not decide the gate.
pub(crate) const UNDECIDED: u8 = 3;

/// The exit code of an interrupted run, as shells have it for SIGINT: 128 plus the signal's number.
pub(crate) const INTERRUPTED: u8 = 130;

const SSL_READ_FAILED: &str = "SSL read failed (5) - closing connection";

const SSL_HANDSHAKE_FAILED: &str = "SSL handshake failed (1).";

const TIMED_OUT: &str = "The timeout specified has expired";
