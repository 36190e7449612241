//! Renders the templates of a cell: its servers, loads, actions and expectations.

use std::time::Duration;

use catamaran_tier::{BROWSER_FIELDS, Job, Priority};
use catamaran_toml_file::report::{Finding, Report};

use super::file::{CrowdKeys, LoadKeys, Restart};
use super::template::{Addresses, TemplateNames, render};
use super::{CellServer, Expect, Experiment, Level, Levels, link};

/// The load of a cell: the keys of `[load]` or `[[beside]]` with all templates rendered.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The URL that is requested.
    pub url: String,
    /// The core that the load generator is pinned to; `None`: any core.
    pub core: Option<usize>,
    /// Whether the load generator has priority over everything else on its core.
    pub preempts: bool,
    /// The number of clients; with a rate, the number of connections.
    pub clients: u64,
    /// Whether connections are kept alive.
    pub keep_alive: bool,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// Header fields of each request. The load generator adds Host, and User-Agent and Accept unless they are here.
    pub headers: Vec<String>,
    /// The requests per second of an open loop; `None`: a closed loop.
    pub rate: Option<f64>,
    /// The shares of the capacity at which the load is also driven by a schedule; empty: none.
    pub shares: Vec<f64>,
    /// The length of each request's body in bytes; 0: no body.
    pub post_bytes: u64,
    /// The length of the measured span.
    pub time: Duration,
    /// The shortest and the longest warm-up.
    pub warm: (Duration, Duration),
    /// The shortest warm-up if a Java virtual machine has just been started, and the time that its compilers get.
    pub first_warm: Duration,
    /// Slow clients besides the load; `None`: there are none.
    pub crowd: Option<Crowd>,
    /// Whether the bodies of responses may differ.
    pub varies: bool,
}

/// The version of HTTP that the load speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpVersion {
    /// HTTP/1.1.
    Http1_1,
    /// HTTP/1.0.
    Http1_0,
    /// HTTP/2, one request at a time on each connection.
    Http2,
}

/// Slow clients that are connected besides the load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The behaviour of the clients.
    pub kind: CrowdKind,
    /// The number of clients.
    pub clients: u64,
    /// The time between two steps of a client (a request, a byte or a read); `None`: each makes only one request.
    pub every: Option<Duration>,
    /// The URL that the clients request; `None`: the load's.
    pub url: Option<String>,
    /// The niceness of the clients' process; `None`: that of this process.
    pub nice: Option<i8>,
}

/// The behaviour of a crowd's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrowdKind {
    /// Keeps a connection, and makes a request at each step.
    Idle,
    /// Sends a byte of a head that never ends at each step.
    Drip,
    /// Reads a KiB of a response at each step.
    Sip,
}

impl Load {
    /// The load generator as a job of the space, with the load's core and priority.
    pub(crate) fn job<'a>(&self, name: &'a str, command: &'a [String]) -> Job<'a> {
        let priority = if self.preempts {
            Priority::First
        } else {
            Priority::Inherited
        };
        Job {
            name,
            core: self.core,
            priority,
            limit: None,
            command,
        }
    }
}

impl CrowdKind {
    /// All kinds of clients with their names in files.
    pub const ALL: [(&'static str, Self); 3] = [
        ("idle", Self::Idle),
        ("drip", Self::Drip),
        ("sip", Self::Sip),
    ];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        let entry = Self::ALL.iter().find(|(_, kind)| *kind == self);
        entry.map_or("", |(name, _)| name)
    }
}

/// An action that is repeated on a server while load is on it: a reload or an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The server's name.
    pub server: String,
    /// Whether the action is an upgrade; else a reload.
    pub is_upgrade: bool,
    /// The time from the beginning of one action to the beginning of the next.
    pub every: Duration,
}

impl Experiment {
    /// The number of servers in the file; a cell may do without some of them.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// The server `number` of a cell, from 0, given the addresses of the servers before it; `None` if the cell does not
    /// have it.
    ///
    /// # Errors
    /// A template does not render; the report has all faults.
    pub fn server(
        &self,
        cell: &Levels,
        number: usize,
        addresses: &Addresses,
    ) -> Result<Option<CellServer>, Report> {
        let keys = &self.servers[number];
        let matches = super::cells::matches;
        let is_left_out = !keys.unless.is_empty() && matches(cell, &keys.unless);
        if is_left_out || !matches(cell, &keys.only) {
            return Ok(None);
        }
        let addresses_behind = link::addresses_for(keys, addresses);
        let mut renderer = CellRenderer::new(cell, &addresses_behind);
        let target = renderer.render(&keys.target);
        let mut set = Vec::new();
        for (name, value) in &keys.set {
            set.push((name.clone(), renderer.level(value)));
        }
        set.extend(link::to_setting(keys, addresses));
        let has_crowd = match &self.load.crowd {
            Some(crowd) => renderer.number("crowd.clients", &crowd.clients) > 0,
            None => false,
        };
        let core_share = self.core_share(keys, &mut renderer);
        renderer.or(Some(CellServer {
            name: keys.name.clone(),
            target,
            set,
            core: keys.core,
            core_share,
            rounds: match keys.restart {
                Restart::Never => usize::MAX,
                // For each run: a crowd has made the server allocate memory that the next crowd would reuse.
                _ if has_crowd => 0,
                Restart::Round => 1,
                Restart::Rounds(rounds) => rounds,
            },
        }))
    }

    /// The load of a cell, given the addresses of its servers.
    ///
    /// # Errors
    /// A template does not render, or not to a valid value; the report has all faults.
    pub fn load(&self, cell: &Levels, addresses: &Addresses) -> Result<Load, Report> {
        let mut renderer = CellRenderer::new(cell, addresses);
        let keys = &self.load;
        let load = Load {
            url: renderer.render(&keys.url),
            core: keys.core,
            preempts: keys.preempts,
            clients: renderer.number("clients", &keys.clients),
            keep_alive: renderer.is_on("keep_alive", &keys.keep_alive),
            http: match renderer.one_of("http", &keys.http, &["1.1", "1.0", "2"]) {
                1 => HttpVersion::Http1_0,
                2 => HttpVersion::Http2,
                _ => HttpVersion::Http1_1,
            },
            headers: renderer.headers(keys),
            time: renderer.duration("time", &keys.time),
            warm: (
                renderer.duration("warm.at_least", &keys.warm.at_least),
                renderer.duration("warm.at_most", &keys.warm.at_most),
            ),
            first_warm: keys.warm.first.as_ref().map_or(Duration::ZERO, |first| {
                renderer.duration("warm.first", first)
            }),
            rate: keys
                .rate
                .as_ref()
                .map(|rate| renderer.number("rate", rate) as f64),
            shares: keys.shares.clone(),
            post_bytes: keys
                .post_bytes
                .as_ref()
                .map_or(0, |bytes| renderer.number("post_bytes", bytes)),
            crowd: keys.crowd.as_ref().and_then(|crowd| renderer.crowd(crowd)),
            varies: self
                .expect
                .varies
                .as_ref()
                .is_some_and(|varies| renderer.is_on("varies", varies)),
        };
        if let Some(share) = load
            .shares
            .iter()
            .find(|share| **share <= 0.0 || **share >= 1.0)
        {
            renderer.fault(format!(
                "shares has {share}: a share is above 0 and below 1"
            ));
        }
        renderer.or(load)
    }

    /// The loads of a cell besides the main one, with the main one's core, times and HTTP version.
    ///
    /// # Errors
    /// The same as of [`Experiment::load`].
    pub fn beside(&self, cell: &Levels, addresses: &Addresses) -> Result<Vec<Load>, Report> {
        let main = self.load(cell, addresses)?;
        let mut renderer = CellRenderer::new(cell, addresses);
        let mut loads = Vec::new();
        for keys in &self.beside {
            loads.push(Load {
                url: renderer.render(&keys.url),
                clients: renderer.number("clients", &keys.clients),
                keep_alive: renderer.is_on("keep_alive", &keys.keep_alive),
                rate: Some(renderer.number("rate", &keys.rate) as f64),
                shares: Vec::new(),
                post_bytes: 0,
                crowd: None,
                ..main.clone()
            });
        }
        renderer.or(loads)
    }

    /// The actions that are repeated on the servers of a cell while load is on them.
    ///
    /// # Errors
    /// The same as of [`Experiment::load`].
    pub fn acts(&self, cell: &Levels, addresses: &Addresses) -> Result<Vec<Act>, Report> {
        let mut renderer = CellRenderer::new(cell, addresses);
        let mut acts = Vec::new();
        for keys in &self.action {
            let action = Level::Text(keys.what.clone());
            let index = renderer.one_of("do", &action, &["none", "reload", "upgrade"]);
            // An interval that is not valid is a fault also in a cell without actions.
            let every = renderer.duration("every", &keys.every);
            if index > 0 {
                acts.push(Act {
                    server: keys.server.clone(),
                    is_upgrade: index == 2,
                    every,
                });
            }
        }
        renderer.or(acts)
    }

    /// The status, length and other properties that the responses of a cell should have.
    ///
    /// # Errors
    /// A template does not render, or not to a valid value; the report has all faults.
    pub fn expect(&self, cell: &Levels, addresses: &Addresses) -> Result<Expect, Report> {
        let mut renderer = CellRenderer::new(cell, addresses);
        let keys = &self.expect;
        let status = keys.status.as_ref().map(|level| renderer.status(level));
        let body_bytes = match &keys.body_bytes {
            Some(level) if renderer.level(level) != ANY => {
                Some(renderer.number("body_bytes", level))
            }
            // The length is not checked.
            _ => None,
        };
        let kept_requests_max = match &keys.kept_requests {
            Some(level) => renderer.number("kept_requests", level),
            None => 0, // no limit
        };
        let expect = Expect {
            status,
            body_bytes,
            kept_requests_max,
            kept: keys
                .kept
                .as_ref()
                .map(|level| renderer.is_on("kept", level)),
            delay_ms: keys
                .delay
                .as_ref()
                .map(|delay| renderer.duration("delay", delay).as_secs_f64() * 1000.0),
            // A run with a failed request can be repeated.
            rare: 0.0,
        };
        renderer.or(expect)
    }
}

/// Renders the templates of one cell and collects the faults. A text with a fault becomes empty, a number or duration
/// zero, so that one pass finds all faults.
pub(super) struct CellRenderer<'a> {
    names: TemplateNames<'a>,
    report: Report,
}

impl<'a> CellRenderer<'a> {
    pub(super) fn new(cell: &'a Levels, addresses: &'a Addresses) -> Self {
        Self {
            names: TemplateNames {
                factor: cell,
                server: addresses,
            },
            report: Report::new(NAME, ""),
        }
    }

    /// Renders a template; empty after a fault.
    pub(super) fn render(&mut self, text: &str) -> String {
        render(text, &self.names).unwrap_or_else(|message| {
            self.fault(message);
            String::new()
        })
    }

    pub(super) fn level(&mut self, level: &Level) -> String {
        match level {
            Level::Text(text) => self.render(text),
            other => other.to_string(),
        }
    }

    /// The number that a level renders to; 0 after a fault. `name` is that of its key, for the message.
    fn number(&mut self, name: &str, level: &Level) -> u64 {
        let text = self.level(level);
        text.parse().unwrap_or_else(|_| {
            self.fault(format!("{name} = {text}: it is a whole number from 0"));
            0
        })
    }

    /// The status that a level says; 0 after a fault.
    fn status(&mut self, level: &Level) -> u16 {
        let text = self.level(level);
        match text.parse() {
            Ok(status @ 100..=999) => status,
            _ => {
                self.fault(format!("status = {text}: it is a status from 100 to 999"));
                0
            }
        }
    }

    fn is_on(&mut self, name: &str, level: &Level) -> bool {
        self.one_of(name, level, &["off", "on"]) == 1
    }

    /// The index in `words` of the rendered level; 0 after a fault.
    pub(super) fn one_of(&mut self, name: &str, level: &Level, words: &[&str]) -> usize {
        let text = self.level(level);
        let index = words.iter().position(|word| *word == text);
        index.unwrap_or_else(|| {
            self.fault(format!("{name} = {text}: it is {}", words.join(" or ")));
            0
        })
    }

    /// The duration that a template renders to; zero after a fault.
    pub(super) fn duration(&mut self, name: &str, text: &str) -> Duration {
        let text = self.render(text);
        catamaran_units::parse_duration(&text).unwrap_or_else(|error| {
            self.fault(format!("{name} = {text}: {error}"));
            Duration::ZERO
        })
    }

    /// The crowd; `None` if its kind is `none` or it has no clients.
    fn crowd(&mut self, keys: &CrowdKeys) -> Option<Crowd> {
        let word = Level::Text(keys.kind.clone());
        let index = self.one_of("crowd.kind", &word, &["none", "idle", "drip", "sip"]);
        let clients = self.number("crowd.clients", &keys.clients);
        let every = match keys.every.as_str() {
            "never" => None,
            every => Some(self.duration("crowd.every", every)),
        };
        let url = keys.url.as_ref().map(|url| self.render(url));
        // The words are those of `CrowdKind::ALL` in its order, after `none`, whose index 0 gives `None` here.
        let (_, kind) = CrowdKind::ALL[index.checked_sub(1)?];
        (clients > 0).then_some(Crowd {
            kind,
            clients,
            every,
            url,
            nice: keys.nice,
        })
    }

    /// The header fields: the browser's if the file asks for them, then the experiment's own.
    fn headers(&mut self, keys: &LoadKeys) -> Vec<String> {
        let mut fields = match self.one_of("head", &keys.head, &["bare", "browser"]) {
            1 => BROWSER_FIELDS.map(str::to_owned).to_vec(),
            _ => Vec::new(),
        };
        for template in &keys.headers {
            let field = self.render(template);
            if !field.is_empty() {
                fields.push(field);
            }
        }
        fields
    }

    pub(super) fn fault(&mut self, message: String) {
        self.report.push(Finding::absence(message));
    }

    /// Returns `value`, or the faults if there are any.
    pub(super) fn or<T>(self, value: T) -> Result<T, Report> {
        self.report.or(value)
    }
}

/// The file name in messages about faults that only a cell shows.
const NAME: &str = "experiment";

/// The word for a length that is not checked.
const ANY: &str = "any";
