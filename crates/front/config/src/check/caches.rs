//! Checks whether caches fit together with routes, upstreams and the machine.

use std::collections::HashSet;

use catamaran_proxy::config::SetCookie;

use crate::file::File;
use crate::file::route::Route;
use crate::file::sticky::Sticky;
use crate::report::{Finding, Report};
use crate::suggest::{meant_or, nearest};

/// Adds to the report what is wrong with the caches. With `sees_files`, their size is
/// compared with the memory of this machine.
pub(super) fn check(file: &File, sees_files: bool, report: &mut Report) {
    let names = || file.caches.iter().map(|cache| cache.value.name.as_str());
    let mut in_use = HashSet::new();
    for route in &file.routes {
        let Some(name) = named(route) else {
            continue;
        };
        in_use.insert(name);
        if names().any(|cache_name| cache_name == name) {
            continue;
        }
        let message = format!("there is no cache `{name}`");
        let hint = meant_or(nearest(name, names()), || format!("add [cache.{name}]"));
        report.push(Finding::fault(message, route.cache_place.clone()).hint(hint));
    }
    let memory_of_machine = sees_files.then(memory_limit).flatten();
    for cache in &file.caches {
        let name = &cache.value.name;
        if report.faults() == 0 && !in_use.contains(name.as_str()) {
            let message = format!("no route has cache `{name}`");
            let hint = "write `cache` in a [[route]], or remove it";
            report.push(Finding::warning(message, cache.place.clone()).hint(hint));
        }
        if memory_of_machine
            .is_some_and(|memory_of_machine| cache.value.memory > memory_of_machine / 2)
        {
            let message = "`memory` is more than half of what this machine or its cgroup allows";
            let hint = "what the front needs besides has to fit, too";
            report.push(Finding::warning(message, cache.memory_place.clone()).hint(hint));
        }
        if cache.value.set_cookie == SetCookie::Store {
            let message = "`set_cookie = \"store\"` gives the cookie of one client to all others";
            let hint = "write \"strip\", unless no cookie of these pages names a user or a session";
            report.push(Finding::warning(message, cache.place.clone()).hint(hint));
        }
        if cache.value.session_cookies.is_empty() && keeps_sessions(file, name) {
            let message =
                "`session_cookies` is empty, and an upstream behind this cache keeps sessions";
            let hint = "name the cookies of logins, or pages of one user are shown to others";
            report.push(Finding::warning(message, cache.sessions_place.clone()).hint(hint));
        }
    }
}

/// The name of the cache that a route uses.
fn named(route: &Route) -> Option<&str> {
    let rules = route.values.first()?.rules.as_ref()?;
    rules.cache.as_deref()
}

/// Whether any upstream whose responses go into this cache keeps sessions.
fn keeps_sessions(file: &File, cache: &str) -> bool {
    let routes = file.routes.iter();
    let behind: HashSet<&str> = routes
        .filter(|route| named(route) == Some(cache))
        .flat_map(|route| route.target.upstreams())
        .collect();
    file.upstreams.iter().any(|upstream| {
        behind.contains(&upstream.name[..]) && matches!(upstream.sticky, Sticky::On(_))
    })
}

/// The memory limit of this process's cgroup; `None` if it has none or it cannot be read.
fn memory_limit() -> Option<u64> {
    let text = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?;
    text.trim().parse().ok()
}
