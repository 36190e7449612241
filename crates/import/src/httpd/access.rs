//! Who is let in: `Require`, `Order`, `Allow`, `Deny`, sign-on, and certificates of clients.

use std::net::IpAddr;

use crate::httpd::tree::Directive;
use crate::ledger::Ledger;
use crate::plan::Access;

/// What the directives of a section say of access; `None` if nothing.
pub(crate) fn of_section(directives: &[Directive], ledger: &mut Ledger) -> Option<Access> {
    let new = required(directives, ledger);
    let old = ordered(directives, ledger);
    for directive in directives {
        let is_sign_on = directive.name.starts_with("auth")
            || ["shib", "oidc", "gssapi", "krb", "satisfy", "mellon"]
                .iter()
                .any(|it| directive.name.starts_with(it));
        if is_sign_on {
            ledger.kept_or_risk(
                directive.id,
                "clients sign on here, and the front has no sign-on",
            );
        }
    }
    let any = directives.iter().any(|it| it.name == "satisfy");
    match (new, old) {
        (Some(_), Some(_)) => Some(Access::Unsaid),
        _ if any => Some(Access::Unsaid),
        (new, old) => new.or(old),
    }
}

fn required(directives: &[Directive], ledger: &mut Ledger) -> Option<Access> {
    let mut networks: Vec<String> = Vec::new();
    let (mut seen, mut open, mut nobody, mut unsaid) = (false, false, false, false);
    for directive in directives {
        match directive.name.as_str() {
            "require" => {}
            "requireany" => match required(directive.inside(), ledger) {
                Some(Access::Networks { allow, .. }) => {
                    ledger.mapped(directive.id);
                    (seen, networks) = (true, [networks, allow].concat());
                    continue;
                }
                _ => {
                    ledger.unmapped(directive.id, "the importer cannot tell whom it admits");
                    (seen, unsaid) = (true, true);
                    continue;
                }
            },
            "requireall" | "requirenone" | "limit" | "limitexcept" | "if" => {
                ledger.unmapped(directive.id, "the importer cannot tell whom it admits");
                claim_all(directive.inside(), ledger);
                (seen, unsaid) = (true, true);
                continue;
            }
            _ => continue,
        }
        seen = true;
        let words: Vec<String> = directive
            .words
            .iter()
            .map(|it| it.to_ascii_lowercase())
            .collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match &words[..] {
            ["all", "granted"] => open = true,
            ["all", "denied"] => nobody = true,
            ["local"] => networks.extend(["127.0.0.0/8", "::1"].map(str::to_owned)),
            ["ip", texts @ ..] if texts.iter().all(|it| network(it).is_some()) => {
                networks.extend(texts.iter().filter_map(|it| network(it)));
            }
            _ => {
                unsaid = true;
                ledger.unmapped(directive.id, "the front cannot check this of clients");
            }
        }
        ledger.mapped(directive.id);
    }
    let networks = Access::Networks {
        allow: networks,
        deny: Vec::new(),
    };
    let has_networks = !matches!(&networks, Access::Networks { allow, .. } if allow.is_empty());
    match () {
        () if !seen => None,
        // One of several is enough.
        () if open => Some(Access::Open),
        () if unsaid => Some(Access::Unsaid),
        () if has_networks => Some(networks),
        () if nobody => Some(Access::Nobody),
        () => Some(Access::Unsaid),
    }
}

/// Whatever stands in a section that was decided on as a whole.
fn claim_all(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        ledger.kept_or_risk(
            directive.id,
            "it is part of a section that was not converted",
        );
        claim_all(directive.inside(), ledger);
    }
}

/// The directives of 2.2.
fn ordered(directives: &[Directive], ledger: &mut Ledger) -> Option<Access> {
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
    let is_all = |it: &[String]| it.iter().any(|it| it.eq_ignore_ascii_case("all"));
    let read = |it: &[String]| it.iter().map(|it| network(it)).collect::<Option<Vec<_>>>();
    let networks = |allow, deny| Some(Access::Networks { allow, deny });
    let allow_wins = order != "allow,deny" && order != "mutual-failure";
    let access = match (allow_wins, is_all(&allow), is_all(&deny)) {
        (true, true, _) => Some(Access::Open),
        (true, false, true) if allow.is_empty() => Some(Access::Nobody),
        (true, false, true) => read(&allow).and_then(|it| networks(it, Vec::new())),
        (true, false, false) if deny.is_empty() => Some(Access::Open),
        (true, false, false) if allow.is_empty() => {
            read(&deny).and_then(|it| networks(Vec::new(), it))
        }
        (false, _, true) => Some(Access::Nobody),
        (false, true, false) if deny.is_empty() => Some(Access::Open),
        (false, true, false) => read(&deny).and_then(|it| networks(Vec::new(), it)),
        (false, false, false) if allow.is_empty() => Some(Access::Nobody),
        (false, false, false) => read(&allow)
            .zip(read(&deny))
            .and_then(|(a, d)| networks(a, d)),
        _ => None,
    };
    for id in ids {
        match access {
            Some(_) => ledger.mapped(id),
            None => ledger.unmapped(id, "the importer cannot tell whom it admits"),
        }
    }
    Some(access.unwrap_or(Access::Unsaid))
}

/// A network as httpd writes it: an address, a part of one, or one with a mask.
pub(crate) fn network(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    if let Some((address, mask)) = text.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let length = match mask.parse::<std::net::Ipv4Addr>() {
            Ok(mask) => {
                let bits = u32::from(mask);
                (bits.leading_ones() == bits.count_ones()).then(|| bits.count_ones())?
            }
            Err(_) => mask.parse().ok()?,
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        return (length <= most).then(|| format!("{address}/{length}"));
    }
    let parts: Vec<&str> = text.trim_end_matches('.').split('.').collect();
    let is_part = parts.len() < 4 && parts.iter().all(|it| it.parse::<u8>().is_ok());
    is_part.then(|| {
        let zeros = ".0".repeat(4 - parts.len());
        format!("{}{zeros}/{}", parts.join("."), 8 * parts.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_in_each_spelling() {
        for (text, expected) in [
            ("10.1", Some("10.1.0.0/16")),
            ("10.", Some("10.0.0.0/8")),
            ("192.168.1.0/255.255.255.0", Some("192.168.1.0/24")),
            ("::1", Some("::1")),
            ("10.0.0.0/8", Some("10.0.0.0/8")),
            ("10.0.0.0/255.0.255.0", None),
            ("example.org", None),
        ] {
            assert_eq!(network(text).as_deref(), expected, "{text}");
        }
    }
}
