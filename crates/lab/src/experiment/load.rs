//! What a cell's templates make of servers, load and expectations.

use std::time::Duration;

use catamaran_tier::{Fault, Faults};

use super::file::ServerKeys;
use super::{Expect, Experiment, Level, Levels, ServerOf};
use crate::template::{Addresses, Names, render};

/// The load of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What is asked for.
    pub url: String,
    /// The core that the load generator is bound to.
    pub core: Option<usize>,
    /// Clients at once.
    pub clients: u64,
    /// Whether connections are kept.
    pub keep_alive: bool,
    /// Whether HTTP/1.0 is spoken.
    pub http_1_0: bool,
    /// The measured span.
    pub time: Duration,
    /// The shortest warm-up, and the longest.
    pub warm: (Duration, Duration),
    /// Clients beside these that ask seldom.
    pub idle: Option<Idle>,
}

/// Clients that keep a connection and ask seldom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// How many.
    pub clients: u64,
    /// Between two requests of each.
    pub every: Duration,
}

impl Experiment {
    /// How many servers a cell may have.
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
    ) -> Result<Option<ServerOf>, Faults> {
        let keys = &self.servers[number];
        let matches = super::cells::matches;
        let is_left_out = !keys.unless.is_empty() && matches(cell, &keys.unless);
        if is_left_out || !matches(cell, &keys.only) {
            return Ok(None);
        }
        let mut text = Texts::new(cell, addresses);
        let ServerKeys {
            name,
            target,
            core,
            set,
            ..
        } = keys;
        let target = text.render(target);
        let set = set.iter();
        let set = set
            .map(|(key, value)| (key.clone(), text.level(value)))
            .collect();
        text.or(Some(ServerOf {
            name: name.clone(),
            target,
            set,
            core: *core,
        }))
    }

    /// The load of a cell, given the addresses of its servers.
    ///
    /// # Errors
    /// Templates that do not render, or not to what is needed.
    pub fn load(&self, cell: &Levels, addresses: &Addresses) -> Result<Load, Faults> {
        let mut text = Texts::new(cell, addresses);
        let keys = &self.load;
        let load = Load {
            url: text.render(&keys.url),
            core: keys.core,
            clients: text.number("clients", &keys.clients),
            keep_alive: text.is_on("keep_alive", &keys.keep_alive),
            http_1_0: text.one_of("http", &keys.http, ["1.1", "1.0"]) == 1,
            time: text.duration("time", &keys.time),
            warm: (
                text.duration("warm.at_least", &keys.warm.at_least),
                text.duration("warm.at_most", &keys.warm.at_most),
            ),
            idle: keys.idle.as_ref().map(|idle| Idle {
                clients: text.number("idle.clients", &idle.clients),
                every: text.duration("idle.every", &idle.every),
            }),
        };
        text.or(load)
    }

    /// What answers of a cell should be.
    ///
    /// # Errors
    /// Templates that do not render, or not to what is needed.
    pub fn expect(&self, cell: &Levels, addresses: &Addresses) -> Result<Expect, Faults> {
        let mut text = Texts::new(cell, addresses);
        let keys = &self.expect;
        let mut number =
            |name, level: &Option<Level>| level.as_ref().map(|it| text.number(name, it));
        let status = number("status", &keys.status);
        let expect = Expect {
            status: status.and_then(|status| u16::try_from(status).ok()),
            body_bytes: number("body_bytes", &keys.body_bytes),
            kept_requests_max: number("kept_requests", &keys.kept_requests).unwrap_or(0),
            kept: keys.kept.as_ref().map(|level| text.is_on("kept", level)),
            delay_ms: keys
                .delay
                .as_ref()
                .map(|delay| text.duration("delay", delay).as_secs_f64() * 1000.0),
        };
        text.or(expect)
    }
}

/// Texts being rendered; a text that is at fault becomes empty.
struct Texts<'a> {
    names: Names<'a>,
    faults: Vec<Fault>,
}

impl<'a> Texts<'a> {
    fn new(cell: &'a Levels, addresses: &'a Addresses) -> Self {
        Self {
            names: Names {
                factor: cell,
                server: addresses,
            },
            faults: Vec::new(),
        }
    }

    fn render(&mut self, text: &str) -> String {
        render(text, &self.names).unwrap_or_else(|what| {
            self.fault(what);
            String::new()
        })
    }

    fn level(&mut self, level: &Level) -> String {
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
        self.one_of(name, level, ["off", "on"]) == 1
    }

    /// Which of `words` it is.
    fn one_of(&mut self, name: &str, level: &Level, words: [&str; 2]) -> usize {
        let text = self.level(level);
        let place = words.iter().position(|word| *word == text);
        place.unwrap_or_else(|| {
            self.fault(format!(
                "{name} = {text}: it is {} or {}",
                words[0], words[1]
            ));
            0
        })
    }

    fn duration(&mut self, name: &str, text: &str) -> Duration {
        let text = self.render(text);
        catamaran_units::parse_duration(&text).unwrap_or_else(|error| {
            self.fault(format!("{name} = {text}: {error}"));
            Duration::ZERO
        })
    }

    fn fault(&mut self, what: String) {
        self.faults.push(Fault {
            place: String::new(),
            what,
        });
    }

    fn or<T>(self, value: T) -> Result<T, Faults> {
        if self.faults.is_empty() {
            Ok(value)
        } else {
            Err(Faults(self.faults))
        }
    }
}
