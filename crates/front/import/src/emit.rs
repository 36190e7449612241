//! Writes a plan as a configuration file of the front.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt::Write as _;

use crate::common_settings::{CommonSettings, REPLACE_ERRORS, shows_pages};
use crate::condition::Scheme;
use crate::expression::ESCAPED_SLASH;
use crate::ledger::{Remark, Weight};
use crate::matcher::{Matcher, encoded};
use crate::plan::{Access, Action, Fields, Keys, Listener, Plan, Rule, Upstream};
use crate::routes::{Route, RouteGroup, outcome};
use crate::toml_text::{quoted, quoted_list};

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
    for group in groups {
        for route in group.routes.iter() {
            writer.route(plan, group, route);
        }
    }
    WrittenFile {
        text: writer.out,
        files: writer.files,
        routes: writer.routes,
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

/// The comment at the top of the file: first what needs a decision, then the differences.
pub(crate) fn head(sources: &[String], remarks: &[Remark]) -> String {
    let mut text = format!(
        "# Written by `catamaran import` from {}.\n",
        comment(&sources.join(", "))
    );
    let of = |weight: Weight| remarks.iter().filter(move |it| it.weight == weight);
    for (number, remark) in of(Weight::Risk).enumerate() {
        let _ = write!(text, "# RISK {}: ", number + 1);
        say(remark, &mut text);
    }
    for remark in of(Weight::Note) {
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
    let flag = |word: &str| {
        let known = [
            "Secure",
            "HttpOnly",
            "SameSite=Lax",
            "SameSite=Strict",
            "SameSite=None",
        ];
        known.into_iter().find(|it| it.eq_ignore_ascii_case(word))
    };
    let words = words.map(str::trim).filter(|it| !it.is_empty());
    let all: Option<Vec<&str>> = words.map(flag).collect();
    all.filter(|it| !it.is_empty()).map(quoted_list)
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
        self.out.push_str("\n[[listen]]\n");
        self.line("name", &quoted(&listener_name(plan, listener)));
        let Some(tls) = &listener.tls else {
            self.line("address", &quoted(&listener.address));
            self.keys(&listener.keys);
            return;
        };
        let name = listener_name(plan, listener);
        if let Some(why) = &tls.missing {
            let _ = writeln!(
                self.out,
                "# {}: until then it is kept from the network",
                comment(why)
            );
            self.line("address", &quoted(&format!("127.0.0.1:{}", listener.port)));
            self.keys(&listener.keys);
            return;
        }
        self.line("address", &quoted(&listener.address));
        self.line("tls", &quoted(&name));
        self.keys(&listener.keys);
        if !tls.keys.is_empty() {
            let _ = writeln!(self.out, "\n[tls.{name}]");
            self.keys(&tls.keys);
        }
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

    /// Writes the limits that a route has.
    fn limits(&mut self, plan: &Plan, groups: &[RouteGroup]) {
        let routes = groups.iter().flat_map(|it| it.routes.iter());
        let asked = routes.filter(|it| asks_limits(&outcome(&it.rule)));
        let used: HashSet<&String> = asked.flat_map(|it| &it.rule.settings.limits).collect();
        let limits = plan.limits.iter();
        limits
            .filter(|(name, _)| used.iter().any(|it| it == name))
            .for_each(|(name, keys)| self.table(&format!("limit.{name}"), keys));
    }

    /// Writes the upstreams that a route uses.
    fn upstreams(&mut self, plan: &Plan, groups: &[RouteGroup]) {
        let routes = || groups.iter().flat_map(|it| it.routes.iter());
        let used: HashSet<&str> = routes()
            .filter_map(|it| outcome(&it.rule).upstream())
            .flat_map(|it| plan.shares(it))
            .map(|(upstream, _)| upstream.name.as_str())
            .collect();
        let upstreams = plan.upstreams.iter();
        upstreams
            .filter(|it| used.contains(it.name.as_str()))
            .for_each(|it| self.upstream(it));
        let keeps = |it: &Route| matches!(outcome(&it.rule), Action::Files | Action::Closed);
        if let Some(url) = self.form.keep
            && routes().any(keeps)
        {
            let _ = writeln!(self.out, "\n[upstream.{KEPT}]");
            self.line("first_byte_timeout", "\"24h\"");
            self.line("idle_body_timeout", "\"24h\"");
            let _ = writeln!(self.out, "\n[[upstream.{KEPT}.backend]]");
            self.line("url", &quoted(url));
        }
    }

    fn upstream(&mut self, upstream: &Upstream) {
        let name = &upstream.name;
        let _ = writeln!(self.out, "\n[upstream.{name}]");
        self.secret_or_keys(&upstream.keys, name);
        let filled = |keys| Some(keys).filter(|it: &&Keys| !it.is_empty());
        let tables = [
            ("sticky", upstream.sticky.as_ref()),
            ("probe", filled(&upstream.probe)),
            ("attributes", filled(&upstream.attributes)),
        ];
        for (table, keys) in tables {
            if let Some(keys) = keys {
                let _ = writeln!(self.out, "\n[upstream.{name}.{table}]");
                self.keys(keys);
            }
        }
        for (number, backend) in upstream.backends.iter().enumerate() {
            let place = backend.place.as_ref();
            let from = place.map(|it| format!(" # from {}", comment(&it.to_string())));
            let from = from.unwrap_or_default();
            let _ = writeln!(self.out, "\n[[upstream.{name}.backend]]{from}");
            self.line("url", &quoted(&backend.url));
            self.secret_or_keys(&backend.keys, &format!("{name}-{}", number + 1));
        }
    }

    fn secret_or_keys(&mut self, keys: &Keys, name: &str) {
        for (key, value) in keys {
            if key != "secret" || self.form.inline_secrets {
                let value = if key == "secret" {
                    quoted(value)
                } else {
                    value.clone()
                };
                self.line(key, &value);
                continue;
            }
            let file = format!("{}{name}.secret", self.form.secrets_of);
            self.line("secret_file", &quoted(&file));
            self.files.push(SideFile {
                name: file,
                text: format!("{value}\n"),
            });
        }
    }

    fn route(&mut self, plan: &Plan, group: &RouteGroup, route: &Route) {
        let rule = &route.rule;
        let number = self.routes;
        self.routes += 1;
        let action = outcome(rule);
        self.conditions(plan, group, route, &action);
        if !route.exclude.is_empty() {
            self.line("exclude", &quoted_list(&route.exclude));
        }
        // `closed` is sorted.
        if self.form.closed.binary_search(&number).is_ok() {
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

    /// Writes the changes to the fields of all responses, and those to responses with some statuses.
    fn response_fields(&mut self, of_all: &Fields, of_success: &Fields) {
        if of_success.is_empty() {
            if !of_all.is_empty() {
                self.fields("route.response_headers", of_all);
            }
            return;
        }
        if !of_all.is_empty() {
            self.fields("[route.response_headers]", of_all);
        }
        self.fields("[route.response_headers]", of_success);
        self.line("statuses", &quoted_list(SUCCESSES));
    }

    /// Writes the keys that say which requests the route takes.
    fn conditions(&mut self, plan: &Plan, group: &RouteGroup, route: &Route, action: &Action) {
        let rule = &route.rule;
        let place = rule.place.as_ref();
        let from = place.map(|it| format!(" # from {}", comment(&it.to_string())));
        let _ = writeln!(self.out, "\n[[route]]{}", from.unwrap_or_default());
        if !group.hosts.is_empty() {
            self.line("host", &quoted_list(&group.hosts));
        }
        if !group.listeners.is_empty() {
            let names = group
                .listeners
                .iter()
                .map(|&it| listener_name(plan, &plan.listeners[it]));
            self.line("listen", &quoted_list(names));
        }
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
        let unshared = self.shared.pages_left(&route.rule.settings.pages);
        let forwards = outcome(&route.rule).upstream().is_some();
        let fitting = unshared.filter(|it| forwards || it.0 != REPLACE_ERRORS);
        let left: Vec<(String, String)> = fitting.map(|it| (it.0.clone(), it.1.clone())).collect();
        if left.is_empty() || !shows_pages(route) {
            return;
        }
        self.out.push_str("\n[route.error_pages]\n");
        left.iter().for_each(|(key, value)| self.line(key, value));
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
                let said = match expression.text() {
                    ESCAPED_SLASH => " # an escaped slash (%2F)",
                    _ => "",
                };
                self.line("regex", &(quoted(expression.text()) + said));
                // The source compares the expression with the path including its parameters, which the front cuts off
                // before it compares.
                self.line("refuse_parameters", "true");
            }
        }
    }

    fn target(&mut self, plan: &Plan, rule: &Rule, action: &Action) {
        let own = match (action, self.form.keep) {
            (Action::Files, None) => Some(404),
            (Action::Closed, None) => Some(403),
            (Action::Answer(status), _) => Some(*status),
            _ => None,
        };
        if let Some(status) = own {
            return self.line("status", &status.to_string());
        }
        match action {
            Action::Text(answer) => {
                self.line("status", &answer.status.to_string());
                self.line("text", &quoted(&answer.text));
                return self.line("text_type", &quoted(&answer.media_type));
            }
            Action::Redirect { to, status } => {
                self.line("redirect", &quoted(to));
                self.line("status", &status.to_string());
            }
            Action::Forward { upstream, rewrite } => {
                self.leads_to(plan, *upstream);
                self.rewrite(rule, rewrite.as_deref());
                self.route_keys(&rule.settings.keys);
            }
            Action::Serve(serve) => {
                self.line("files", &quoted(&serve.directory));
                self.rewrite(rule, serve.rewrite.as_deref());
                self.keys(&serve.keys);
                let keys = &rule.settings.keys;
                match serve.upstream {
                    Some(upstream) => {
                        self.leads_to(plan, upstream);
                        self.route_keys(keys);
                    }
                    None => {
                        let compression = keys.iter().filter(|it| it.0.starts_with("compress"));
                        compression.for_each(|(key, value)| self.line(key, value));
                    }
                }
            }
            _ => {
                self.kept += 1;
                self.line("upstream", &quoted(KEPT));
            }
        }
        let limits = &rule.settings.limits;
        if asks_limits(action) && !limits.is_empty() {
            self.line("limits", &quoted_list(limits));
        }
        // A source redirects, or answers with a status, before it asks its access rules.
        let is_own = matches!(action, Action::Redirect { .. });
        if let Access::Networks { allow, deny } = &rule.settings.access
            && !is_own
        {
            if !allow.is_empty() {
                self.line("allow", &quoted_list(allow));
            }
            if !deny.is_empty() {
                self.line("deny", &quoted_list(deny));
            }
        }
        // The old server asks for certificates of clients for its own files, so the route must, too.
        if action.upstream().is_none()
            && let Some(value) = rule.settings.keys.get("client_certificate")
            && *value != quoted("off")
        {
            let value = value.clone();
            self.line("client_certificate", &value);
        }
    }

    /// Writes the upstream that gets the requests, or the upstreams that share them with their weights.
    fn leads_to(&mut self, plan: &Plan, upstream: usize) {
        match &plan.shares(upstream)[..] {
            [(only, _)] => self.line("upstream", &quoted(&only.name)),
            all => {
                let each = all
                    .iter()
                    .map(|(it, weight)| format!("{} = {weight}", it.name));
                let pairs: Vec<String> = each.collect();
                self.line("split", &format!("{{ {} }}", pairs.join(", ")));
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

    fn route_keys(&mut self, keys: &Keys) {
        for (key, value) in keys {
            // `off` is the default.
            if key != "client_certificate" || *value != quoted("off") {
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
                let each = values
                    .iter()
                    .map(|(name, value)| format!("{name} = {}", quoted(value)));
                let pairs: Vec<String> = each.collect();
                self.line(key, &format!("{{ {} }}", pairs.join(", ")));
            }
        }
    }
}

/// Whether requests of this action count for limits. The source redirects, and sends texts, before it asks its
/// limits.
fn asks_limits(action: &Action) -> bool {
    matches!(action, Action::Forward { .. } | Action::Serve(_))
}

/// The name of a listener: `port-PORT`, with a number if other listeners have the same port.
fn listener_name(plan: &Plan, listener: &Listener) -> String {
    let same = plan.listeners.iter().filter(|it| it.port == listener.port);
    let at = same
        .clone()
        .position(|it| it == listener)
        .unwrap_or_default();
    match same.count() {
        1 => format!("port-{}", listener.port),
        _ => format!("port-{}-{}", listener.port, at + 1),
    }
}

/// The name of the upstream that is the old server.
pub(crate) const KEPT: &str = "kept";

/// The form of a file with only one part of the plan, for a trial by `check`.
const ALONE: Form<'static> = Form {
    keep: None,
    inline_secrets: true,
    secrets_of: "",
    closed: &[],
};

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
