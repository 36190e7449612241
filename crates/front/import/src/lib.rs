//! Converts configurations of mod_jk, httpd and nginx into a configuration file of the front.
//!
//! The text of a file is parsed by the grammar of its server ([`read`]). Its directives become a plan: listeners,
//! hosts, ordered rules and upstreams. The first rule that matches a path decides, as in the source. Routes are made
//! of the rules in such a way that the front's own order gives the same result. Each directive is mapped, dropped,
//! kept, or a risk; a risk needs a decision, and names file and line. What the front cannot do is closed: it goes to
//! the old server (`--keep`), or is answered 403.
//!
//! The crate opens no file: the caller passes [`Files`].
#![forbid(unsafe_code)]

mod common_settings;
mod compress;
mod condition;
mod directive;
mod directory;
mod emit;
mod expression;
mod files;
mod freshness;
mod hosts;
mod httpd;
mod index;
mod index_files;
mod judge;
mod kept;
mod ledger;
mod logs;
mod matcher;
mod methods;
mod mod_jk;
mod nginx;
mod pages;
mod parameters;
mod passwords;
mod plan;
pub mod read;
mod regex;
mod report;
mod route_tests;
mod routes;
mod shown;
mod sources;
mod target;
mod tomcat;
mod toml_text;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use catamaran_config::{Finding, Severity};
pub use emit::SideFile;
pub use files::{Files, ImportError};
pub use ledger::{Directive, Fate, Place, Remark, Sums, Weight};
pub use report::Import;
pub use sources::Kind;

use crate::emit::{Form, WrittenFile};
use crate::files::Budget;
use crate::httpd::modules::Modules;
use crate::httpd::tree::{Expansion, environment};
use crate::index_files::IndexChoice;
use crate::judge::can_be_lost;
use crate::ledger::Ledger;
use crate::plan::{Action, Plan};
use crate::sources::Sources;

/// What to convert, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The server to which the files belong; `None`: the importer recognises it by their content.
    pub kind: Option<Kind>,
    /// The files to convert.
    pub files: Vec<PathBuf>,
    /// Values of variables, and names that `<IfDefine>` tests.
    pub defines: Vec<(String, String)>,
    /// Names of the virtual hosts to convert; empty: all of them.
    pub vhosts: Vec<String>,
    /// nginx's prefix, to which its `root` and `alias` may be relative; `None`: not known.
    pub prefix: Option<PathBuf>,
    /// The URL of the old server, which gets what cannot be converted; `None`: such requests are answered 403.
    pub keep: Option<String>,
    /// The `server.xml` files of the Tomcats behind the source; their connectors' settings are applied to
    /// backends.
    pub tomcats: Vec<PathBuf>,
    /// Addresses to listen on, which replace the source's in their order.
    pub listens: Vec<String>,
    /// Whether secrets are written into the text; if not, into files beside it.
    pub inline_secrets: bool,
    /// The prefix of the names of files with secrets. With different prefixes, two conversions can use one directory.
    pub secrets_of: String,
}

/// Converts a configuration.
///
/// # Errors
/// A file cannot be read or understood, or is not a configuration of one of the three servers.
pub fn import(files: &dyn Files, options: &Options) -> Result<Import, ImportError> {
    let mut budget = Budget::default();
    let mut sources = Sources::default();
    for path in &options.files {
        sources.add(budget.read(files, path)?, options.kind);
    }
    let mut ledger = Ledger::new(options.keep.is_some());
    let mut plan = Plan::default();
    let mut reader = SourceReader {
        sources: &sources,
        files,
        options,
        budget: &mut budget,
        ledger: &mut ledger,
        plan: &mut plan,
    };
    if !sources.nginx.is_empty() {
        reader.read_nginx()?;
    }
    if sources.nginx.is_empty() || sources.has_httpd() {
        reader.read_httpd()?;
    }
    plan.close_unjudged(&mut ledger);
    close_bare_texts(&mut plan, &mut ledger);
    plan.close_unsayable(&mut ledger);
    // The steps after this one compare the rules of each host, so hosts are split before.
    hosts::resolve(&mut plan, &mut ledger);
    parameters::close(&mut plan, &mut ledger);
    route_tests::close(&mut plan, &mut ledger);
    routes::close_crossing(&mut plan, &mut ledger);
    routes::close_unasked(&mut plan, &mut ledger);
    let choice = if sources.nginx.is_empty() {
        IndexChoice::FirstServed
    } else {
        IndexChoice::FirstThere
    };
    index_files::withdraw(&mut plan, choice, files, &mut ledger);
    let mut tomcats = Vec::with_capacity(options.tomcats.len());
    for path in &options.tomcats {
        tomcats.push(tomcat::read(&budget.read(files, path)?)?);
    }
    tomcat::apply(&tomcats, &mut plan, &mut ledger);
    for (listener, address) in plan.listeners.iter_mut().zip(&options.listens) {
        listener.address.clone_from(address);
    }
    keep_refused_private(&mut plan, files, &mut ledger);
    close_refused_upstreams(&mut plan, files, &mut ledger);
    routes::close_beyond(&mut plan, &mut ledger);
    Ok(finished(&plan, ledger, options))
}

/// Reads the files of the source into a plan and its ledger.
struct SourceReader<'a> {
    sources: &'a Sources,
    files: &'a dyn Files,
    options: &'a Options,
    budget: &'a mut Budget,
    ledger: &'a mut Ledger,
    plan: &'a mut Plan,
}

impl SourceReader<'_> {
    fn read_nginx(&mut self) -> Result<(), ImportError> {
        let texts = &self.sources.nginx;
        let main_directory = texts.first().and_then(|main| main.path.parent());
        let mut expansion = nginx::tree::Expansion {
            files: self.files,
            ledger: self.ledger,
            budget: self.budget,
            defines: &self.options.defines,
            beside: main_directory.map(Path::to_path_buf).unwrap_or_default(),
            main_directory: None,
            prefix: self.options.prefix.as_deref(),
            depth: 0,
        };
        let mut directives = Vec::new();
        for text in texts {
            directives.extend(expansion.file(text)?);
        }
        let vhosts = &self.options.vhosts;
        nginx::convert(&directives, &mut expansion, self.plan, vhosts);
        Ok(())
    }

    /// Reads the files of httpd and those of mod_jk.
    fn read_httpd(&mut self) -> Result<(), ImportError> {
        let texts = &self.sources.httpd;
        if texts.is_empty() {
            let text = "only files of mod_jk were read: what httpd or IIS itself serves, and its names, TLS and \
                        guards, stand in files of its own";
            self.ledger.say(Weight::Note, None, text);
        }
        let main = texts.first();
        let mut expansion = Expansion {
            files: self.files,
            ledger: self.ledger,
            budget: self.budget,
            defines: self.options.defines.iter().cloned().collect(),
            environment: main
                .map(|main| environment(self.files, &main.path))
                .unwrap_or_default(),
            server_root: None,
            modules: Modules::default(),
            placeholders: HashMap::new(),
            depth: 0,
        };
        let mut directives = Vec::new();
        for text in texts {
            directives.extend(expansion.file(text)?);
        }
        let vhosts = &self.options.vhosts;
        httpd::convert(&directives, self.sources, &mut expansion, self.plan, vhosts)
    }
}

/// Takes TLS listeners that the front would refuse off the network, for instance because of a key with a password. With
/// [`plan::Tls::missing`] they are written for loopback.
fn keep_refused_private(plan: &mut Plan, files: &dyn Files, ledger: &mut Ledger) {
    for index in 0..plan.listeners.len() {
        let text = emit::listener_alone(plan, &plan.listeners[index]);
        let listener = &mut plan.listeners[index];
        let address = &listener.address;
        if let Some(tls) = listener.tls.as_mut().filter(|tls| tls.missing.is_none())
            && let Some(fault) = files.fault(&text)
        {
            ledger.say(
                Weight::Risk,
                None,
                format!(
                    "the front cannot serve TLS on {address}: {fault}; until then it is kept from the network"
                ),
            );
            tls.missing = Some(fault);
        }
    }
}

/// Closes texts with response fields about their body that restrict browsers (`Content-…`), because the front adds none
/// of these to texts.
fn close_bare_texts(plan: &mut Plan, ledger: &mut Ledger) {
    let is_of_body = |name: &String| {
        let lower = name.to_ascii_lowercase();
        lower.starts_with("content-") && !lower.starts_with("content-security-policy")
    };
    for rule in plan.hosts.iter_mut().flat_map(|host| &mut host.rules) {
        if !matches!(rule.action, Action::Text(_)) {
            continue;
        }
        let settings = &rule.settings;
        let of_success = settings.success_fields.names();
        let mut names = settings.response_fields.names().chain(of_success);
        if names.any(|name| is_of_body(name) && !can_be_lost(name)) {
            let text = "the front would send this text without the fields `Content-…` that are set for it: it is closed";
            ledger.say(Weight::Risk, rule.place.clone(), text);
            rule.action = Action::Closed;
        }
    }
}

/// Closes rules that lead to HTTPS backends that the front would refuse, for instance because of the client
/// certificate's file.
fn close_refused_upstreams(plan: &mut Plan, files: &dyn Files, ledger: &mut Ledger) {
    for index in 0..plan.upstreams.len() {
        let upstream = &plan.upstreams[index];
        let mut backends = upstream.backends.iter();
        if !backends.any(|backend| backend.url.starts_with("https")) {
            continue;
        }
        let Some(fault) = files.fault(&emit::upstream_alone(upstream)) else {
            continue;
        };
        let name = &upstream.name;
        let text = format!(
            "the front cannot reach the upstream `{name}`: {fault}; what leads there is closed"
        );
        ledger.say(Weight::Risk, None, text);
        let upstreams = &plan.upstreams;
        let leads_there = |of_rule: usize| {
            let mut shares = upstreams[of_rule].shares.iter();
            of_rule == index || shares.any(|(shared, _)| *shared == index)
        };
        let asks_there = |name: &String| {
            let mut all = plan.sign_ons.iter();
            all.any(|(known, it)| known == name && it.upstream == Some(index))
        };
        for rule in plan.hosts.iter_mut().flat_map(|host| &mut host.rules) {
            let asks = rule.settings.sign_on.as_ref().is_some_and(asks_there);
            if asks || rule.action.upstream().is_some_and(leads_there) {
                rule.action = Action::Closed;
            }
        }
    }
}

/// Writes the plan as a file, with routes closed that `check` would refuse.
fn finished(plan: &Plan, mut ledger: Ledger, options: &Options) -> Import {
    let groups = routes::groups(plan);
    let write = |withheld: &WithheldRoutes, inline_secrets: bool| {
        let form = Form {
            keep: options.keep.as_deref(),
            inline_secrets,
            secrets_of: &options.secrets_of,
            closed: &withheld.closed,
            omitted: &withheld.omitted,
        };
        emit::write(plan, &groups, form)
    };
    // For `check` the secrets are in the text, because their files do not exist yet.
    let (checked, withheld) = accepted(&|withheld| write(withheld, true), &mut ledger);
    let written = if options.inline_secrets || !plan.has_secrets() {
        checked
    } else {
        write(&withheld, false)
    };
    if options.keep.is_some() && written.kept > 0 {
        let remedy = ledger.address_guards.remedy();
        let text = format!(
            "the old server must listen at the address of --keep; with {remedy} it sees the clients' addresses"
        );
        ledger.say(Weight::Note, None, text);
        kept::say(plan, &groups, &mut ledger);
    }
    let (directives, remarks) = ledger.finish();
    let sources = options.files.iter().map(|path| path.display().to_string());
    Import {
        text: emit::head(&sources.collect::<Vec<_>>(), &remarks) + &written.text,
        files: written.files,
        sums: ledger::sums(&directives),
        directives,
        remarks,
        routes: (written.routes, written.kept),
    }
}

/// The routes that are not written as they are planned, because `check` would refuse them: sorted indices of the plan's
/// routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct WithheldRoutes {
    closed: Vec<usize>,
    /// Those that `check` refuses even if they are closed.
    omitted: Vec<usize>,
}

impl WithheldRoutes {
    /// Closes the routes that stand at these places among the `count` routes of the written file. If they are closed
    /// already, `check` refuses what they match, such as requests that another route is for: then they are left out.
    /// Other routes take their requests, so all of these are closed. Returns whether this changed any route.
    fn add(&mut self, refused: &[usize], count: usize, ledger: &mut Ledger) -> bool {
        let mut planned: Vec<usize> = refused.iter().map(|&it| self.planned(it)).collect();
        let before = self.clone();
        planned.sort_unstable();
        planned.dedup();
        let is_closed = |it: &usize| before.closed.binary_search(it).is_ok();
        if !planned.is_empty() && planned.iter().all(is_closed) {
            ledger.say(Weight::Risk, None, ALL_CLOSED);
            self.omitted.extend(planned);
            self.omitted.sort_unstable();
            self.closed = (0..count + before.omitted.len()).collect();
        } else {
            self.closed.extend(planned);
            self.closed.sort_unstable();
            self.closed.dedup();
        }
        *self != before
    }

    /// The index in the plan of the route that stands at this place of the written file.
    fn planned(&self, written: usize) -> usize {
        let mut index = written;
        for omitted in &self.omitted {
            index += usize::from(*omitted <= index);
        }
        index
    }
}

/// Writes the plan; withholds routes that `check` refuses, and writes it again until it refuses none.
fn accepted(
    write: &dyn Fn(&WithheldRoutes) -> WrittenFile,
    ledger: &mut Ledger,
) -> (WrittenFile, WithheldRoutes) {
    let mut withheld = WithheldRoutes::default();
    let mut written = write(&withheld);
    for _ in 0..ROUNDS_MAX {
        let report = match catamaran_config::parse("catamaran.toml", &written.text) {
            Ok(loaded) => {
                let mut routes = loaded.config.routes.iter();
                if routes.all(|route| route.target.is_error()) {
                    ledger.say(Weight::Risk, None, NOTHING);
                }
                break;
            }
            Err(report) => report,
        };
        let routes = refused(&report, &written.text, ledger);
        // The lines that are still refused belong to no route, so closing routes does not help.
        if !withheld.add(&routes, written.routes, ledger) {
            break;
        }
        written = write(&withheld);
    }
    (written, withheld)
}

/// Reports the lines of the written text that `check` refuses, unless they contain a secret. Returns the places of
/// the routes in which they are, among those that were written.
fn refused(report: &catamaran_config::Report, written: &str, ledger: &mut Ledger) -> Vec<usize> {
    let mut routes = Vec::new();
    let is_fault = |it: &&Finding| it.severity == Severity::Fault;
    let faults = report.findings().iter().filter(is_fault);
    for finding in faults.take(FINDINGS_MAX) {
        // Lines are counted from 1; 0 stands for a finding without a line.
        let line = report.position(finding).place.map_or(0, |it| it.0);
        let line_text = written.lines().nth(line.saturating_sub(1));
        let shown_line = line_text.map(shown).unwrap_or_default();
        let lines_so_far = written.lines().take(line);
        let routes_so_far = lines_so_far.filter(|it| it.starts_with("[[route]]"));
        // All lines outside of routes are above the first route, so a line below it is in the last route so far.
        let route = routes_so_far.count().checked_sub(1);
        let asking = asking(written, line);
        let consequence = match route {
            Some(_) => "; its route is closed",
            None if !asking.is_empty() => "; the routes with this sign-on are closed",
            None => "",
        };
        let text = format!(
            "`check` refuses a line that was written, {shown_line:?}: {}{consequence}",
            finding.message
        );
        ledger.say(Weight::Risk, None, text);
        routes.extend(route);
        routes.extend(asking);
    }
    routes
}

/// The places of the routes that ask for the sign-on in whose table a line is; none if it is in another table.
fn asking(written: &str, line: usize) -> Vec<usize> {
    let lines_so_far: Vec<&str> = written.lines().take(line).collect();
    let header = lines_so_far.iter().rfind(|it| it.starts_with('['));
    let name = header.and_then(|it| it.strip_prefix("[auth.")?.strip_suffix(']'));
    let Some(name) = name else {
        return Vec::new();
    };
    let key = format!("auth = \"{name}\"");
    let routes = written.split("\n[[route]]").skip(1);
    let asks = |(index, route): (usize, &str)| route.lines().any(|it| it == key).then_some(index);
    routes.enumerate().filter_map(asks).collect()
}

/// A written line for a remark: without secrets, and without the values that `match_regex` compares with.
fn shown(line: &str) -> &str {
    if line.starts_with("match_regex = ") {
        return "match_regex";
    }
    if line.contains("secret") { "" } else { line }
}

/// The remark on a file with a route that `check` refuses even if it is closed.
const ALL_CLOSED: &str = "`check` refuses a route for some requests, which is left out: all other routes are closed, because \
    they would take its requests";

/// The remark on a file in which every route answers with an error.
const NOTHING: &str = "nothing that was read leads to a backend, to files or elsewhere: the front answers each request with \
    an error";

/// The most rounds of closing routes and checking again.
const ROUNDS_MAX: usize = 20;
const FINDINGS_MAX: usize = 20;

#[cfg(test)]
mod tests;
