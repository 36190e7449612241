use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use catamaran_testkit::Deadline;

use super::*;

fn limits(max_threads: usize, max_queue_size: usize) -> Limits {
    Limits {
        max_threads,
        min_spare_threads: 1,
        max_queue_size,
        max_idle_time: Duration::from_secs(3600),
    }
}

/// A job that sends its number and then waits at the gate.
fn held(number: usize, said: &SyncSender<usize>, gate: &Gate) -> Job {
    let (said, gate) = (said.clone(), Arc::clone(&gate.0));
    Box::new(move || {
        said.send(number).unwrap();
        let _ = gate.lock().unwrap().recv();
    })
}

/// A gate at which jobs wait. Each message lets one job go; dropping the sender lets all
/// go.
struct Gate(Arc<Mutex<Receiver<()>>>);

fn gate() -> (SyncSender<()>, Gate) {
    let (open, opened) = sync_channel(100);
    (open, Gate(Arc::new(Mutex::new(opened))))
}

fn hear(said: &Receiver<usize>) -> usize {
    said.recv_timeout(LONG).unwrap()
}

fn wait_for(pool: &Pool, expected: Usage) {
    Deadline::default()
        .poll(format!("{expected:?}"), || {
            (pool.usage() == expected).then_some(())
        })
        .unwrap_or_else(|expired| panic!("{expired}: {:?}", pool.usage()));
}

#[test]
fn jobs_get_threads_then_places_in_the_queue_then_nothing() {
    let pool = Pool::start("test", limits(2, 1)).unwrap();
    let (said, heard) = sync_channel(10);
    let (open, gate) = gate();
    for number in 0..3 {
        assert!(pool.run(held(number, &said, &gate)).is_ok(), "{number}");
    }
    assert!(pool.run(held(3, &said, &gate)).is_err());
    let mut first = [hear(&heard), hear(&heard)];
    first.sort_unstable();
    assert_eq!(first, [0, 1]);
    wait_for(
        &pool,
        Usage {
            threads: 2,
            busy: 2,
            queued: 1,
        },
    );
    open.send(()).unwrap();
    assert_eq!(hear(&heard), 2, "what waited gets the first thread free");
    drop(open);
    pool.close();
    assert_eq!(pool.join(LONG), 0);
    assert_eq!(pool.usage(), Usage::default());
}

#[test]
fn threads_are_reused() {
    let pool = Pool::start("test", limits(50, 0)).unwrap();
    let (said, heard) = sync_channel(10);
    let (open, gate) = gate();
    drop(open);
    let spare = Usage {
        threads: 1,
        busy: 0,
        queued: 0,
    };
    for number in 0..20 {
        wait_for(&pool, spare);
        assert!(pool.run(held(number, &said, &gate)).is_ok());
        assert_eq!(hear(&heard), number);
    }
    wait_for(&pool, spare);
}

#[test]
fn threads_beyond_the_spare_ones_end_when_idle() {
    let quick = Limits {
        max_idle_time: Duration::from_millis(1),
        ..limits(8, 8)
    };
    let pool = Pool::start("test", quick).unwrap();
    let (said, heard) = sync_channel(10);
    let (open, gate) = gate();
    for number in 0..8 {
        assert!(pool.run(held(number, &said, &gate)).is_ok());
    }
    for _ in 0..8 {
        hear(&heard);
    }
    assert_eq!(pool.usage().threads, 8);
    drop(open);
    wait_for(
        &pool,
        Usage {
            threads: 1,
            busy: 0,
            queued: 0,
        },
    );
}

#[test]
fn a_panic_costs_no_thread() {
    let pool = Pool::start("test", limits(1, 9)).unwrap();
    let (said, heard) = sync_channel(10);
    let (open, gate) = gate();
    drop(open);
    assert!(pool.run(Box::new(|| panic!("asked to"))).is_ok());
    assert!(pool.run(held(1, &said, &gate)).is_ok());
    assert_eq!(hear(&heard), 1);
}

#[test]
fn a_closed_pool_runs_what_waits_and_takes_nothing_more() {
    let pool = Pool::start("test", limits(1, 9)).unwrap();
    let (said, heard) = sync_channel(10);
    let (open, gate) = gate();
    for number in 0..3 {
        assert!(pool.run(held(number, &said, &gate)).is_ok());
    }
    pool.close();
    assert!(pool.run(held(3, &said, &gate)).is_err());
    drop(open);
    assert_eq!(pool.join(LONG), 0);
    let all: Vec<usize> = heard.try_iter().collect();
    assert_eq!(all, [0, 1, 2]);
}

const LONG: Duration = Duration::from_secs(20);
