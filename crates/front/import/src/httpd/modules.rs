//! Which modules httpd has loaded, as far as its files tell. `<IfModule>` asks for them.

use std::collections::HashSet;

use crate::directive::{Directive, MISSING};
use crate::judge::may_close;
use crate::ledger::Ledger;

/// The modules loaded so far.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    loaded: HashSet<String>,
    /// Whether an included file does not exist, which may load further modules.
    has_unread: bool,
}

impl Modules {
    /// Adds the module that a `LoadModule` names.
    pub(crate) fn load(&mut self, name: &str) {
        self.loaded.insert(stem(name).to_owned());
    }

    /// Notes that an included file does not exist: it may load any module.
    pub(crate) fn miss_file(&mut self) {
        self.has_unread = true;
    }

    /// Whether a module is loaded; `None` if that is not known. If any third-party module is loaded, it is not known
    /// of another third-party name: `<IfModule>` may ask by the name of a source file, which can differ from the
    /// name in `LoadModule`.
    pub(crate) fn has(&self, name: &str) -> Option<bool> {
        let stem = stem(name);
        if has_word(ALWAYS, stem) || self.loaded.contains(stem) {
            return Some(true);
        }
        // A file that loads only some module of its own does not list all modules.
        let is_list_complete = self.loaded.contains(REQUIRE) && !self.has_unread;
        let is_third_party = |name: &String| !has_word(OWN, name) && !has_word(ALWAYS, name);
        let is_name_known = has_word(OWN, stem) || !self.loaded.iter().any(is_third_party);
        (is_list_complete && is_name_known).then_some(false)
    }
}

/// The access rules of a section that applies if some module is missing, where it is not known whether the module is
/// loaded. They close their requests; other directives of the section are left out.
pub(crate) fn guards_of(directives: Vec<Directive>, ledger: &mut Ledger) -> Vec<Directive> {
    let mut guards = Vec::new();
    for mut directive in directives {
        let is_place = has_word(PLACES, &directive.name);
        if !is_place && may_close("httpd", &directive.name) {
            ledger.unmapped(directive.id, "it is unknown whether its module is loaded");
            // No table knows this name, so it closes its place.
            directive.name = MISSING.to_owned();
            directive.inner = None;
            guards.push(directive);
            continue;
        }
        let text = "it is unknown whether its module is loaded, and it was left out";
        ledger.kept_or_risk(directive.id, text);
        directive.inner = directive.inner.map(|inner| guards_of(inner, ledger));
        if !directive.inside().is_empty() {
            guards.push(directive);
        }
    }
    guards
}

/// The bare name `x` of `mod_x.c` or `x_module`.
fn stem(name: &str) -> &str {
    let mut stem = name.strip_suffix(".c").unwrap_or(name);
    stem = stem.strip_suffix("_module").unwrap_or(stem);
    stem = stem.strip_prefix("mod_").unwrap_or(stem);
    stem.strip_prefix("mpm_").unwrap_or(stem)
}

/// Whether a list of names, separated by blanks, has this one.
fn has_word(names: &str, name: &str) -> bool {
    names.split(' ').any(|it| it == name)
}

/// Sections whose directives are examined one by one.
const PLACES: &str = "\
    location locationmatch directory directorymatch files filesmatch virtualhost proxy";

/// The module of `Require`. A list of modules without it is incomplete.
const REQUIRE: &str = "authz_core";

/// Modules that count as loaded even if no `LoadModule` names them: those that builds of httpd usually contain, and
/// `authz_core`, without which httpd 2.4 has no `Require`.
const ALWAYS: &str = "authz_core core http http_core log_config logio so unixd version watchdog";

/// Modules of httpd 2.4 whose name in `LoadModule` equals that of their source file.
const OWN: &str = "\
    access_compat actions alias allowmethods asis auth_basic auth_digest auth_form authn_anon authn_core authn_dbd \
    authn_dbm authn_file authn_socache authnz_fcgi authnz_ldap authz_dbd authz_dbm authz_groupfile authz_host \
    authz_owner authz_user autoindex brotli buffer cache cache_disk cache_socache cern_meta cgi cgid charset_lite dav \
    dav_fs dav_lock dbd deflate dialup dir dumpio env event expires ext_filter file_cache filter headers heartbeat \
    heartmonitor http2 ident imagemap include info lbmethod_bybusyness lbmethod_byrequests lbmethod_bytraffic \
    lbmethod_heartbeat log_debug log_forensic lua macro md mime mime_magic negotiation prefork proxy proxy_ajp \
    proxy_balancer proxy_connect proxy_express proxy_fcgi proxy_fdpass proxy_ftp proxy_hcheck proxy_html proxy_http \
    proxy_http2 proxy_scgi proxy_uwsgi proxy_wstunnel ratelimit reflector remoteip reqtimeout request rewrite sed \
    session session_cookie session_crypto session_dbd setenvif slotmem_plain slotmem_shm socache_dbm socache_dc \
    socache_memcache socache_redis socache_shmcb speling ssl status substitute suexec systemd tls unique_id userdir \
    usertrack vhost_alias worker xml2enc";
