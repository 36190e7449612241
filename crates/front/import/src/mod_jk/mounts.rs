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
use crate::matcher::Matcher;
use crate::mod_jk::workers::{Kind, Workers, duration, number};
use crate::plan::{Access, Action, Plan, Rule, first_match, split};
use crate::read::properties;
use crate::toml_text::quoted;

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
        let place = Place {
            file: std::sync::Arc::clone(&text.name),
            line: property.line,
        };
        let id = ledger.enter("mod_jk", "uriworkermap", &place);
        let disabled = property.name.starts_with('-') || property.name.starts_with("!-");
        if disabled {
            ledger.dropped(id, "it is switched off by its `-`");
            continue;
        }
        let mut parts = property.value.split(';').map(str::trim);
        let worker = parts.next().unwrap_or_default().to_owned();
        let pairs = parts.filter(|it| !it.is_empty()).map(|it| {
            let (name, value) = it.split_once('=').unwrap_or((it, "1"));
            (name.trim().to_owned(), value.trim().to_owned())
        });
        let extensions: Vec<_> = pairs.collect();
        let (pattern, excludes) = match property.name.strip_prefix('!') {
            Some(pattern) => (pattern.trim(), true),
            None => (property.name.as_str(), false),
        };
        add(&mut mounts, pattern, |pattern| Mount {
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

/// Adds a mount; a written pattern `X|Y` adds the patterns `X` and `XY`.
pub(crate) fn add(mounts: &mut Vec<Mount>, written: &str, mount: impl Fn(String) -> Mount) {
    let patterns = match written.split_once('|') {
        Some((first, rest)) => vec![first.to_owned(), format!("{first}{rest}")],
        None => vec![written.to_owned()],
    };
    mounts.extend(patterns.into_iter().map(|pattern| Mount {
        written: written.to_owned(),
        ..mount(pattern)
    }));
}

/// The mounts that apply: of several that are written alike, the last one applies, at the place of the first.
///
/// mod_jk stores mounts by their written text, and splits `X|Y` into two only afterwards.
fn last_ones<'m>(mounts: &'m [Mount], excludes: bool, ledger: &mut Ledger) -> Vec<&'m Mount> {
    let mut kept: Vec<&Mount> = Vec::new();
    let mut at: HashMap<(Source, &str, &str), usize> = HashMap::new();
    for mount in mounts.iter().filter(|it| it.excludes == excludes) {
        let key = (mount.source, mount.written.as_str(), mount.pattern.as_str());
        match at.get(&key) {
            Some(&known) => {
                let text = "the same pattern stands again further down, and only that line counts";
                ledger.dropped(kept[known].id, text);
                kept[known] = mount;
            }
            None => {
                at.insert(key, kept.len());
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
    let rank = |it: &&Mount| {
        let slashes = it.pattern.matches('/').count();
        (std::cmp::Reverse((slashes, it.pattern.len())), it.source)
    };
    sorted.sort_by_key(rank);
    let mut rules: Vec<(&Mount, Vec<Rule>)> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for mount in sorted {
        if !mount.pattern.starts_with('/') {
            ledger.dropped(
                mount.id,
                "mod_jk logs an error and ignores a pattern without `/` at its beginning",
            );
            continue;
        }
        rules.push((mount, vec![rule(mount, &mut known, workers, plan, ledger)]));
    }
    for exclusion in last_ones(mounts, true, ledger) {
        exclude(exclusion, &mut rules, ledger);
    }
    let mut rules: Vec<Rule> = rules.into_iter().flat_map(|it| it.1).collect();
    join_prefixes(&mut rules, ledger);
    rules
}

/// Applies an exclusion (`!/path` or `JkUnMount`) to the rules of the worker's mounts.
fn exclude(exclusion: &Mount, rules: &mut [(&Mount, Vec<Rule>)], ledger: &mut Ledger) {
    let matcher = Matcher::pattern(&exclusion.pattern);
    let all = exclusion.worker == "*";
    let mut unsaid = false;
    for (_, rules) in rules
        .iter_mut()
        .filter(|(it, _)| all || it.worker == exclusion.worker)
    {
        let before = rules
            .iter()
            .filter(|it| it.settings.access == Access::Unsaid)
            .count();
        let leave = |rule: &mut Rule| {
            rule.action = Action::Files;
            rule.settings.keys.clear();
            rule.place = Some(ledger.place(exclusion.id).clone());
        };
        split(rules, &matcher, leave, |rule| {
            rule.settings.access = Access::Unsaid;
        });
        unsaid |= rules
            .iter()
            .filter(|it| it.settings.access == Access::Unsaid)
            .count()
            > before;
    }
    if unsaid {
        ledger.unmapped(
            exclusion.id,
            "patterns cannot separate its paths from those of a mount",
        );
    } else {
        ledger.mapped(exclusion.id);
    }
}

/// The rule of a mount. Paths that mod_jk would not serve are answered 404.
fn rule(
    mount: &Mount,
    known: &mut HashMap<String, usize>,
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
            let upstream = match known.get(&mount.worker) {
                Some(&upstream) => upstream,
                None => {
                    let upstream = plan.upstream(workers.upstream(&mount.worker, ledger));
                    known.insert(mount.worker.clone(), upstream);
                    upstream
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
            let time = number(value).and_then(|it| duration(it, 1));
            let time = time.unwrap_or_else(|| quoted("24h"));
            let keys = &mut settings.keys;
            keys.insert("first_byte_timeout".to_owned(), time.clone());
            keys.insert("idle_body_timeout".to_owned(), time);
        }
        "sticky_ignore" | "stateless" => {
            if value != "0" {
                settings
                    .keys
                    .insert("sticky".to_owned(), "false".to_owned());
            }
        }
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
            let members = value.split([',', ' ']).filter(|it| !it.is_empty());
            let pairs: Vec<String> = members
                .map(|it| format!("{} = {}", quoted(it), quoted(state)))
                .collect();
            if settings
                .keys
                .insert(
                    "activation".to_owned(),
                    format!("{{ {} }}", pairs.join(", ")),
                )
                .is_some()
            {
                ledger.risk(
                    id,
                    "of `disabled` and `stopped` in one rule only the last was converted",
                );
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
    let mut gone = vec![false; before.len()];
    let mut joined: Vec<Rule> = Vec::with_capacity(before.len());
    for (at, rule) in before.iter().enumerate() {
        if gone[at] {
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
        let prefix = Rule {
            matcher: Matcher::Prefix(path.to_owned()),
            ..rule.clone()
        };
        // An earlier rule decides although it has a condition.
        let counts = |it: usize| !gone[it] && (it > at || before[it].is_unconditional());
        let decides = index.find(path, counts);
        match decides.map(|it| (it, &before[it])) {
            Some((other, own))
                if own.is_unconditional()
                    && own.action == rule.action
                    && (own.matcher == Matcher::Exact(path.to_owned())
                        || !own.action.rewrites())
                    && own.settings == rule.settings =>
            {
                // A rule that comes first stays, but the prefix then does not include its path.
                gone[other] |= other > at && own.matcher == Matcher::Exact(path.to_owned());
                joined.push(prefix);
            }
            decides => {
                // Exact paths come before all others, in mod_jk and in the front.
                let mut found: Vec<usize> = decides.map(|it| it.0).into_iter().collect();
                while let Some(&last) = found.last()
                    && !before[last].is_unconditional()
                {
                    let is_new = |it: usize| counts(it) && !found.contains(&it);
                    let Some(next) = index.find(path, is_new) else {
                        break;
                    };
                    found.push(next);
                }
                let exact = |it: &usize| before[*it].narrowed(Matcher::Exact(path.to_owned()));
                joined.extend(found.iter().map(exact));
                let is_said = found
                    .last()
                    .is_some_and(|it| before[*it].is_unconditional());
                if !is_said {
                    let text =
                        format!("{path}/* does not match {path} in the source; here it does");
                    ledger.say(Weight::Note, rule.place.clone(), text);
                }
                joined.push(prefix);
            }
        }
    }
    *rules = joined;
}

#[cfg(test)]
mod tests;
