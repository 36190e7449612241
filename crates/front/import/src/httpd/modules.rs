//! Which modules httpd has, as far as the files say, for `<IfModule>`.

use std::collections::HashSet;

use crate::directive::{Directive, MISSING};
use crate::httpd::access;
use crate::ledger::Ledger;
use crate::stock;

/// The modules that were loaded so far.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    loaded: HashSet<String>,
    /// Whether others may be loaded in a file that is not there.
    has_unread: bool,
}

impl Modules {
    /// Adds the one that a `LoadModule` names.
    pub(crate) fn load(&mut self, name: &str) {
        self.loaded.insert(stem(name).to_owned());
    }

    /// A file that is not there may load any.
    pub(crate) fn miss_file(&mut self) {
        self.has_unread = true;
    }

    /// Whether there is a module; `None` if that is not known. Of a module that is not httpd's the name of its source,
    /// which `<IfModule>` may ask for, is not always that of `LoadModule`.
    pub(crate) fn has(&self, name: &str) -> Option<bool> {
        let stem = stem(name);
        if ALWAYS.contains(&stem) || self.loaded.contains(stem) {
            return Some(true);
        }
        // A file that loads a module of its own says nothing of the others.
        let is_known = self.loaded.contains(REQUIRE) && !self.has_unread;
        let is_alike = |it: &String| plain(it) == plain(stem);
        (is_known && !self.loaded.iter().any(is_alike)).then_some(false)
    }
}

/// What counts of a section that is in force if some module is not there, and nobody knows: its guards close.
pub(crate) fn guards_of(directives: Vec<Directive>, ledger: &mut Ledger) -> Vec<Directive> {
    let mut found = Vec::new();
    for mut it in directives {
        if access::is_read(&it.name) || stock::may_guard("httpd", &it.name) {
            ledger.unmapped(it.id, "whether its module is there is not known");
            it.name = MISSING.to_owned();
            it.inner = None;
            found.push(it);
            continue;
        }
        let text = "whether its module is there is not known, and it was left out";
        ledger.kept_or_risk(it.id, text);
        it.inner = it.inner.map(|inner| guards_of(inner, ledger));
        if !it.inside().is_empty() {
            found.push(it);
        }
    }
    found
}

/// `x` of `mod_x.c` and of `x_module`.
fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".c").unwrap_or(name);
    let name = name.strip_suffix("_module").unwrap_or(name);
    let name = name.strip_prefix("mod_").unwrap_or(name);
    name.strip_prefix("mpm_").unwrap_or(name)
}

/// Without its version.
fn plain(stem: &str) -> &str {
    stem.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.')
}

/// The module of `Require`, which every list of httpd's modules has.
const REQUIRE: &str = "authz_core";

/// Those without which httpd 2.4 reads no `Require`, and those that are built in.
const ALWAYS: &[&str] = &[
    "authz_core",
    "core",
    "http",
    "http_core",
    "log_config",
    "logio",
    "so",
    "unixd",
    "version",
    "watchdog",
];
