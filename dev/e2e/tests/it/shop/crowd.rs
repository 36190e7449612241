//! A thousand clients with cookie jars, at work until the crowd is dropped.
//!
//! Some threads move them: each thread has a share of the clients and lets one after another make a
//! request, all over one connection, so that the requests of many sessions follow one another there.
//! Every eighth request is an order, a POST that must not run twice. Each answer is held against what
//! the client knows of its session.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use catamaran_testkit::{Deadline, Failure, HttpClient, Response};

/// The clients, and what became of their requests.
pub(super) struct Crowd {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What became of requests since the crowd came, or since [`Crowd::forget`].
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Sessions begun by clients that had none, by the backend that began them.
    pub(super) begun: BTreeMap<String, u32>,
    /// Sessions that a backend did not know although nobody had ended them, by webapp and by the
    /// backend that had them.
    pub(super) lost: BTreeMap<(String, String), u32>,
    /// Sessions that were continued by another backend.
    pub(super) moved: u32,
    /// Sessions that another version of the webapp continued.
    pub(super) changed: u32,
    /// Clients without a session that a draining backend sent to another one.
    pub(super) sent_on: u32,
    /// Answers other than 200, and connections that failed, by method and webapp.
    pub(super) failed: BTreeMap<(String, String, String), u32>,
    /// Requests answered with 200.
    pub(super) served: u32,
    /// Versions of the webapp in answers, by the backend.
    pub(super) versions: BTreeMap<(String, String), u32>,
}

#[derive(Default)]
struct Shared {
    // A std mutex: held to look or to count, never across a request.
    state: Mutex<State>,
    changed: Condvar,
    /// Numbers of orders given so far.
    orders: AtomicU64,
}

#[derive(Default)]
struct State {
    front: Option<SocketAddr>,
    /// Nobody begins a request.
    paused: bool,
    over: bool,
    /// Threads between two requests, because of `paused`.
    resting: usize,
    /// Clients of this backend end their sessions.
    leaving: Option<String>,
    /// Clients of these webapps make requests; all if there are none.
    only: Vec<&'static str>,
    /// How often each thread has been through with its clients.
    rounds: Vec<u64>,
    seen: Seen,
    /// Orders answered with 200.
    confirmed: Vec<u64>,
    /// Clients with a session, by backend.
    sessions: BTreeMap<String, u32>,
}

struct Client {
    webapp: &'static str,
    /// `NAME=VALUE`, as the cookie jar has it.
    cookie: Option<String>,
    /// Of the session: what comes before the route.
    id: String,
    route: String,
    visits: u32,
    version: String,
    /// It has ended its session, but the cookie is still in the jar.
    left: bool,
}

impl Crowd {
    /// Clients of these webapps in equal parts, at work on this front.
    pub(super) fn come(front: SocketAddr, webapps: &[&'static str]) -> Self {
        let shared = Arc::new(Shared::default());
        shared.lock().front = Some(front);
        shared.lock().rounds = vec![0; THREADS];
        let start = |thread: usize| {
            let clients = (thread..CLIENTS).step_by(THREADS);
            let clients =
                clients.map(|number| Client::new(webapps[number / THREADS % webapps.len()]));
            let (clients, shared) = (clients.collect(), Arc::clone(&shared));
            thread::spawn(move || work(clients, thread, &shared))
        };
        let threads = (0..THREADS).map(start).collect();
        Self { shared, threads }
    }

    /// Waits until every client has made another request.
    pub(super) fn another_round(&self) {
        let mut state = self.shared.lock();
        // The round under way may have begun before.
        let until: Vec<u64> = state.rounds.iter().map(|done| done + 2).collect();
        let deadline = Deadline::default();
        while state
            .rounds
            .iter()
            .zip(&until)
            .any(|(done, until)| done < until)
        {
            let left = deadline.remaining().expect("clients make requests");
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets all requests end, and no others begin.
    pub(super) fn pause(&self) {
        let mut state = self.shared.lock();
        state.paused = true;
        let deadline = Deadline::default();
        while state.resting < THREADS {
            let left = deadline.remaining().expect("requests end");
            let waited = self.shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Lets requests begin again, to this front.
    pub(super) fn resume(&self, front: SocketAddr) {
        let mut state = self.shared.lock();
        (state.front, state.paused) = (Some(front), false);
        self.shared.changed.notify_all();
    }

    /// Clients with a session at this backend end it from now on; `None`: nobody does.
    pub(super) fn leave(&self, backend: Option<&str>) {
        self.shared.lock().leaving = backend.map(str::to_owned);
    }

    /// From now on only clients of this webapp make requests; without one, all do.
    pub(super) fn only(&self, webapps: &[&'static str]) {
        self.shared.lock().only = webapps.to_vec();
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Seen {
        self.shared.lock().seen.clone()
    }

    /// Begins to count anew; gives what was seen before.
    pub(super) fn forget(&self) -> Seen {
        std::mem::take(&mut self.shared.lock().seen)
    }

    /// The orders that were confirmed to clients.
    pub(super) fn confirmed(&self) -> Vec<u64> {
        self.shared.lock().confirmed.clone()
    }

    /// Clients that have a session at this backend.
    pub(super) fn sessions(&self, backend: &str) -> u32 {
        self.shared
            .lock()
            .sessions
            .get(backend)
            .copied()
            .unwrap_or_default()
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of a thread has been printed; another one here would hide why.
            thread.join().ok();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the next request is to know; waits while the crowd is paused. `None`: there is no next one.
    fn next(&self) -> Option<(SocketAddr, Option<String>, Vec<&'static str>)> {
        let mut state = self.lock();
        if state.paused && !state.over {
            state.resting += 1;
            self.changed.notify_all();
            while state.paused && !state.over {
                let waited = self.changed.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
            state.resting -= 1;
        }
        let front = state.front.filter(|_| !state.over)?;
        Some((front, state.leaving.clone(), state.only.clone()))
    }
}

fn work(mut clients: Vec<Client>, thread: usize, shared: &Shared) {
    let mut connection: Option<(SocketAddr, HttpClient)> = None;
    loop {
        let mut moved = false;
        for client in &mut clients {
            let Some((front, leaving, only)) = shared.next() else {
                return;
            };
            if !only.is_empty() && !only.contains(&client.webapp) {
                continue;
            }
            moved = true;
            let used = connection.take().filter(|(address, _)| *address == front);
            connection = client.visit(front, used, leaving.as_deref(), shared);
        }
        shared.lock().rounds[thread] += 1;
        shared.changed.notify_all();
        assert!(moved, "each thread has clients of every webapp");
    }
}

impl Client {
    fn new(webapp: &'static str) -> Self {
        Self {
            webapp,
            cookie: None,
            id: String::new(),
            route: String::new(),
            visits: 0,
            version: String::new(),
            left: false,
        }
    }

    /// Makes a request, follows redirects and takes note of what came of it. Gives the connection back
    /// if it can be used again.
    fn visit(
        &mut self,
        front: SocketAddr,
        used: Option<(SocketAddr, HttpClient)>,
        leaving: Option<&str>,
        shared: &Shared,
    ) -> Option<(SocketAddr, HttpClient)> {
        let number = shared.orders.fetch_add(1, Ordering::Relaxed);
        let leaves = self.cookie.is_some() && !self.left && leaving == Some(&self.route);
        let order = (number.is_multiple_of(8) && !leaves).then_some(number);
        let (method, query) = match order {
            Some(order) => ("POST", format!("?order={order}")),
            None if leaves => ("GET", "?leave=1".to_owned()),
            None => ("GET", String::new()),
        };
        let target = format!("/{}/shop.jsp{query}", self.webapp);
        let mut used = used.map(|(_, connection)| connection);
        for _ in 0..REDIRECTS_MAX {
            let (answer, connection) = self.ask(front, used.take(), method, &target);
            match answer {
                Ok(answer) if answer.status == 307 => {
                    self.take_cookie(&answer);
                    shared.lock().seen.sent_on += 1;
                    used = connection;
                    continue;
                }
                Ok(answer) if answer.status == 200 => self.served(&answer, leaves, order, shared),
                Ok(answer) => self.failed(method, answer.status.to_string(), shared),
                Err(failure) => self.failed(method, failure.to_string(), shared),
            }
            return connection.map(|connection| (front, connection));
        }
        self.failed(method, "sent round in circles".to_owned(), shared);
        None
    }

    fn ask(
        &self,
        front: SocketAddr,
        used: Option<HttpClient>,
        method: &str,
        target: &str,
    ) -> (Result<Response, Failure>, Option<HttpClient>) {
        let connected = used.map_or_else(|| HttpClient::connect(front), Ok);
        let mut connection = match connected {
            Ok(connection) => connection,
            Err(error) => return (Err(error.into()), None),
        };
        connection.set_deadline(Deadline::default());
        let cookie = self.cookie.as_ref();
        let cookie = cookie.map_or(String::new(), |cookie| format!("Cookie: {cookie}\r\n"));
        let head = format!(
            "{method} {target} HTTP/1.1\r\nHost: shop\r\n{cookie}Content-Length: 0\r\n\r\n"
        );
        let sent = connection.send(head.as_bytes());
        let answer = sent
            .map_err(Failure::from)
            .and_then(|()| connection.receive());
        let closes = |answer: &Response| answer.header("connection") == Some("close");
        let kept = answer.as_ref().is_ok_and(|answer| !closes(answer));
        (answer, kept.then_some(connection))
    }

    /// Takes note of an answer with 200.
    fn served(&mut self, answer: &Response, leaves: bool, order: Option<u64>, shared: &Shared) {
        let text = answer.text();
        let value = |name: &str| {
            let mut lines = text.lines();
            let found = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_else(|| panic!("{name} in {text}"))
        };
        let (id, route) = value("id").split_once('.').expect("a jvmRoute");
        let visits = value("visits").parse().expect("a number");
        let version = value("version");
        let had = self.cookie.is_some() && !self.left;
        self.take_cookie(answer);
        let mut state = shared.lock();
        let state = &mut *state;
        let seen = &mut state.seen;
        if !had {
            *seen.begun.entry(route.to_owned()).or_default() += 1;
        } else if id != self.id || visits <= self.visits {
            let lost = (self.webapp.to_owned(), self.route.clone());
            *seen.lost.entry(lost).or_default() += 1;
        } else {
            seen.moved += u32::from(route != self.route);
            seen.changed += u32::from(version != self.version);
        }
        seen.served += 1;
        let served_by = (route.to_owned(), version.to_owned());
        *seen.versions.entry(served_by).or_default() += 1;
        state.confirmed.extend(order);
        if had {
            *state.sessions.entry(self.route.clone()).or_default() -= 1;
        }
        if !leaves {
            *state.sessions.entry(route.to_owned()).or_default() += 1;
        }
        (self.id, self.route) = (id.to_owned(), route.to_owned());
        version.clone_into(&mut self.version);
        (self.visits, self.left) = (visits, leaves);
        if leaves && visits % 2 == 0 {
            // A browser that was closed; others come with the cookie of a session that is over.
            self.cookie = None;
        }
    }

    fn failed(&self, method: &str, outcome: String, shared: &Shared) {
        let key = (method.to_owned(), self.webapp.to_owned(), outcome);
        *shared.lock().seen.failed.entry(key).or_default() += 1;
    }

    /// Does with a cookie in an answer what browsers do.
    fn take_cookie(&mut self, answer: &Response) {
        if let Some(cookie) = answer.header("set-cookie") {
            let (pair, attributes) = cookie.split_once(';').unwrap_or((cookie, ""));
            self.cookie = (!attributes.contains("Max-Age=0")).then(|| pair.to_owned());
        }
    }
}

const CLIENTS: usize = 1_000;
const THREADS: usize = 16;
const REDIRECTS_MAX: u32 = 3;
