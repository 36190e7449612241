//! Sections such as `<Location>`, laid over the rules of a host.

use crate::httpd::tree::Directive;
use crate::httpd::{access, fields, proxy};
use crate::ledger::Ledger;
use crate::matcher::Matcher;
use crate::plan::{Access, Action, Plan, Rule, split};
use crate::regex::path_set;

/// A section, laid over the rules.
pub(crate) fn overlay(
    section: &Directive,
    rules: &mut Vec<Rule>,
    plan: &mut Plan,
    ledger: &mut Ledger,
) {
    let inner = section.inside();
    let (matchers, is_exact) = match section.name.as_str() {
        "location" if section.words.len() == 1 => (vec![location(section.word(0))], true),
        "location" | "locationmatch" => {
            let set = path_set(section.words.last().map_or("", String::as_str), false);
            (set.matchers, set.is_exact)
        }
        _ => return overlay_other(section, rules, ledger),
    };
    let mut change = fields::settings(inner, false, ledger);
    let access = access::of_section(inner, ledger);
    let handler = inner.iter().find(|it| it.name == "sethandler");
    let answer = handler.and_then(|it| set_handler(it, plan, ledger));
    let is_strange = |it: &&Directive| it.inner.is_some() && !it.name.starts_with("require");
    for strange in inner.iter().filter(is_strange) {
        keep_all(
            [strange],
            "it is part of a section that was not converted",
            ledger,
        );
    }
    let unsaid = inner
        .iter()
        .any(|it| is_strange(&it) || it.name.starts_with("rewrite"))
        || (access.is_some() && !is_exact);
    let access = if unsaid { Some(Access::Unsaid) } else { access };
    match is_exact || access.is_some() {
        true => ledger.mapped(section.id),
        false => ledger.risk(
            section.id,
            "its expression is no pattern, and its settings were left out",
        ),
    }
    if let Some(access) = &access {
        change.access = access.clone();
    }
    let guards = access.as_ref().is_some_and(|it| *it != Access::Open)
        || change.keys.contains_key("client_certificate");
    for matcher in &matchers {
        let apply = |rule: &mut Rule| {
            rule.settings.merge(&change);
            if access == Some(Access::Open) {
                rule.settings.access = Access::Open;
            }
            if let Some(action) = &answer {
                rule.action = action.clone();
            }
        };
        let close = |rule: &mut Rule| {
            if guards {
                rule.settings.access = Access::Unsaid;
            }
        };
        split(rules, matcher, apply, close);
    }
}

/// A section that is not about paths.
fn overlay_other(section: &Directive, rules: &mut [Rule], ledger: &mut Ledger) {
    let inner = section.inside();
    match section.name.as_str() {
        "proxy" | "proxymatch" => {
            ledger.mapped(section.id);
            let text = section.word(0);
            let all = matches!(text, "*" | "~" | ".*") || text.starts_with("balancer:");
            let access = access::of_section(inner, ledger).filter(|it| *it != Access::Open);
            let Some(access) = access else { return };
            let said = if all { access } else { Access::Unsaid };
            let forwards = |it: &&mut Rule| matches!(it.action, Action::Forward { .. });
            let forwards = rules.iter_mut().filter(forwards);
            forwards.for_each(|it| it.settings.access = said.clone());
        }
        "directory" | "directorymatch" | "files" | "filesmatch" => {
            let text = "it is about files, which the importer does not convert";
            match ledger.keeps {
                true => keep_all([section], text, ledger),
                false => drop_all([section], text, ledger),
            }
        }
        "virtualhost" => {}
        _ if section.inner.is_some() => {
            ledger.unmapped(section.id, "a section of this kind is not converted");
            keep_all(
                inner,
                "it is part of a section that was not converted",
                ledger,
            );
            rules
                .iter_mut()
                .for_each(|it| it.settings.access = Access::Unsaid);
        }
        _ => {}
    }
}

/// `<Location>` knows wildcards; without them it is a prefix by segments.
fn location(path: &str) -> Matcher {
    match path.contains(['*', '?', '[']) {
        true => Matcher::pattern(&format!("{}*", path.split('[').next().unwrap_or_default())),
        false => proxy::prefix(path),
    }
}

fn set_handler(directive: &Directive, plan: &mut Plan, ledger: &mut Ledger) -> Option<Action> {
    match directive.word(0) {
        "balancer-manager" | "server-status" | "jk-status" => {
            ledger.mapped(directive.id);
            ledger.note(
                directive.id,
                "the status page is that of [admin], on loopback; its path is not routed",
            );
            plan.has_status = true;
            Some(Action::Answer(404))
        }
        "None" | "none" => None,
        _ => {
            ledger.unmapped(directive.id, "the front has no such handler");
            Some(Action::Closed)
        }
    }
}

fn keep_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    reason: &str,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.kept_or_risk(directive.id, reason);
        keep_all(directive.inside(), reason, ledger);
    }
}

/// Drops directives and all that stands in them.
pub(crate) fn drop_all<'d>(
    directives: impl IntoIterator<Item = &'d Directive>,
    reason: &str,
    ledger: &mut Ledger,
) {
    for directive in directives {
        ledger.dropped(directive.id, reason);
        drop_all(directive.inside(), reason, ledger);
    }
}
