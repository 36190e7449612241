//! Which way of holding servers to parts of a core tells the truth about ratios of throughput.
//!
//! A core is simulated that a front and the application behind it share, in a closed loop whose load has a core of its
//! own. The kernel looks at its account every 4 ms, so a quota is overrun, and what was overrun is missing in the next
//! period. A weighted scheduler runs the process that has had the least of its weight.

/// How the two servers are held to their parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Quota {
        period_us: u64,
    },
    /// By weights, with a process that takes what the two parts leave.
    Spinner,
}

/// CPU time of a request in µs, and the part of the core in thousandths.
#[derive(Clone, Copy, Debug)]
struct Part {
    work_us: u64,
    thousandths: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    thousandths: u64,
    work_us: u64,
    /// Requests that wait for it.
    queue: u64,
    /// CPU time spent on its current request.
    done_us: u64,
    /// The time that it had, by its weight.
    virtual_time: u64,
    /// The rest of its quota in this period.
    left_us: i64,
}

/// Requests a second.
fn throughput(way: Way, front: Part, app: Option<Part>) -> f64 {
    let process = |part: Part, queue| Process {
        thousandths: part.thousandths,
        work_us: part.work_us,
        queue,
        ..Process::default()
    };
    let mut all = vec![process(front, CLIENTS)];
    all.extend(app.map(|app| process(app, 0)));
    if way == Way::Spinner {
        let taken: u64 = all.iter().map(|it| it.thousandths).sum();
        let spinner = Part {
            work_us: u64::MAX,
            thousandths: 1000 - taken,
        };
        all.push(process(spinner, 1));
    }
    let (mut running, mut answers) = (None, 0_u64);
    for now in 0..SPAN_US {
        if let Way::Quota { period_us } = way
            && now % period_us == 0
        {
            for it in &mut all {
                let quota = (it.thousandths * period_us / 1000).cast_signed();
                it.left_us = quota.min(it.left_us + quota);
            }
        }
        let is_tick = now % TICK_US == 0;
        let may_begin = |it: &Process| it.queue > 0 && (way == Way::Spinner || it.left_us > 0);
        // Who runs goes on until the tick, unless nothing waits for him.
        let goes_on = running.filter(|&place: &usize| !is_tick && all[place].queue > 0);
        running = goes_on.or_else(|| {
            let ready = (0..all.len()).filter(|&place| may_begin(&all[place]));
            ready.min_by_key(|&place| all[place].virtual_time)
        });
        let Some(place) = running else {
            continue;
        };
        let it = &mut all[place];
        it.left_us -= 1;
        it.virtual_time += 1_000_000 / it.thousandths;
        it.done_us += 1;
        if it.done_us < it.work_us {
            continue;
        }
        it.done_us = 0;
        it.queue -= 1;
        // The front asks the application, and the load asks again at once.
        let next = usize::from(place == 0 && app.is_some());
        wake(&mut all, next);
        answers += u64::from(next == 0);
    }
    answers as f64 / (SPAN_US as f64 / 1e6)
}

/// One more request waits for `place`. Who has slept has saved nothing up.
fn wake(all: &mut [Process], place: usize) {
    if all[place].queue == 0 {
        let others = all.iter().filter(|it| it.queue > 0);
        let least = others.map(|it| it.virtual_time).min().unwrap_or(0);
        all[place].virtual_time = all[place].virtual_time.max(least);
    }
    all[place].queue += 1;
}

/// The throughput of a front divided by that of fronts that take 1.05, 1.10 and 1.20 times its CPU time.
fn told(way: Way, app: Option<Part>) -> [f64; 3] {
    let of = |work_us| {
        let thousandths = 500;
        let front = Part {
            work_us,
            thousandths,
        };
        throughput(way, front, app)
    };
    let one = of(100);
    [105, 110, 120].map(|work_us| one / of(work_us))
}

#[test]
fn a_quota_tells_the_truth_whatever_else_is_on_the_core() {
    for period_us in [5_000, 10_000, 20_000, 100_000] {
        for app in [None, Some(APP)] {
            let told = told(Way::Quota { period_us }, app);
            is_about(told, [1.05, 1.10, 1.20], 0.005);
        }
    }
}

#[test]
fn weights_tell_the_truth_of_a_server_that_is_alone() {
    is_about(told(Way::Spinner, None), [1.05, 1.10, 1.20], 0.005);
}

/// The application sleeps for some of its part, and leaves it to front and spinner by their weights, 5 to 1: of each
/// second the front has (1 − 50 µs × throughput) × 5/6. So a true 1.20 is measured as (120 + 41.7) / (100 + 41.7).
#[test]
fn weights_tell_too_little_where_another_server_sleeps() {
    is_about(told(Way::Spinner, Some(APP)), [1.035, 1.071, 1.141], 0.01);
}

#[track_caller]
fn is_about(told: [f64; 3], expected: [f64; 3], off: f64) {
    let mut pairs = told.iter().zip(expected);
    let is_near = pairs.all(|(told, expected)| (told - expected).abs() < off);
    assert!(is_near, "{told:?}, not {expected:?}");
}

const APP: Part = Part {
    work_us: 50,
    thousandths: 400,
};

/// Requests under way.
const CLIENTS: u64 = 50;

/// 250 ticks a second.
const TICK_US: u64 = 4_000;

/// Four seconds.
const SPAN_US: u64 = 4_000_000;
