//! Visitors of the webapp: those that return with their session, and a stream of new ones.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use catamaran_testkit::HttpClient;

use crate::network::{self, FRONT};

/// A client that keeps its session cookie.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visitor {
    cookie: Option<String>,
    /// The node of the last visit, and the number of visits in the session by then.
    pub(crate) node: String,
    visits: u32,
}

impl Visitor {
    /// A new visitor, on its first visit.
    pub(crate) fn arrive() -> anyhow::Result<Self> {
        let mut visitor = Self::default();
        visitor.visit()?;
        ensure!(
            visitor.visits == 1,
            "a new visitor is on visit {}",
            visitor.visits
        );
        Ok(visitor)
    }

    /// Visits again; an error if it is another node or another session.
    pub(crate) fn return_to_session(&mut self) -> anyhow::Result<()> {
        let (node, visits) = (self.node.clone(), self.visits);
        self.visit()?;
        ensure!(
            (&self.node, self.visits) == (&node, visits + 1),
            "the session of {node} with {visits} visits: {} answers that there were {}",
            self.node,
            self.visits
        );
        Ok(())
    }

    /// Sends a request with the visitor's cookie. Notes the session, its node and the count of visits that the page has.
    fn visit(&mut self) -> anyhow::Result<()> {
        let cookie = match &self.cookie {
            Some(id) => format!("Cookie: JSESSIONID={id}\r\n"),
            None => String::new(),
        };
        let request = format!(
            "GET /demo/ HTTP/1.1\r\nHost: shop.example.org\r\nConnection: close\r\n{cookie}\r\n"
        );
        let answer = HttpClient::connect(network::address(FRONT))?.ask(request.as_bytes())?;
        let text = answer.text();
        ensure!(answer.status == 200, "{} {text}", answer.status);
        if let Some(set) = answer.header("set-cookie") {
            let id = set.split(['=', ';']).nth(1).context("a cookie")?;
            self.cookie = Some(id.to_owned());
        }
        let (node, visits) = text.trim().split_once(' ').context("another page")?;
        let id = self.cookie.as_deref().context("no session")?;
        ensure!(
            id.ends_with(&format!(".{node}")),
            "{node} answers, and the session is {id}"
        );
        (self.node, self.visits) = (node.to_owned(), visits.parse()?);
        Ok(())
    }
}

/// The results of new visitors.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    seen: Mutex<Seen>,
    ended: AtomicBool,
}

/// The number of visits by node, and the failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) served: BTreeMap<String, u64>,
    pub(crate) failed: Vec<String>,
}

impl Stream {
    /// Sends new visitors while `work` runs.
    pub(crate) fn during<T>(
        work: impl FnOnce(&Self) -> anyhow::Result<T>,
    ) -> anyhow::Result<(T, Seen)> {
        let stream = Self::default();
        let result = thread::scope(|scope| {
            for _ in 0..STREAMS {
                scope.spawn(|| stream.flow());
            }
            let result = work(&stream);
            stream.ended.store(true, Ordering::Relaxed);
            result
        })?;
        let seen = stream.seen();
        Ok((result, seen))
    }

    /// The results so far.
    pub(crate) fn seen(&self) -> Seen {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }

    /// Lets one new visitor after the other arrive, until the stream ends.
    fn flow(&self) {
        while !self.ended.load(Ordering::Relaxed) {
            let arrival = Visitor::arrive();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            match arrival {
                Ok(visitor) => *seen.served.entry(visitor.node).or_default() += 1,
                Err(error) => seen.failed.push(format!("{error:#}")),
            }
            drop(seen);
            thread::park_timeout(PACE);
        }
    }
}

impl Seen {
    pub(crate) fn total(&self) -> u64 {
        self.served.values().sum::<u64>() + self.failed.len() as u64
    }
}

/// The number of visitors at a time, and the pause of each between visits.
const STREAMS: usize = 2;
const PACE: Duration = Duration::from_millis(20);
