//! `[error_pages]` and `[route.error_pages]`: pages of the operator's own.
//!
//! A file that cannot be read is a warning and not a fault: a page that vanished must not keep a front
//! from starting, or a reload from being put in force.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use catamaran_proxy::config::{ErrorPages, Page};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Surroundings;
use crate::fill;
use crate::key::{ALL, Fill, Key, Part, Preset, Section};
use crate::report::{Finding, Report};
use crate::table::{Table, table};
use crate::value::text::{FilePath, TextError, file_path, parse_statuses};
use crate::value::{Complaint, OneOrMore, Optional, Syntax, Values, complaint};

/// The name of `[error_pages]`, and of the table of the same name in a `[[route]]`.
pub(super) const NAME: &str = "error_pages";

/// The pages of one table.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    pages: Vec<(RangeInclusive<u16>, Arc<Page>)>,
    /// The statuses of backends' responses that pages replace; `None` if the table does not say.
    replaced: Option<Vec<RangeInclusive<u16>>>,
    maintenance: Option<Arc<Page>>,
}

impl Pages {
    /// These pages; for statuses that they do not have, those of `general`. The first page for a status is sent.
    pub(crate) fn before(&self, general: Option<&Self>) -> ErrorPages {
        let none = Self::default();
        let general = general.unwrap_or(&none);
        let pages = self.pages.iter().chain(&general.pages).cloned().collect();
        let replaced = self.replaced.as_ref().or(general.replaced.as_ref());
        let maintenance = self.maintenance.as_ref().or(general.maintenance.as_ref());
        ErrorPages {
            pages,
            replaced: replaced.cloned().unwrap_or_default(),
            maintenance: maintenance.map(Arc::clone),
        }
    }
}

/// The values of the keys that are no statuses.
#[derive(Default)]
struct RawErrorPages {
    replaced: Option<Vec<RangeInclusive<u16>>>,
    maintenance: Option<PathBuf>,
}

/// Reads the table of `section`: [`by_status`] reads the keys that are statuses, this function the others.
pub(crate) fn read(
    value: &Spanned<DeValue<'_>>,
    section: &'static Section,
    surroundings: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Pages> {
    let (place, entries) = table(section.header, value, report)?;
    let mut table = Table::new(section, place, entries).except_those(is_statuses);
    let mut written = RawErrorPages::default();
    table.read(KEYS, &mut written);
    let mut pages = Pages {
        pages: by_status(&mut table, entries, surroundings),
        replaced: written.replaced,
        maintenance: None,
    };
    if let Some(file) = written.maintenance {
        let place = table.place_of("maintenance_page");
        let page = load_page(&file, surroundings);
        pages.maintenance = report_problem(page, "maintenance_page", place, &mut table);
    }
    table.finish(report);
    Some(pages)
}

/// Reads the pages that keys name by a status or a class of statuses. Those for one status come first, since they win.
fn by_status(
    table: &mut Table<'_>,
    entries: &DeTable<'_>,
    surroundings: &Surroundings<'_>,
) -> Vec<(RangeInclusive<u16>, Arc<Page>)> {
    let mut pages = Vec::new();
    for (name, value) in entries {
        let name = name.get_ref();
        if !is_statuses(name) {
            continue;
        }
        let Some(statuses) = statuses(name) else {
            let message = format!("`{name}` is not an error status");
            let hint = "write 404, or 5xx for all of 500 to 599";
            table.push(Finding::fault(message, value.span()).hint(hint));
            continue;
        };
        match PAGE.read(value) {
            Ok(file) => {
                let loaded = load_page(&file, surroundings);
                if let Some(page) = report_problem(loaded, name, value.span(), table) {
                    pages.push((statuses, page));
                }
            }
            Err(complaints) => {
                for Complaint { message, span } in complaints {
                    let message = format!("`{name}` {message}");
                    table.push(Finding::fault(message, span));
                }
            }
        }
    }
    pages.sort_by_key(|(statuses, _)| statuses.len());
    pages
}

/// A page from a file, and what to report about the file. Without a page, `problem` says why.
struct PageFile {
    page: Option<Page>,
    problem: Option<PageProblem>,
}

struct PageProblem {
    message: String,
    hint: &'static str,
}

/// Reports what is wrong with a page's file, and returns the page; `None`, with a fault, if it cannot be used.
fn report_problem(
    file: PageFile,
    key: &str,
    place: std::ops::Range<usize>,
    table: &mut Table<'_>,
) -> Option<Arc<Page>> {
    if let Some(PageProblem { message, hint }) = file.problem {
        let message = format!("`{key}` {message}");
        let finding = if file.page.is_none() {
            Finding::fault(message, place)
        } else {
            Finding::warning(message, place)
        };
        table.push(finding.hint(hint));
    }
    file.page.map(Arc::new)
}

/// Loads a page from its file. A file that cannot be read is a warning: the page then has no body.
fn load_page(path: &Path, surroundings: &Surroundings<'_>) -> PageFile {
    let file = surroundings.base.join(path);
    let Some((plain, utf_8)) = content_types(&file) else {
        let message = format!(
            "names {}, and the end of its name does not say what kind of file it is",
            file.display()
        );
        let hint = "name a file that ends in .html, .htm, .xhtml, .txt, .json or .xml";
        return PageFile {
            page: None,
            problem: Some(PageProblem { message, hint }),
        };
    };
    let mut body = None;
    let mut problem = None;
    match surroundings.read_page.map(|read| read(&file)) {
        // The check of a text alone reads no files.
        None => {}
        Some(Ok(bytes)) => body = Some(Bytes::from(bytes)),
        Some(Err(reason)) => {
            let message = format!("names {}, which {reason}", file.display());
            let hint = "the front sends its own text instead; write the file, then reload";
            problem = Some(PageProblem { message, hint });
        }
    }
    // If the text is not UTF-8, it names its encoding itself, or the browser guesses.
    let is_utf_8 = body
        .as_ref()
        .is_none_or(|body| std::str::from_utf8(body).is_ok());
    let page = Page {
        content_type: if is_utf_8 { utf_8 } else { plain },
        body,
        file,
    };
    PageFile {
        page: Some(page),
        problem,
    }
}

/// The media type for the end of a file's name, and the one if its text is UTF-8.
fn content_types(file: &Path) -> Option<(&'static str, &'static str)> {
    let suffix = file.extension()?.to_str()?.to_ascii_lowercase();
    Some(match &suffix[..] {
        "html" | "htm" => ("text/html", "text/html; charset=utf-8"),
        "xhtml" => ("application/xhtml+xml", "application/xhtml+xml"),
        "txt" => ("text/plain", "text/plain; charset=utf-8"),
        "json" => ("application/json", "application/json"),
        "xml" => ("application/xml", "application/xml"),
        _ => return None,
    })
}

/// Whether a key is a status: no other key begins with a digit.
fn is_statuses(name: &str) -> bool {
    name.as_bytes().first().is_some_and(u8::is_ascii_digit)
}

/// The error statuses that a key names: one, or a class such as `5xx`; `None`: it names none.
fn statuses(name: &str) -> Option<RangeInclusive<u16>> {
    let statuses = match name {
        "4xx" => 400..=499,
        "5xx" => 500..=599,
        _ => parse_statuses(name).ok()?,
    };
    let one_or_class = !name.contains('-');
    (one_or_class && *statuses.start() >= FIRST_ERROR).then_some(statuses)
}

/// The value of `replace_errors`: a status from which on all are replaced, or a list of statuses and ranges.
struct ReplacedStatuses;

impl Values for ReplacedStatuses {
    type Read = Vec<RangeInclusive<u16>>;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Self::Read, Vec<Complaint>> {
        let replaced = match value.get_ref() {
            DeValue::Integer(number) => {
                // A number stands for all error statuses from it on.
                let first = match number.as_str().parse() {
                    Ok(status) if (FIRST_ERROR..=LAST_ERROR).contains(&status) => status,
                    _ => return Err(complaint("must be from 400 to 599", value)),
                };
                vec![first..=LAST_ERROR]
            }
            _ => LISTED.read(value)?,
        };
        let is_error = |range: &RangeInclusive<u16>| *range.start() >= FIRST_ERROR;
        if replaced.iter().all(is_error) {
            Ok(replaced)
        } else {
            Err(complaint(
                "has a status below 400, which is no error",
                value,
            ))
        }
    }

    fn describe(&self) -> String {
        let list = LISTED.describe();
        format!("a status from which on all are replaced, 400 to 599, or {list}")
    }
}

const LISTED: OneOrMore<Syntax<RangeInclusive<u16>, TextError>> = OneOrMore(Syntax {
    what: "a status or a range such as \"502-504\"",
    parse: parse_statuses,
});

const FIRST_ERROR: u16 = 400;
const LAST_ERROR: u16 = 599;

pub(crate) static SECTION: Section = Section {
    header: "[error_pages]",
    intro: "Pages of your own for errors, of up to 1 MiB each. They are read when the front starts \
            and at each reload, and served from memory; style sheets and images in them must come \
            from elsewhere. If the front cannot read a file, it warns, and sends a text of its own \
            instead (`error-page-missing`). Without this table the front writes short pages \
            itself.",
    keys: &[Part::all(&STATUS), Part::all(&KEYS)],
    later: &[],
};

pub(crate) static ROUTE_SECTION: Section = Section {
    header: "[route.error_pages]",
    intro: "The same for the `[[route]]` above it. What it does not say, `[error_pages]` does.",
    keys: &[Part::all(&STATUS), Part::all(&KEYS)],
    later: &[],
};

/// The value of a key that is a status: the path of a page.
const PAGE: FilePath = file_path("the path of a file, such as \"errors/404.html\"");

/// One key for the reference page that stands for all statuses. [`by_status`] reads them.
static STATUS: &[Key<PathBuf>] = &[Key {
    name: "404",
    group: ALL,
    value: &Fill(PAGE, |file: &mut PathBuf| file),
    preset: Preset::Unset("a short page of the front's"),
    sample: "\"errors/404.html\"",
    effect: "The page for this status. Write other statuses from 400 to 599 in the same way. \
                 `4xx` and `5xx` stand for all statuses with that first digit; a single status \
                 goes before a class. The page does not change the status. The suffix decides on \
                 the `Content-Type`: `.html`, `.htm`, `.xhtml`, `.txt`, `.json` or `.xml`. If the \
                 text is valid UTF-8, the field says so.",
    extremes: "It is sent when the front answers itself: no route matches, no backend serves, a \
                   `status` of a route. Errors of the application stay unless `replace_errors` says \
                   otherwise.",
    elsewhere: "nginx `error_page`; httpd `ErrorDocument`; HAProxy `errorfile`",
}];

static KEYS: &[Key<RawErrorPages>] = &[
    Key {
        name: "replace_errors",
        group: ALL,
        value: fill!(Optional(ReplacedStatuses), RawErrorPages.replaced),
        preset: Preset::Unset("none is replaced"),
        sample: "500",
        effect: "Responses of backends with such a status are replaced with the page for it, or with the \
                 front's own. The status stays, and of the fields `Set-Cookie`, `WWW-Authenticate`, \
                 `Retry-After`, `Allow`, `Vary` and those of CORS that scripts need. In the log such a \
                 response has the reason `error-replaced`. Up to 256 KiB of the response's body are read \
                 and dropped, for 200 ms at most, so that the connection can be used again.",
        extremes: "500 hides stack traces. From 400 on, the application's own words on what is wrong \
                   with a form or a call of its API are lost as well: write `replace_errors = []` on \
                   such routes.",
        elsewhere: "nginx `proxy_intercept_errors`; httpd `ProxyErrorOverride`; mod_jk \
                    `use_server_errors`",
    },
    Key {
        name: "maintenance_page",
        group: ALL,
        value: fill!(
            Optional(file_path(
                "the path of a file, such as \"errors/maintenance.html\"",
            )),
            RawErrorPages.maintenance
        ),
        preset: Preset::Unset("the page for 503"),
        sample: "\"errors/maintenance.html\"",
        effect: "The page sent with 503 while every backend of an upstream is stopped, by `activation`, on \
                 the admin page or by `catamaran stop`. It says `Retry-After: 60`, and its reason in the \
                 log is `maintenance`.",
        extremes: "Backends that are out because they fail are no maintenance: then the page for 503 is \
                   sent (`no-backend`).",
        elsewhere: "nginx `if (-f maintenance.html) return 503`; HAProxy `errorfile 503`",
    },
];
