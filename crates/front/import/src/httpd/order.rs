//! Access rules of httpd 2.2: `Order`, `Allow` and `Deny` (mod_access_compat).

use crate::directive::Directive;
use crate::httpd::access::network;
use crate::ledger::Ledger;
use crate::plan::{Access, Networks};

/// The clients that `Order`, `Allow` and `Deny` of httpd 2.2 let in; `None` if the section has none of these.
pub(super) fn ordered(directives: &[Directive], ledger: &mut Ledger) -> Option<Access> {
    // The default of httpd.
    let mut order = "deny,allow".to_owned();
    let (mut allow, mut deny): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut ids = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "order" => order = directive.words.concat().to_ascii_lowercase(),
            "allow" => allow.extend(directive.words.iter().skip(1).cloned()),
            "deny" => deny.extend(directive.words.iter().skip(1).cloned()),
            _ => continue,
        }
        ids.push(directive.id);
    }
    if ids.is_empty() {
        return None;
    }
    let access = if order == "deny,allow" {
        allowed_first(&allow, &deny)
    } else {
        denied_first(&allow, &deny)
    };
    for id in ids {
        match access {
            Some(_) => ledger.mapped(id),
            None => ledger.unmapped(id, "the importer cannot tell whom it admits"),
        }
    }
    Some(access.unwrap_or(Access::Unsaid))
}

/// The clients that `Order deny,allow` lets in: `allow` has precedence, and clients in no list are let in. `None` if
/// the front cannot express them.
fn allowed_first(allow: &[String], deny: &[String]) -> Option<Access> {
    if has_all(allow) || deny.is_empty() {
        return Some(Access::Open);
    }
    if allow.is_empty() {
        return if has_all(deny) {
            Some(Access::Nobody)
        } else {
            networks(&[], deny)
        };
    }
    // The front's `deny` has precedence, so only one of both lists can be written.
    if has_all(deny) {
        networks(allow, &[])
    } else {
        None
    }
}

/// The clients that `Order allow,deny` lets in: `deny` has precedence, and clients in no list are refused. `None` if
/// the front cannot express them.
fn denied_first(allow: &[String], deny: &[String]) -> Option<Access> {
    if has_all(deny) || allow.is_empty() {
        return Some(Access::Nobody);
    }
    if !has_all(allow) {
        return networks(allow, deny);
    }
    if deny.is_empty() {
        Some(Access::Open)
    } else {
        networks(&[], deny)
    }
}

fn has_all(clients: &[String]) -> bool {
    clients.iter().any(|it| it.eq_ignore_ascii_case("all"))
}

/// Access by networks; `None` if a text is no network.
fn networks(allow: &[String], deny: &[String]) -> Option<Access> {
    let read = |texts: &[String]| -> Option<Vec<String>> {
        texts.iter().map(|text| network(text)).collect()
    };
    Some(Access::from(Networks {
        allow: read(allow)?,
        deny: read(deny)?,
    }))
}
