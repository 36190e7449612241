//! Limits how many events of one kind are written: clients and backends can cause some of them with every request,
//! and hundreds of thousands of lines a second help nobody.
//!
//! All events that one place in the program emits are of one kind. Up to [`SAID_MAX`] events of a kind are written
//! within a period. When the period ends, a thread writes how many were left out; a process that serves also writes
//! this when it ends. Events about operators' changes have no limit.

use std::collections::HashMap;
use std::fmt::{self, Debug, Write as _};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::say;

/// A layer of tracing that counts events and leaves some out. Clones share their state.
#[derive(Clone, Default)]
pub(crate) struct Limit(Arc<LimitState>);

#[derive(Default)]
struct LimitState {
    kinds: Mutex<Kinds>,
    /// Notified when the first event of a period is left out.
    news: Condvar,
}

type Kinds = HashMap<Identifier, Window>;

/// The current period of a kind.
struct Window {
    began: Instant,
    said: u32,
    /// The events that were left out in this period: their number, and the text of the first one.
    left_out: Option<LeftOut>,
}

struct LeftOut {
    count: u64,
    level: Level,
    words: String,
}

impl<S: Subscriber> Layer<S> for Limit {
    fn event_enabled(&self, event: &Event<'_>, _context: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if metadata.target() == AUDIT {
            return true;
        }
        let now = now();
        let mut kinds = self.lock();
        // Here too, because commands that do not serve have no thread that does it.
        for summary in summaries(&mut kinds, now, PERIOD) {
            // The reader of the log may be gone.
            say(summary).ok();
        }
        let window = kinds.entry(metadata.callsite()).or_insert_with(|| Window {
            began: now,
            said: 0,
            left_out: None,
        });
        if window.said < SAID_MAX {
            window.said += 1;
            return true;
        }
        let left_out = window.left_out.get_or_insert_with(|| LeftOut {
            count: 0,
            level: *metadata.level(),
            words: words(event),
        });
        left_out.count += 1;
        if left_out.count == 1 {
            self.0.news.notify_one();
        }
        false
    }
}

impl Limit {
    /// Starts the thread that calls `say` at the end of each period with the lines about what was left out.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(super) fn watch(&self, say: impl Fn(String) + Send + 'static) -> io::Result<()> {
        let limit = self.clone();
        let thread = thread::Builder::new().name("log limit".to_owned());
        thread.spawn(move || limit.say_in_time(say)).map(drop)
    }

    fn say_in_time(&self, say: impl Fn(String)) {
        let mut kinds = self.lock();
        loop {
            let now = now();
            for summary in summaries(&mut kinds, now, PERIOD) {
                say(summary);
            }
            // The time until the next summary is due; without messages that were left out, none is.
            let waiting = kinds.values().filter(|window| window.left_out.is_some());
            let times = waiting.map(|window| PERIOD.saturating_sub(window.age(now)));
            let news = &self.0.news;
            kinds = match times.min() {
                None => news.wait(kinds).unwrap_or_else(PoisonError::into_inner),
                Some(time) => {
                    let result = news.wait_timeout(kinds, time);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    /// Ends all periods, and returns the lines about what was left out in them. It is called when the process ends.
    pub(super) fn rest(&self) -> Vec<String> {
        summaries(&mut self.lock(), now(), Duration::ZERO)
    }

    fn lock(&self) -> MutexGuard<'_, Kinds> {
        self.0.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.began)
    }
}

/// Ends the periods whose age is at least `old`, and returns one line for each in which events were left out.
fn summaries(kinds: &mut Kinds, now: Instant, old: Duration) -> Vec<String> {
    let mut summaries = Vec::new();
    kinds.retain(|_, window| {
        let age = window.age(now);
        let is_over = age >= old;
        if let Some(LeftOut {
            count,
            level,
            words,
        }) = window.left_out.take_if(|_| is_over)
        {
            let at = Timestamp::now();
            summaries.push(format!(
                "{at:.6} {level:>5} {count} more lines within {} s were left out, such as: {words}",
                age.as_secs().clamp(1, PERIOD.as_secs())
            ));
        }
        !is_over
    });
    summaries
}

/// The message and the fields of an event on one line.
fn words(event: &Event<'_>) -> String {
    struct Words(String);
    impl Visit for Words {
        fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
            // A string takes all.
            let _ = match field.name() {
                "message" => write!(self.0, " {value:?}"),
                name => write!(self.0, " {name}={value:?}"),
            };
        }
    }
    let mut words = Words(String::new());
    event.record(&mut words);
    words
        .0
        .trim_start()
        .replace(|c: char| c.is_control(), "\u{fffd}")
}

impl Debug for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Limit(..)")
    }
}

#[expect(clippy::disallowed_methods, reason = "a log counts lines in real time")]
fn now() -> Instant {
    Instant::now()
}

/// The target of the events about operators' changes, which are always written.
const AUDIT: &str = "audit";

/// How many events of a kind are written within a period.
const SAID_MAX: u32 = 100;

/// The length of a period.
const PERIOD: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    /// Collects what was written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_one_kind_so_many_are_said_and_others_are_not_concerned() {
        let page = Page::default();
        let writer = page.clone();
        let lines = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish()
            .with(Limit::default());
        tracing::subscriber::with_default(lines, || {
            for number in 0..1000 {
                tracing::warn!(number, "a request failed");
                tracing::info!(target: "audit", number, "change");
            }
            tracing::warn!("another kind");
        });
        let said = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        let count = |word: &str| said.lines().filter(|line| line.contains(word)).count();
        assert_eq!(count("a request failed"), SAID_MAX as usize);
        assert_eq!(count("change"), 1000);
        assert_eq!(count("another kind"), 1);
    }

    #[test]
    fn a_kind_is_said_again_in_its_next_period() {
        limited(|limit| {
            say_too_much();
            let earlier = now()
                .checked_sub(PERIOD)
                .expect("the machine is up for longer");
            limit.lock().values_mut().for_each(|it| it.began = earlier);
            say_too_much();
            let left_out = |it: &Window| it.left_out.as_ref().map(|left_out| left_out.count);
            let counts: Vec<_> = limit.lock().values().map(left_out).collect();
            assert_eq!(counts, [Some(1)], "none of the period before");
        });
    }

    #[test]
    fn what_was_left_out_is_counted_when_the_period_is_over() {
        let limit = Limit::default();
        let page = Page::default();
        let writer = page.clone();
        let lines = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .finish();
        let lines = lines.with(limit);
        let began = now();
        tracing::subscriber::with_default(lines, || {
            for number in 0..SAID_MAX + 7 {
                tracing::warn!(number, "refused\nforged");
            }
            tracing::dispatcher::get_default(|dispatch| {
                let limit = dispatch.downcast_ref::<Limit>().expect("the layer");
                let mut kinds = limit.lock();
                assert_eq!(summaries(&mut kinds, began, PERIOD), [""; 0], "not yet");
                let said = summaries(&mut kinds, began + PERIOD * 2, PERIOD);
                let [said] = &said[..] else {
                    panic!("one kind: {said:?}")
                };
                assert!(
                    said.contains(" WARN 7 more lines within 10 s were left out"),
                    "{said}"
                );
                assert!(said.ends_with("refused\u{fffd}forged number=100"), "{said}");
                assert!(kinds.is_empty());
            });
        });
    }

    /// Runs a test with a limit, and discards what is written.
    fn limited(test: impl FnOnce(&Limit)) {
        let limit = Limit::default();
        let lines = tracing_subscriber::fmt().with_writer(io::sink).finish();
        tracing::subscriber::with_default(lines.with(limit.clone()), || test(&limit));
    }

    /// Emits one event more than are written in a period.
    fn say_too_much() {
        (0..=SAID_MAX).for_each(|_| tracing::warn!("refused"));
    }

    /// What was left out must be reported although no further event follows.
    #[test]
    fn a_period_that_ends_is_told_by_itself() {
        limited(|limit| {
            let (told, said) = std::sync::mpsc::sync_channel(10);
            limit.watch(move |line| told.send(line).unwrap()).unwrap();
            say_too_much();
            // As if it had begun that much earlier.
            let earlier = now()
                .checked_sub(PERIOD)
                .expect("the machine is up for longer");
            limit.lock().values_mut().for_each(|it| it.began = earlier);
            limit.0.news.notify_one();
            let line = said.recv_timeout(PERIOD * 3).unwrap();
            assert!(line.contains(" WARN 1 more lines within 10 s "), "{line}");
        });
    }

    #[test]
    fn the_end_of_the_process_tells_what_was_left_out_so_far() {
        limited(|limit| {
            assert_eq!(limit.rest(), [""; 0]);
            say_too_much();
            let said = limit.rest();
            assert!(
                said.len() == 1 && said[0].contains(" WARN 1 more lines "),
                "{said:?}"
            );
            assert_eq!(limit.rest(), [""; 0], "once");
        });
    }
}
