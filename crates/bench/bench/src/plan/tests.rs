//! Tests of the defaults of both modes, and of settings that exclude each other.

use catamaran_load::plan::{HttpVersion, Protocol, Transport, Verify};

use super::*;
use crate::refusal::AbEnd;
use crate::settings::read;

fn prepared(mode: Mode, line: &str) -> Result<Plan, Refusal> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    prepare(&read(&words, mode)?)
}

fn ours(line: &str) -> Plan {
    prepared(Mode::Ours, line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

fn ab(line: &str) -> Plan {
    prepared(Mode::Ab, line).unwrap_or_else(|refusal| panic!("{line}: {refusal}"))
}

/// The head of the first request, without the version in the request line and without carriage returns.
fn head(plan: &Plan) -> String {
    let request = &plan.targets[0].requests[0];
    let fields = request.headers.iter().map(|field| {
        format!(
            "{}: {}\n",
            field.name,
            String::from_utf8_lossy(&field.value)
        )
    });
    let fields: String = fields.collect();
    format!("{} {}\n{fields}", request.method, request.target)
}

#[test]
fn abs_defaults() {
    let plan = ab("http://h/");
    assert_eq!(plan.stop.requests.map(NonZeroU64::get), Some(1));
    assert_eq!(plan.pace.connections().get(), 1);
    assert_eq!(plan.threads.get(), 1);
    assert_eq!(plan.timeouts.request, None);
    assert_eq!(plan.timeouts.idle, Some(Duration::from_secs(30)));
    assert_eq!(plan.connections.patience, ConnectPatience::Ab(10));
    assert!(plan.checks.stop_at_receive_error && plan.checks.stop_without_descriptors);
    assert_eq!(plan.checks.body_length, LengthCheck::Failed);
    assert_eq!(plan.connections.resend, Resend::Never);
    assert!(!plan.connections.keep_alive);
    assert_eq!(plan.targets[0].requests[0].version, HttpVersion::Http10);
    assert!(!ab("-r http://h/").checks.stop_at_receive_error);
    let lengths = ab("-l http://h/").checks.body_length;
    assert_eq!(lengths, LengthCheck::Ignored);
    let lengths = ours("http://h/").checks.body_length;
    assert_eq!(lengths, LengthCheck::Counted);
    assert_eq!(
        ab("-g G -n 7 http://h/").samples,
        Samples::First(non_zero(7))
    );
}

#[test]
fn our_defaults() {
    let plan = ours("-n 3 http://h/");
    assert_eq!(plan.stop.requests.map(NonZeroU64::get), Some(3));
    assert_eq!(plan.stop.duration, None);
    assert_eq!(plan.pace.connections().get(), 1);
    assert_eq!(plan.timeouts.request, Some(Duration::from_secs(30)));
    assert_eq!(plan.timeouts.idle, None);
    assert_eq!(plan.connections.patience, ConnectPatience::UntilConnected);
    assert!(!plan.checks.stop_at_receive_error && !plan.checks.stop_without_descriptors);
    assert_eq!(plan.targets[0].requests[0].version, HttpVersion::Http11);
    let plan = ours("--duration 5s -c 8 --threads 3 http://h/");
    assert_eq!(plan.stop.requests, None);
    assert_eq!(plan.threads.get(), 3);
    let plan = ours("--threads 9 -c 2 -n 2 http://h/");
    assert_eq!(plan.threads.get(), 2);
}

#[test]
fn nobody_has_to_say_how_long() {
    for (line, clients, seconds) in [
        ("http://h/", 10, 10),
        ("-c 50 http://h/", 50, 10),
        ("--ramp 5s http://h/", 10, 15),
        ("--duration 3s http://h/", 10, 3),
        ("-t 3 -c 2 http://h/", 2, 3),
        ("--rate 5 http://h/", 100, 10),
    ] {
        let plan = ours(line);
        assert_eq!(plan.stop.requests, None, "{line}");
        assert_eq!(
            plan.stop.duration.map(|time| time.as_secs()),
            Some(seconds),
            "{line}"
        );
        assert_eq!(plan.pace.connections().get(), clients, "{line}");
    }
}

#[test]
fn one_dead_server_ends_the_run_and_one_of_several_does_not() {
    let several = ours("-c 2 http://a/ http://b/");
    assert_eq!(several.connections.patience, ConnectPatience::Unlimited);
    let one = ours("-c 2 http://a/1 http://a/2");
    assert_eq!(one.connections.patience, ConnectPatience::UntilConnected);
}

#[test]
fn an_open_loop() {
    let plan = ours("--rate 500 --duration 5s http://h/");
    let Pace::Open {
        per_second,
        arrivals,
        connections,
        ..
    } = plan.pace
    else {
        panic!("{:?}", plan.pace);
    };
    assert_eq!(
        (per_second, arrivals, connections.get()),
        (500.0, Arrivals::Poisson, 100)
    );
    let plan = ours("--rate 500 -c 7 -n 3 http://h/");
    assert_eq!(plan.pace.connections().get(), 7);
}

#[test]
fn a_ramp_rises_and_holds() {
    let plan = ours("-c 20 --ramp 5s --duration 20s http://h/");
    let levels: Vec<(u64, f64, bool)> = plan
        .stages
        .iter()
        .map(|stage| (stage.duration.as_secs(), stage.level, stage.ramp))
        .collect();
    assert_eq!(levels[0], (5, 20.0, true));
    assert_eq!((levels[1].1, levels[1].2), (20.0, false));
    let plan = ours("--stage 5s=3,5s..9 http://h/");
    assert_eq!(plan.pace.connections().get(), 9);
    assert_eq!(
        plan.stop,
        Stop {
            requests: None,
            duration: None,
            grace: GRACE
        }
    );
}

#[test]
fn the_request_of_ab_is_abs() {
    let expected = "\
POST /a?b
Connection: Keep-Alive
Cookie: c=1
Authorization: Basic dTpw
Content-length: 0
Content-type: text/css
X-A: 1
Host: h:81
User-Agent: ApacheBench/2.3
Accept: */*
";
    let prepared = ab("-k -C c=1 -A u:p -p /dev/null -T text/css -H X-A:1 http://h:81/a?b");
    assert_eq!(head(&prepared), expected);
    assert!(prepared.subject.sends_body);
    let prepared = ab("-H Host:x -H user-agent:y -H accept:z http://h/");
    assert_eq!(
        head(&prepared),
        "GET /\nHost: x\nuser-agent: y\naccept: z\n"
    );
}

#[test]
fn our_request_says_what_its_version_does_not() {
    assert!(head(&ours("http://h/")).starts_with("GET /\nConnection: close\nHost: h\n"));
    assert!(head(&ours("-k http://h/")).starts_with("GET /\nHost: h\n"));
    assert!(head(&ours("--http1.0 http://h/")).starts_with("GET /\nHost: h\n"));
    let kept = head(&ours("--http1.0 -k http://h/"));
    assert!(
        kept.starts_with("GET /\nConnection: Keep-Alive\nHost: h\n"),
        "{kept}"
    );
    let both = head(&ours("-k -C a=1 -C b=2 http://u:p@h/"));
    let expected = "GET /\nCookie: a=1; b=2\nAuthorization: Basic dTpw\nHost: h\n";
    assert!(both.starts_with(expected), "{both}");
    let proxied = head(&ours("-k -P a:b http://u:p@h/"));
    let expected = "GET /\nProxy-Authorization: Basic YTpi\nAuthorization: Basic dTpw\n";
    assert!(proxied.starts_with(expected), "{proxied}");
    assert!(head(&ours("-m PATCH --data x http://h/")).starts_with("PATCH /\n"));
    assert!(ours("--pipeline 2 http://h/").connections.keep_alive);
    assert!(ours("--http2 http://h/").connections.keep_alive);
    assert!(
        ours("--requests-per-connection 2 http://h/")
            .connections
            .keep_alive
    );
}

#[test]
fn a_proxy_is_asked_for_the_whole_url() {
    let prepared = ours("-X p:3128 http://h:81/x");
    let target = &prepared.targets[0];
    assert_eq!(target.requests[0].target, "http://h:81/x");
    let expected = Transport::Tcp {
        host: "p".to_owned(),
        port: 3128,
    };
    assert_eq!(target.endpoint.transport, expected);
}

#[test]
fn urls_of_one_server_are_one_target() {
    let plan = ours("-c 4 -n 4 --urls /dev/null http://a/");
    assert_eq!(plan.targets.len(), 1);
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(
        file.path(),
        "http://a/1\nhttp://b/\nhttp://a/2\najp://a:80/\n",
    )
    .unwrap();
    let plan = ours(&format!("-n 9 --urls {}", file.path().display()));
    let requests: Vec<usize> = plan
        .targets
        .iter()
        .map(|target| target.requests.len())
        .collect();
    assert_eq!(requests, [2, 1, 1]);
    // Each target has a connection, if nobody says how many there are.
    assert_eq!(plan.pace.connections().get(), 3);
}

#[test]
fn ajp_says_where_the_client_thinks_it_is() {
    let prepared = ours("-k --secret s -H Host:shop.example:8443 ajp://h/a");
    let endpoint = &prepared.targets[0].endpoint;
    let Protocol::Ajp(ajp) = &endpoint.protocol else {
        panic!("{endpoint:?}");
    };
    assert_eq!(
        (ajp.server_name.as_str(), ajp.server_port),
        ("shop.example", 8443)
    );
    assert_eq!(ajp.secret.as_deref(), Some(&b"s"[..]));
    assert_eq!(prepared.subject.port, 8009);
}

#[test]
fn tls_names_the_host_unless_it_is_an_address() {
    let tls = |line| ours(line).targets[0].endpoint.tls.clone().unwrap();
    assert_eq!(tls("https://h/").server_name.as_deref(), Some("h"));
    assert_eq!(
        tls("-H Host:x https://h/").server_name.as_deref(),
        Some("x")
    );
    assert_eq!(tls("-I https://h/").server_name, None);
    assert_eq!(tls("https://127.0.0.1/").server_name, None);
    assert!(matches!(tls("https://h/").verify, Verify::Nothing));
    assert!(matches!(
        tls("--cacert /dev/null https://h/").verify,
        Verify::Roots(_)
    ));
}

#[test]
fn what_cannot_be_is_refused() {
    for (line, expected) in [
        (
            "-n 5",
            "there is no URL: give one, or a file of them with --urls",
        ),
        (
            "-c 5 -n 2 http://h/",
            "-c 5 are more clients than the 2 requests of -n",
        ),
        (
            "--arrivals poisson http://h/",
            "--arrivals goes with --rate only",
        ),
        (
            "-t 4 --duration 10s http://h/",
            "-t is ab's time limit and so the same as --duration: choose one; for threads give -W N",
        ),
        (
            "--stage 1s=1 --ramp 1s http://h/",
            "--stage and --ramp are two ways to say the same: choose one",
        ),
        (
            "--ramp 1s --stage 1s=1 http://h/",
            "--stage and --ramp are two ways to say the same: choose one",
        ),
        (
            "-X p https://h/",
            "a proxy (-X) is asked for http URLs only",
        ),
        (
            "-H nonsense http://h/",
            "the header line \"nonsense\" has no name before a colon",
        ),
        (
            "-q 50 http://h/",
            "\"50\" is no target: -q is ab's --quiet and takes no value; for a rate give --rate 50",
        ),
        (
            "-D body.txt http://h/",
            "\"body.txt\" is no target: -D is ab's --watchdog and takes no value; for a body from a \
             file give --data @body.txt",
        ),
        (
            "50",
            "\"50\" is no URL for bench: a number alone is no host; write http://HOST/ for what you \
             mean",
        ),
        (
            "merge http://h/",
            "\"merge\" is a reserved word: for a host of that name write http://merge/",
        ),
        (
            "ftp://h/",
            "\"ftp://h/\" is no URL for bench: the scheme is none of http, https, ajp, \
             memcached, http+unix, ajp+unix and memcached+unix",
        ),
    ] {
        let refusal = prepared(Mode::Ours, line).unwrap_err();
        assert_eq!(refusal.to_string(), expected, "{line}");
    }
}

#[test]
fn ab_ends_with_its_usage() {
    for (line, expected) in [
        ("", "wrong number of arguments"),
        ("http://h/ -k", "wrong number of arguments"),
        ("-J -k http://h/", "wrong number of arguments"),
        ("http://h", "invalid URL"),
        (
            "-c 5 -n 2 http://h/",
            "Cannot use concurrency level greater than total number of requests",
        ),
    ] {
        let refusal = prepared(Mode::Ab, line).unwrap_err();
        assert_eq!(refusal.as_ab(), AbEnd::Usage(expected.to_owned()), "{line}");
    }
}

#[test]
fn http2_has_streams_and_no_field_of_connections() {
    let run = ours("--http2 --streams 32 -c 10 https://h/");
    assert_eq!(run.targets[0].endpoint.protocol, Protocol::Http2);
    assert_eq!(run.connections.pipeline.get(), 32);
    assert_eq!(run.pace.connections().get(), 10);
    let subject = &run.subject;
    assert_eq!(
        (subject.protocol, subject.streams),
        (SpokenProtocol::Http2, 32)
    );
    assert!(head(&run).starts_with("GET /\nHost: h\n"));
    assert_eq!(ours("--h2 http://h/").connections.pipeline.get(), 1);
    for (line, expected) in [
        (
            "--streams 2 http://h/",
            "--streams goes with --http2 only; over HTTP/1.1 it is --pipeline",
        ),
        ("--http2 ajp://h/", "--http2 does not go with AJP13"),
        (
            "--http2 --http1.0 http://h/",
            "--http2 does not go with --http1.0",
        ),
        ("--http2 -X p http://h/", "--http2 does not go with -X"),
        (
            "--http2 --pipeline 2 http://h/",
            "--http2 does not go with --pipeline: give --streams",
        ),
    ] {
        let refusal = prepared(Mode::Ours, line).unwrap_err();
        assert_eq!(refusal.to_string(), expected, "{line}");
    }
}

#[test]
fn requests_of_a_file_or_a_log_go_with_no_others() {
    for (line, expected) in [
        (
            "--replay L --requests-file F http://h/",
            "--requests-file has the requests: it does not go with --replay",
        ),
        (
            "-n F.jsonl --head http://h/",
            "--requests-file has the requests: it does not go with a method or body",
        ),
        (
            "--requests-file F http://h/ http://i/",
            "--requests-file has the requests: it does not go with more than one URL",
        ),
        (
            "--replay L -n 5 http://h/",
            "--replay takes its requests and times from the log: it does not go with -n",
        ),
        (
            "--replay L http://h/{{n}}",
            "--replay takes its requests and times from the log: it does not go with placeholders",
        ),
    ] {
        let refusal = prepared(Mode::Ours, line).unwrap_err();
        assert_eq!(refusal.to_string(), expected, "{line}");
    }
}

#[test]
fn memcached_has_operations_of_each_client() {
    let plan = |line: &str| ours(&format!("{line} memcached://h"));
    let requests = |plan: &Plan| plan.stop.requests.map(NonZeroU64::get);
    for (line, expected) in [
        ("-c 5 -n 100", Some(500)),
        ("-n 100", Some(100)),
        ("--rate 10 -c 5 -n 100", Some(100)),
        ("-c 5", None),
    ] {
        assert_eq!(requests(&plan(line)), expected, "{line}");
    }
    let usual = plan("-n 1");
    assert!(usual.connections.keep_alive);
    assert_eq!(usual.checks.body_length, LengthCheck::Ignored);
    let operations: Vec<_> = usual.targets[0].requests.iter().collect();
    let operations = operations
        .iter()
        .map(|it| (&it.method[..], it.weight.get()));
    assert_eq!(operations.collect::<Vec<_>>(), [("get", 9), ("set", 1)]);
    let asked =
        ours("--mix set=2 --keys 5 --zipf 1.5 --value 1k --prefill --protocol text memcached://h");
    let Protocol::Memcached(memcached) = &asked.targets[0].endpoint.protocol else {
        panic!("{:?}", asked.targets[0].endpoint);
    };
    assert_eq!((memcached.keys.get(), memcached.value_bytes), (5, 1000));
    let subject = asked.subject.memcached.as_ref().unwrap();
    assert_eq!((subject.mix.as_str(), subject.prefilled), ("set=2", 5));
    let prefill = asked.prefill().unwrap();
    assert_eq!(
        (requests(&prefill), prefill.pace.connections().get()),
        (Some(5), 5)
    );
    for (line, expected) in [
        (
            "--zipf 1 http://h/",
            "--zipf goes with a memcached:// URL only",
        ),
        ("--http2 memcached://h", "does not go with --http2"),
        ("-p /dev/null memcached://h", "a method or body"),
        ("-f TLS1.3 memcached://h", "does not go with TLS"),
        ("memcached://h memcached://i", "another URL"),
        ("--check-bodies memcached://h", "every value is checked"),
    ] {
        let refusal = prepared(Mode::Ours, line).unwrap_err().to_string();
        assert!(refusal.contains(expected), "{line}: {refusal}");
    }
}
