//! Runs one configuration on both servers, compares their responses, and finds the smallest configuration that shows
//! a difference.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fastrand::Rng;

use crate::ask::{Answer, Ask, Origin};
use crate::judge::{Door, Parameters, Verdict, has_odd_host, is_same_content, judge, others};
use crate::stage::{self, Addresses, Imported, Kind};
use crate::tree::{self, Conf, Cut, Node};
use crate::{grammar, requests};

/// A door, with the configuration and the request that show it.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) door: Door,
    pub(crate) conf: Conf,
    /// `None` if no request is needed to see the door.
    pub(crate) ask: Option<Ask>,
    pub(crate) theirs: String,
    pub(crate) ours: String,
}

/// The counts of configurations and requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) files: usize,
    /// Configurations that the source itself refuses.
    pub(crate) refused: usize,
    pub(crate) requests: usize,
    pub(crate) served: usize,
    pub(crate) closed: usize,
    pub(crate) other: usize,
    pub(crate) doors: BTreeMap<Door, usize>,
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Self) {
        self.files += other.files;
        self.refused += other.refused;
        self.requests += other.requests;
        self.served += other.served;
        self.closed += other.closed;
        self.other += other.other;
        for (door, count) in &other.doors {
            *self.doors.entry(*door).or_default() += count;
        }
    }
}

/// Compares the source's server and the front, for configurations of one kind.
pub(crate) struct Duel<'a> {
    pub(crate) kind: Kind,
    pub(crate) addresses: &'a Addresses,
}

impl Duel<'_> {
    /// Makes and compares the configuration of a seed. Returns its tree, by which it can be shrunk, and the doors.
    pub(crate) fn of_seed(
        &self,
        seed: u64,
        tally: &mut Tally,
    ) -> anyhow::Result<(Vec<Node>, Vec<Finding>)> {
        let mut random = Rng::with_seed(seed);
        let tree = grammar::tree(self.kind, &mut random);
        let conf = Conf::of(&tree);
        let asks = requests::of(&conf, REQUESTS, &mut random);
        let findings = self.compare(&conf, &conf, &asks, tally)?;
        Ok((tree, findings))
    }

    /// Sends all of `asks` to both servers; returns at most one finding of each kind. `imported` is the configuration
    /// that is imported: `conf` itself, unless a door is planted.
    pub(crate) fn compare(
        &self,
        conf: &Conf,
        imported: &Conf,
        asks: &[Ask],
        tally: &mut Tally,
    ) -> anyhow::Result<Vec<Finding>> {
        tally.files += 1;
        let Some(source) = stage::source(self.kind, conf, self.addresses)? else {
            tally.refused += 1;
            return Ok(Vec::new());
        };
        let mut findings = Vec::new();
        let finding = |door, ask: Option<&Ask>, theirs: String, ours: String| Finding {
            door,
            conf: conf.clone(),
            ask: ask.cloned(),
            theirs,
            ours,
        };
        let import = stage::import(self.kind, imported, self.addresses, &source)?;
        let (said, wider) = match &import {
            Imported::Fails(why) => {
                *tally.doors.entry(Door::Fails).or_default() += 1;
                return Ok(vec![finding(Door::Fails, None, String::new(), why.clone())]);
            }
            Imported::Serves { said, wider, .. } => (said, wider),
        };
        if !wider.is_empty() {
            *tally.doors.entry(Door::Wider).or_default() += 1;
            findings.push(finding(Door::Wider, None, String::new(), wider.join(", ")));
        }
        for ask in asks {
            let Some(Compared {
                verdict,
                theirs,
                ours,
            }) = self.compare_one(ask, said, tally)?
            else {
                continue;
            };
            let Verdict::Door(door) = verdict else {
                continue;
            };
            if findings.iter().all(|finding| finding.door != door) {
                *tally.doors.entry(door).or_default() += 1;
                findings.push(finding(
                    door,
                    Some(ask),
                    shown(&theirs, door),
                    shown(&ours, door),
                ));
            }
        }
        Ok(findings)
    }

    /// Sends a request to both servers, judges the responses and counts the verdict; `None` if the source does not listen
    /// at its address. `said` is the report of the import.
    fn compare_one(
        &self,
        ask: &Ask,
        said: &str,
        tally: &mut Tally,
    ) -> anyhow::Result<Option<Compared>> {
        let Some(theirs) = ask.send(self.addresses.source[ask.listener])? else {
            return Ok(None);
        };
        // If the front does not listen at the address, its response counts as a closed connection.
        let ours = ask.send(self.addresses.front[ask.listener])?;
        let ours = ours.unwrap_or_default();
        let mut verdict = judge(ask, &theirs, &ours, said);
        let is_open_already = match verdict {
            Verdict::Door(door @ (Door::Refused | Door::Absent)) => {
                self.is_served(ask, &ours, door)?
            }
            // The front compares no parameters of a path with routes, merges slashes, and compares a host without its
            // case and its port: docs/routes.md, docs/import.md.
            Verdict::Door(door @ Door::Elsewhere)
                if is_odd(&ask.target) || has_odd_host(&ask.fields) =>
            {
                self.is_served(ask, &ours, door)?
            }
            _ => false,
        };
        if is_open_already {
            verdict = Verdict::Other;
        }
        tally.requests += 1;
        tally.served += usize::from(theirs.origin.is_some());
        tally.closed += usize::from(verdict == Verdict::Closed);
        tally.other += usize::from(verdict == Verdict::Other);
        Ok(Some(Compared {
            verdict,
            theirs,
            ours,
        }))
    }

    /// Whether the source serves this client the same content for another target that the front takes for the same,
    /// so that nothing becomes reachable. For [`Door::Refused`] this target must have the same last slash and the
    /// same method.
    fn is_served(&self, ask: &Ask, ours: &Answer, door: Door) -> anyhow::Result<bool> {
        let Some(here) = &ours.origin else {
            return Ok(false);
        };
        let with_more = door != Door::Refused;
        let mut ask = ask.clone();
        // The front discards a body of unknown length before its own answers: docs/import.md.
        let is_unknown = ask.body.is_some_and(|it| it.is_chunked);
        if is_unknown && !matches!(here, Origin::Backend { .. }) {
            ask.body = None;
        }
        let ask = &ask;
        let serves = |parameters| -> anyhow::Result<bool> {
            for other in others(ask, with_more, parameters) {
                let theirs = other.send(self.addresses.source[ask.listener])?;
                let is_content = |there| is_same_content(&there, here);
                if theirs.and_then(|it| it.origin).is_some_and(is_content) {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        if serves(Parameters::Kept)? {
            return Ok(true);
        }
        // The front ignores parameters of the path, so the source may serve the target without them. But if the
        // source also serves unknown parameters, its refusal comes from a rule about parameters, which the import
        // must keep.
        let is_of_rule = || self.answers(ask, Parameters::NoSuch);
        let is_bare = ask.target.contains(';') && serves(Parameters::Without)?;
        Ok(is_bare && (door == Door::Elsewhere || !is_of_rule()?))
    }

    /// Whether the source serves this request, or one of [`others`], with its parameters changed so.
    fn answers(&self, ask: &Ask, parameters: Parameters) -> anyhow::Result<bool> {
        let with_more = false;
        for other in others(ask, with_more, parameters) {
            let theirs = other.send(self.addresses.source[ask.listener])?;
            if theirs.is_some_and(|it| it.origin.is_some()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes the configuration of a finding smaller, by removing single nodes as long as the same kind of door is
    /// found.
    pub(crate) fn shrunk(&self, tree: Vec<Node>, found: &Finding) -> anyhow::Result<Finding> {
        let asks: Vec<Ask> = found.ask.iter().cloned().collect();
        let mut smallest = (tree, found.clone());
        let mut tries = 0;
        let mut index = 0;
        while index < tree::count(&smallest.0) && tries < TRIES_MAX {
            let mut has_shrunk = false;
            for how in [Cut::Remove, Cut::Unwrap] {
                let Some(smaller) = tree::cut(&smallest.0, index, how) else {
                    continue;
                };
                tries += 1;
                let conf = Conf::of(&smaller);
                let findings = self.compare(&conf, &conf, &asks, &mut Tally::default());
                // If the servers do not run with the smaller configuration, it shows nothing.
                let findings = findings.unwrap_or_default();
                if let Some(same) = findings.into_iter().find(|it| it.door == found.door) {
                    smallest = (smaller, same);
                    has_shrunk = true;
                    break;
                }
            }
            if !has_shrunk {
                index += 1;
            }
        }
        Ok(self.with_fewer_fields(smallest.1))
    }

    /// Removes those fields of the request that the finding does not need.
    fn with_fewer_fields(&self, found: Finding) -> Finding {
        let mut smallest = found;
        let mut index = 0;
        while let Some(ask) = smallest.ask.clone().filter(|it| index < it.fields.len()) {
            let mut fewer = ask;
            let (name, _) = fewer.fields.remove(index);
            index += 1;
            if name == "Host" {
                continue;
            }
            let conf = smallest.conf.clone();
            let findings = self.compare(&conf, &conf, &[fewer], &mut Tally::default());
            let same = findings
                .unwrap_or_default()
                .into_iter()
                .find(|it| it.door == smallest.door);
            if let Some(same) = same {
                smallest = same;
                index -= 1;
            }
        }
        smallest
    }
}

/// Whether the path of a target has parameters, or several slashes in a row.
fn is_odd(target: &str) -> bool {
    let path = target.split('?').next().unwrap_or_default();
    let path = path.split_once("://").map_or(path, |it| it.1);
    path.contains(';') || path.contains("//")
}

/// Both responses, and the verdict on them.
struct Compared {
    verdict: Verdict,
    theirs: Answer,
    ours: Answer,
}

/// A response as text, with the fields that matter for a door of this kind.
fn shown(answer: &Answer, door: Door) -> String {
    let mut text = answer.line();
    let fields = match (&answer.origin, door) {
        (Some(Origin::Backend { fields, .. }), Door::Forged | Door::Field) => fields,
        (_, Door::Loosened) => &answer.fields,
        _ => return text,
    };
    for (name, value) in fields {
        let _ = write!(text, " [{name}: {value}]");
    }
    text
}

/// The number of requests for each configuration.
const REQUESTS: usize = 60;

/// How many smaller configurations are tried at most.
const TRIES_MAX: usize = 200;
