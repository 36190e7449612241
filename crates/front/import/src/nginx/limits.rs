//! Limits of requests: `limit_req` and `limit_conn`, with their zones.
//!
//! A zone becomes a limit. Places that use a zone in the same way share the limit, as they share the zone in nginx.
//! The burst of nginx does not include the first request; that of the front does.

use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::nginx::location::Scope;
use crate::plan::{Access, Keys, Plan, Settings, ZoneLimit};
use crate::toml_text::quoted;

/// Adds the limits that apply at a place to its settings. A limit that cannot be converted closes the place.
pub(super) fn add(scope: Scope<'_>, settings: &mut Settings, plan: &mut Plan, ledger: &mut Ledger) {
    let all = Kind::ALL.map(|kind| (kind, scope.level(|it| it.name == kind.name())));
    let count = all.iter().map(|(_, directives)| directives.len()).sum();
    for (kind, directives) in all {
        for &directive in &directives {
            if scope.own("return").is_some() {
                let text = "nginx answers `return` before it asks limits";
                ledger.dropped(directive.id, text);
                continue;
            }
            let read = Reader {
                scope,
                kind,
                directive,
            };
            match read.limit(count, ledger) {
                Ok(None) => ledger.mapped(directive.id),
                Ok(Some(limit)) => {
                    ledger.mapped(directive.id);
                    let (name, is_apart) = plan.limits.enter(limit);
                    settings.limits.push(name);
                    if is_apart {
                        ledger.lost(directive.id, APART);
                    }
                }
                Err(text) => {
                    ledger.unmapped(directive.id, &text);
                    settings.access = Access::Unsaid;
                }
            }
        }
        settle_words(scope, kind, !directives.is_empty(), ledger);
    }
}

/// Handles the directives that only say how limits refuse.
fn settle_words(scope: Scope<'_>, kind: Kind, is_used: bool, ledger: &mut Ledger) {
    if let Some(dry) = scope.find(&kind.own("dry_run")).filter(|_| is_used) {
        ledger.mapped(dry.id);
    }
    if let Some(status) = scope.find(&kind.own("status")).filter(|_| is_used) {
        ledger.mapped(status.id);
    }
}

/// What a zone limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Rate,
    InFlight,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Rate, Self::InFlight];

    fn name(self) -> &'static str {
        match self {
            Self::Rate => "limit_req",
            Self::InFlight => "limit_conn",
        }
    }

    /// The name of a directive of this kind, such as `limit_req_status` for `status`.
    fn own(self, what: &str) -> String {
        format!("{}_{what}", self.name())
    }
}

/// Reads one directive that applies a limit.
#[derive(Clone, Copy)]
struct Reader<'a> {
    scope: Scope<'a>,
    kind: Kind,
    directive: &'a Directive,
}

impl Reader<'_> {
    /// The limit. `Ok(None)` if the zone has an empty key, so that nginx limits nothing. `count` is the number of
    /// limits that apply here.
    ///
    /// # Errors
    /// The reason why the front cannot limit in the same way.
    fn limit(self, count: usize, ledger: &mut Ledger) -> Result<Option<ZoneLimit>, String> {
        if count > LIMITS_MAX {
            return Err(format!(
                "{count} limits are in force here, and a route has at most {LIMITS_MAX}"
            ));
        }
        let (name, mut keys) = match self.kind {
            Kind::Rate => self.burst(ledger)?,
            Kind::InFlight => self.places()?,
        };
        let outer = self.scope.blocks.last().copied().unwrap_or_default();
        let zone_name = self.kind.own("zone");
        let is_it = |it: &&Directive| it.name == zone_name && part(it, "zone=") == Some(name);
        let Some(zone) = outer.iter().find(is_it) else {
            return Err(format!("there is no zone `{name}`"));
        };
        if self.kind == Kind::Rate {
            let rate = part_of_zone(zone, "rate=").and_then(rate);
            let rate = rate.ok_or_else(|| format!("the rate of the zone `{name}` is not known"))?;
            keys.insert("rate".to_owned(), quoted(&rate));
        }
        let Some(place) = self.by(zone, &mut keys, ledger)? else {
            ledger.mapped(zone.id);
            return Ok(None);
        };
        let dry = self.scope.find(&self.kind.own("dry_run"));
        if dry.is_some_and(|it| it.word(0) == "on") {
            keys.insert("enforce".to_owned(), "false".to_owned());
        }
        let status = self.scope.find(&self.kind.own("status"));
        if status.is_none_or(|it| it.word(0) != "429") {
            ledger.note(status.unwrap_or(zone).id, STATUS);
        }
        ledger.mapped(zone.id);
        Ok(Some(ZoneLimit {
            zone: format!("{name}{place}"),
            keys,
        }))
    }

    /// The zone of a `limit_req`, and the keys of its burst.
    fn burst(&self, ledger: &mut Ledger) -> Result<(&str, Keys), String> {
        let mut keys = Keys::new();
        let (mut burst, mut is_delayed, mut name) = (0, true, None);
        for word in &self.directive.words {
            match word.split_once('=') {
                Some(("zone", zone)) => name = Some(zone),
                Some(("burst", number)) => {
                    let number: Option<u32> = number.parse().ok();
                    let fits = number.filter(|it| *it < BURST_MAX);
                    burst = fits.ok_or_else(|| format!("`{word}` is too much"))?;
                }
                None if word == "nodelay" => is_delayed = false,
                Some(("delay", _)) => {}
                _ => return Err(format!("`{word}` is not known here")),
            }
        }
        if is_delayed && burst > 0 {
            ledger.note(self.directive.id, DELAY);
        }
        if burst > 0 {
            keys.insert("burst".to_owned(), (burst + 1).to_string());
        }
        Ok((name.ok_or("it names no zone")?, keys))
    }

    /// The zone of a `limit_conn`, and the key with the number of requests that it lets pass at a time.
    fn places(&self) -> Result<(&str, Keys), String> {
        let [name, number] = &self.directive.words[..] else {
            return Err("it is not a zone and a number".to_owned());
        };
        let parsed: Option<u32> = number.parse().ok();
        let fitting = parsed.filter(|it| (1..=BURST_MAX).contains(it));
        let count = fitting.ok_or_else(|| format!("`{number}` is no number of requests"))?;
        Ok((
            name,
            Keys::from([("in_flight".to_owned(), count.to_string())]),
        ))
    }

    /// Adds the key `by` to `keys`, by which requests are counted, unless it is the client's address, which the front
    /// takes without it. Returns a suffix for the zone's name, with which servers of one zone count separately; empty
    /// if all count together, `None` if requests are not counted at all.
    ///
    /// # Errors
    /// The front cannot count by the zone's key; the text says so.
    fn by(
        &self,
        zone: &Directive,
        keys: &mut Keys,
        ledger: &mut Ledger,
    ) -> Result<Option<String>, String> {
        let word = zone.words.iter().find(|it| !is_setting(it));
        // `${host}` means `$host`.
        let key = word
            .map(|it| it.replace(['{', '}'], ""))
            .unwrap_or_default();
        let mut place = String::new();
        let by = match key.as_str() {
            "$binary_remote_addr" | "$remote_addr" => {
                ledger.note(zone.id, NETWORKS);
                return Ok(Some(place));
            }
            "$host" => "host".to_owned(),
            // A server without a name has an empty value, for which nginx does not count.
            "$server_name" => match self.scope.find("server_name").map(|it| it.word(0)) {
                None | Some("") => return Ok(None),
                Some(name) => {
                    place = format!("-{name}");
                    "all".to_owned()
                }
            },
            // nginx does not count requests for which the key is empty.
            "" => return Ok(None),
            // A constant: all requests count together.
            key if !key.contains('$') => "all".to_owned(),
            key => match key.strip_prefix("$http_") {
                Some(field) if is_field(field) => {
                    ledger.note(zone.id, ABSENT);
                    format!("header:{}", field.replace('_', "-"))
                }
                _ => return Err(format!("requests cannot count by `{key}` here")),
            },
        };
        keys.insert("by".to_owned(), quoted(&by));
        Ok(Some(place))
    }
}

/// Whether a variable `$http_…` is a field by which the front can count. Host is none, because the front has a key of
/// its own for it.
fn is_field(name: &str) -> bool {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(is_sign) && name != "host"
}

fn is_setting(word: &str) -> bool {
    ["zone=", "rate="].iter().any(|it| word.starts_with(it)) || word == "sync"
}

/// The remaining part of the word of a zone that begins with `start`.
fn part_of_zone<'d>(zone: &'d Directive, start: &str) -> Option<&'d str> {
    zone.words.iter().find_map(|it| it.strip_prefix(start))
}

/// The name of a zone; it comes before the size.
fn part<'d>(zone: &'d Directive, start: &str) -> Option<&'d str> {
    let text = part_of_zone(zone, start)?;
    Some(text.split(':').next().unwrap_or(text))
}

/// A rate as the front writes it.
fn rate(text: &str) -> Option<String> {
    let (digits, unit) = match text.strip_suffix("r/m") {
        Some(digits) => (digits, "m"),
        None => (text.strip_suffix("r/s").unwrap_or(text), "s"),
    };
    let count: u32 = digits.parse().ok()?;
    (1..=RATE_MAX)
        .contains(&count)
        .then(|| format!("{count}/{unit}"))
}

const APART: &str = "the zone has another burst or number elsewhere: here each counts by itself, so a client may use up \
    both";

const STATUS: &str = "a request beyond the limit is answered 429 with `Retry-After` here";

const DELAY: &str = "nginx delays what is beyond the rate; here the burst passes at once. Lower `burst` if the application \
    needs its requests one after another";

const NETWORKS: &str = "clients of IPv6 count by their network of 64 bits here, and by their address in nginx; `prefix` of \
    [limit.NAME] changes it";

const ABSENT: &str =
    "a request without the field counts to its client's address here, and not at all in nginx";

/// The most limits of a route.
const LIMITS_MAX: usize = 4;

/// The highest `burst`, and the highest `in_flight`.
const BURST_MAX: u32 = 1_000_000;

/// The highest rate, in the unit in which it is written.
const RATE_MAX: u32 = 1_000_000;
