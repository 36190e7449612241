//! memcached's protocols: a server that keeps what it is given, and peers that answer wrongly.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;

use catamaran_load::Dialect;
use catamaran_load::plan::{
    KeyOrder, LengthCheck, Memcached, Operation, Plan, PlanFault, Protocol, Request,
};
use catamaran_load::report::{Ending, FailureKind, Operations, Report, Warning};
use catamaran_load::start;
use catamaran_testkit::{Address, Peer, Script};

use crate::bench::{closed, open, pipelined, plan, requests, run};

fn asked(dialect: Dialect) -> Memcached {
    Memcached {
        dialect,
        keys: NonZeroU64::new(100).unwrap(),
        order: KeyOrder::Uniform,
        value_bytes: 64,
    }
}

fn weight(weight: u32) -> NonZeroU32 {
    NonZeroU32::new(weight).unwrap()
}

fn plan_of(address: &Address, asked: Memcached) -> Plan {
    let mut plan = plan(address);
    plan.targets[0].endpoint.protocol = Protocol::Memcached(asked);
    plan.targets[0].requests = vec![
        Request::operation(Operation::Get, weight(9)),
        Request::operation(Operation::Set, weight(1)),
    ];
    plan.checks.body_length = LengthCheck::Ignored;
    plan
}

/// A server with both dialects, as far as this generator speaks them. Dropping it ends its accepting.
struct Store {
    address: Address,
    counts: Arc<Mutex<Operations>>,
    stopping: Arc<AtomicBool>,
}

impl Store {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address: Address = listener.local_addr().unwrap().into();
        let (counts, stopping) = (Arc::default(), Arc::<AtomicBool>::default());
        let (counted, flag) = (Arc::clone(&counts), Arc::clone(&stopping));
        let values: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if flag.load(SeqCst) {
                    return;
                }
                let (values, counted) = (Arc::clone(&values), Arc::clone(&counted));
                thread::spawn(move || serve(&stream.unwrap(), &values, &counted));
            }
        });
        Self {
            address,
            counts,
            stopping,
        }
    }

    fn counts(&self) -> Operations {
        *self.counts.lock().unwrap()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stopping.store(true, SeqCst);
        if let Address::Tcp(address) = &self.address {
            // Wakes the acceptor; if that fails, it has ended already.
            let _ = TcpStream::connect(address);
        }
    }
}

fn serve(stream: &TcpStream, values: &Mutex<HashMap<String, Vec<u8>>>, counts: &Mutex<Operations>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|len| len > 0) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut counts = counts.lock().unwrap();
        let answer = match words[0] {
            "ms" | "set" => {
                let length: usize = words.last().unwrap().parse().unwrap();
                let mut value = vec![0; length + 2];
                reader.read_exact(&mut value).unwrap();
                assert!(value.ends_with(b"\r\n"));
                value.truncate(length);
                values.lock().unwrap().insert(words[1].to_owned(), value);
                counts.stored += 1;
                let stored = if words[0] == "ms" {
                    "HD\r\n"
                } else {
                    "STORED\r\n"
                };
                stored.as_bytes().to_vec()
            }
            "mg" | "get" => {
                let found = values.lock().unwrap().get(words[1]).cloned();
                counts.hits += u64::from(found.is_some());
                counts.misses += u64::from(found.is_none());
                answer_to_get(words[0] == "mg", words[1], found)
            }
            other => panic!("{other}"),
        };
        drop(counts);
        if (&*stream).write_all(&answer).is_err() {
            return;
        }
        line.clear();
    }
}

fn answer_to_get(is_meta: bool, key: &str, found: Option<Vec<u8>>) -> Vec<u8> {
    match (found, is_meta) {
        (None, true) => b"EN\r\n".to_vec(),
        (None, false) => b"END\r\n".to_vec(),
        (Some(value), true) => {
            let head = format!("VA {} k{key}\r\n", value.len());
            [head.as_bytes(), &value, b"\r\n"].concat()
        }
        (Some(value), false) => {
            let head = format!("VALUE {key} 0 {}\r\n", value.len());
            [head.as_bytes(), &value, b"\r\nEND\r\n"].concat()
        }
    }
}

fn operations(report: &Report) -> Operations {
    report.operations.unwrap()
}

#[test]
fn both_dialects_count_what_the_server_counts() {
    for dialect in [Dialect::Meta, Dialect::Text] {
        for depth in [1, 16] {
            let store = Store::start();
            let report = run(Plan {
                pace: closed(7),
                stop: requests(5000),
                threads: NonZeroUsize::new(2).unwrap(),
                connections: pipelined(depth),
                ..plan_of(&store.address, asked(dialect))
            });
            assert_eq!(report.ending, Ending::Requests);
            assert_eq!(report.requests.ok, 5000, "{:?}", report.failures);
            assert_eq!(operations(&report), store.counts());
            let stored = operations(&report).stored;
            assert!(
                (350..650).contains(&stored),
                "{stored} of 5000 are to be a tenth"
            );
            assert!(operations(&report).misses > 0 && operations(&report).hits > 0);
            assert_eq!(report.bytes.received_bodies, 64 * operations(&report).hits);
            assert_eq!(report.bytes.sent_bodies, 64 * stored);
            assert_eq!((report.connections.opened, report.requests.non_2xx), (7, 0));
            assert!(report.statuses.is_empty());
            let names: Vec<_> = report
                .by_name
                .iter()
                .map(|it| (it.name.as_str(), it.completed))
                .collect();
            assert_eq!(
                names,
                [("get", operations(&report).gets()), ("set", stored)]
            );
        }
    }
}

#[test]
fn keys_that_were_stored_before_are_all_found() {
    let store = Store::start();
    let plan = Plan {
        pace: closed(3),
        stop: requests(500),
        ..plan_of(
            &store.address,
            Memcached {
                order: KeyOrder::Zipf(0.99),
                ..asked(Dialect::Meta)
            },
        )
    };
    let prefilled = run(plan.prefill().unwrap());
    assert_eq!(operations(&prefilled).stored, 100);
    assert_eq!(store.counts().stored, 100);
    let report = run(plan);
    assert_eq!((operations(&report).misses, report.requests.failed), (0, 0));
    assert!(operations(&report).hits > 0);
}

#[test]
fn an_open_loop_and_a_limit_of_requests_work_as_for_http() {
    let store = Store::start();
    let mut plan = plan_of(&store.address, asked(Dialect::Meta));
    plan.pace = open(2000.0, 4, 1000);
    plan.stop = requests(300);
    plan.connections.requests_max = NonZeroU64::new(50);
    let report = run(plan);
    assert_eq!(report.requests.ok, 300, "{:?}", report.failures);
    assert!(
        report.connections.opened >= 6,
        "{}",
        report.connections.opened
    );
    assert_eq!(report.latency.corrected.unwrap().censored.count(), 300);
}

/// Three gets of one key on a connection, of which the second is answered by `second`.
fn second_of_three(second: &'static [u8]) -> Report {
    let get = || Script::new().expect_until(b"v\r\n");
    let peer = Peer::start_with(move |_| {
        let miss = || get().send(b"EN\r\n");
        miss().then(get().send(second)).then(miss()).stall()
    });
    let mut plan = plan_of(
        peer.address(),
        Memcached {
            keys: NonZeroU64::MIN,
            ..asked(Dialect::Meta)
        },
    );
    plan.targets[0].requests.truncate(1);
    plan.stop = requests(3);
    run(plan)
}

/// A wrong value and a refusal are failures of their operation; the connection goes on.
#[test]
fn what_is_wrong_is_a_failure_and_no_hit() {
    for (second, kind, reason) in [
        (
            &b"VA 3 kcatamaran:0\r\nabc\r\n"[..],
            FailureKind::WrongValue,
            None,
        ),
        (b"VA 3 kanother\r\nabc\r\n", FailureKind::WrongValue, None),
        (
            b"SERVER_ERROR out of memory writing get response\r\n",
            FailureKind::ServerError,
            Some("SERVER_ERROR out of memory writing get response"),
        ),
    ] {
        let report = second_of_three(second);
        assert_eq!(
            (report.requests.ok, report.requests.failed),
            (2, 1),
            "{kind:?}"
        );
        assert_eq!(report.failures.of(kind), 1, "{:?}", report.failures);
        assert_eq!(operations(&report).misses, 2);
        assert_eq!(report.connections.opened, 1, "{kind:?}");
        assert_eq!(
            report.failure_reasons.get(&kind).map(String::as_str),
            reason
        );
    }
}

/// Nobody knows what a server reads next that did not understand, or what follows a reply that is none.
#[test]
fn what_is_no_reply_ends_the_connection() {
    for (second, kind) in [
        (
            &b"CLIENT_ERROR bad command line format\r\n"[..],
            FailureKind::ServerError,
        ),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", FailureKind::BadReply),
        (b"VA 1 kcatamaran:0\r\nabc\r\n", FailureKind::BadReply),
        (b"EN\r\nEN\r\n", FailureKind::Excess),
    ] {
        let report = second_of_three(second);
        assert_eq!(
            (report.requests.ok, report.requests.failed),
            (2, 1),
            "{kind:?}"
        );
        assert_eq!(report.failures.of(kind), 1, "{:?}", report.failures);
        assert_eq!(report.connections.opened, 2, "{kind:?}");
    }
}

#[test]
fn gets_that_find_nothing_are_warned_of() {
    let store = Store::start();
    let mut plan = plan_of(&store.address, asked(Dialect::Text));
    plan.targets[0].requests.truncate(1);
    plan.stop = requests(10);
    let report = run(plan);
    let warning = Warning::Misses { count: 10, of: 10 };
    assert!(report.warnings.contains(&warning), "{:?}", report.warnings);
    assert!(report.is_sound());
}

#[test]
fn plans_that_make_no_sense_are_refused() {
    let fault = |change: fn(&mut Plan)| {
        let mut plan = plan_of(
            &Address::Tcp(([127, 0, 0, 1], 1).into()),
            asked(Dialect::Meta),
        );
        change(&mut plan);
        start(plan).err().unwrap()
    };
    assert_eq!(
        fault(|plan| plan.connections.keep_alive = false),
        PlanFault::MemcachedWithoutKeepAlive
    );
    assert_eq!(
        fault(|plan| plan.cookie_jar = true),
        PlanFault::MemcachedBeside
    );
    let with = |asked: Memcached| {
        let address = Address::Tcp(([127, 0, 0, 1], 1).into());
        start(plan_of(&address, asked)).err().unwrap()
    };
    let short = Memcached {
        value_bytes: 21,
        ..asked(Dialect::Meta)
    };
    assert_eq!(with(short), PlanFault::ValueSize { bytes: 21, min: 22 });
    for exponent in [0.0, -1.0, f64::NAN, 11.0] {
        let asked = Memcached {
            order: KeyOrder::Zipf(exponent),
            ..asked(Dialect::Meta)
        };
        assert_eq!(with(asked), PlanFault::Exponent);
    }
    let fault = fault(|plan| "delete".clone_into(&mut plan.targets[0].requests[0].method));
    assert!(
        fault
            .to_string()
            .contains("`delete` is none of get and set"),
        "{fault}"
    );
}
