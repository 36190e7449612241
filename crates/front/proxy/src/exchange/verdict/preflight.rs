//! The verdict on preflights of CORS, which the front answers itself.
//!
//! Before the answer come the route's `allow` and `deny`, and its limits. `client_certificate` does not: browsers show
//! no certificate with a preflight, and the answer says nothing that is not in the fields of every response.

use catamaran_message::RequestHead;

use super::{
    Case, Judgement, OwnAnswer, OwnContent, RouteVerdict, Target, capture, rules_of, wanted,
};
use crate::exchange::cors::{self, PreflightAnswer};
use crate::exchange::guards::Guard;
use crate::path::NormalPath;
use crate::site::route::{ConditionFacts, Route, Wanted};

impl<'s> Case<'_, 's> {
    /// The front's answer to a preflight; `None`: the request is none, or no route that it concerns has
    /// `[route.cors]`. `own` is the route of the request itself.
    pub(super) fn preflight(
        &self,
        own: Option<&'s Route>,
        path: &NormalPath,
        head: &RequestHead,
    ) -> Option<PreflightAnswer<'s>> {
        if !cors::is_preflight(head) {
            return None;
        }
        let announced = Wanted {
            conditions: ConditionFacts::Announced(head, self.sender.identity.ip),
            ..wanted(self.grounds, self.sender, head).ok()?
        };
        PreflightAnswer::new(&self.grounds.site.routes, own, announced, path, head)
    }

    /// The verdict on a preflight.
    pub(super) fn answer_preflight(
        &self,
        preflight: PreflightAnswer<'s>,
        mut path: NormalPath,
    ) -> RouteVerdict<'s> {
        let PreflightAnswer {
            route,
            fields,
            token,
        } = preflight;
        capture(route, &mut path);
        let rules = rules_of(Some(route));
        let client = &self.sender.identity;
        let guard = rules.and_then(|rules| Guard::refusing_preflight(rules, client));
        let answer = match guard {
            Some(guard) => OwnAnswer::guarded(guard),
            None => OwnAnswer::new(OwnContent::Preflight, token),
        };
        RouteVerdict {
            route: Some(route),
            cors: Some(Box::new(fields)),
            judgement: Judgement::OnRoute(Target::own(answer), path),
        }
    }
}
