//! The limits that a request is subject to, as they stand now. Nothing is charged.

use catamaran_admin_api::LimitOutlook;
use catamaran_limit::Ask;

use crate::exchange::limit_keys::LimitKey;
use crate::site::Site;

/// The result that each limit would give for the request now.
pub(super) fn outlooks(site: &Site, keys: &[LimitKey<'_, '_>]) -> Vec<LimitOutlook> {
    let Some(limits) = site.limits.as_deref() else {
        return Vec::new();
    };
    let mut outlooks = Vec::with_capacity(keys.len());
    for key in keys {
        let config = &key.limit.config;
        let mut outlook = LimitOutlook {
            name: config.name.clone(),
            enforced: config.enforce,
            ..LimitOutlook::default()
        };
        if let Some((ask, subject)) = &key.asked {
            let asks: [Ask; 1] = [*ask];
            let outcome = limits.look(&asks);
            let judgement = outcome.judgements()[0];
            outlook.key = Some(subject.to_string());
            outlook.exceeded = !judgement.passes();
            outlook.left = config.quota.left(judgement).0;
        }
        outlooks.push(outlook);
    }
    outlooks
}

/// An outlook as a sentence.
pub(super) fn sentence(outlook: &LimitOutlook) -> String {
    let LimitOutlook { name, left, .. } = outlook;
    let Some(key) = &outlook.key else {
        return format!(
            "limit {name} is not asked, because a trusted proxy tells no client (limit-no-client)"
        );
    };
    match (outlook.exceeded, outlook.enforced) {
        (false, _) => format!("limit {name} counts it to {key}, of which {left} more would pass"),
        (true, true) => format!("limit {name} refuses {key} now"),
        (true, false) => format!("limit {name} would refuse {key} now, but is not enforced"),
    }
}
