//! `status --limits`: what limits did, and which keys they refused most often.

use std::fmt::Write as _;

use catamaran_admin_api::LimitList;

/// The limits as text.
pub(super) fn text(list: &LimitList) -> String {
    if list.limits.is_empty() {
        return "there are no limits\n".to_owned();
    }
    let mut text = String::new();
    for limit in &list.limits {
        let dry = if limit.enforced {
            String::new()
        } else {
            format!(", {} would have been (enforce = false)", limit.dry)
        };
        let now = match limit.in_flight {
            Some(count) => format!("{count} in flight, of {} keys", limit.keys),
            None => format!("{} keys owe something", limit.keys),
        };
        writeln!(
            text,
            "{}: {} passed, {} refused{dry}; {now}",
            limit.name, limit.passed, limit.refused
        )
        .expect("a string");
    }
    if list.evicted > 0 {
        writeln!(
            text,
            "{} keys were forgotten to make room for others: raise `limit_memory`",
            list.evicted
        )
        .expect("a string");
    }
    if !list.refused.is_empty() {
        text.push_str("refused most often:\n");
    }
    for key in &list.refused {
        let deviation = match key.excess {
            0 => String::new(),
            excess => format!(" (at most {excess} less)"),
        };
        let client_key = key.key.escape_debug();
        writeln!(
            text,
            "  {} {client_key}: {}{deviation}",
            key.limit, key.count
        )
        .expect("a string");
    }
    text
}

#[cfg(test)]
mod tests {
    use catamaran_admin_api::{LimitStatus, RefusedKey};

    use super::*;

    #[test]
    fn limits_and_refused_keys_are_lines() {
        assert_eq!(text(&LimitList::default()), "there are no limits\n");
        let status = |name: &str, enforced| LimitStatus {
            name: name.to_owned(),
            enforced,
            passed: 40,
            refused: if enforced { 7 } else { 0 },
            dry: if enforced { 0 } else { 3 },
            keys: 2,
            in_flight: (!enforced).then_some(3),
        };
        let list = LimitList {
            limits: vec![status("login", true), status("pages", false)],
            refused: vec![RefusedKey {
                limit: "login".to_owned(),
                key: "192.0.2.1".to_owned(),
                count: 7,
                excess: 2,
            }],
            keys_max: 100,
            memory: 1700,
            evicted: 5,
        };
        assert_eq!(
            text(&list),
            "login: 40 passed, 7 refused; 2 keys owe something\n\
             pages: 40 passed, 0 refused, 3 would have been (enforce = false); 3 in flight, of 2 keys\n\
             5 keys were forgotten to make room for others: raise `limit_memory`\n\
             refused most often:\n  login 192.0.2.1: 7 (at most 2 less)\n"
        );
    }
}
