//! Access control of httpd: `Require`, `Order`, `Allow`, `Deny`, authentication, and client certificates.

use std::net::IpAddr;

use crate::directive::Directive;
use crate::judge::JudgedPlace;
use crate::ledger::{Id, Ledger};
use crate::plan::Access;

/// The access rules of a section. mod_authz_core and mod_access_compat decide independently, and both must let a
/// client in. What a section says to one of them replaces what an outer section says to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Guards {
    /// The clients that `Require` lets in; `None` if the section has no `Require`.
    pub(crate) authz: Option<Access>,
    /// The clients that `Order`, `Allow` and `Deny` let in; `None` if the section has none of them.
    pub(crate) compat: Option<Access>,
    /// The clients that `AllowMethods` lets in; `None` if the section has none.
    pub(crate) methods: Option<Access>,
    /// Whether clients must have come over TLS.
    pub(crate) tls_only: bool,
    /// Whether a directive that the importer does not know may keep clients out; a deeper section cannot
    /// undo that.
    pub(crate) is_strange: bool,
}

impl Guards {
    /// Whether the section says anything about access.
    pub(crate) fn is_some(&self) -> bool {
        let has_access = self.accesses().next().is_some();
        has_access || self.tls_only || self.is_strange
    }

    /// Whether the section may keep any client out.
    pub(crate) fn closes(&self) -> bool {
        let closes = self.accesses().any(|access| *access != Access::Open);
        closes || self.tls_only || self.is_strange
    }

    /// What the section says to each module.
    fn accesses(&self) -> impl Iterator<Item = &Access> {
        let modules = [&self.authz, &self.compat, &self.methods];
        modules.into_iter().flatten()
    }

    /// Guards that only the old server can evaluate.
    pub(crate) fn strange() -> Self {
        Self {
            is_strange: true,
            ..Self::default()
        }
    }

    /// Closes the section if its place was judged to be closed.
    pub(crate) fn add(&mut self, judged: JudgedPlace) {
        self.is_strange |= judged.closes();
    }

    /// Adds the guards of a section that comes later in the file, or is nested deeper.
    pub(crate) fn merge(&mut self, later: Self) {
        self.authz = later.authz.or_else(|| self.authz.take());
        self.compat = later.compat.or_else(|| self.compat.take());
        self.methods = later.methods.or_else(|| self.methods.take());
        self.tls_only |= later.tls_only;
        self.is_strange |= later.is_strange;
    }

    /// All guards joined to one, for a section that has no outer one.
    pub(crate) fn joined(&self) -> Access {
        let authz = self.authz.clone().unwrap_or_default();
        let compat = self.compat.clone().unwrap_or_default();
        let methods = self.methods.clone().unwrap_or_default();
        if_strange(self.is_strange, both(both(authz, compat), methods))
    }
}

/// The clients that pass both guards.
pub(crate) fn both(one: Access, two: Access) -> Access {
    match (one, two) {
        (Access::Open, other) | (other, Access::Open) => other,
        (Access::Nobody, _) | (_, Access::Nobody) => Access::Nobody,
        (one, two) if one == two => one,
        // The importer does not compute the common part of two lists.
        _ => Access::Unsaid,
    }
}

/// The clients that are let in if an unknown directive may refuse some of those in `access`: [`Access::Unsaid`], or
/// [`Access::Nobody`] if nobody is let in anyway.
pub(crate) fn if_strange(is_strange: bool, access: Access) -> Access {
    if is_strange {
        both(access, Access::Unsaid)
    } else {
        access
    }
}

/// Reads the access rules of a section. Notes for its tests of addresses whether the written file has them.
pub(crate) fn of_section(directives: &[Directive], ledger: &mut Ledger) -> Guards {
    let mut guards = Guards {
        authz: with_limits(directives, required, ledger),
        compat: with_limits(directives, ordered, ledger),
        ..Guards::default()
    };
    say_limits(directives, &guards, ledger);
    for directive in directives {
        let value = directive.word(0);
        match directive.name.as_str() {
            "allowmethods" => guards.methods = Some(allowed_methods(directive, ledger)),
            "sslrequiressl" => {
                guards.tls_only = true;
                ledger.mapped(directive.id);
            }
            // It is enough that one of both modules lets the client in.
            "satisfy" if value.eq_ignore_ascii_case("any") => {
                ledger.unmapped(directive.id, "the front cannot express whom it admits");
                guards.authz = Some(Access::Unsaid);
            }
            "satisfy" => ledger.mapped(directive.id),
            "authmerging" if value.eq_ignore_ascii_case("off") => ledger.mapped(directive.id),
            "authmerging" => {
                ledger.unmapped(directive.id, "its guards are joined with those above it");
                guards.authz = Some(Access::Unsaid);
            }
            // httpd's own `Auth…` demand no sign-on without a `Require`; those of other modules may.
            name if is_sign_on(name) && !name.starts_with("auth") => guards.is_strange = true,
            _ => {}
        }
    }
    say_sign_on(directives, ledger);
    let address_tests = addresses(directives);
    match guards.joined() {
        Access::Unsaid => ledger.address_guards.void(address_tests),
        _ => ledger.address_guards.written(address_tests),
    }
    guards
}

/// The clients that `AllowMethods` lets in, by their methods.
fn allowed_methods(directive: &Directive, ledger: &mut Ledger) -> Access {
    if let [only] = &directive.words[..]
        && only.eq_ignore_ascii_case("reset")
    {
        ledger.mapped(directive.id);
        return Access::Open;
    }
    let Some(names) = methods(directive) else {
        ledger.unmapped(directive.id, "these are no methods");
        return Access::Unsaid;
    };
    ledger.mapped(directive.id);
    Access::Methods {
        names,
        except: false,
    }
}

/// The methods that a directive names; GET includes HEAD. `None` if a word is no method.
fn methods(directive: &Directive) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::with_capacity(directive.words.len());
    for word in &directive.words {
        if !word.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return None;
        }
        let name: &str = if word == "HEAD" { "GET" } else { word };
        names.push(name.to_owned());
    }
    names.sort();
    names.dedup();
    Some(names)
}

/// Reads the guards of one module in a section, as `read` does, including those in its `<Limit>` and `<LimitExcept>`.
/// As in httpd, these apply to their methods, in addition to those outside.
fn with_limits(
    directives: &[Directive],
    read: fn(&[Directive], &mut Ledger) -> Option<Access>,
    ledger: &mut Ledger,
) -> Option<Access> {
    let limits = || directives.iter().filter(|it| is_limit(&it.name));
    let named: Option<Vec<Vec<String>>> = limits().map(methods).collect();
    let is_access_rule = |it: &Directive| {
        it.name.starts_with("require") || matches!(it.name.as_str(), "order" | "allow" | "deny")
    };
    let are_readable = limits().flat_map(Directive::inside).all(is_access_rule);
    let Some(named) = named.filter(|_| are_readable) else {
        // Reading them marks the directives.
        limits().for_each(|limit| drop(read(limit.inside(), ledger)));
        read(directives, ledger);
        return Some(Access::Unsaid);
    };
    let mut names = named.concat();
    names.sort();
    names.dedup();
    let of_others = read(&for_method(directives, None), ledger);
    let mut of_named: Vec<(String, Option<Access>)> = Vec::with_capacity(names.len());
    for name in names {
        let access = read(&for_method(directives, Some(&name)), ledger);
        of_named.push((name, access));
    }
    joined_methods(of_named, of_others)
}

/// One access for all methods, from that of each named method and that of all others. `None` stands for a guard that is
/// not there, which lets in all. [`Access::Unsaid`] if they differ, and one of them lets in only some clients.
fn joined_methods(
    mut of_named: Vec<(String, Option<Access>)>,
    of_others: Option<Access>,
) -> Option<Access> {
    if of_named.iter().all(|(_, access)| *access == of_others) {
        return of_others;
    }
    let is_open = |access: &Option<Access>| matches!(access, None | Some(Access::Open));
    let is_all_or_nothing =
        |access: &Option<Access>| is_open(access) || *access == Some(Access::Nobody);
    let mut accesses = of_named.iter().map(|(_, access)| access);
    if !is_all_or_nothing(&of_others) || !accesses.all(is_all_or_nothing) {
        return Some(Access::Unsaid);
    }
    // The methods that differ from all others.
    of_named.retain(|(_, access)| is_open(access) != is_open(&of_others));
    let names: Vec<String> = of_named.into_iter().map(|(name, _)| name).collect();
    Some(match (names.is_empty(), is_open(&of_others)) {
        (true, true) => Access::Open,
        (true, false) => Access::Nobody,
        (false, except) => Access::Methods { names, except },
    })
}

/// The directives that apply to requests with a method; `None`: with a method that no section names. The directives of
/// `<Limit>` and `<LimitExcept>` are in the place of these sections.
fn for_method(directives: &[Directive], method: Option<&String>) -> Vec<Directive> {
    let mut applicable = Vec::new();
    for directive in directives {
        if !is_limit(&directive.name) {
            applicable.push(directive.clone());
            continue;
        }
        let names = methods(directive).unwrap_or_default();
        let is_named = method.is_some_and(|method| names.contains(method));
        let is_for_named = directive.name == "limit";
        if is_named == is_for_named {
            applicable.extend_from_slice(directive.inside());
        }
    }
    applicable
}

/// Reports the `<Limit>` and `<LimitExcept>` of a section.
fn say_limits(directives: &[Directive], guards: &Guards, ledger: &mut Ledger) {
    let unsaid = Some(Access::Unsaid);
    for limit in directives.iter().filter(|it| is_limit(&it.name)) {
        if guards.authz == unsaid || guards.compat == unsaid {
            ledger.unmapped(
                limit.id,
                "routes cannot say whom it admits with which methods",
            );
        } else {
            ledger.mapped(limit.id);
        }
    }
}

/// Whether a section applies only to some methods: `<Limit>` or `<LimitExcept>`.
pub(crate) fn is_limit(name: &str) -> bool {
    matches!(name, "limit" | "limitexcept")
}

/// Reports the directives of a section about authentication, all by one remark.
fn say_sign_on(directives: &[Directive], ledger: &mut Ledger) {
    let all = || directives.iter().filter(|it| is_sign_on(&it.name));
    let demand = all().find(|it| !it.word(0).eq_ignore_ascii_case("off"));
    let text = match demand {
        Some(_) => "clients must sign on here, which was not converted",
        None => "the sign-on was not converted, so that the application learns of none",
    };
    let Some(whole) = demand.or_else(|| all().next()) else {
        return;
    };
    ledger.kept_or_risk(whole.id, text);
    all().for_each(|it| ledger.part(it.id, whole.id));
}

/// The directives that test clients' addresses, in a section and in those inside it.
pub(crate) fn addresses(directives: &[Directive]) -> Vec<Id> {
    let mut found = Vec::new();
    for directive in directives {
        let lowered = lower(directive);
        let words: Vec<&str> = lowered.iter().map(String::as_str).collect();
        let tests_address = match (directive.name.as_str(), &words[..]) {
            ("require", ["not", kind, ..] | [kind, ..]) => {
                matches!(*kind, "ip" | "local" | "host" | "forward-dns" | "expr")
            }
            ("allow" | "deny", ["from", from, ..]) => *from != "all",
            ("rewritecond" | "setenvif", [subject, ..]) => subject.contains("remote_"),
            _ => false,
        };
        if tests_address {
            found.push(directive.id);
        }
        found.extend(addresses(directive.inside()));
    }
    found
}

/// Whether a directive belongs to an authentication module.
pub(crate) fn is_sign_on(name: &str) -> bool {
    // `CaseFilter` begins like `CASLoginURL`.
    SIGN_ON.iter().any(|it| name.starts_with(it)) && !name.starts_with("casefilter")
}

/// The clients that `Require` lets in, on its own or in sections such as `<RequireAny>`; `None` if there is none.
fn required(directives: &[Directive], ledger: &mut Ledger) -> Option<Access> {
    let mut alternatives: Vec<Access> = Vec::new();
    for directive in directives {
        alternatives.push(match directive.name.as_str() {
            "require" => requirement(directive, ledger),
            "requireany" => {
                ledger.mapped(directive.id);
                required(directive.inside(), ledger).unwrap_or(Access::Nobody)
            }
            "requireall" => {
                ledger.mapped(directive.id);
                all_required(directive.inside(), ledger)
            }
            "requirenone" | "if" => {
                ledger.unmapped(directive.id, "the front cannot express whom it admits");
                claim_all(directive.inside(), ledger);
                Access::Unsaid
            }
            _ => continue,
        });
    }
    match alternatives.len() {
        0 => None,
        // A single one may be any kind of access.
        1 => alternatives.pop(),
        _ => Some(any_of(alternatives)),
    }
}

/// The clients that pass any of several requirements.
fn any_of(alternatives: Vec<Access>) -> Access {
    let mut networks: Vec<String> = Vec::new();
    let mut is_open = false;
    for access in alternatives {
        match access {
            Access::Open => is_open = true,
            Access::Nobody => {}
            Access::Networks { allow, deny } if deny.is_empty() => networks.extend(allow),
            // A list of networks cannot contain the others.
            _ => return Access::Unsaid,
        }
    }
    if is_open {
        Access::Open
    } else if networks.is_empty() {
        Access::Nobody
    } else {
        Access::Networks {
            allow: networks,
            deny: Vec::new(),
        }
    }
}

/// `<RequireAll>`: each of its lines must hold.
fn all_required(directives: &[Directive], ledger: &mut Ledger) -> Access {
    let mut result = Access::Open;
    let mut denied: Vec<String> = Vec::new();
    for directive in directives {
        let name = directive.name.as_str();
        let lowered = lower(directive);
        let words: Vec<&str> = lowered.iter().map(String::as_str).collect();
        let access = match (name, &words[..]) {
            ("require", ["not", "ip", texts @ ..])
                if texts.iter().all(|it| network(it).is_some()) =>
            {
                ledger.mapped(directive.id);
                denied.extend(texts.iter().filter_map(|it| network(it)));
                continue;
            }
            ("require", ["not", "local"]) => {
                ledger.mapped(directive.id);
                denied.extend(LOCAL.map(str::to_owned));
                continue;
            }
            ("require", _) => requirement(directive, ledger),
            ("requireall", _) => {
                ledger.mapped(directive.id);
                all_required(directive.inside(), ledger)
            }
            ("requirenone", _) if directive.inside().iter().all(|it| it.name == "require") => {
                ledger.mapped(directive.id);
                // Who passes one of these lines is refused.
                match required(directive.inside(), ledger) {
                    Some(Access::Networks { allow, deny }) if deny.is_empty() => {
                        denied.extend(allow);
                        continue;
                    }
                    _ => Access::Unsaid,
                }
            }
            ("requireany", _) => {
                ledger.mapped(directive.id);
                required(directive.inside(), ledger).unwrap_or(Access::Nobody)
            }
            _ => {
                ledger.unmapped(directive.id, "the front cannot express whom it admits");
                claim_all(directive.inside(), ledger);
                Access::Unsaid
            }
        };
        result = both(result, access);
    }
    if denied.is_empty() {
        return result;
    }
    match result {
        Access::Open => Access::Networks {
            allow: Vec::new(),
            deny: denied,
        },
        Access::Networks { allow, deny } => Access::Networks {
            allow,
            deny: [deny, denied].concat(),
        },
        // Exceptions change nothing where nobody is let in, or where it is not known who is.
        other => other,
    }
}

/// The words of a directive, in lower case.
fn lower(directive: &Directive) -> Vec<String> {
    let words = directive.words.iter();
    words.map(|it| it.to_ascii_lowercase()).collect()
}

/// The clients that one `Require` line lets in.
fn requirement(directive: &Directive, ledger: &mut Ledger) -> Access {
    let lowered = lower(directive);
    let words: Vec<&str> = lowered.iter().map(String::as_str).collect();
    let access = match &words[..] {
        ["all", "granted"] => Access::Open,
        ["all", "denied"] => Access::Nobody,
        ["local"] => Access::Networks {
            allow: LOCAL.map(str::to_owned).to_vec(),
            deny: Vec::new(),
        },
        ["ip", texts @ ..] if !texts.is_empty() && texts.iter().all(|it| network(it).is_some()) => {
            Access::Networks {
                allow: texts.iter().filter_map(|it| network(it)).collect(),
                deny: Vec::new(),
            }
        }
        _ => {
            ledger.unmapped(
                directive.id,
                "the front cannot check whether a client meets this",
            );
            Access::Unsaid
        }
    };
    // The ledger keeps the heavier fate of what was not converted.
    ledger.mapped(directive.id);
    access
}

/// Marks all directives of a section that was not converted.
fn claim_all(directives: &[Directive], ledger: &mut Ledger) {
    for directive in directives {
        ledger.kept_or_risk(
            directive.id,
            "it is part of a section that was not converted",
        );
        claim_all(directive.inside(), ledger);
    }
}

/// The clients that `Order`, `Allow` and `Deny` of httpd 2.2 let in; `None` if the section has none of these.
fn ordered(directives: &[Directive], ledger: &mut Ledger) -> Option<Access> {
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
    Some(Access::Networks {
        allow: read(allow)?,
        deny: read(deny)?,
    })
}

/// A network in CIDR notation, from an address, a part of one, or an address with a mask; `None` if it is
/// none of these.
pub(crate) fn network(text: &str) -> Option<String> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_string());
    }
    if let Some((address, mask)) = text.split_once('/') {
        let address: IpAddr = address.parse().ok()?;
        let length = match mask.parse::<std::net::Ipv4Addr>() {
            Ok(mask) => {
                let bits = u32::from(mask);
                // Ones behind a zero make no prefix.
                if bits.leading_ones() != bits.count_ones() {
                    return None;
                }
                bits.count_ones()
            }
            Err(_) => mask.parse().ok()?,
        };
        let longest = if address.is_ipv4() { 32 } else { 128 };
        return (length <= longest).then(|| format!("{address}/{length}"));
    }
    // One to three of the four bytes of an IPv4 address, such as `10.1`.
    let parts: Vec<&str> = text.trim_end_matches('.').split('.').collect();
    if parts.len() >= 4 || !parts.iter().all(|part| part.parse::<u8>().is_ok()) {
        return None;
    }
    let zeros = ".0".repeat(4 - parts.len());
    Some(format!("{}{zeros}/{}", parts.join("."), 8 * parts.len()))
}

/// The networks that `Require local` lets in.
const LOCAL: [&str; 2] = ["127.0.0.0/8", "::1"];

/// Prefixes of the names of authentication directives.
const SIGN_ON: &[&str] = &[
    "auth",
    "shib",
    "oidc",
    "gssapi",
    "krb",
    "mellon",
    "cas",
    "ldap",
    "anonymous",
    "otp",
    "kerb",
];

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

    #[test]
    fn two_guards_let_in_whom_both_do() {
        let networks = |text: &str| Access::Networks {
            allow: vec![text.to_owned()],
            deny: Vec::new(),
        };
        for (one, two, expected) in [
            (Access::Open, Access::Nobody, Access::Nobody),
            (Access::Open, networks("10.0.0.0/8"), networks("10.0.0.0/8")),
            (Access::Unsaid, Access::Nobody, Access::Nobody),
            (networks("::1"), networks("10.0.0.0/8"), Access::Unsaid),
        ] {
            assert_eq!(both(one, two), expected);
        }
    }
}
