//! The sign-on of a place: by password (`auth_basic`), or by the service of an `auth_request`, the location of the server
//! that nginx asks by a subrequest.
//!
//! That location is read like any other, but without what nginx does not do in a subrequest: it asks no access rules, and
//! no client gets what is answered.

use super::{LocationPaths, Server, ServerReader};
use crate::directive::Directive;
use crate::ledger::{Id, LedgerKeeper as _};
use crate::matcher::Matcher;
use crate::nginx::location::{Scope, is_plain_path, modifier};
use crate::nginx::{pages, sign_on};
use crate::passwords::{DIFFERENCES, PasswordSignOn};
use crate::plan::{Access, Action, Keys, Rule, Settings, SignOn};
use crate::toml_text::{inline_table, quoted, quoted_list};

impl ServerReader<'_, '_> {
    /// Gives a place the sign-on of its `auth_request` or its `auth_basic`; closes the place if the front cannot ask the
    /// same.
    pub(super) fn sign_on(&mut self, scope: Scope<'_>, server: Server<'_>, settled: &mut Settings) {
        for off in ["auth_request", "auth_basic"].map(|name| scope.find(name)) {
            if let Some(off) = off.filter(|it| it.word(0) == "off") {
                self.ledger().mapped(off.id);
            }
        }
        match (sign_on::asked(scope), sign_on::by_password(scope)) {
            (None, None) => {}
            (Some(asked), None) => self.ask_service(asked, scope, server, settled),
            (None, Some(basic)) => self.ask_password(basic, scope, settled),
            (Some(asked), Some(basic)) => {
                let text = "nginx asks for two sign-ons here, and a route for one";
                self.ledger().unmapped(basic.id, text);
                self.ledger().unmapped(asked.id, text);
                settled.access = Access::Unsaid;
            }
        }
    }

    /// Gives a place the sign-on by password of its `auth_basic`, or closes it.
    fn ask_password(&mut self, basic: &Directive, scope: Scope<'_>, settled: &mut Settings) {
        let file = scope.find("auth_basic_user_file");
        let claims = sign_on::claims(scope);
        let asked = PasswordSignOn {
            realm: basic.word(0),
            users_file: file.map_or("", |it| it.word(0)),
            fields: claims.into_iter().map(|(name, _)| name).collect(),
            passes_credentials: sign_on::passes_credentials(scope),
            keeps_white_space: true,
            ..PasswordSignOn::default()
        };
        let found = match file {
            None => Err("there is no `auth_basic_user_file`".to_owned()),
            Some(_) if basic.word(0).contains('$') => {
                Err("what it asks for depends on the request".to_owned())
            }
            Some(_) => asked.read(self.expansion.files),
        };
        let ledger = &mut *self.expansion.ledger;
        let all = file.into_iter().chain([basic]);
        match found {
            Ok(sign_on) => {
                all.for_each(|it| ledger.mapped(it.id));
                ledger.note(basic.id, DIFFERENCES);
                settled.sign_on = Some(self.plan.sign_ons.enter(sign_on));
            }
            Err(reason) => {
                let text = format!("clients sign on here, which was not converted: {reason}");
                ledger.unmapped(basic.id, &text);
                all.for_each(|it| ledger.part(it.id, basic.id));
                settled.access = Access::Unsaid;
            }
        }
        if let Some(delay) = scope.find("auth_delay") {
            ledger.dropped(delay.id, "wrong passwords are limited by `failures`");
        }
    }

    /// Gives a place the sign-on of its `auth_request`, or closes it.
    fn ask_service(
        &mut self,
        directive: &Directive,
        scope: Scope<'_>,
        server: Server<'_>,
        settled: &mut Settings,
    ) {
        match self.service(directive, scope, server) {
            Ok(sign_on) => {
                let ledger = self.ledger();
                ledger.mapped(directive.id);
                ledger.note(directive.id, ANSWERS);
                for set in scope.level(|it| it.name == "auth_request_set") {
                    ledger.mapped(set.id);
                }
                settled.sign_on = Some(self.plan.sign_ons.enter(sign_on));
            }
            Err(reason) => {
                let text = format!("{reason}: whether a client may pass is not asked here");
                self.ledger().unmapped(directive.id, &text);
                settled.access = Access::Unsaid;
            }
        }
    }

    /// The sign-on of an `auth_request`.
    ///
    /// # Errors
    /// Why the front cannot ask the same.
    fn service(
        &mut self,
        directive: &Directive,
        scope: Scope<'_>,
        server: Server<'_>,
    ) -> Result<SignOn, String> {
        let uri = directive.word(0);
        let asked = AskedLocation::find(uri, server)?;
        let alone = asked.alone();
        let blocks = [alone.inside(), server.plain, server.outer];
        let scope_of_asked = Scope {
            blocks: &blocks,
            expression: None,
            upstreams: self.upstreams,
        };
        let wanted = sign_on::told(scope_of_asked, self.proxy)?;
        let matchers = [Matcher::Exact(uri.to_owned())];
        let found = LocationPaths {
            matchers: &matchers,
            path: Some(asked.path),
        };
        let rules = self.converted(&alone, server.choices, found, server);
        let (upstream, path) = asked
            .reached(&rules, uri)
            .filter(|it| self.plan.upstreams[it.0].shares.is_empty())
            .ok_or_else(|| {
                format!("the location of `{uri}` does not pass on all its requests alike")
            })?;
        let mut keys = Keys::from([
            ("path".to_owned(), quoted(&path)),
            // As long as nginx waits, unless it waits longer.
            ("timeout".to_owned(), quoted("60s")),
        ]);
        if !wanted.is_empty() {
            keys.insert("request_fields".to_owned(), quoted_list(&wanted));
        }
        tell(scope, &mut keys);
        if let Some((to, ids)) = sign_on::sign_in(scope, server.inner) {
            keys.insert("sign_in".to_owned(), quoted(&to));
            ids.into_iter().for_each(|it| self.ledger().mapped(it));
        }
        asked.ids().for_each(|it| self.ledger().mapped(it));
        Ok(SignOn {
            name: uri.trim_matches('/').to_owned(),
            upstream: Some(upstream),
            keys,
        })
    }
}

/// A location that is asked by a subrequest.
struct AskedLocation<'d> {
    location: &'d Directive,
    /// Its path.
    path: &'d str,
    is_exact: bool,
}

impl<'d> AskedLocation<'d> {
    /// Finds the location of the address of an `auth_request`.
    ///
    /// # Errors
    /// Why it is not known what nginx does with the subrequest.
    fn find(uri: &str, server: Server<'d>) -> Result<Self, String> {
        if !uri.starts_with('/') || !is_plain_path(uri) {
            return Err(format!("`{uri}` is no plain path"));
        }
        if server.plain.iter().any(rewrites_subrequests) {
            return Err("directives of the server may change what is asked".to_owned());
        }
        let location = pages::location(uri, server.inner)
            .map_err(|_| format!("an expression may decide about `{uri}`"))?
            .ok_or_else(|| format!("no location has the path `{uri}`"))?;
        let (sign, path) = modifier(&location.words)
            .ok_or_else(|| format!("the location of `{uri}` was not converted"))?;
        let passes = location.inside().iter().find(|it| it.name == "proxy_pass");
        // With a variable nginx sends the path of the client's request.
        if passes.is_none_or(|it| it.words.iter().any(|word| word.contains('$'))) {
            return Err(format!(
                "the location of `{uri}` passes on nothing by a plain URL"
            ));
        }
        if let Some(limit) = location
            .inside()
            .iter()
            .find(|it| LIMITS.contains(&&*it.name))
        {
            return Err(format!("the location of `{uri}` has a `{}`", limit.name));
        }
        Ok(Self {
            location,
            path,
            is_exact: sign == "=",
        })
    }

    /// The location as a subrequest reaches it. What it inherits of the directives that do not count there is off.
    fn alone(&self) -> Directive {
        let inside = self.location.inside().iter();
        let kept = inside.filter(|it| !UNASKED.contains(&&*it.name)).cloned();
        let off = |(name, words): &(&str, &[&str])| Directive {
            id: self.location.id,
            name: (*name).to_owned(),
            words: words.iter().map(ToString::to_string).collect(),
            inner: None,
        };
        Directive {
            inner: Some(kept.chain(OFF.iter().map(off)).collect()),
            ..self.location.clone()
        }
    }

    /// The directives of the location that do not count in a subrequest.
    fn ids(&self) -> impl Iterator<Item = Id> {
        let inside = self.location.inside().iter();
        let own = inside.filter(|it| UNASKED.contains(&&*it.name));
        own.map(|it| it.id)
    }

    /// The upstream that these rules of the location lead to, and the path that it gets; `None` if there are several, or
    /// if they do not lead all requests there.
    fn reached(&self, rules: &[Rule], uri: &str) -> Option<(usize, String)> {
        let [rule] = rules else {
            return None;
        };
        let passes_all = rule.is_unconditional() && rule.settings.access == Access::Open;
        let Action::Forward { upstream, rewrite } = &rule.action else {
            return None;
        };
        let path = match rewrite {
            None => uri.to_owned(),
            // It would be the path of the whole location.
            Some(path) => Some(path.clone()).filter(|_| self.is_exact)?,
        };
        (passes_all && is_plain_path(&path)).then_some((*upstream, path))
    }
}

/// Adds the keys for what applications are told of the answer.
fn tell(scope: Scope<'_>, keys: &mut Keys) {
    let claims = sign_on::claims(scope);
    let user = sign_on::user(&claims);
    if let Some(user) = user {
        keys.insert("user".to_owned(), quoted(user));
    }
    let source = |field: &str| if user == Some(field) { "user" } else { field }.to_owned();
    let fields = claims.iter();
    let pairs: Vec<(String, String)> = fields
        .map(|(name, field)| (name.clone(), quoted(&source(field))))
        .collect();
    if !pairs.is_empty() {
        keys.insert("fields".to_owned(), inline_table(pairs.into_iter()));
    }
}

/// Whether a directive outside of locations may lead a subrequest elsewhere, or answer it otherwise than the request that it
/// is for.
fn rewrites_subrequests(directive: &Directive) -> bool {
    let names_own = || {
        let mut words = directive.words.iter();
        // That variable is the one of the client's request.
        words.any(|word| {
            let others = word.replace("request_uri", "");
            OWN_VALUES.iter().any(|it| others.contains(it))
        })
    };
    match directive.name.as_str() {
        "rewrite" => true,
        "if" => names_own() || directive.inside().iter().any(|it| it.name != "return"),
        _ => false,
    }
}

/// Variables that a subrequest has of its own.
const OWN_VALUES: [&str; 6] = [
    "uri",
    "args",
    "arg_",
    "query_string",
    "request_filename",
    "document_root",
];

/// Directives of a location that nginx does not ask in a subrequest without a body whose answer no client gets.
const UNASKED: [&str; 16] = [
    "add_header",
    "allow",
    "auth_basic",
    "auth_basic_user_file",
    "auth_delay",
    "auth_request",
    "auth_request_set",
    "client_max_body_size",
    "deny",
    "error_page",
    "expires",
    "internal",
    "proxy_hide_header",
    "proxy_intercept_errors",
    "proxy_pass_request_body",
    "satisfy",
];

/// The same directives, where they are inherited, with what makes them nothing.
const OFF: &[(&str, &[&str])] = &[
    ("allow", &["all"]),
    ("auth_basic", &["off"]),
    ("auth_request", &["off"]),
    ("error_page", &[]),
    ("proxy_pass_request_body", &["on"]),
    ("satisfy", &["all"]),
];

/// Limits of requests, which nginx counts for a subrequest as well.
const LIMITS: [&str; 2] = ["limit_conn", "limit_req"];

/// How the front's question differs.
const ANSWERS: &str = "the service gets the fields that docs/sign-on.md lists, and further ones of the client by \
    `request_fields`; all its cookies go to the client, and so does its answer if that is 3xx or 4xx";
