//! Tests of the formats, byte by byte, and of the way of lines to their target.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::SystemTime;

use bytes::Bytes;
use catamaran_testkit::Deadline;
use catamaran_tls::Facts;
use http::{Method, Version};
use proptest::prelude::*;

use super::line::{RequestLine, SessionLine, escape, json_string};
use super::*;
use crate::config::LogTemplate;
use crate::counters::{Culprit, Outcome, Reason};
use crate::request_id::RequestIds;

fn with_record(check: impl FnOnce(&Record<'_>)) {
    let request = RequestLine {
        method: &Method::GET,
        path: b"/a\"b",
        query: Some(b"q=1"),
        version: Version::HTTP_11,
        host: Some(b"example.org"),
        referer: None,
        user_agent: Some(b"a \"b\" \\ \xe9"),
        fields: &LoggedFields(vec![(
            FieldName::from_static("X-Tenant"),
            Bytes::from("a\nb"),
        )]),
    };
    check(&Record {
        ended: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_000_000_007),
        id: RequestIds::new().next(),
        given_id: Some(b"7f-a"),
        trace: None,
        client: Ipv4Addr::LOCALHOST.into(),
        request: Some(request),
        status: Some(502),
        received: 5,
        sent: 347,
        upstream: Some("default"),
        backend: Some("ajp://127.0.0.1:8009"),
        session: Some(SessionLine {
            outcome: Outcome::Moved,
            route: Some(b"a\" b"),
            first_backend: Some("a"),
        }),
        attempts: 2,
        file: Some("open"),
        compressed: Some(("gzip", 5000)),
        cache: Some(CacheLine {
            result: "uncacheable",
            reason: Some("set-cookie"),
            age: Some(7),
        }),
        limit: Some("login"),
        limit_dry: Some("pages"),
        user: Some(b"a \"n"),
        auth: Some(AuthLine {
            name: "staff",
            waited: Duration::from_micros(56),
        }),
        lease: Some(Duration::from_micros(12)),
        upload: Some(Duration::from_micros(34)),
        first_byte: None,
        total: Duration::from_micros(4711),
        reason: Some(Reason::new(Culprit::Backend, "closed")),
        protocol: "http/1.1",
        stream: None,
        tls: None,
    });
}

fn opened(config: &LogConfig, workers: usize) -> AccessLog {
    let log = AccessLog::new(workers);
    log.switch(OpenedLog::new(config).expect("a target"))
        .expect("a log");
    log
}

fn line(format: AccessLogFormat) -> (String, String) {
    let mut found = (String::new(), String::new());
    with_record(|record| {
        let mut out = Vec::new();
        record.append(&format, &mut Stamp::default(), &mut out);
        found = (String::from_utf8(out).expect("text"), record.id.to_string());
    });
    found
}

#[test]
fn a_format_of_ones_own() {
    let template = |text: &str| {
        LogTemplate::parse(text).map(|template| line(AccessLogFormat::Template(template)))
    };
    let (shown, id) = template(
        "{client} [{time_local}] \"{request}\" {status} {bytes} {received} {host} {referer} \"{user_agent}\" \
         {header:x-tenant} {header:X-None} {upstream} {backend} {attempts} {sticky} {cache} {reason} {tls_version} \
         {duration} {lease_us} {first_byte_us} {total_us} {{{request_id}}}",
    )
    .unwrap();
    let (_, time) = shown.split_once('[').unwrap();
    let (time, rest) = time.split_once(']').unwrap();
    assert_eq!(time.len(), "29/Nov/2026:10:00:00 +0000".len(), "{shown}");
    let expected = " \"GET /a\\\"b?q=1 HTTP/1.1\" 502 347 5 example.org - \"a \\\"b\\\" \\\\ \\xe9\" a\\x0ab - default \
                    ajp://127.0.0.1:8009 2 moved uncacheable backend:closed - 0.004 12 - 4711 {7f-a}\n";
    assert_eq!(rest, expected, "the id that was given, not {id}");
    let (iso, _) = template("{time}").unwrap();
    assert!(
        iso.starts_with("20") && iso.contains(".007") && iso.trim_end().len() == 29,
        "{iso}"
    );
    // Each name of a fact is one that can be written.
    for name in crate::config::log_names() {
        let (shown, _) = template(&format!("<{{{name}}}>")).unwrap();
        assert!(
            shown.starts_with('<') && shown.ends_with(">\n") && shown.len() > 3,
            "{name}"
        );
        assert_eq!(shown.matches('\n').count(), 1, "{name}: {shown}");
    }
    for wrong in ["{", "{stat}", "{header:}", "{header:a b}", "a\nb", "}"] {
        assert!(template(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn combined() {
    let (line, id) = line(AccessLogFormat::Combined);
    let (before, rest) = line.split_once('[').expect("a time");
    let (time, after) = rest.split_once(']').expect("its end");
    assert_eq!(before, "127.0.0.1 - a\\x20\\\"n ");
    assert_eq!(time.len(), "21/Nov/2026:01:02:03 +0000".len());
    let expected = format!(
        " \"GET /a\\\"b?q=1 HTTP/1.1\" 502 347 \"-\" \"a \\\"b\\\" \\\\ \\xe9\" \
         upstream=default backend=ajp://127.0.0.1:8009 attempts=2 lease_us=12 upload_us=34 \
         first_byte_us=- \
         total_us=4711 sticky=moved session_route=\"a\\\" b\" first_backend=a file=open compressed=gzip plain=5000 \
          cache=uncacheable cache_reason=set-cookie cache_age=7 limit=login limit_dry=pages auth=staff auth_us=56 reason=backend:closed \
         host=\"example.org\" ms=7 given_id=\"7f-a\" protocol=http/1.1 tls_version=- tls_cipher=- id={id}\n"
    );
    assert_eq!(after, expected);
}

#[test]
fn json() {
    let (line, id) = line(AccessLogFormat::Json);
    let (before, rest) = line.split_once("\"time\":\"").expect("a time");
    let (time, after) = rest.split_once('"').expect("its end");
    assert_eq!(before, "{");
    let time: jiff::Timestamp = time.parse().expect("RFC 3339");
    assert_eq!(time.as_millisecond(), 1_795_000_000_007);
    let expected = format!(
        ",\"id\":\"{id}\",\"client\":\"127.0.0.1\",\"given_id\":\"7f-a\",\"method\":\"GET\",\
         \"path\":\"/a\\\"b\",\"query\":\"q=1\",\"version\":\"HTTP/1.1\",\"host\":\"example.org\",\
         \"user_agent\":\"a \\\"b\\\" \\\\ \u{fffd}\",\"status\":502,\"received\":5,\"sent\":347,\
         \"upstream\":\"default\",\"backend\":\"ajp://127.0.0.1:8009\",\"sticky\":\"moved\",\
         \"session_route\":\"a\\\" b\",\"first_backend\":\"a\",\"attempts\":2,\"file\":\"open\",\
         \"compressed\":\"gzip\",\"plain\":5000,\"cache\":\"uncacheable\",\"cache_reason\":\"set-cookie\",\
         \"cache_age\":7,\"limit\":\"login\",\"limit_dry\":\"pages\",\"user\":\"a \\\"n\",\"auth\":\"staff\",\"auth_us\":56,\"lease_us\":12,\"upload_us\":34,\"total_us\":4711,\"reason\":\"backend:closed\",\
         \"protocol\":\"http/1.1\"}}\n"
    );
    assert_eq!(after, expected);
}

#[test]
fn lines_of_http2_and_tls() {
    let cipher = "TLS_AES_128_GCM_SHA256".to_owned();
    let mut facts = Facts::told("TLSv1.3", Some(cipher), None).expect("facts");
    facts.group = "X25519".to_owned();
    facts.sni = Some("example.org".into());
    facts.alpn = Some("h2".into());
    facts.client_sha256 = Some("ab".to_owned());
    with_record(|record| {
        let record = Record {
            request: record.request.map(|it| RequestLine {
                version: Version::HTTP_2,
                ..it
            }),
            protocol: "h2",
            stream: Some(7),
            tls: Some(&facts),
            ..*record
        };
        let line = |format| {
            let mut out = Vec::new();
            record.append(&format, &mut Stamp::default(), &mut out);
            String::from_utf8(out).expect("text")
        };
        let combined = line(AccessLogFormat::Combined);
        assert!(combined.contains("?q=1 HTTP/2.0\" 502 "), "{combined}");
        let told = " protocol=h2 tls_version=TLSv1.3 tls_cipher=TLS_AES_128_GCM_SHA256 id=";
        assert!(combined.contains(told), "{combined}");
        let line = line(AccessLogFormat::Json);
        assert!(line.contains(",\"version\":\"HTTP/2.0\","), "{line}");
        let end = ",\"protocol\":\"h2\",\"stream\":7,\"tls_version\":\"TLSv1.3\",\
                   \"tls_cipher\":\"TLS_AES_128_GCM_SHA256\",\"resumed\":false,\"tls_group\":\"X25519\",\
                   \"sni\":\"example.org\",\"alpn\":\"h2\",\"client_cert_sha256\":\"ab\"}\n";
        assert!(line.ends_with(end), "{line}");
    });
}

#[test]
fn json_of_a_request_that_was_not_understood() {
    with_record(|record| {
        let record = Record {
            given_id: None,
            request: None,
            status: None,
            upstream: None,
            backend: None,
            session: None,
            file: None,
            compressed: None,
            cache: None,
            limit: None,
            limit_dry: None,
            user: None,
            auth: None,
            lease: None,
            upload: None,
            ..*record
        };
        let mut out = Vec::new();
        record.append(&AccessLogFormat::Json, &mut Stamp::default(), &mut out);
        let line = String::from_utf8(out).expect("text");
        let end = ",\"client\":\"127.0.0.1\",\"received\":5,\"sent\":347,\"attempts\":2,\
                   \"total_us\":4711,\"reason\":\"backend:closed\",\"protocol\":\"http/1.1\"}\n";
        assert!(line.ends_with(end), "{line}");
    });
}

/// Checks both escapes of a text against the simplest code that makes them.
fn check_escapes(text: &[u8]) {
    let mut escaped = Vec::new();
    escape(text, &mut escaped);
    let each = |&byte: &u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    let expected: String = text.iter().map(each).collect();
    assert_eq!(String::from_utf8(escaped).expect("text"), expected);

    let mut string = Vec::new();
    json_string(text, &mut string);
    let expected = serde_json::to_string(&String::from_utf8_lossy(text)).expect("a string");
    assert_eq!(String::from_utf8(string).expect("text"), expected);
}

#[test]
fn every_byte_is_escaped_wherever_it_stands() {
    for length in 0..=17 {
        for place in 0..length {
            for byte in 0..=u8::MAX {
                let mut text = vec![b'~'; length];
                text[place] = byte;
                check_escapes(&text);
            }
        }
    }
}

proptest! {
    #[test]
    fn texts_are_escaped_as_by_one_byte_at_a_time(
        text in prop_oneof![
            proptest::collection::vec(any::<u8>(), 0..40),
            "[ -~]{0,40}".prop_map(String::into_bytes),
            "\\PC{0,40}".prop_map(String::into_bytes),
        ],
    ) {
        check_escapes(&text);
    }
}

/// Waits until a file has so many lines. The end has waited for the log's thread already, but gives up on one that
/// stands still.
fn wait_for_lines(file: &Path, count: usize) {
    let lines = || std::fs::read_to_string(file).map_or(0, |text| text.lines().count());
    let are_there = || (lines() == count).then_some(());
    let found = Deadline::default().poll(
        format_args!("{count} lines of {}", file.display()),
        are_there,
    );
    found.unwrap();
}

#[test]
fn lines_reach_the_file_before_the_end() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let config = LogConfig {
        access: AccessLogTarget::File(path.clone()),
        ..LogConfig::default()
    };
    let log = opened(&config, 2);
    with_record(|record| {
        log.write(0, record);
        log.write(1, record);
    });
    log.finish();
    wait_for_lines(&path, 2);
    assert_eq!(log.dropped(), 0);
}

#[test]
fn a_full_buffer_drops_and_counts() {
    let directory = tempfile::tempdir().expect("a directory");
    let config = LogConfig {
        access: AccessLogTarget::File(directory.path().join("access.log")),
        ..LogConfig::default()
    };
    let log = opened(&config, 1);
    // Stopped first: nothing empties the buffer any more.
    log.finish();
    with_record(|record| {
        let mut written = 0;
        while log.dropped() == 0 {
            log.write(0, record);
            written += 1;
            assert!(written < 1_000_000, "the buffer has a limit");
        }
    });
}

#[test]
fn lines_go_to_the_target_of_their_time() {
    let directory = tempfile::tempdir().expect("a directory");
    let target = |name: &str| LogConfig {
        access: AccessLogTarget::File(directory.path().join(name)),
        ..LogConfig::default()
    };
    let log = opened(&target("before.log"), 1);
    let switch = |config| {
        log.switch(OpenedLog::new(&config).expect("a target"))
            .expect("a switch");
    };
    with_record(|record| {
        log.write(0, record);
        switch(LogConfig {
            access: AccessLogTarget::Off,
            ..target("")
        });
        log.write(0, record);
        switch(target("after.log"));
        log.write(0, record);
    });
    log.finish();
    for name in ["before.log", "after.log"] {
        wait_for_lines(&directory.path().join(name), 1);
    }
}

#[test]
fn a_line_after_a_file_was_opened_again_is_in_the_new_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let log = opened(
        &LogConfig {
            access: AccessLogTarget::File(at("access.log")),
            ..LogConfig::default()
        },
        2,
    );
    // More turns than the thread can have taken when the next one comes.
    with_record(|record| {
        for turn in 0..10 {
            log.write(turn % 2, record);
            std::fs::rename(at("access.log"), at(&format!("{turn}.log"))).expect("a move");
            log.reopen().expect("a turn");
        }
        log.write(0, record);
    });
    log.finish();
    for turn in 0..10 {
        wait_for_lines(&at(&format!("{turn}.log")), 1);
    }
    wait_for_lines(&at("access.log"), 1);
    assert_eq!((log.dropped(), log.lost()), (0, 0));
}

#[test]
fn hosts_may_have_logs_of_their_own() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let config = |hosts: &[(&str, &[&str])]| LogConfig {
        access: AccessLogTarget::File(at("access.log")),
        hosts: (hosts.iter())
            .map(|(file, hosts)| (at(file), hosts.iter().map(|it| (*it).to_owned()).collect()))
            .collect(),
        ..LogConfig::default()
    };
    let first = config(&[
        ("own.log", &["shop.example.org", "*.example.net"]),
        ("below.log", &["*.a.example.net"]),
    ]);
    let log = opened(&first, 1);
    let ask = |host: &'static [u8]| {
        with_record(|record| {
            let request = record.request.map(|it| RequestLine {
                host: Some(host),
                ..it
            });
            log.write(0, &Record { request, ..*record });
        });
    };
    for host in [
        &b"Shop.example.org:8080"[..],
        b"shop.example.org.",
        b"x.example.net",
        b"x.a.example.net",
        b"example.net",
        b"[::1]:80",
        b"\xff",
    ] {
        ask(host);
    }
    // A reload takes one away; the other goes on in the same file.
    let second = config(&[("below.log", &["*.a.example.net"])]);
    log.switch(OpenedLog::new(&second).expect("files"))
        .expect("a switch");
    ask(b"shop.example.org");
    ask(b"y.a.example.net");
    assert_eq!((log.dropped(), log.lost()), (0, 0));
    log.finish();
    for (name, lines) in [("own.log", 3), ("below.log", 2), ("access.log", 4)] {
        wait_for_lines(&at(name), lines);
    }
}

/// Opening a FIFO without a reader must not block, nor must writing the rest at the end.
#[test]
fn a_fifo_without_a_reader_holds_up_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a FIFO");
    let config = LogConfig {
        access: AccessLogTarget::File(path.clone()),
        ..LogConfig::default()
    };
    let log = opened(&config, 1);
    with_record(|record| {
        // More than a pipe holds.
        for _ in 0..1000 {
            log.write(0, record);
        }
    });
    log.finish();

    let log = opened(&config, 1);
    let reader = File::open(&path).expect("the FIFO");
    with_record(|record| log.write(0, record));
    let mut line = String::new();
    io::BufRead::read_line(&mut io::BufReader::new(reader), &mut line).expect("a line");
    assert!(line.contains("upstream=default"), "{line}");
    log.finish();
}

/// A log whose thread is stuck in a write: it has more lines than the pipe holds, and nobody reads
/// them.
fn stuck_log() -> (AccessLog, io::PipeReader) {
    let (reader, writer) = io::pipe().expect("a pipe");
    let log = AccessLog::new(1);
    let opened = OpenedLog {
        target: Some(std::os::fd::OwnedFd::from(writer).into()),
        config: LogConfig::default(),
        hosts: Vec::new(),
    };
    log.switch(opened).expect("a log");
    with_record(|record| {
        for _ in 0..1000 {
            log.write(0, record);
        }
    });
    (log, reader)
}

fn is_stuck(log: &AccessLog) -> bool {
    let writers = log.writers();
    let writer = writers.current.as_ref().expect("a thread");
    writer.shared.progress.is_stuck()
}

#[test]
fn a_pipe_that_nobody_reads_holds_up_neither_the_end_nor_another_target() {
    let (log, _unread) = stuck_log();
    log.finish();

    let (log, mut reader) = stuck_log();
    while !is_stuck(&log) {
        std::thread::yield_now();
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("access.log");
    let config = LogConfig {
        access: AccessLogTarget::File(path.clone()),
        ..LogConfig::default()
    };
    log.switch(OpenedLog::new(&config).expect("a target"))
        .expect("a switch");
    with_record(|record| log.write(0, record));
    log.finish();
    wait_for_lines(&path, 1);
    // The thread that was stuck writes what it has, and ends.
    let mut late = String::new();
    io::Read::read_to_string(&mut reader, &mut late).expect("its lines");
    assert_eq!(late.lines().count(), 1000);
}
