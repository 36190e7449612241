//! Converts configurations of mod_jk, httpd and nginx into a configuration file of the front.
//!
//! A text is read by the grammar of its server ([`read`]). Its directives become a plan: listeners, hosts,
//! ordered rules and upstreams, in which the first rule that matches a path decides, as on the source's side.
//! Routes are made of the rules so that the front's own order decides the same, and the result is compared with
//! the plan, path by path. Each directive is mapped, dropped, kept or a risk; a risk needs a decision, and names
//! file and line. What the front cannot do stays closed, or goes to the old server.
//!
//! The crate opens no file: the caller passes [`Files`].
#![forbid(unsafe_code)]

mod common_settings;
mod compress;
mod condition;
mod directive;
mod directory;
mod emit;
mod files;
mod hosts;
mod httpd;
mod index;
mod index_files;
mod judge;
mod kept;
mod ledger;
mod matcher;
mod mod_jk;
mod nginx;
mod pages;
mod plan;
mod proof;
pub mod read;
mod regex;
mod report;
mod routes;
mod shown;
mod sources;
mod target;
mod tomcat;
mod toml_text;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use emit::SideFile;
pub use files::{Files, ImportError};
pub use ledger::{Directive, Fate, Place, Remark, Sums, Weight};
pub use report::Import;
pub use sources::Kind;

use crate::emit::{Form, WrittenFile};
use crate::files::{Budget, Text};
use crate::httpd::modules::Modules;
use crate::httpd::tree::Expansion;
use crate::ledger::Ledger;
use crate::plan::{Action, Plan};
use crate::proof::Comparison;
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
    /// The URL of the old server, which gets what cannot be converted; `None`: such requests are answered 403.
    pub keep: Option<String>,
    /// The `server.xml` files of the Tomcats behind the source; their connectors' settings are applied to
    /// backends.
    pub tomcats: Vec<PathBuf>,
    /// Addresses to listen on, which replace the source's in their order.
    pub listens: Vec<String>,
    /// Whether secrets are written into the text, or else into files beside it.
    pub inline_secrets: bool,
    /// The beginning of the names of files with secrets. With different ones, two conversions can use one
    /// directory.
    pub secrets_of: String,
}

/// Converts a configuration.
///
/// # Errors
/// A file cannot be read or understood, or is not a configuration of one of the three servers.
pub fn import(files: &dyn Files, options: &Options) -> Result<Import, ImportError> {
    let mut budget = Budget::default();
    let readings = options.files.iter().map(|path| budget.read(files, path));
    let texts: Vec<Text> = readings.collect::<Result<_, _>>()?;
    let mut ledger = Ledger::new(options.keep.is_some());
    let mut plan = Plan::default();
    let mut sources = Sources::default();
    for text in texts {
        sources.add(text, options.kind);
    }
    if !sources.nginx.is_empty() {
        of_nginx(
            &sources,
            files,
            options,
            &mut budget,
            &mut ledger,
            &mut plan,
        )?;
    }
    if sources.nginx.is_empty() || sources.has_httpd() {
        of_httpd(
            &sources,
            files,
            options,
            &mut budget,
            &mut ledger,
            &mut plan,
        )?;
    }
    plan.close_unjudged(&mut ledger);
    plan.close_unsayable(&mut ledger);
    hosts::resolve(&mut plan, &mut ledger);
    routes::close_crossing(&mut plan, &mut ledger);
    index_files::withdraw(&mut plan, &mut ledger);
    let paths = options.tomcats.iter();
    let each = paths.map(|path| tomcat::read(&budget.read(files, path)?));
    let tomcats: Vec<tomcat::Tomcat> = each.collect::<Result<_, _>>()?;
    tomcat::apply(&tomcats, &mut plan, &mut ledger);
    for (listener, address) in plan.listeners.iter_mut().zip(&options.listens) {
        listener.address.clone_from(address);
    }
    keep_refused_private(&mut plan, files, &mut ledger);
    close_refused_upstreams(&mut plan, files, &mut ledger);
    let names = options
        .files
        .iter()
        .map(|it| it.display().to_string())
        .collect();
    Ok(finished(&plan, ledger, options, names))
}

fn of_nginx(
    sources: &Sources,
    files: &dyn Files,
    options: &Options,
    budget: &mut Budget,
    ledger: &mut Ledger,
    plan: &mut Plan,
) -> Result<(), ImportError> {
    let mut expansion = nginx::tree::Expansion {
        files,
        ledger,
        budget,
        defines: &options.defines,
        beside: sources
            .nginx
            .first()
            .and_then(|it| it.path.parent())
            .map(Path::to_path_buf)
            .unwrap_or_default(),
        depth: 0,
    };
    let mut top = Vec::new();
    for text in &sources.nginx {
        top.extend(expansion.file(text)?);
    }
    nginx::convert(&top, &mut expansion, plan, &options.vhosts);
    Ok(())
}

fn of_httpd(
    sources: &Sources,
    files: &dyn Files,
    options: &Options,
    budget: &mut Budget,
    ledger: &mut Ledger,
    plan: &mut Plan,
) -> Result<(), ImportError> {
    if sources.httpd.is_empty() {
        let text = "only files of mod_jk were read: what httpd or IIS itself serves, and its names, TLS and guards, \
                    stand in files of its own";
        ledger.say(Weight::Note, None, text);
    }
    let mut expansion = Expansion {
        files,
        ledger,
        budget,
        defines: options.defines.iter().cloned().collect(),
        server_root: None,
        modules: Modules::default(),
        placeholders: HashMap::new(),
        depth: 0,
    };
    let mut top = Vec::new();
    for text in &sources.httpd {
        top.extend(expansion.file(text)?);
    }
    httpd::convert(&top, sources, &mut expansion, plan, &options.vhosts)
}

/// Keeps TLS listeners from the network that the front would refuse, for instance because of a key with a password.
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

/// Closes what leads to HTTPS backends that the front would refuse, for instance because of their client's certificate.
fn close_refused_upstreams(plan: &mut Plan, files: &dyn Files, ledger: &mut Ledger) {
    for index in 0..plan.upstreams.len() {
        let upstream = &plan.upstreams[index];
        let is_https = upstream
            .backends
            .iter()
            .any(|it| it.url.starts_with("https"));
        if !is_https {
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
        let rules = plan.hosts.iter_mut().flat_map(|host| &mut host.rules);
        rules
            .filter(|rule| rule.action.upstream() == Some(index))
            .for_each(|rule| rule.action = Action::Closed);
    }
}

/// Writes the plan as a file, with routes closed that would open what the source keeps closed.
fn finished(plan: &Plan, mut ledger: Ledger, options: &Options, names: Vec<String>) -> Import {
    let groups = routes::groups(plan);
    let write = |closed: &[usize], inline_secrets: bool| {
        let form = Form {
            keep: options.keep.as_deref(),
            inline_secrets,
            secrets_of: &options.secrets_of,
            closed,
        };
        emit::write(plan, &groups, form)
    };
    let (probe, closed) = proved(plan, &|closed| write(closed, true), &mut ledger);
    let WrittenFile {
        text,
        files,
        routes,
        kept,
    } = if options.inline_secrets || !plan.has_secrets() {
        probe
    } else {
        write(&closed, false)
    };
    if options.keep.is_some() && kept > 0 {
        let remedy = ledger.address_guards.remedy();
        let text = format!(
            "the old server must listen at the address of --keep; with {remedy} it sees the clients' addresses"
        );
        ledger.say(Weight::Note, None, text);
        kept::say(plan, &groups, &mut ledger);
    }
    let (directives, remarks) = ledger.finish();
    Import {
        text: emit::head(&names, &remarks) + &text,
        files,
        sums: ledger::sums(&directives),
        directives,
        remarks,
        routes: (routes, kept),
    }
}

/// Writes the plan and compares it with the source, until no route opens what is closed there. Returns the file,
/// and the indices of the routes that had to be closed.
fn proved(
    plan: &Plan,
    write: &dyn Fn(&[usize]) -> WrittenFile,
    ledger: &mut Ledger,
) -> (WrittenFile, Vec<usize>) {
    let mut closed: Vec<usize> = Vec::new();
    let mut probe = write(&closed);
    for _ in 0..ROUNDS_MAX {
        let config = match catamaran_config::parse("catamaran.toml", &probe.text) {
            Ok(loaded) => loaded.config,
            Err(report) => {
                refused(&report, &probe.text, ledger);
                break;
            }
        };
        if config.routes.iter().all(|it| it.target.is_error()) {
            let text = "nothing that was read leads to a backend, to files or elsewhere: the front answers each \
                        request with an error";
            ledger.say(Weight::Risk, None, text);
        }
        let Comparison {
            differences,
            is_cut,
        } = proof::compare(plan, &config);
        let opens: Vec<usize> = differences.iter().filter_map(|it| it.opens).collect();
        if opens.is_empty() {
            for it in differences {
                ledger.say(Weight::Risk, it.place, it.text);
            }
            if is_cut {
                let text = "there are too many paths to compare the source with the routes for all of them: \
                            the first ones were compared";
                ledger.say(Weight::Note, None, text);
            }
            break;
        }
        for it in differences.into_iter().filter(|it| it.opens.is_some()) {
            let text = format!("{}; the route is closed", it.text);
            ledger.say(Weight::Risk, it.place, text);
        }
        closed.extend(opens);
        closed.sort_unstable();
        closed.dedup();
        probe = write(&closed);
    }
    (probe, closed)
}

/// Adds to the ledger the lines of the written text that `check` refuses, unless they contain a secret.
fn refused(report: &catamaran_config::Report, written: &str, ledger: &mut Ledger) {
    for finding in report.findings().iter().take(FINDINGS_MAX) {
        let line = report.position(finding).place.map_or(0, |it| it.0);
        let named_line = written.lines().nth(line.saturating_sub(1));
        let shown = named_line
            .filter(|it| !it.contains("secret"))
            .unwrap_or_default();
        let text = format!(
            "`check` refuses a line that was written, {shown:?}: {}",
            finding.message
        );
        ledger.say(Weight::Risk, None, text);
    }
}

/// The most rounds of closing routes and comparing again.
const ROUNDS_MAX: usize = 20;
const FINDINGS_MAX: usize = 20;

#[cfg(test)]
mod tests;
