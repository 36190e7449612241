//! Mounts: which worker gets a path, in mod_jk's order of precedence.
//!
//! The pattern with the most slashes wins, then the longest one, then the kind of source: the map file before
//! `JkMount` before the property `mount` of a worker. Exclusions are tested after the match, so a path that is
//! excluded from its worker does not go to another one.

use std::collections::HashMap;

use crate::common_settings::REPLACE_ERRORS;
use crate::files::Text;
use crate::index::below;
use crate::ledger::{Id, Ledger, Place, Weight};
use crate::matcher::{Common, Matcher};
use crate::mod_jk::workers::{Kind, Workers, duration, number};
use crate::plan::{Access, Action, Plan, Rule, first_match, split};
use crate::read::properties;
use crate::toml_text::{inline_table, quoted};

/// Where a mount is written; the first in this list wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    Map,
    Directive,
    Worker,
}

/// A pattern of paths and the worker that gets them, or from which it excludes them.
#[derive(Clone, Debug)]
pub(crate) struct Mount {
    pub(crate) pattern: String,
    /// The pattern as it is written, with its `|`.
    pub(crate) written: String,
    pub(crate) worker: String,
    pub(crate) excludes: bool,
    /// The extensions `;name=value` after the worker's name.
    pub(crate) extensions: Vec<(String, String)>,
    pub(crate) source: Source,
    pub(crate) id: Id,
}

/// Reads the mounts of a `uriworkermap.properties` file.
pub(crate) fn read_map(text: &Text, ledger: &mut Ledger) -> Vec<Mount> {
    let mut mounts = Vec::new();
    for property in properties::parse(&text.text) {
        let place = Place::new(&text.name, property.line);
        let id = ledger.enter("mod_jk", "uriworkermap", &place);
        if property.name.starts_with('-') || property.name.starts_with("!-") {
            ledger.dropped(id, "it is switched off by its `-`");
            continue;
        }
        let mut parts = property.value.split(';').map(str::trim);
        let worker = parts.next().unwrap_or_default().to_owned();
        let mut extensions: Vec<(String, String)> = Vec::new();
        for extension in parts.filter(|part| !part.is_empty()) {
            let (name, value) = extension.split_once('=').unwrap_or((extension, "1"));
            extensions.push((name.trim().to_owned(), value.trim().to_owned()));
        }
        let (written, excludes) = match property.name.strip_prefix('!') {
            Some(pattern) => (pattern.trim(), true),
            None => (property.name.as_str(), false),
        };
        add(&mut mounts, written, |pattern| Mount {
            pattern,
            written: String::new(),
            worker: worker.clone(),
            excludes,
            extensions: extensions.clone(),
            source: Source::Map,
            id,
        });
    }
    mounts
}

/// Adds the mounts of a written pattern; `X|Y` stands for the patterns `X` and `XY`. `mount` makes the mount of a
/// pattern.
pub(crate) fn add(mounts: &mut Vec<Mount>, written: &str, mount: impl Fn(String) -> Mount) {
    let patterns = match written.split_once('|') {
        Some((first, appended)) => vec![first.to_owned(), format!("{first}{appended}")],
        None => vec![written.to_owned()],
    };
    for pattern in patterns {
        mounts.push(Mount {
            written: written.to_owned(),
            ..mount(pattern)
        });
    }
}

/// The mounts that apply: of several that are written alike, the last one applies, at the place of the first.
///
/// mod_jk stores mounts by their written text, and splits `X|Y` into two only afterwards.
fn last_ones<'m>(mounts: &'m [Mount], excludes: bool, ledger: &mut Ledger) -> Vec<&'m Mount> {
    let mut kept: Vec<&Mount> = Vec::new();
    let mut indices: HashMap<(Source, &str, &str), usize> = HashMap::new();
    for mount in mounts.iter().filter(|mount| mount.excludes == excludes) {
        let key = (mount.source, mount.written.as_str(), mount.pattern.as_str());
        match indices.get(&key) {
            Some(&index) => {
                let text = "the same pattern stands again further down, and only that line counts";
                ledger.dropped(kept[index].id, text);
                kept[index] = mount;
            }
            None => {
                indices.insert(key, kept.len());
                kept.push(mount);
            }
        }
    }
    kept
}

/// The rules of a virtual host's mounts, in the order in which mod_jk asks them.
pub(crate) fn rules(
    mounts: &[Mount],
    workers: &mut Workers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Vec<Rule> {
    let mut sorted = last_ones(mounts, false, ledger);
    let rank = |mount: &&Mount| {
        let slashes = mount.pattern.matches('/').count();
        let length = mount.pattern.len();
        (std::cmp::Reverse((slashes, length)), mount.source)
    };
    sorted.sort_by_key(rank);
    let mut mount_rules: Vec<(&Mount, Vec<Rule>)> = Vec::new();
    let mut upstreams: HashMap<String, usize> = HashMap::new();
    for mount in sorted {
        if !mount.pattern.starts_with('/') {
            ledger.dropped(
                mount.id,
                "mod_jk logs an error and ignores a pattern without `/` at its beginning",
            );
            continue;
        }
        let rule = rule(mount, &mut upstreams, workers, plan, ledger);
        mount_rules.push((mount, vec![rule]));
    }
    // Paths that no mount gets whatever its pattern is.
    let mut rules: Vec<Rule> = Vec::new();
    for exclusion in last_ones(mounts, true, ledger) {
        match of_all_mounts(exclusion, &mount_rules, ledger) {
            Some(rule) => rules.push(rule),
            None => exclude(exclusion, &mut mount_rules, ledger),
        }
    }
    rules.extend(mount_rules.into_iter().flat_map(|(_, rules)| rules));
    join_prefixes(&mut rules, ledger);
    rules
}

/// The rule that leaves the paths of an exclusion to httpd before any mount is asked; `None` if some of them may belong
/// to another worker, or if they can be divided from those of each mount.
fn of_all_mounts(
    exclusion: &Mount,
    mount_rules: &[(&Mount, Vec<Rule>)],
    ledger: &mut Ledger,
) -> Option<Rule> {
    let matcher = Matcher::pattern(&exclusion.pattern);
    let mut is_crossed = false;
    for (mount, rules) in mount_rules {
        let is_own = exclusion.worker == "*" || mount.worker == exclusion.worker;
        for rule in rules {
            if !is_own && rule.matcher.overlaps(&matcher) {
                return None;
            }
            is_crossed |= rule.matcher.common(&matcher) == Common::Unsaid;
        }
    }
    if !is_crossed {
        return None;
    }
    ledger.mapped(exclusion.id);
    let place = ledger.place(exclusion.id);
    Some(Rule::new(Some(place), matcher, Action::Files))
}

/// Applies an exclusion (`!/path` or `JkUnMount`) to the rules of the worker's mounts. A rule whose paths no pattern
/// can divide is closed.
fn exclude(exclusion: &Mount, mount_rules: &mut [(&Mount, Vec<Rule>)], ledger: &mut Ledger) {
    let matcher = Matcher::pattern(&exclusion.pattern);
    let of_all_workers = exclusion.worker == "*";
    let place = ledger.place(exclusion.id).clone();
    let leave_to_httpd = |rule: &mut Rule| {
        rule.action = Action::Files;
        rule.settings.keys.clear();
        rule.place = Some(place.clone());
    };
    let close = |rule: &mut Rule| rule.settings.access = Access::Unsaid;
    let closed_count = |rules: &[Rule]| {
        let closed = rules
            .iter()
            .filter(|it| it.settings.access == Access::Unsaid);
        closed.count()
    };
    let mut is_any_closed = false;
    for (mount, rules) in mount_rules {
        if of_all_workers || mount.worker == exclusion.worker {
            let count_before = closed_count(rules);
            split(rules, &matcher, leave_to_httpd, close);
            is_any_closed |= closed_count(rules) > count_before;
        }
    }
    if is_any_closed {
        ledger.unmapped(
            exclusion.id,
            "no route can have the paths of a mount without those that it excludes: the mount is closed",
        );
    } else {
        ledger.mapped(exclusion.id);
    }
}

/// The rule of a mount. Paths that mod_jk would not serve are answered 404.
fn rule(
    mount: &Mount,
    upstreams: &mut HashMap<String, usize>,
    workers: &mut Workers,
    plan: &mut Plan,
    ledger: &mut Ledger,
) -> Rule {
    let place = ledger.place(mount.id).clone();
    let matcher = Matcher::pattern(&mount.pattern);
    let action = match workers.kind(&mount.worker) {
        Kind::Unlisted => {
            let text = workers.unlisted(&mount.worker);
            ledger.dropped(mount.id, &text);
            ledger.note(mount.id, text);
            return Rule::new(Some(&place), matcher, Action::Answer(404));
        }
        Kind::Status => {
            workers.claim(&mount.worker, ledger);
            ledger.mapped(mount.id);
            ledger.note(
                mount.id,
                "the front has a status page in [admin], on loopback; this path has no route",
            );
            plan.has_status = true;
            return Rule::new(Some(&place), matcher, Action::Answer(404));
        }
        Kind::Other(kind) => {
            workers.claim(&mount.worker, ledger);
            ledger.unmapped(
                mount.id,
                &format!("the worker {} is of the type {kind}", mount.worker),
            );
            return Rule::new(Some(&place), matcher, Action::Closed);
        }
        Kind::Ajp | Kind::Balancer => {
            let upstream = match upstreams.get(&mount.worker) {
                Some(&known) => known,
                None => {
                    let added = plan.upstream(workers.upstream(&mount.worker, ledger));
                    upstreams.insert(mount.worker.clone(), added);
                    added
                }
            };
            Action::Forward {
                upstream,
                rewrite: None,
            }
        }
    };
    ledger.mapped(mount.id);
    let mut rule = Rule::new(Some(&place), matcher, action);
    for (name, value) in &mount.extensions {
        extend(&mut rule, name, value, mount.id, ledger);
    }
    rule
}

/// Applies an extension such as `;reply_timeout=5` to the rule of its mount.
fn extend(rule: &mut Rule, name: &str, value: &str, id: Id, ledger: &mut Ledger) {
    let settings = &mut rule.settings;
    match name {
        "reply_timeout" => {
            let limit = number(value).and_then(|it| duration(it, 1));
            // Zero stands for no limit; this is the longest time that a key can have.
            let time = limit.unwrap_or_else(|| quoted("24h"));
            let keys = &mut settings.keys;
            keys.insert("first_byte_timeout".to_owned(), time.clone());
            keys.insert("idle_body_timeout".to_owned(), time);
        }
        "sticky_ignore" | "stateless" if value != "0" => {
            let keys = &mut settings.keys;
            keys.insert("sticky".to_owned(), "false".to_owned());
        }
        "sticky_ignore" | "stateless" => {}
        "use_server_errors" => match number(value) {
            Some(from @ 400..600) => {
                let pages = &mut settings.pages;
                pages.insert(REPLACE_ERRORS.to_owned(), from.to_string());
            }
            _ => ledger.risk(
                id,
                format!("`use_server_errors={value}` is no status from 400 on"),
            ),
        },
        "active" => {}
        "disabled" | "stopped" => {
            let state = if name == "disabled" {
                "drain"
            } else {
                "stopped"
            };
            let members = value.split([',', ' ']).filter(|member| !member.is_empty());
            let activation = inline_table(members.map(|it| (quoted(it), quoted(state))));
            let keys = &mut settings.keys;
            if keys.insert("activation".to_owned(), activation).is_some() {
                let text = "of `disabled` and `stopped` in one rule only the last was converted";
                ledger.risk(id, text);
            }
        }
        _ => ledger.risk(id, format!("`;{name}` of a rule was not converted")),
    }
}

/// Joins the rules for `/app` and `/app/*` of one worker into a prefix. `/app/*` alone becomes a prefix, too, which
/// also matches `/app`, unless another rule decides about `/app`.
pub(crate) fn join_prefixes(rules: &mut Vec<Rule>, ledger: &mut Ledger) {
    let before = std::mem::take(rules);
    let index = first_match(&before);
    // Rules that became parts of a prefix.
    let mut merged = vec![false; before.len()];
    let mut joined: Vec<Rule> = Vec::with_capacity(before.len());
    for (at, rule) in before.iter().enumerate() {
        if merged[at] {
            continue;
        }
        let path = match &rule.matcher {
            Matcher::Pattern(text) => below(text),
            _ => None,
        };
        let Some(path) = path else {
            joined.push(rule.clone());
            continue;
        };
        // Earlier rules with a condition stay before the prefix, and decide in any case.
        let counts = |other: usize| {
            let is_left = !merged[other];
            is_left && (other > at || before[other].is_unconditional())
        };
        // The rules that decide about `/app`: those with a condition, up to the first without one.
        let mut deciding: Vec<usize> = Vec::new();
        let mut is_decided = false;
        while !is_decided
            && let Some(next) = index.find(path, |it| counts(it) && !deciding.contains(&it))
        {
            deciding.push(next);
            is_decided = before[next].is_unconditional();
        }
        let exact_path = Matcher::Exact(path.to_owned());
        match deciding[..] {
            [only] if is_decided && is_part_of_prefix(&before[only], rule, &exact_path) => {
                // An earlier rule stays, and decides about its path before the prefix.
                merged[only] |= only > at && before[only].matcher == exact_path;
            }
            _ => {
                // Exact paths come before all others, in mod_jk and in the front.
                let narrowed = |&other: &usize| before[other].narrowed(exact_path.clone());
                joined.extend(deciding.iter().map(narrowed));
                if !is_decided {
                    let text =
                        format!("{path}/* does not match {path} in the source; here it does");
                    ledger.say(Weight::Note, rule.place.clone(), text);
                }
            }
        }
        joined.push(Rule {
            matcher: Matcher::Prefix(path.to_owned()),
            ..rule.clone()
        });
    }
    *rules = joined;
}

/// Whether a rule for `/app` does the same as the rule for `/app/*`.
fn is_part_of_prefix(rule: &Rule, below: &Rule, exact_path: &Matcher) -> bool {
    // A rewrite of a wider rule gives `/app` another path.
    let rewrites_same = rule.matcher == *exact_path || !rule.action.rewrites();
    rewrites_same && rule.action == below.action && rule.settings == below.settings
}

#[cfg(test)]
mod tests;
