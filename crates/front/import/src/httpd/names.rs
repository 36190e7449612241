//! The names of virtual hosts: which host gets a name that several have, and names that no route can have.
//!
//! httpd asks virtual hosts in their order, each for all of its names. No route can have a name with a wildcard in
//! its middle. What such a name may match is closed: on all later virtual hosts, and for hosts that no virtual host
//! names.

use catamaran_config::is_route_host;

use crate::directive::Directive;
use crate::httpd::host::Reader;
use crate::ledger::{Id, Ledger, Weight};
use crate::matcher::Matcher;
use crate::plan::VirtualHost;

/// The names of a virtual host, in lower case.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Names that routes can have: hosts, and wildcards such as `*.example.org`.
    pub(super) sayable: Vec<String>,
    /// Names that no route can have, with `*` and `?`.
    pub(super) others: Vec<String>,
    /// The directives that state the names in `others`.
    pub(super) unsayable: Vec<Id>,
}

/// Reads the names of a virtual host. Names that no route can have are noted.
pub(super) fn names(inner: &[Directive], ledger: &mut Ledger) -> Names {
    let mut names = Names::default();
    for directive in inner {
        if !matches!(directive.name.as_str(), "servername" | "serveralias") {
            continue;
        }
        ledger.mapped(directive.id);
        for word in &directive.words {
            let host = bare_host(word);
            if !is_route_host(&host) {
                let text = format!("`{word}` is no host that a route can have");
                ledger.note(directive.id, text);
                names.others.push(host);
                names.unsayable.push(directive.id);
            } else if !names.sayable.contains(&host) {
                names.sayable.push(host);
            }
        }
    }
    names
}

/// The host of a `ServerName` such as `https://Example.org:443`, in lower case.
fn bare_host(word: &str) -> String {
    let without_scheme = word
        .rsplit_once("://")
        .map_or(word, |(_, authority)| authority);
    let host = match without_scheme.split_once(':') {
        Some((host, _)) => host,
        None => without_scheme,
    };
    host.trim_end_matches('.').to_ascii_lowercase()
}

impl Reader<'_, '_> {
    /// Removes from `host` the names that an earlier virtual host on the same listeners has, also by a wildcard.
    pub(super) fn shadowed_names(&mut self, host: &mut VirtualHost) {
        let is_on_all_listeners = |index: &usize| {
            let earlier = &self.plan.hosts[*index];
            let mut listeners = host.listeners.iter();
            listeners.all(|it| earlier.listeners.contains(it))
        };
        let is_served = |name: &str| match self.named.get(name) {
            Some(hosts) => hosts.iter().any(is_on_all_listeners),
            None => false,
        };
        let is_taken = |name: &String| {
            let mut dots = name.match_indices('.');
            is_served(name) || dots.any(|(at, _)| is_served(&format!("*{}", &name[at..])))
        };
        let names = std::mem::take(&mut host.names);
        let (taken, free): (Vec<String>, Vec<String>) = names.into_iter().partition(is_taken);
        host.names = free;
        if !taken.is_empty() {
            let text = format!("an earlier virtual host has {} already", taken.join(", "));
            self.files
                .ledger
                .say(Weight::Note, host.place.clone(), text);
        }
    }

    /// Whether an earlier virtual host may match any of this host's names: by a wildcard, or by a name that no route
    /// can have.
    pub(super) fn is_shadowed(&self, host: &VirtualHost) -> bool {
        // Names are compared as if they were paths, which have the same wildcards.
        let as_path = |name: &String| Matcher::pattern(&format!("/{name}"));
        let own: Vec<Matcher> = host.names.iter().map(as_path).collect();
        let earlier_hosts = self.plan.hosts.iter().zip(&self.unsaid);
        for (earlier, unsayable) in earlier_hosts {
            if !shares_listener(earlier, host) {
                continue;
            }
            let wildcards = earlier.names.iter().filter(|name| name.starts_with('*'));
            let mut wildcard_sets = wildcards.map(as_path);
            let mut unsayable_sets = unsayable.iter().map(as_path);
            if wildcard_sets.any(|set| own.iter().any(|name| set.covers(name)))
                || unsayable_sets.any(|set| own.iter().any(|name| set.overlaps(name)))
            {
                return true;
            }
        }
        false
    }
}

fn shares_listener(one: &VirtualHost, two: &VirtualHost) -> bool {
    one.listeners.iter().any(|it| two.listeners.contains(it))
}
