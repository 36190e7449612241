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

/// Reads the names of a virtual host.
pub(super) fn names(inner: &[Directive], ledger: &mut Ledger) -> Names {
    let mut names = Names::default();
    for directive in inner
        .iter()
        .filter(|it| matches!(it.name.as_str(), "servername" | "serveralias"))
    {
        ledger.mapped(directive.id);
        for word in &directive.words {
            let without_scheme = word.rsplit_once("://").map_or(word.as_str(), |it| it.1);
            let bare = without_scheme
                .split(':')
                .next()
                .unwrap_or(without_scheme)
                .trim_end_matches('.')
                .to_ascii_lowercase();
            match is_route_host(&bare) {
                true if !names.sayable.contains(&bare) => names.sayable.push(bare),
                true => {}
                false => {
                    let text = format!("`{word}` is no host that a route can have");
                    ledger.note(directive.id, text);
                    names.others.push(bare);
                    names.unsayable.push(directive.id);
                }
            }
        }
    }
    names
}

impl Reader<'_, '_> {
    /// Removes from `host` the names that an earlier virtual host on the same listeners has, also by a wildcard.
    pub(super) fn shadowed_names(&mut self, host: &mut VirtualHost) {
        let (hosts, named) = (&self.plan.hosts, &self.named);
        let has_all = |at: &usize| {
            let listens = &hosts[*at].listeners;
            host.listeners.iter().all(|it| listens.contains(it))
        };
        let has = |name: &str| named.get(name).is_some_and(|it| it.iter().any(has_all));
        let taken = |name: &String| {
            let mut dots = name.match_indices('.');
            has(name) || dots.any(|(at, _)| has(&format!("*{}", &name[at..])))
        };
        let (gone, kept): (Vec<String>, Vec<String>) = host.names.drain(..).partition(taken);
        host.names = kept;
        if !gone.is_empty() {
            let text = format!("an earlier virtual host has {} already", gone.join(", "));
            self.files
                .ledger
                .say(Weight::Note, host.place.clone(), text);
        }
    }

    /// Whether an earlier virtual host may match any of this host's names: by a wildcard, or by a name that no route
    /// can have.
    pub(super) fn is_shadowed(&self, host: &VirtualHost) -> bool {
        let set = |name: &String| Matcher::pattern(&format!("/{name}"));
        let own: Vec<Matcher> = host.names.iter().map(set).collect();
        let hosts_before = self.plan.hosts.iter().zip(&self.unsaid);
        let mut earlier = hosts_before.filter(|(it, _)| shares_listener(it, host));
        earlier.any(|(other, unsaid)| {
            let wildcards = other.names.iter().filter(|it| it.starts_with('*'));
            let wild: Vec<Matcher> = wildcards.map(set).collect();
            let unsaid: Vec<Matcher> = unsaid.iter().map(set).collect();
            let covers = |own: &Matcher| wild.iter().any(|it| it.covers(own));
            let meets = |own: &Matcher| unsaid.iter().any(|it| it.overlaps(own));
            own.iter().any(|it| covers(it) || meets(it))
        })
    }
}

fn shares_listener(one: &VirtualHost, two: &VirtualHost) -> bool {
    one.listeners.iter().any(|it| two.listeners.contains(it))
}
