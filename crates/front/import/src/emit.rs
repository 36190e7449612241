//! Writes a plan as a configuration file of the front.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use crate::common_settings::{CommonSettings, REPLACE_ERRORS, shows_pages};
use crate::condition::Scheme;
use crate::expression::ESCAPED_SLASH;
use crate::ledger::{Place, Remark, Weight};
use crate::matcher::{Matcher, encoded};
use crate::plan::{Access, Action, Fields, Keys, Listener, Plan, Rule, Serve, Upstream};
use crate::routes::{Route, RouteGroup, outcome};
use crate::toml_text::{inline_table, quoted, quoted_list};

/// Options for writing the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    /// The URL of the old server, which gets what cannot be converted; `None`: such
    /// requests are answered 403.
    pub(crate) keep: Option<&'a str>,
    /// Whether secrets are written into the file itself; if not, into files beside it.
    pub(crate) inline_secrets: bool,
    /// The prefix of the names of files with secrets.
    pub(crate) secrets_of: &'a str,
    /// Indices of routes that are written as closed, because they would open what the
    /// source keeps closed.
    pub(crate) closed: &'a [usize],
    /// Indices of routes that are left out.
    pub(crate) omitted: &'a [usize],
}

/// A file that belongs beside the written one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideFile {
    /// The file's name, relative to the written configuration.
    pub name: String,
    /// The contents. The file must be readable by its owner alone.
    pub text: String,
}

/// The written file, and the files that belong beside it.
#[derive(Debug)]
pub(crate) struct WrittenFile {
    pub(crate) text: String,
    pub(crate) files: Vec<SideFile>,
    /// The number of routes written.
    pub(crate) routes: usize,
    pub(crate) kept: usize,
}

/// Writes the file, except the remarks at its top. `groups` are the plan's routes.
pub(crate) fn write(plan: &Plan, groups: &[RouteGroup], form: Form<'_>) -> WrittenFile {
    let mut writer = Writer::new(form, groups);
    writer.server(plan);
    for listener in &plan.listeners {
        writer.listener(plan, listener);
    }
    if plan.has_status {
        writer.out.push_str(ADMIN);
    }
    writer.table("log", &plan.log);
    writer.limits(plan, groups);
    writer.upstreams(plan, groups);
    writer.sign_ons(plan, groups);
    for group in groups {
        for route in group.routes.iter() {
            writer.route(plan, group, route);
        }
    }
    WrittenFile {
        text: writer.out,
        files: writer.files,
        routes: writer.routes - form.omitted.len(),
        kept: writer.kept,
    }
}

/// A whole file with only this listener, whose requests are answered 404.
pub(crate) fn listener_alone(plan: &Plan, listener: &Listener) -> String {
    let mut writer = Writer::new(ALONE, &[]);
    writer.listener(plan, listener);
    writer.out.push_str("\n[[route]]\nstatus = 404\n");
    writer.out
}

/// A whole file with only this upstream, which gets all requests.
pub(crate) fn upstream_alone(upstream: &Upstream) -> String {
    let mut writer = Writer::new(ALONE, &[]);
    writer
        .out
        .push_str("[[listen]]\naddress = \"127.0.0.1:80\"\n");
    writer.upstream(upstream);
    writer.out.push_str("\n[[route]]\n");
    writer.line("upstream", &quoted(&upstream.name));
    writer.out
}

/// The comment at the top of the file: first the risks, then the notes.
pub(crate) fn head(sources: &[String], remarks: &[Remark]) -> String {
    let mut text = format!(
        "# Written by `catamaran import` from {}.\n",
        comment(&sources.join(", "))
    );
    let with_weight = |weight: Weight| remarks.iter().filter(move |it| it.weight == weight);
    for (index, remark) in with_weight(Weight::Risk).enumerate() {
        let _ = write!(text, "# RISK {}: ", index + 1);
        say(remark, &mut text);
    }
    for remark in with_weight(Weight::Note) {
        text.push_str("# NOTE: ");
        say(remark, &mut text);
    }
    text
}

/// Appends a remark with its place to `out`, to complete a line.
pub(crate) fn say(remark: &Remark, out: &mut String) {
    if let Some(place) = &remark.place {
        let _ = write!(out, "{}:{}: ", comment(&place.file), place.line);
    }
    out.push_str(&comment(&remark.text));
    out.push('\n');
}

/// A text that is safe in a comment: control characters of the source must not end its
/// line.
fn comment(text: &str) -> Cow<'_, str> {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.replace(char::is_control, " "))
    }
}

/// The value of `cookie_flags` as TOML. `None` if there are no words, or if one is no flag that the front can add.
pub(crate) fn flags<'t>(words: impl Iterator<Item = &'t str>) -> Option<String> {
    let mut flags: Vec<&str> = Vec::new();
    for word in words.map(str::trim).filter(|word| !word.is_empty()) {
        let mut known = COOKIE_FLAGS.into_iter();
        flags.push(known.find(|flag| flag.eq_ignore_ascii_case(word))?);
    }
    (!flags.is_empty()).then(|| quoted_list(flags))
}

struct Writer<'a> {
    form: Form<'a>,
    shared: CommonSettings,
    out: String,
    files: Vec<SideFile>,
    routes: usize,
    kept: usize,
}

impl<'a> Writer<'a> {
    fn new(form: Form<'a>, groups: &[RouteGroup]) -> Self {
        Self {
            form,
            shared: CommonSettings::new(groups),
            out: String::new(),
            files: Vec::new(),
            routes: 0,
            kept: 0,
        }
    }

    /// Writes a key with its value, which is TOML already.
    fn line(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.out, "{key} = {value}");
    }

    fn keys(&mut self, keys: &Keys) {
        for (key, value) in keys {
            self.line(key, value);
        }
    }

    /// Writes the tables that apply to all listeners and routes.
    fn server(&mut self, plan: &Plan) {
        if !plan.trusted.is_empty() {
            self.out.push_str("\n[server]\n");
            self.line("trusted_proxies", &quoted_list(&plan.trusted));
        }
        let fields = self.shared.response_fields.clone();
        if !fields.is_empty() {
            self.fields("server.response_headers", &fields);
        }
        let pages = self.shared.pages.clone();
        if !pages.is_empty() {
            self.out.push_str("\n[error_pages]\n");
            self.keys(&pages);
        }
    }

    fn listener(&mut self, plan: &Plan, listener: &Listener) {
        let name = listener_name(plan, listener);
        self.out.push_str("\n[[listen]]\n");
        self.line("name", &quoted(&name));
        let Some(tls) = &listener.tls else {
            self.line("address", &quoted(&listener.address));
            self.keys(&listener.keys);
            return;
        };
        if let Some(reason) = &tls.missing {
            // On loopback, plain HTTP takes the place of TLS: no client of the network reaches it.
            let _ = writeln!(
                self.out,
                "# {}: until then it is kept from the network",
                comment(reason)
            );
            self.line("address", &quoted(&format!("127.0.0.1:{}", listener.port)));
            self.keys(&listener.keys);
            return;
        }
        self.line("address", &quoted(&listener.address));
        self.line("tls", &quoted(&name));
        self.keys(&listener.keys);
        self.table(&format!("tls.{name}"), &tls.settings.keys());
        for (chain, key) in &tls.certificates {
            let _ = writeln!(self.out, "\n[[tls.{name}.certificate]]");
            self.line("chain", &quoted(chain));
            self.line("key", &quoted(key));
        }
    }

    /// Writes a table, unless it has no keys.
    fn table(&mut self, name: &str, keys: &Keys) {
        if !keys.is_empty() {
            let _ = writeln!(self.out, "\n[{name}]");
            self.keys(keys);
        }
    }

    /// Writes the limits for which requests of some route count.
    fn limits(&mut self, plan: &Plan, groups: &[RouteGroup]) {
        let mut used: HashSet<&str> = HashSet::new();
        for route in groups.iter().flat_map(|group| group.routes.iter()) {
            if asks_limits(&outcome(&route.rule)) {
                used.extend(route.rule.settings.limits.iter().map(String::as_str));
            }
        }
        for (name, keys) in plan.limits.iter() {
            if used.contains(name) {
                self.table(&format!("limit.{name}"), keys);
            }
        }
    }

    /// Writes the sign-ons that routes ask for.
    fn sign_ons(&mut self, plan: &Plan, groups: &[RouteGroup]) {
        let asked = self.asked(groups);
        for (name, sign_on) in plan.sign_ons.iter().filter(|it| asked.contains(it.0)) {
            let _ = writeln!(self.out, "\n[auth.{name}]");
            if let Some(upstream) = sign_on.upstream {
                self.line("upstream", &quoted(&plan.upstreams[upstream].name));
            }
            self.keys(&sign_on.keys);
        }
    }

    /// The names of the sign-ons of all routes that are not closed.
    fn asked<'g>(&self, groups: &'g [RouteGroup]) -> HashSet<&'g str> {
        let routes = groups.iter().flat_map(|group| group.routes.iter());
        let is_open = |index: &usize| self.form.closed.binary_search(index).is_err();
        let open = routes.enumerate().filter(|(index, _)| is_open(index));
        let asking = open.filter(|(_, route)| asks_limits(&outcome(&route.rule)));
        let names = asking.filter_map(|(_, route)| route.rule.settings.sign_on.as_deref());
        names.collect()
    }

    /// Writes the upstreams that a route or its sign-on uses, and the old server if a route leads to it.
    fn upstreams(&mut self, plan: &Plan, groups: &[RouteGroup]) {
        let mut used: HashSet<&str> = HashSet::new();
        let mut has_kept_routes = false;
        for route in groups.iter().flat_map(|group| group.routes.iter()) {
            let action = outcome(&route.rule);
            has_kept_routes |= matches!(action, Action::Files | Action::Closed);
            if let Some(upstream) = action.upstream() {
                let shares = plan.shares(upstream).into_iter();
                used.extend(shares.map(|(upstream, _)| upstream.name.as_str()));
            }
        }
        let asked = self.asked(groups);
        let services = plan.sign_ons.iter().filter(|it| asked.contains(it.0));
        let upstreams = services.filter_map(|(_, it)| it.upstream);
        used.extend(upstreams.map(|it| plan.upstreams[it].name.as_str()));
        for upstream in &plan.upstreams {
            if used.contains(upstream.name.as_str()) {
                self.upstream(upstream);
            }
        }
        if let Some(url) = self.form.keep
            && has_kept_routes
        {
            let _ = writeln!(self.out, "\n[upstream.{KEPT}]");
            // The old server has limits of its own, so the front waits for it as long as a key can say.
            self.line("first_byte_timeout", "\"24h\"");
            self.line("idle_body_timeout", "\"24h\"");
            let _ = writeln!(self.out, "\n[[upstream.{KEPT}.backend]]");
            self.line("url", &quoted(url));
        }
    }

    fn upstream(&mut self, upstream: &Upstream) {
        let name = &upstream.name;
        let _ = writeln!(self.out, "\n[upstream.{name}]");
        self.keys_or_secret_file(&upstream.keys, name);
        // An empty table `sticky` is written, too: it switches sticky sessions on.
        if let Some(keys) = &upstream.sticky {
            let _ = writeln!(self.out, "\n[upstream.{name}.sticky]");
            self.keys(keys);
        }
        self.table(&format!("upstream.{name}.probe"), &upstream.probe);
        self.table(&format!("upstream.{name}.attributes"), &upstream.attributes);
        for (index, backend) in upstream.backends.iter().enumerate() {
            let from = from_comment(backend.place.as_ref());
            let _ = writeln!(self.out, "\n[[upstream.{name}.backend]]{from}");
            self.line("url", &quoted(&backend.url));
            self.keys_or_secret_file(&backend.keys, &format!("{name}-{}", index + 1));
        }
    }

    /// Writes keys. The value of `secret` is not TOML yet: it is written here, or into a side file of this name.
    fn keys_or_secret_file(&mut self, keys: &Keys, name: &str) {
        for (key, value) in keys {
            if key != "secret" {
                self.line(key, value);
            } else if self.form.inline_secrets {
                self.line(key, &quoted(value));
            } else {
                let file = format!("{}{name}.secret", self.form.secrets_of);
                self.line("secret_file", &quoted(&file));
                self.files.push(SideFile {
                    name: file,
                    text: format!("{value}\n"),
                });
            }
        }
    }

    fn route(&mut self, plan: &Plan, group: &RouteGroup, route: &Route) {
        let rule = &route.rule;
        let index = self.routes;
        self.routes += 1;
        if self.form.omitted.contains(&index) {
            return;
        }
        let action = outcome(rule);
        self.conditions(plan, group, route, &action);
        if !route.exclude.is_empty() {
            self.line("exclude", &quoted_list(&route.exclude));
        }
        // `closed` is sorted.
        if self.form.closed.binary_search(&index).is_ok() {
            return self.line("status", "403");
        }
        self.target(plan, rule, &action);
        let request_fields = &rule.settings.request_fields;
        if !request_fields.is_empty() && action.upstream().is_some() {
            self.fields("route.request_headers", request_fields);
        }
        let fields = self.shared.fields_left(&rule.settings.response_fields);
        self.response_fields(&fields, &rule.settings.success_fields);
        self.pages(route);
    }

    /// Writes the changes to the fields of all responses, and those to responses with some statuses. Several tables
    /// of one name have double brackets.
    fn response_fields(&mut self, of_all: &Fields, of_success: &Fields) {
        let table = if of_success.is_empty() {
            "route.response_headers"
        } else {
            "[route.response_headers]"
        };
        if !of_all.is_empty() {
            self.fields(table, of_all);
        }
        if !of_success.is_empty() {
            self.fields(table, of_success);
            self.line("statuses", &quoted_list(SUCCESSES));
        }
    }

    /// Writes the keys that say which requests the route takes.
    fn conditions(&mut self, plan: &Plan, group: &RouteGroup, route: &Route, action: &Action) {
        let rule = &route.rule;
        let from = from_comment(rule.place.as_ref());
        let _ = writeln!(self.out, "\n[[route]]{from}");
        if !group.hosts.is_empty() {
            self.line("host", &quoted_list(&group.hosts));
        }
        if !group.listeners.is_empty() {
            let listeners = group.listeners.iter().map(|&index| &plan.listeners[index]);
            let names = listeners.map(|listener| listener_name(plan, listener));
            self.line("listen", &quoted_list(names));
        }
        // Over HTTPS such a redirect would lead to itself.
        let to_https =
            matches!(action, Action::Redirect { to, .. } if to.starts_with("https://{host}"));
        match rule.scheme {
            Some(Scheme::Https) => self.line("scheme", "\"https\""),
            Some(Scheme::Http) => self.line("scheme", "\"http\""),
            None if to_https => self.line("scheme", "\"http\""),
            None => {}
        }
        self.matcher(&rule.matcher);
        if route.before_regex {
            self.line("before_regex", "true");
        }
        if !rule.methods.is_empty() {
            self.line("methods", &quoted_list(&rule.methods));
        }
        if !rule.tests.is_empty() {
            self.line("match_regex", &quoted_list(&rule.tests));
        }
    }

    /// Writes the error pages of the route that are not common to all routes.
    fn pages(&mut self, route: &Route) {
        if !shows_pages(route) {
            return;
        }
        let unshared = self.shared.pages_left(&route.rule.settings.pages);
        let mut pages: Keys = unshared
            .map(|(key, page)| (key.clone(), page.clone()))
            .collect();
        // Only backends send errors that a page could replace.
        if outcome(&route.rule).upstream().is_none() {
            pages.remove(REPLACE_ERRORS);
        }
        self.table("route.error_pages", &pages);
    }

    fn matcher(&mut self, matcher: &Matcher) {
        match matcher {
            Matcher::Exact(path) => {
                self.line("path", &quoted(&encoded(path)));
                self.line("exact", "true");
            }
            Matcher::Prefix(path) if path.is_empty() => self.line("path", "\"/\""),
            Matcher::Prefix(path) => self.line("path", &quoted(&encoded(path))),
            Matcher::Suffix { path, suffix } => {
                let path = if path.is_empty() { "/" } else { path };
                self.line("path", &quoted(&encoded(path)));
                self.line("suffix", &quoted(&encoded(suffix)));
            }
            Matcher::Pattern(text) => self.line("pattern", &quoted(&encoded(text))),
            Matcher::Expression(expression) => {
                let explanation = match expression.text() {
                    ESCAPED_SLASH => " # an escaped slash (%2F)",
                    _ => "",
                };
                self.line("regex", &(quoted(expression.text()) + explanation));
                // The source compares the expression with the path including its parameters, which the front cuts off
                // before it compares.
                self.line("refuse_parameters", "true");
            }
        }
    }

    /// Writes what the route does with requests, and for which clients.
    fn target(&mut self, plan: &Plan, rule: &Rule, action: &Action) {
        let has_old_server = self.form.keep.is_some();
        match action {
            Action::Files if !has_old_server => return self.line("status", "404"),
            Action::Closed if !has_old_server => return self.line("status", "403"),
            Action::Files | Action::Closed => {
                self.kept += 1;
                self.line("upstream", &quoted(KEPT));
            }
            Action::Answer(status) => {
                self.line("status", &status.to_string());
                if matches!(status, 200..=299) {
                    self.body_max(rule);
                }
            }
            Action::Text(answer) => {
                self.line("status", &answer.status.to_string());
                self.line("text", &quoted(&answer.text));
                self.line("text_type", &quoted(&answer.media_type));
                self.body_max(rule);
            }
            Action::Redirect { to, status } => {
                self.line("redirect", &quoted(to));
                self.line("status", &status.to_string());
            }
            Action::Forward { upstream, rewrite } => {
                self.leads_to(plan, *upstream);
                self.rewrite(rule, rewrite.as_deref());
                if rewrite.is_some() && matches!(rule.matcher, Matcher::Exact(_)) {
                    self.line("rewrite_whole", "true");
                }
                self.route_keys(&rule.settings.keys, rewrite.is_some());
            }
            Action::Serve(serve) => self.serve(plan, rule, serve),
        }
        let limits = &rule.settings.limits;
        if asks_limits(action) && !limits.is_empty() {
            self.line("limits", &quoted_list(limits));
        }
        if asks_limits(action)
            && let Some(name) = &rule.settings.sign_on
        {
            self.line("auth", &quoted(name));
        }
        if asks_access(action)
            && let Access::Clients(tests) = &rule.settings.access
        {
            let networks = &tests.networks;
            for (key, list) in [("allow", &networks.allow), ("deny", &networks.deny)] {
                if !list.is_empty() {
                    self.line(key, &quoted_list(list));
                }
            }
        }
        // The source asks for certificates of clients before it answers anything itself, so the route must, too. For a
        // route with an upstream, `route_keys` has written the key; what is refused or redirected needs none.
        if action.upstream().is_none()
            && !matches!(action, Action::Answer(400..) | Action::Redirect { .. })
            && let Some(value) = rule.settings.keys.get("client_certificate")
            && *value != quoted("off")
        {
            self.line("client_certificate", value);
        }
    }

    fn serve(&mut self, plan: &Plan, rule: &Rule, serve: &Serve) {
        self.line("files", &quoted(&serve.directory));
        self.rewrite(rule, serve.rewrite.as_deref());
        self.keys(&serve.keys);
        let keys = &rule.settings.keys;
        if let Some(upstream) = serve.upstream {
            self.leads_to(plan, upstream);
            return self.route_keys(keys, serve.rewrite.is_some());
        }
        // The other keys of a rule need an upstream. `target` writes `client_certificate`.
        for (key, value) in keys {
            if key.starts_with("compress") || key == BODY_MAX {
                self.line(key, value);
            }
        }
    }

    /// Writes the largest body of requests that the front answers itself with content. The source refuses larger ones
    /// before it answers.
    fn body_max(&mut self, rule: &Rule) {
        if let Some(value) = rule.settings.keys.get(BODY_MAX) {
            self.line(BODY_MAX, value);
        }
    }

    /// Writes the upstream that gets the requests, or the upstreams that share them with their weights.
    fn leads_to(&mut self, plan: &Plan, upstream: usize) {
        match &plan.shares(upstream)[..] {
            [(only, _)] => self.line("upstream", &quoted(&only.name)),
            shares => {
                let weights = shares.iter();
                let pairs = weights.map(|(it, weight)| (it.name.clone(), weight.to_string()));
                self.line("split", &inline_table(pairs));
            }
        }
    }

    fn rewrite(&mut self, rule: &Rule, path: Option<&str>) {
        match path {
            // The path has placeholders; all else in it is already encoded.
            Some(path) if rule.matcher.is_expression() => self.line("rewrite", &quoted(path)),
            Some(path) => self.line("rewrite", &quoted(&encoded(path))),
            None => {}
        }
    }

    /// Writes the keys of a route with an upstream, except those that say what is so without them.
    fn route_keys(&mut self, keys: &Keys, has_rewrite: bool) {
        for (key, value) in keys {
            let is_needless = match key.as_str() {
                "client_certificate" => *value == quoted("off"),
                // Without a `rewrite` all URLs stay as they are.
                "reverse_url" => value == "[]" && !has_rewrite,
                _ => false,
            };
            if !is_needless {
                self.line(key, value);
            }
        }
    }

    fn fields(&mut self, table: &str, fields: &Fields) {
        let _ = writeln!(self.out, "\n[{table}]");
        if !fields.remove.is_empty() {
            self.line("remove", &quoted_list(&fields.remove));
        }
        for (key, values) in [("set", &fields.set), ("add", &fields.add)] {
            if !values.is_empty() {
                let values = values.iter();
                let pairs = values.map(|(name, value)| (name.clone(), quoted(value)));
                self.line(key, &inline_table(pairs));
            }
        }
    }
}

/// A comment at the end of a table's first line, which names the place in the source that the table comes from.
fn from_comment(place: Option<&Place>) -> String {
    let Some(place) = place else {
        return String::new();
    };
    format!(" # from {}", comment(&place.to_string()))
}

/// Whether requests of this action count for limits and need a sign-on, which the old server has for what it keeps.
fn asks_limits(action: &Action) -> bool {
    asks_access(action) && !matches!(action, Action::Files | Action::Closed)
}

/// Whether the source asks its access rules and limits before this action: it redirects, and answers by `return`,
/// before.
fn asks_access(action: &Action) -> bool {
    match action {
        Action::Forward { .. } | Action::Serve(_) | Action::Files | Action::Closed => true,
        Action::Text(answer) => answer.is_guarded,
        Action::Answer(_) | Action::Redirect { .. } => false,
    }
}

/// The name of a listener: `port-PORT`, with a number if other listeners have the same port.
fn listener_name(plan: &Plan, listener: &Listener) -> String {
    let port = listener.port;
    let of_port: Vec<&Listener> = plan.listeners.iter().filter(|it| it.port == port).collect();
    if of_port.len() == 1 {
        return format!("port-{port}");
    }
    let index = of_port.iter().position(|it| *it == listener);
    format!("port-{port}-{}", index.unwrap_or_default() + 1)
}

/// The name of the upstream that is the old server.
pub(crate) const KEPT: &str = "kept";

/// The flags of cookies that the front can add.
const COOKIE_FLAGS: [&str; 5] = [
    "Secure",
    "HttpOnly",
    "SameSite=Lax",
    "SameSite=Strict",
    "SameSite=None",
];

/// The form of a file with only one part of the plan, for a trial by `check`.
const ALONE: Form<'static> = Form {
    keep: None,
    inline_secrets: true,
    secrets_of: "",
    closed: &[],
    omitted: &[],
};

/// The key for the largest body of a request.
const BODY_MAX: &str = "body_max";

/// The statuses of responses to which nginx's `add_header` without `always` adds fields.
const SUCCESSES: [&str; 7] = ["200", "201", "204", "206", "301-304", "307", "308"];

const ADMIN: &str = "\n[admin]\naddress = \"127.0.0.1:9901\"\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_source_stay_texts() {
        assert_eq!(quoted("a\"b\\c\n${X}"), "\"a\\\"b\\\\c\\u000A$${X}\"");
        assert_eq!(comment("a\nlisten"), "a listen");
        assert_eq!(quoted_list(["a"]), "\"a\"");
        assert_eq!(quoted_list(["a", "b"]), "[\"a\", \"b\"]");
    }
}
