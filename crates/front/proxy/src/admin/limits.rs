//! `/api/v1/limits`: what limits did, the keys that they refused most often, and how a key is forgotten.

use catamaran_admin_api::{ForgottenKey, LimitList, LimitStatus, RefusedKey};
use http::StatusCode;
use serde_json::{Map, Value};

use super::reply::Reply;
use crate::exchange::limit_keys::LimitSubject;
use crate::site::Site;
use crate::site::limits::LimitFigures;

/// Every limit of the configuration in force.
pub(super) fn all(site: &Site) -> LimitList {
    let Some(limits) = site.limits.as_deref() else {
        return LimitList::default();
    };
    let table = limits.table();
    let refused = limits.refused(TOP).into_iter();
    LimitList {
        limits: limits.figures().iter().map(limit_status).collect(),
        refused: refused
            .map(|(limit, key)| RefusedKey {
                limit: limit.to_owned(),
                key: key.label.into(),
                count: key.count,
                excess: key.excess,
            })
            .collect(),
        keys_max: table.capacity(),
        memory: table.bytes() as u64,
        evicted: table.evicted(),
    }
}

fn limit_status(figures: &LimitFigures) -> LimitStatus {
    let [passed, refused, dry] = figures.requests;
    LimitStatus {
        name: figures.config.name.clone(),
        enforced: figures.config.enforce,
        passed,
        refused,
        dry,
        keys: figures.keys,
        in_flight: figures.in_flight,
    }
}

/// Has a limit forget what a key owes: the body is `{"key": "192.0.2.1"}`.
pub(super) fn forget(site: &Site, name: &str, body: &Map<String, Value>) -> Reply {
    let not_found = || Reply::not_found(&format!("there is no limit {name:?}"));
    let Some(limits) = site.limits.as_deref() else {
        return not_found();
    };
    let Some(limit) = limits.find(name) else {
        return not_found();
    };
    let wrong = |detail: &str| Reply::problem(StatusCode::BAD_REQUEST, "syntax", detail);
    let Some(key) = body.get("key").and_then(Value::as_str) else {
        return wrong("`key` must be the key to forget, such as an address");
    };
    match LimitSubject::parse(&limit.config, key) {
        Ok(subjects) => {
            let mut known = false;
            for subject in &subjects {
                known |= limits.forget(limit, subject.key(limits, limit));
            }
            Reply::json(&ForgottenKey { known })
        }
        Err(detail) => wrong(&detail),
    }
}

/// How many of the keys refused most often are shown.
const TOP: usize = 10;
