//! Access control of httpd: `Require`, authentication, and what modules say together.

use std::net::IpAddr;

use crate::directive::Directive;
use crate::httpd::order;
use crate::judge::JudgedPlace;
use crate::ledger::{Id, Ledger};
use crate::passwords::EITHER;
use crate::plan::{Access, AuthSettings, AuthValue, ClientTests, Members, Networks, Satisfy};

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
    /// Whether `authz` or `compat` suffices; `None` if the section does not say.
    pub(crate) satisfy: Option<Satisfy>,
    /// How passwords are asked for.
    pub(crate) auth: AuthSettings,
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
        let says_how = self.satisfy.is_some() || self.asks_otherwise();
        has_access || says_how || self.tls_only || self.is_strange
    }

    /// Whether the section may keep any client out, also by saying which passwords an outer section asks for.
    pub(crate) fn closes(&self) -> bool {
        let closes = self.accesses().any(|access| *access != Access::Open);
        let says_how = matches!(self.satisfy, Some(Satisfy::Any(_))) || self.asks_otherwise();
        closes || says_how || self.tls_only || self.is_strange
    }

    /// Whether clients may be refused whom an outer `Satisfy Any` lets in by their address alone: both modules must let
    /// them in, or one of them, and `Order`, `Allow` and `Deny` do not let in all.
    pub(crate) fn replaces_satisfy_any(&self) -> bool {
        match self.satisfy {
            None => false,
            Some(Satisfy::All) => true,
            Some(Satisfy::Any(_)) => !matches!(self.compat, None | Some(Access::Open)),
        }
    }

    /// Whether a client may get in whom only `Order`, `Allow` and `Deny` let in.
    pub(crate) fn admits_by_either(&self) -> bool {
        let is_any = matches!(self.satisfy, Some(Satisfy::Any(_)));
        is_any && self.compat != Some(Access::Nobody)
    }

    /// Whether the section says how passwords are asked for.
    pub(crate) fn asks_otherwise(&self) -> bool {
        self.auth != AuthSettings::NONE
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
        self.satisfy = later.satisfy.or(self.satisfy);
        self.auth.merge(&later.auth);
        self.tls_only |= later.tls_only;
        self.is_strange |= later.is_strange;
    }

    /// All guards joined to one, for a section that has no outer one.
    pub(crate) fn joined(&self) -> Access {
        let authz = self.authz.clone().unwrap_or_default();
        let compat = self.compat.clone().unwrap_or_default();
        let methods = self.methods.clone().unwrap_or_default();
        if_strange(
            self.is_strange,
            satisfied(self.satisfy, authz, compat).and(methods),
        )
    }
}

/// The clients that `Require` and `Order` let in together.
pub(crate) fn satisfied(satisfy: Option<Satisfy>, authz: Access, compat: Access) -> Access {
    match satisfy {
        Some(Satisfy::All) | None => authz.and(compat),
        Some(Satisfy::Any(_)) => match (authz, compat) {
            // An outer section may say who passes.
            (Access::Open, Access::Clients(_)) | (Access::Clients(_), Access::Open) => {
                Access::Unsaid
            }
            (authz, compat) => authz.or(compat),
        },
    }
}

/// The clients that are let in if an unknown directive may refuse some of those in `access`: [`Access::Unsaid`], or
/// [`Access::Nobody`] if nobody is let in anyway.
pub(crate) fn if_strange(is_strange: bool, access: Access) -> Access {
    if is_strange {
        access.and(Access::Unsaid)
    } else {
        access
    }
}

/// Reads the access rules of a section. Notes for its tests of addresses whether the written file has them.
pub(crate) fn of_section(directives: &[Directive], ledger: &mut Ledger) -> Guards {
    let mut guards = Guards {
        authz: with_limits(directives, required, ledger),
        compat: with_limits(directives, order::ordered, ledger),
        auth: auth(directives, ledger),
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
            "satisfy" => {
                // It is enough that one of both modules lets the client in.
                guards.satisfy = Some(if value.eq_ignore_ascii_case("any") {
                    Satisfy::Any(directive.id)
                } else {
                    Satisfy::All
                });
                ledger.mapped(directive.id);
            }
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
    if guards.compat.is_some() {
        // mod_access_compat takes nothing from an outer section if it has a directive in this one.
        guards.satisfy = guards.satisfy.or(Some(Satisfy::All));
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
/// not there, which lets in all. [`Access::Unsaid`] if they differ, and one of them lets in only some clients, otherwise
/// than by a sign-on.
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
    // A sign-on holds for all methods: no client gets more by it.
    let all = || of_named.iter().map(|it| &it.1).chain([&of_others]);
    let signed_on = all().find(|it| it.as_ref().is_some_and(asks_password));
    if let Some(signed_on) = signed_on
        && all().all(|it| is_open(it) || it == signed_on)
    {
        return signed_on.clone();
    }
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

/// Whether users are let in after they have signed on by a password.
pub(super) fn asks_password(access: &Access) -> bool {
    matches!(access, Access::Clients(tests) if tests.members.is_some())
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
        if guards.authz.as_ref().is_some_and(asks_password) {
            ledger.note(limit.id, "the password is asked for with all methods");
        }
    }
}

/// Whether a section applies only to some methods: `<Limit>` or `<LimitExcept>`.
pub(crate) fn is_limit(name: &str) -> bool {
    matches!(name, "limit" | "limitexcept")
}

/// What a section says about asking for passwords. Its directives are handled: where a place is settled they get their
/// fates.
fn auth(directives: &[Directive], ledger: &mut Ledger) -> AuthSettings {
    let mut auth = AuthSettings::default();
    for directive in directives {
        let name = directive.name.as_str();
        let value = match name {
            "authtype" => &mut auth.kind,
            "authname" => &mut auth.realm,
            "authbasicprovider" => &mut auth.provider,
            "authuserfile" => &mut auth.users_file,
            "authgroupfile" => &mut auth.groups_file,
            "authbasicauthoritative" if directive.word(0).eq_ignore_ascii_case("on") => {
                ledger.mapped(directive.id);
                continue;
            }
            "authmerging" => continue,
            _ if is_sign_on(name) => {
                auth.other = Some(directive.id);
                continue;
            }
            _ => continue,
        };
        ledger.handle(directive.id);
        *value = Some(AuthValue {
            id: directive.id,
            text: directive.words.join(" "),
        });
    }
    auth
}

/// Reports the directives of a section about authentication by other modules, all by one remark.
fn say_sign_on(directives: &[Directive], ledger: &mut Ledger) {
    let all = || {
        let of_modules = directives.iter().filter(|it| is_sign_on(&it.name));
        of_modules.filter(|it| it.name != "authmerging" && it.name != "authbasicauthoritative")
    };
    let is_basic = |it: &Directive| match it.name.as_str() {
        "authtype" => ["basic", "none"].contains(&&*it.word(0).to_ascii_lowercase()),
        name => OF_BASIC.contains(&name),
    };
    if all().all(is_basic) {
        return;
    }
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
    let mut last = None;
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
        last = Some(directive.id);
    }
    let were_known = !alternatives.contains(&Access::Unsaid);
    let asks = alternatives.iter().any(asks_password);
    let access = alternatives.into_iter().reduce(Access::or);
    if let Some(last) = last
        && were_known
        && access == Some(Access::Unsaid)
    {
        ledger.unmapped(last, if asks { EITHER } else { ALTERNATIVES });
    }
    access
}

/// `<RequireAll>`: each of its lines must hold.
fn all_required(directives: &[Directive], ledger: &mut Ledger) -> Access {
    let mut result = Access::Open;
    let mut denied: Vec<String> = Vec::new();
    let mut were_known = true;
    for directive in directives {
        if let Some(networks) = excluded(directive, ledger) {
            denied.extend(networks);
            continue;
        }
        let access = match directive.name.as_str() {
            "require" => requirement(directive, ledger),
            "requireall" => {
                ledger.mapped(directive.id);
                all_required(directive.inside(), ledger)
            }
            "requireany" => {
                ledger.mapped(directive.id);
                required(directive.inside(), ledger).unwrap_or(Access::Nobody)
            }
            _ => {
                ledger.unmapped(directive.id, "the front cannot express whom it admits");
                claim_all(directive.inside(), ledger);
                Access::Unsaid
            }
        };
        were_known &= access != Access::Unsaid;
        result = result.and(access);
        if were_known && result == Access::Unsaid {
            ledger.unmapped(directive.id, "the front cannot express whom it admits");
            were_known = false;
        }
    }
    result.and(Access::from(Networks::but(denied)))
}

/// The networks that a line of `<RequireAll>` keeps out; `None` if it says something else.
fn excluded(directive: &Directive, ledger: &mut Ledger) -> Option<Vec<String>> {
    let lowered = lower(directive);
    let words: Vec<&str> = lowered.iter().map(String::as_str).collect();
    let networks = match (directive.name.as_str(), &words[..]) {
        ("require", ["not", "ip", texts @ ..]) => {
            let read: Option<Vec<String>> = texts.iter().map(|it| network(it)).collect();
            read?
        }
        ("require", ["not", "local"]) => LOCAL.map(str::to_owned).to_vec(),
        // Who passes one of these lines is refused.
        ("requirenone", _) if directive.inside().iter().all(|it| it.name == "require") => {
            let Some(Access::Clients(tests)) = required(directive.inside(), ledger) else {
                return None;
            };
            tests.named_networks()?
        }
        _ => return None,
    };
    ledger.mapped(directive.id);
    Some(networks)
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
    // Names may be expressions about the request.
    let is_plain = directive.words.iter().all(|it| !it.contains(['%', '$']));
    let access = match &words[..] {
        ["all", "granted"] => Access::Open,
        ["all", "denied"] => Access::Nobody,
        ["local"] => Access::from(Networks::of(LOCAL.map(str::to_owned).to_vec())),
        ["ip", texts @ ..] if !texts.is_empty() && texts.iter().all(|it| network(it).is_some()) => {
            let networks = texts.iter().filter_map(|it| network(it));
            Access::from(Networks::of(networks.collect()))
        }
        ["ssl"] => Access::from(ClientTests {
            tls: true,
            ..ClientTests::default()
        }),
        ["ssl-verify-client"] => Access::from(ClientTests {
            certificate: true,
            ..ClientTests::default()
        }),
        ["valid-user"] => signed_on(directive, &[], &[]),
        ["user", _, ..] if is_plain => signed_on(directive, &directive.words[1..], &[]),
        ["group", _, ..] if is_plain => signed_on(directive, &[], &directive.words[1..]),
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

/// The users, and the members of groups, that a `Require` lets in after they have signed on.
fn signed_on(directive: &Directive, users: &[String], groups: &[String]) -> Access {
    Access::from(ClientTests {
        members: Some(Members {
            users: users.to_vec(),
            groups: groups.to_vec(),
            asked: vec![directive.id],
        }),
        ..ClientTests::default()
    })
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

/// The directives of a sign-on by password, beside `AuthType`.
const OF_BASIC: [&str; 4] = [
    "authname",
    "authbasicprovider",
    "authuserfile",
    "authgroupfile",
];

/// Why alternatives are closed.
const ALTERNATIVES: &str = "a route cannot let in by one of several conditions of different kinds";

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
}
