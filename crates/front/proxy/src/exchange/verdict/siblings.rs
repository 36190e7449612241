//! A request that changes something, as the other upstreams of its split route would get it: the responses that they
//! gave become invalid, too.

use catamaran_message::RequestHead;

use super::{Case, rules_of};
use crate::exchange::cache_request::SiblingRequest;
use crate::exchange::outgoing::{Outgoing, RequestPurpose};
use crate::path::NormalPath;
use crate::site::route::{Action, Route};

impl<'s> Case<'_, 's> {
    /// The request as each upstream of a split route would get it, without that of `purpose`. The requests differ by the
    /// protocol and the attributes of the upstream. Empty if the route is not split.
    pub(super) fn siblings(
        &self,
        route: Option<&'s Route>,
        purpose: RequestPurpose<'s, '_>,
        head: &RequestHead,
        path: &NormalPath,
    ) -> Vec<SiblingRequest<'s>> {
        let site = self.grounds.site;
        let Some(Action::Split(split)) = route.map(|route| route.action) else {
            return Vec::new();
        };
        let mut siblings = Vec::new();
        for index in site.routes.split(split).upstreams() {
            let upstream = &*site.upstreams[index];
            if std::ptr::eq(upstream, purpose.upstream) {
                continue;
            }
            let sibling_purpose = RequestPurpose {
                upstream,
                // No response in a tunnel is stored.
                upgrade: None,
                is_cached: true,
                ..purpose
            };
            let (head, path) = (Box::new(head.clone()), path.clone());
            let made = Outgoing::new(self.grounds, self.sender, sibling_purpose, head, path);
            let Ok(mut outgoing) = made else {
                // The chosen upstream refuses the same request, so it is not sent at all.
                continue;
            };
            if let Some(rules) = rules_of(route) {
                outgoing.apply_route(rules, self.grounds.id);
            }
            siblings.push(SiblingRequest { upstream, outgoing });
        }
        siblings
    }
}
