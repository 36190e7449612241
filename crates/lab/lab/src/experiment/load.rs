//! What a cell's templates make of servers, load and expectations.

use std::time::Duration;

use catamaran_tier::{BROWSER_FIELDS, Job, Priority};
use catamaran_toml_file::report::{Finding, Report};

use super::file::{CrowdKeys, LoadKeys, Restart, ServerKeys};
use super::template::{Addresses, TemplateNames, render};
use super::{CellServer, Expect, Experiment, Level, Levels, link};

/// The load of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Load {
    /// The URL that is asked for.
    pub url: String,
    /// The core that the load generator is bound to.
    pub core: Option<usize>,
    /// Whether it runs before all else on that core.
    pub preempts: bool,
    /// Clients at once; of an open loop, its connections.
    pub clients: u64,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// Fields of each request beside Host, and beside the User-Agent and Accept of the generator unless they are here.
    pub headers: Vec<String>,
    /// Requests a second by a schedule; `None`: a closed loop.
    pub rate: Option<f64>,
    /// Also by a schedule, at these shares of a capacity.
    pub shares: Vec<f64>,
    /// The length of each request's body; 0 for none.
    pub post_bytes: u64,
    /// The measured span.
    pub time: Duration,
    /// The shortest warm-up, and the longest.
    pub warm: (Duration, Duration),
    /// The shortest one of servers that have just been started.
    pub first_warm: Duration,
    /// Clients beside these that ask seldom or slowly.
    pub crowd: Option<Crowd>,
    /// Whether the bodies of answers may differ.
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

/// Clients that ask seldom or slowly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crowd {
    /// The behaviour of the clients.
    pub kind: CrowdKind,
    /// The number of clients.
    pub clients: u64,
    /// Between two steps of each: requests, bytes, or reads; `None`: one request is all.
    pub every: Option<Duration>,
    /// The URL that they ask for; `None`: the load's.
    pub url: Option<String>,
    /// The priority of their process.
    pub nice: Option<i8>,
}

/// The behaviour of a crowd's clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrowdKind {
    /// Keeps a connection and asks seldom.
    Idle,
    /// Sends a head a byte at a time.
    Drip,
    /// Reads a response a KiB at a time.
    Sip,
}

impl Load {
    /// The load generator's process, called `name` in its space, with this command.
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
    /// Names and kinds.
    pub const ALL: [(&'static str, Self); 3] = [
        ("idle", Self::Idle),
        ("drip", Self::Drip),
        ("sip", Self::Sip),
    ];

    /// The name in files.
    #[must_use]
    pub fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, kind)| *kind == self);
        found.map_or("", |(name, _)| name)
    }
}

/// A reload or an upgrade of a server while load is on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    /// The server.
    pub server: String,
    /// Whether it is an upgrade, and no reload.
    pub is_upgrade: bool,
    /// The time from the beginning of one to that of the next.
    pub every: Duration,
}

impl Experiment {
    /// The most servers that a cell has.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// The server `number` of a cell, given the addresses of those before it; `None` if the cell
    /// does without it.
    ///
    /// # Errors
    /// Templates that do not render.
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
        let seen = link::seen(keys, addresses);
        let mut text = Texts::new(cell, &seen);
        let ServerKeys {
            name,
            target,
            core,
            set,
            restart,
            ..
        } = keys;
        let target = text.render(target);
        let set = set.iter();
        let set = set
            .map(|(key, value)| (key.clone(), text.level(value)))
            .chain(link::ends(keys, addresses))
            .collect();
        let crowd = self.load.crowd.as_ref();
        let has_crowd = crowd.is_some_and(|it| text.number("crowd.clients", &it.clients) > 0);
        let core_share = self.core_share(keys, &mut text);
        text.or(Some(CellServer {
            name: name.clone(),
            target,
            set,
            core: *core,
            core_share,
            rounds: match restart {
                Restart::Never => usize::MAX,
                // What one crowd has made it allocate it has for the next one.
                _ if has_crowd => 0,
                Restart::Round => 1,
                Restart::Rounds(rounds) => *rounds,
            },
        }))
    }

    /// The load of a cell, given the addresses of its servers.
    ///
    /// # Errors
    /// Templates that do not render, or not to what is needed.
    pub fn load(&self, cell: &Levels, addresses: &Addresses) -> Result<Load, Report> {
        let mut text = Texts::new(cell, addresses);
        let keys = &self.load;
        let load = Load {
            url: text.render(&keys.url),
            core: keys.core,
            preempts: keys.preempts,
            clients: text.number("clients", &keys.clients),
            keep_alive: text.is_on("keep_alive", &keys.keep_alive),
            http: match text.one_of("http", &keys.http, &["1.1", "1.0", "2"]) {
                1 => HttpVersion::Http1_0,
                2 => HttpVersion::Http2,
                _ => HttpVersion::Http1_1,
            },
            headers: text.headers(keys),
            time: text.duration("time", &keys.time),
            warm: (
                text.duration("warm.at_least", &keys.warm.at_least),
                text.duration("warm.at_most", &keys.warm.at_most),
            ),
            first_warm: keys
                .warm
                .first
                .as_ref()
                .map_or(Duration::ZERO, |first| text.duration("warm.first", first)),
            rate: keys
                .rate
                .as_ref()
                .map(|rate| text.number("rate", rate) as f64),
            shares: keys.shares.clone(),
            post_bytes: keys
                .post_bytes
                .as_ref()
                .map_or(0, |bytes| text.number("post_bytes", bytes)),
            crowd: keys.crowd.as_ref().and_then(|crowd| text.crowd(crowd)),
            varies: self
                .expect
                .varies
                .as_ref()
                .is_some_and(|varies| text.is_on("varies", varies)),
        };
        if let Some(share) = load
            .shares
            .iter()
            .find(|share| **share <= 0.0 || **share >= 1.0)
        {
            text.fault(format!(
                "shares has {share}: a share is above 0 and below 1"
            ));
        }
        text.or(load)
    }

    /// Loads of a cell beside the main one, with its core, times and HTTP version.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn beside(&self, cell: &Levels, addresses: &Addresses) -> Result<Vec<Load>, Report> {
        let main = self.load(cell, addresses)?;
        let mut text = Texts::new(cell, addresses);
        let mut loads = Vec::new();
        for keys in &self.beside {
            loads.push(Load {
                url: text.render(&keys.url),
                clients: text.number("clients", &keys.clients),
                keep_alive: text.is_on("keep_alive", &keys.keep_alive),
                rate: Some(text.number("rate", &keys.rate) as f64),
                shares: Vec::new(),
                post_bytes: 0,
                crowd: None,
                ..main.clone()
            });
        }
        text.or(loads)
    }

    /// The actions on servers of a cell while load is on them.
    ///
    /// # Errors
    /// As [`Experiment::load`].
    pub fn acts(&self, cell: &Levels, addresses: &Addresses) -> Result<Vec<Act>, Report> {
        let mut text = Texts::new(cell, addresses);
        let mut acts = Vec::new();
        for keys in &self.action {
            let what = Level::Text(keys.what.clone());
            let place = text.one_of("do", &what, &["none", "reload", "upgrade"]);
            let every = text.duration("every", &keys.every);
            if place > 0 {
                acts.push(Act {
                    server: keys.server.clone(),
                    is_upgrade: place == 2,
                    every,
                });
            }
        }
        text.or(acts)
    }

    /// The expected status, length and other properties of a cell's answers.
    ///
    /// # Errors
    /// Templates that do not render, or not to what is needed.
    pub fn expect(&self, cell: &Levels, addresses: &Addresses) -> Result<Expect, Report> {
        let mut text = Texts::new(cell, addresses);
        let keys = &self.expect;
        let body_bytes = keys.body_bytes.as_ref().and_then(|level| {
            let is_any = text.level(level) == ANY;
            (!is_any).then(|| text.number("body_bytes", level))
        });
        let mut number =
            |name, level: &Option<Level>| level.as_ref().map(|it| text.number(name, it));
        let status = number("status", &keys.status);
        let expect = Expect {
            status: status.and_then(|status| u16::try_from(status).ok()),
            body_bytes,
            kept_requests_max: number("kept_requests", &keys.kept_requests).unwrap_or(0),
            kept: keys.kept.as_ref().map(|level| text.is_on("kept", level)),
            delay_ms: keys
                .delay
                .as_ref()
                .map(|delay| text.duration("delay", delay).as_secs_f64() * 1000.0),
            rare: 0.0,
        };
        text.or(expect)
    }
}

/// Texts being rendered; a text that is at fault becomes empty.
pub(super) struct Texts<'a> {
    names: TemplateNames<'a>,
    report: Report,
}

impl<'a> Texts<'a> {
    pub(super) fn new(cell: &'a Levels, addresses: &'a Addresses) -> Self {
        Self {
            names: TemplateNames {
                factor: cell,
                server: addresses,
            },
            report: Report::new(NAME, ""),
        }
    }

    pub(super) fn render(&mut self, text: &str) -> String {
        render(text, &self.names).unwrap_or_else(|what| {
            self.fault(what);
            String::new()
        })
    }

    pub(super) fn level(&mut self, level: &Level) -> String {
        match level {
            Level::Text(text) => self.render(text),
            other => other.to_string(),
        }
    }

    fn number(&mut self, name: &str, level: &Level) -> u64 {
        let text = self.level(level);
        text.parse().unwrap_or_else(|_| {
            self.fault(format!("{name} = {text}: it is a whole number from 0"));
            0
        })
    }

    fn is_on(&mut self, name: &str, level: &Level) -> bool {
        self.one_of(name, level, &["off", "on"]) == 1
    }

    /// Which of `words` it is.
    pub(super) fn one_of(&mut self, name: &str, level: &Level, words: &[&str]) -> usize {
        let text = self.level(level);
        let place = words.iter().position(|word| *word == text);
        place.unwrap_or_else(|| {
            self.fault(format!("{name} = {text}: it is {}", words.join(" or ")));
            0
        })
    }

    pub(super) fn duration(&mut self, name: &str, text: &str) -> Duration {
        let text = self.render(text);
        catamaran_units::parse_duration(&text).unwrap_or_else(|error| {
            self.fault(format!("{name} = {text}: {error}"));
            Duration::ZERO
        })
    }

    fn crowd(&mut self, keys: &CrowdKeys) -> Option<Crowd> {
        let kind = Level::Text(keys.kind.clone());
        let place = self.one_of("crowd.kind", &kind, &["none", "idle", "drip", "sip"]);
        let clients = self.number("crowd.clients", &keys.clients);
        let every = match keys.every.as_str() {
            "never" => None,
            every => Some(self.duration("crowd.every", every)),
        };
        let url = keys.url.as_ref().map(|url| self.render(url));
        let (_, kind) = CrowdKind::ALL[place.checked_sub(1)?];
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
        let head = match self.one_of("head", &keys.head, &["bare", "browser"]) {
            1 => &BROWSER_FIELDS[..],
            _ => &[],
        };
        let own: Vec<String> = keys
            .headers
            .iter()
            .map(|field| self.render(field))
            .collect();
        let own = own.into_iter().filter(|field| !field.is_empty());
        head.iter()
            .map(|&field| field.to_owned())
            .chain(own)
            .collect()
    }

    pub(super) fn fault(&mut self, what: String) {
        self.report.push(Finding::absence(what));
    }

    pub(super) fn or<T>(self, value: T) -> Result<T, Report> {
        self.report.or(value)
    }
}

/// The name in messages for faults that only a cell brings out.
const NAME: &str = "experiment";

/// The word for a length that is not checked.
const ANY: &str = "any";
