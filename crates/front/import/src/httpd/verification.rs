//! How certificates of backends are verified: `SSLProxyVerify` and what belongs to it.

use std::path::Path;

use crate::directive::Directive;
use crate::httpd::files::Site;
use crate::ledger::Ledger;
use crate::plan::{DepthCount, Keys, depth_key};
use crate::toml_text::quoted;

/// The keys for verifying backends' certificates, from `SSLProxyVerify`; `None`: they are not verified.
pub(super) fn keys(site: Site<'_>, ledger: &mut Ledger) -> Option<Keys> {
    let is_proxy = |it: &&Directive| it.name.starts_with("proxy");
    let in_sections = || site.all().filter(is_proxy).flat_map(Directive::inside);
    for directive in site.all().chain(in_sections()) {
        if directive.name == "sslproxyengine" {
            ledger.dropped(directive.id, "the scheme of a backend's `url` says it");
        }
    }
    // The source may verify only some backends; here the strictest setting is used for all.
    let for_some = || in_sections().filter(|it| it.name == "sslproxyverify");
    let for_any = || for_some().chain(site.find("sslproxyverify"));
    let verifies = |it: &&Directive| !it.word(0).eq_ignore_ascii_case("none");
    let verify = for_any().find(verifies).or_else(|| for_any().next())?;
    for directive in for_some() {
        if verifies(&verify) {
            let text = "backends have different settings; the strictest applies to all";
            ledger.lost(directive.id, text);
        } else {
            ledger.mapped(directive.id);
        }
    }
    match verify.word(0).to_ascii_lowercase().as_str() {
        "none" => {
            ledger.mapped(verify.id);
            return None;
        }
        "require" => ledger.mapped(verify.id),
        _ => ledger.lost(verify.id, "the front always verifies the certificate"),
    }
    let mut keys = Keys::new();
    let mut pem = Vec::new();
    if let Some(path) = site.find("sslproxycacertificatepath") {
        let text = "name one file in `ca_file`: until then backends are verified by the system's authorities";
        ledger.lost(path.id, text);
    }
    if let Some(authority) = site.find("sslproxycacertificatefile") {
        let path = Path::new(authority.word(0));
        match site.files.read(path) {
            Ok(bytes) => {
                pem = bytes;
                ledger.mapped(authority.id);
                keys.insert("ca_file".to_owned(), quoted(&site.files.located(path)));
            }
            Err(error) => ledger.lost(authority.id, format!("it cannot be read: {error}")),
        }
    }
    let number = site.find("sslproxyverifydepth");
    let text = number.map(|it| it.word(0));
    let of = number.unwrap_or(verify);
    keys.extend(depth_key(
        text,
        DepthCount::WithTrusted,
        &pem,
        of.id,
        ledger,
    ));
    Some(keys)
}
