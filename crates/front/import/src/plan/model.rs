//! Finds which virtual host and which rule of a plan decide about a request.

use std::collections::HashMap;

use super::{Plan, Rule, VirtualHost};
use crate::index::FirstMatch;

/// An index of the paths of ordered rules.
pub(crate) fn first_match(rules: &[Rule]) -> FirstMatch<'_> {
    FirstMatch::new(rules.iter().map(|it| (&it.matcher, it.yields)))
}

/// The schemes of a virtual host's listeners.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Schemes {
    pub(crate) http: bool,
    pub(crate) https: bool,
}

impl Schemes {
    pub(crate) fn of_listeners(plan: &Plan, host: &VirtualHost) -> Self {
        let mut schemes = Self::default();
        for listener in host
            .listeners
            .iter()
            .filter_map(|&it| plan.listeners.get(it))
        {
            schemes.https |= listener.tls.is_some();
            schemes.http |= listener.tls.is_none();
        }
        schemes
    }
}

/// The virtual hosts of a plan by listener and name.
pub(crate) struct Model<'p> {
    /// The first virtual host for each listener and name.
    names: HashMap<(usize, &'p str), usize>,
    defaults: HashMap<usize, usize>,
}

impl<'p> Model<'p> {
    pub(crate) fn new(plan: &'p Plan) -> Self {
        let (mut names, mut defaults) = (HashMap::new(), HashMap::new());
        for (at, host) in plan.hosts.iter().enumerate() {
            for &listener in &host.listeners {
                for name in &host.names {
                    names.entry((listener, name.as_str())).or_insert(at);
                }
            }
            for &listener in &host.default_on {
                defaults.entry(listener).or_insert(at);
            }
        }
        Self { names, defaults }
    }

    /// The index of the virtual host that serves a host on a listener: by name, then by the longest wildcard, then
    /// the default.
    pub(crate) fn host(&self, listener: usize, host: &str) -> Option<usize> {
        if let Some(&found) = self.names.get(&(listener, host)) {
            return Some(found);
        }
        // The longest wildcard that matches.
        let by_wildcard = host.match_indices('.').find_map(|(at, _)| {
            let name = format!("*{}", &host[at..]);
            self.names.get(&(listener, name.as_str())).copied()
        });
        by_wildcard.or_else(|| self.defaults.get(&listener).copied())
    }
}
