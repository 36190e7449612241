//! `SSLUserName`: the user whom a servlet container is told is a part of the client's certificate.

use crate::httpd::files::Site;
use crate::ledger::Ledger;
use crate::plan::{Action, Plan, Rule};
use crate::toml_text::quoted;

/// Tells the AJP backends of rules the user of a server that requires certificates of all clients. Elsewhere
/// `SSLUserName` is not converted.
pub(super) fn tell(site: Site<'_>, rules: &mut [Rule], plan: &mut Plan, ledger: &mut Ledger) {
    let Some(directive) = site.find("sslusername") else {
        return;
    };
    let user = match directive.word(0) {
        "SSL_CLIENT_S_DN_CN" => "tls:subject_cn",
        "SSL_CLIENT_SAN_Email_0" => "tls:san_email",
        _ => return,
    };
    let verify = || site.all().filter(|it| it.name == "sslverifyclient");
    let is_required = |words: &str| words.eq_ignore_ascii_case("require");
    let is_only_forwarded = rules
        .iter()
        .all(|it| it.action.upstream().is_none() || matches!(it.action, Action::Forward { .. }));
    let is_same = verify().next().is_some() && verify().all(|it| is_required(it.word(0)));
    if !is_same || !is_only_forwarded {
        return;
    }
    for rule in rules {
        let Action::Forward { upstream, .. } = &mut rule.action else {
            continue;
        };
        // Other servers may lead to the same backends without telling them a user.
        let mut telling = plan.upstreams[*upstream].clone();
        if telling.backends.iter().all(|it| it.url.starts_with("ajp")) {
            telling.keys.insert("remote_user".to_owned(), quoted(user));
            // Another server may ask for passwords.
            telling.keys.remove("auth_type");
            *upstream = plan.upstream(telling);
        }
    }
    for directive in site.all().filter(|it| it.name == "sslusername") {
        ledger.mapped(directive.id);
    }
}
