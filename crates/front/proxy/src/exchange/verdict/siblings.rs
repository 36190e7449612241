//! A request that changes something, as the other upstreams of its split route would get it: the responses that they
//! gave become invalid, too.

use catamaran_message::RequestHead;

use super::{Case, rules_of};
use crate::exchange::cache_request::SiblingRequest;
use crate::exchange::outgoing::{Outgoing, Wishes};
use crate::path::NormalPath;
use crate::site::route::{Action, Route};
use crate::site::split::Split;

impl<'s> Case<'_, 's> {
    /// The request as each upstream of a split route but that of `wishes` would get it: what an upstream is told depends
    /// on its protocol and its attributes.
    pub(super) fn siblings(
        &self,
        route: Option<&'s Route>,
        wishes: Wishes<'s>,
        head: &RequestHead,
        path: &NormalPath,
    ) -> Vec<SiblingRequest<'s>> {
        let site = self.grounds.site;
        let split = match route.map(|route| route.action) {
            Some(Action::Split(split)) => Some(site.routes.split(split)),
            Some(Action::Upstream(_) | Action::Status(_) | Action::Redirect | Action::Files)
            | None => None,
        };
        let indices = split.into_iter().flat_map(Split::upstreams);
        let upstreams = indices.map(|index| &*site.upstreams[index]);
        let others = upstreams.filter(|it| !std::ptr::eq(*it, wishes.upstream));
        let siblings = others.filter_map(|upstream| {
            let wishes = Wishes {
                upstream,
                // No response in a tunnel is stored.
                upgrade: None,
                is_cached: true,
            };
            let head = Box::new(head.clone());
            let made = Outgoing::new(self.grounds, self.sender, wishes, head, path.clone());
            // A request that one upstream's form refuses would be refused for all.
            let mut outgoing = made.ok()?;
            if let Some(rules) = rules_of(route) {
                outgoing.apply_route(rules, self.grounds.id);
            }
            Some(SiblingRequest { upstream, outgoing })
        });
        siblings.collect()
    }
}
