//! The file as a whole: which tables it can have, and their contents after reading.
//!
//! The keys of each table are in a module of their own, beside their parser. Values keep their places in the file, so
//! that `check` can point at them when two tables do not fit together.

pub(crate) mod admin;
pub(crate) mod attributes;
pub(crate) mod auth;
pub(crate) mod backend;
pub(crate) mod backend_tls;
mod backend_upgrade;
pub(crate) mod cache;
pub(crate) mod error_pages;
pub(crate) mod kubernetes;
pub(crate) mod limit;
pub(crate) mod listen;
pub(crate) mod log;
pub(crate) mod mcmp;
pub(crate) mod member;
pub(crate) mod members;
pub(crate) mod probe;
pub(crate) mod route;
pub(crate) mod server;
pub(crate) mod sticky;
pub(crate) mod tls;
pub(crate) mod trace;
pub(crate) mod upstream;

use std::ops::Range;
use std::path::Path;

use catamaran_proxy::config::{
    BackendConfig, ErrorPages, ListenAddress, ListenerConfig, LogConfig, ServerConfig, TraceConfig,
};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::foreign;
use crate::include::{self, Includes};
use crate::key::Section;
use crate::report::{Finding, Report};
use crate::suggest::{meant_or, nearest};
use crate::table::{Table, table};
use crate::value::text::parse_name;
use crate::variables::Variables;

/// A value that was read, and its place in the file.
#[derive(Debug)]
pub(crate) struct PlacedValue<T> {
    pub(crate) value: T,
    pub(crate) place: Range<usize>,
}

/// The values read from a file. Tables and values with faults are missing.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) server: ServerConfig,
    /// The listeners; the place of each is that of its address.
    pub(crate) listeners: Vec<PlacedValue<ListenerConfig>>,
    pub(crate) tls: Vec<tls::Profile>,
    pub(crate) upstreams: Vec<upstream::Upstream>,
    pub(crate) caches: Vec<cache::Cache>,
    pub(crate) limits: Vec<limit::Limit>,
    pub(crate) auths: Vec<auth::Auth>,
    /// The routes; the place of each is that of its header.
    pub(crate) routes: Vec<route::Route>,
    pub(crate) error_pages: Option<ErrorPages>,
    pub(crate) log: LogConfig,
    pub(crate) trace: Option<TraceConfig>,
    pub(crate) admin: Option<admin::Admin>,
    pub(crate) mcmp: Option<mcmp::Mcmp>,
    /// The place of `[kubernetes]`; `None`: there is none.
    pub(crate) kubernetes: Option<Range<usize>>,
}

impl File {
    /// Whether a listener in clear text has an address of TCP.
    pub(crate) fn has_clear_listener(&self) -> bool {
        self.listeners
            .iter()
            .any(|it| it.value.tls.is_none() && matches!(it.value.address, ListenAddress::Tcp(_)))
    }
}

/// A backend; its place is that of its URL.
pub(crate) type Backend = PlacedValue<BackendConfig>;

/// What reading a file needs in addition to its text: the directory, access to other files, and the environment.
pub(crate) struct Surroundings<'s> {
    /// The directory from which relative paths start.
    pub(crate) base: &'s Path,
    /// Reads the secret in a file; the error says why that is not possible.
    pub(crate) read_secret: &'s dyn Fn(&Path) -> Result<String, String>,
    /// Whether the files of listeners' certificates and of users are read and checked.
    pub(crate) checks_files: bool,
    /// Reads the files of certificates for connections to backends. With `None` they are not read, and no backend is
    /// trusted.
    pub(crate) read_pem: Option<backend_tls::ReadPem<'s>>,
    /// Reads the files of error pages; with `None` they are not read.
    pub(crate) read_page: Option<backend_tls::ReadPem<'s>>,
    /// The issuers for certificates of backends that were read already, by their file; `None` stands for those that the
    /// system trusts.
    pub(crate) roots: backend_tls::RootsCache,
    /// The path of the file, and how the files that it includes are read. With `None` an `include` is a fault.
    pub(crate) includes: Option<Includes<'s>>,
    /// Returns the value of the environment variable for `${NAME}`.
    pub(crate) variables: Variables<'s>,
}

impl Surroundings<'_> {
    /// Reads the secret in the file that the key names. If it cannot be read or `check` refuses it, adds a fault to the
    /// table and returns `None`.
    pub(crate) fn secret(
        &self,
        key: &str,
        path: &Path,
        check: impl FnOnce(String) -> Result<String, String>,
        table: &mut Table<'_>,
    ) -> Option<String> {
        let path = self.base.join(path);
        match (self.read_secret)(&path).and_then(check) {
            Ok(secret) => Some(secret),
            Err(error) => {
                let message = format!("the file {} {error}", path.display());
                table.push(Finding::fault(message, table.place_of(key)));
                None
            }
        }
    }

    /// Whether the check may look at directories and files of this machine.
    pub(crate) fn sees_files(&self) -> bool {
        self.includes.is_some()
    }

    /// Surroundings in which nothing but the text is read.
    pub(crate) fn none() -> Self {
        Self {
            base: Path::new(""),
            read_secret: &|_| Err("cannot be read from here".to_owned()),
            checks_files: false,
            read_pem: None,
            read_page: None,
            roots: backend_tls::RootsCache::default(),
            includes: None,
            variables: &|_| None,
        }
    }
}

/// Returns the secret if it has at least `min` bytes; the error says that it is too short.
fn long_enough(secret: String, min: usize) -> Result<String, String> {
    if secret.len() < min {
        return Err(format!("is shorter than {min} characters"));
    }
    Ok(secret)
}

/// Reads all tables of a file. Faults are added to the report.
pub(crate) fn read(
    root: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> File {
    let mut file = File::default();
    // Read first, because routes without pages of their own use these.
    let pages = root
        .get("error_pages")
        .and_then(|value| error_pages::read(value, &error_pages::SECTION, surroundings, report));
    let response_headers = route::response_headers(root, report);
    let for_all = route::ForAll {
        pages: pages.as_ref(),
        response_headers: &response_headers,
    };
    // Read before upstreams, whose members come from there.
    let mcmp = root
        .get("mcmp")
        .and_then(|value| mcmp::read(value, surroundings, report));
    let kubernetes = kubernetes::read(root.get("kubernetes"), surroundings, report);
    let sources = upstream::Sources {
        mcmp: mcmp.as_ref(),
        kubernetes: &kubernetes,
    };
    for (name, value) in root {
        match name.get_ref().as_ref() {
            "server" => server::read(value, &mut file.server, report),
            "listen" => file.listeners = listen::read(value, surroundings, report),
            "tls" => file.tls = tls::read(value, surroundings, report),
            "upstream" => {
                file.upstreams = upstream::read(value, surroundings, sources, report);
            }
            "cache" => file.caches = cache::read(value, report),
            "auth" => file.auths = auth::read(value, surroundings, report),
            "limit" => file.limits = limit::read(value, report),
            "route" => file.routes = route::read(value, surroundings, for_all, report),
            "admin" => file.admin = admin::read(value, surroundings, report),
            "log" => log::read(value, surroundings, &mut file.log, report),
            "trace" => file.trace = trace::read(value, surroundings, report),
            // Read already.
            "mcmp" | "kubernetes" | "error_pages" | include::NAME => {}
            other => report.push(unknown(other, name, value)),
        }
    }
    let listen = root
        .get("listen")
        .and_then(|value| value.get_ref().as_array());
    let has_all_listeners = listen.is_none_or(|tables| tables.len() == file.listeners.len());
    route::listeners::resolve(&mut file.routes, &file.listeners, has_all_listeners, report);
    file.error_pages = pages.map(|pages| pages.before(None));
    file.kubernetes = kubernetes.place;
    file.mcmp = mcmp;
    report_missing_tables(root, &file, report);
    file
}

/// Reports each table that a front cannot do without.
fn report_missing_tables(root: &DeTable<'_>, file: &File, report: &mut Report) {
    let source = file.mcmp.as_ref().and_then(|mcmp| mcmp.value.as_ref());
    // The contexts of nodes become routes.
    let has_contexts = source.is_some_and(|source| !source.paths.is_empty());
    for (name, what, hint) in NEEDED {
        let is_there = root.contains_key(*name) || (has_contexts && *name == "route");
        if !is_there {
            report.push(Finding::absence(format!("there is no {what}")).hint(*hint));
        }
    }
}

/// The fault of a name at the top of the file that is no table.
fn unknown(
    name: &str,
    key: &Spanned<toml::de::DeString<'_>>,
    value: &Spanned<DeValue<'_>>,
) -> Finding {
    let place = if value.get_ref().is_table() {
        value.span()
    } else {
        key.span()
    };
    let finding = Finding::fault(format!("`{name}` is no table of this file"), place);
    let names = [
        "server",
        "listen",
        "tls",
        "upstream",
        "mcmp",
        "kubernetes",
        "cache",
        "limit",
        "auth",
        "route",
        "error_pages",
        "admin",
        "log",
        "trace",
        include::NAME,
    ];
    finding.hint(hint_of_unknown(name, nearest(name, names), "tables"))
}

/// The hint for a key that its table does not know; `meant` is the nearest known name, if one is near.
pub(crate) fn hint_of_unknown_key(name: &str, meant: Option<&str>) -> String {
    if name == include::NAME {
        "write it at the top of the file, before the first table".to_owned()
    } else {
        hint_of_unknown(name, meant, "keys")
    }
}

fn hint_of_unknown(name: &str, meant: Option<&str>, kind: &str) -> String {
    let meant = meant.filter(|meant| !foreign::is_other(name, meant));
    meant_or(meant, || elsewhere(name, kind))
}

/// The tables of one kind that have names, such as `[cache.NAME]`: the name, place and keys of each.
///
/// If a key of the table, or of one of its lists, stands where a name should, the name is missing, which is a fault.
fn named<'f>(
    sections: &[&Section],
    what: &str,
    value: &'f Spanned<DeValue<'f>>,
    report: &mut Report,
) -> Vec<(&'f str, Range<usize>, &'f DeTable<'f>)> {
    let header = sections[0].header;
    let Some((_, entries)) = table(header, value, report) else {
        return Vec::new();
    };
    let is_key = |name: &str| {
        let list = format!(".{name}]]");
        let mut sections = sections.iter();
        sections.any(|section| section.has(name) || section.header.ends_with(&list))
    };
    let mut tables = Vec::new();
    for (name, value) in entries {
        let key: &str = name.get_ref();
        if is_key(key) && !value.get_ref().is_table() {
            let message = format!("{what} needs a name");
            let headers: Vec<&str> = sections.iter().map(|section| section.header).collect();
            let hint = format!("write {}", headers.join(" and "));
            report.push(Finding::fault(message, name.span()).hint(hint));
        } else if let Some((place, entries)) = table(header, value, report) {
            if let Err(error) = parse_name(key) {
                let message = format!("the name of {what} {error}");
                report.push(Finding::fault(message, name.span()));
            }
            tables.push((key, place, entries));
        }
    }
    tables
}

/// The hint for a name that is unknown in its place: where it belongs, or what another server's directive is called
/// here.
fn elsewhere(name: &str, kind: &str) -> String {
    let mut hints = foreign::answers(name);
    if let Some(section) = SECTIONS.iter().find(|section| section.has(name)) {
        // An answer that names this very key tells nothing more than where it belongs.
        let itself = format!(": `{name}`");
        hints.retain(|answer| !answer.contains(&itself));
        hints.insert(0, format!("it belongs in {}", section.header));
    }
    if hints.is_empty() {
        format!("remove it; docs/reference.md lists the {kind}")
    } else {
        hints.join("; ")
    }
}

/// The tables that a file must have. Upstreams are not among them, since only a route makes one necessary.
const NEEDED: &[(&str, &str, &str)] = &[
    (
        "listen",
        "[[listen]]",
        "add one with an `address`, such as address = \"127.0.0.1:8080\"",
    ),
    (
        "route",
        "[[route]], so every request would be answered 404",
        "add one with a `path` and the `upstream` it leads to",
    ),
];

/// All tables, in the order of the reference page.
pub(crate) const SECTIONS: &[&Section] = &[
    &server::SECTION,
    &route::SERVER_SECTION,
    &listen::SECTION,
    &tls::SECTION,
    &tls::CERTIFICATE_SECTION,
    &tls::acme::SECTION,
    &upstream::SECTION,
    &sticky::SECTION,
    &attributes::SECTION,
    &backend::SECTION,
    &cache::SECTION,
    &limit::SECTION,
    &auth::SECTION,
    &route::SECTION,
    &route::UNLESS_SECTION,
    &route::REQUEST_SECTION,
    &route::RESPONSE_SECTION,
    &route::COOKIE_SECTION,
    &route::COOKIE_DOMAIN_SECTION,
    &route::COOKIE_PATH_SECTION,
    &route::REVERSE_SECTION,
    &route::CORS_SECTION,
    &error_pages::SECTION,
    &error_pages::ROUTE_SECTION,
    &probe::SECTION,
    &members::SECTION,
    &mcmp::SECTION,
    &kubernetes::SECTION,
    &admin::SECTION,
    &log::SECTION,
    &trace::SECTION,
];

/// The tables of other files that the configuration names. They are at the end of the reference page.
pub(crate) const OTHER_SECTIONS: &[&Section] = &[&member::SECTION];
