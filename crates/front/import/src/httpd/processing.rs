//! What httpd does with files besides sending them: programs, filters and types, by names and by directories.
//!
//! The front must never send the source of a program. So files with any handler or filter are closed, except for
//! compression. httpd finds an extension anywhere in a name, as in `page.html.fr`.

use std::collections::BTreeMap;

use crate::directive::Directive;
use crate::directory::SCRIPTS;
use crate::ledger::Ledger;
use crate::matcher::Matcher;
use crate::plan::{Action, Rule};
use crate::regex::{PathSet, path_set};
use crate::toml_text::quoted;

/// How httpd processes the files of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileTreatment {
    /// Paths below the directory whose files have a handler or a filter.
    handled: Vec<Matcher>,
    /// Paths of files that run because of their type, unless `ForceType` replaces it.
    typed: Vec<Matcher>,
    /// Name patterns of program files, for the key `hide`. A directory is only served if it contains none.
    pub(super) hidden: Vec<String>,
    /// Whether any file of the directory may have a handler or filter, so that all are closed.
    pub(super) is_whole: bool,
    /// Media types by file name extension (`AddType`).
    types: BTreeMap<String, String>,
    /// The media type of all files (`ForceType`).
    forced: Option<String>,
    /// The forced type of an outer directory that `ForceType None` takes back.
    unforced: Option<String>,
}

impl FileTreatment {
    /// Adds the directives of a server, or of a section for a deeper directory.
    pub(super) fn add<'d>(
        &mut self,
        directives: impl IntoIterator<Item = &'d Directive>,
        ledger: &mut Ledger,
    ) {
        for it in directives {
            let value = it.word(0);
            match it.name.as_str() {
                "addhandler" => self.run(it, ledger),
                "addoutputfilter" if !compresses(value) => self.run(it, ledger),
                // httpd asks for a handler by a type that is none.
                "addtype" if is_run(value) || !is_media_type(value) => self.run(it, ledger),
                "addtype" => self.add_type(it, ledger),
                "forcetype" if value.eq_ignore_ascii_case("none") => {
                    self.unforced = self.forced.take().or_else(|| self.unforced.take());
                    ledger.mapped(it.id);
                }
                "forcetype" if is_media_type(value) && !is_run(value) => {
                    self.forced = Some(value.to_owned());
                    ledger.mapped(it.id);
                }
                "sethandler" if matches!(value, "None" | "none" | "default-handler") => {
                    ledger.handle(it.id);
                }
                "addoutputfilter" | "setoutputfilter" | "addoutputfilterbytype"
                    if compresses(value) =>
                {
                    ledger.handle(it.id);
                }
                "xbithack" if value.eq_ignore_ascii_case("off") => ledger.handle(it.id),
                // Of a handler's name `AddHandler` tells the files.
                "action" if !value.contains('/') => ledger.handle(it.id),
                "forcetype"
                | "sethandler"
                | "setoutputfilter"
                | "addoutputfilterbytype"
                | "xbithack"
                | "action" => {
                    self.is_whole = true;
                    ledger.unmapped(it.id, SHOWN);
                }
                _ => {}
            }
        }
    }

    /// Notes that files with these extensions run. Those in [`SCRIPTS`] are hidden, for no directory with such
    /// files is served; the others get closed routes.
    fn run(&mut self, directive: &Directive, ledger: &mut Ledger) {
        for extension in directive.words.iter().skip(1) {
            let extension = extension.trim_start_matches('.');
            if SCRIPTS.contains(&extension.to_ascii_lowercase().as_str()) {
                ledger.mapped(directive.id);
                for it in [
                    extension.to_ascii_lowercase(),
                    extension.to_ascii_uppercase(),
                ] {
                    self.hidden.extend([format!("*.{it}"), format!("*.{it}.*")]);
                }
                continue;
            }
            ledger.unmapped(directive.id, SHOWN);
            let within = Matcher::pattern(&format!("/*.{extension}.*"));
            let mut set = PathSet {
                matchers: vec![Matcher::pattern(&format!("/*.{extension}")), within],
                is_exact: true,
            };
            set.add_cases();
            match directive.name.as_str() {
                "addtype" => self.typed.extend(set.matchers),
                _ => self.handled.extend(set.matchers),
            }
        }
    }

    fn add_type(&mut self, directive: &Directive, ledger: &mut Ledger) {
        for extension in directive.words.iter().skip(1) {
            let extension = extension.trim_start_matches('.').to_ascii_lowercase();
            self.types.insert(extension, directive.word(0).to_owned());
        }
        ledger.mapped(directive.id);
    }

    /// Closes these paths below the directory.
    pub(super) fn close(&mut self, paths: Vec<Matcher>) {
        self.handled.extend(paths);
    }

    /// Paths below the directory whose files must not be sent as they are.
    pub(super) fn programs(&self) -> impl Iterator<Item = &Matcher> {
        let typed = self.typed.iter().filter(|_| self.forced.is_none());
        self.handled.iter().chain(typed)
    }

    /// Sets the directory's media types for a rule: its table of types, and a forced Content-Type. If every file may have a
    /// handler, the rule is marked as strange: what it serves is not what the source serves.
    pub(super) fn over(&self, rule: &mut Rule) {
        if self.is_whole {
            rule.settings.is_strange = true;
        }
        let fields = &mut rule.settings.response_fields;
        let known = fields.set.get("Content-Type");
        if known.is_some() && known == self.unforced.as_ref() {
            fields.set.remove("Content-Type");
        }
        if let Some(forced) = &self.forced {
            fields.set.insert("Content-Type".to_owned(), forced.clone());
        }
        if let Action::Serve(serve) = &mut rule.action
            && !self.types.is_empty()
        {
            let pairs = self.types.iter();
            let entries = pairs.map(|(name, to)| format!("{} = {}", quoted(name), quoted(to)));
            let list: Vec<String> = entries.collect();
            let types = format!("{{ {} }}", list.join(", "));
            serve.keys.insert("types".to_owned(), types);
        }
    }
}

/// Whether a directive makes httpd run files.
pub(super) fn runs(directive: &Directive) -> bool {
    let value = directive.word(0);
    match directive.name.as_str() {
        "addhandler" | "action" | "xbithack" => true,
        "addtype" | "forcetype" => is_run(value),
        name if name.contains("outputfilter") => {
            let mut filters = value.split(';');
            filters.any(|it| matches!(it.to_ascii_uppercase().as_str(), "INCLUDES" | "PHP"))
        }
        _ => false,
    }
}

/// Paths of the files of a `<Files>` or `<FilesMatch>` section, and maybe of others; `None` if they may be any.
pub(super) fn paths_of_names(section: &Directive) -> Option<Vec<Matcher>> {
    let text = section.words.last().map_or("", String::as_str);
    if section.name == "files" && section.words.len() == 1 {
        let text = text.replace('[', "*").replace(['\\', ']'], "*");
        return Some(vec![Matcher::pattern(&format!("*/{text}"))]);
    }
    // Of a whole path the beginning of a name is no beginning.
    let matchers = path_set(text, false).matchers;
    (!text.contains('^') && !matchers.contains(&Matcher::everything())).then_some(matchers)
}

/// The paths of `matcher`, below the path `above`.
pub(super) fn placed(above: &str, matcher: &Matcher) -> Matcher {
    match matcher {
        Matcher::Suffix { path, suffix } => Matcher::Suffix {
            path: format!("{above}{path}"),
            suffix: suffix.clone(),
        },
        other => Matcher::pattern(&format!("{above}{}", other.shown())),
    }
}

/// Whether these filters only compress.
pub(super) fn compresses(filters: &str) -> bool {
    let mut filters = filters.split(';').map(str::to_ascii_uppercase);
    filters.all(|it| matches!(it.as_str(), "DEFLATE" | "BROTLI_COMPRESS"))
}

/// Whether a media type makes httpd run the file.
fn is_run(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    lower.starts_with("application/x-httpd") || lower.starts_with("text/x-server-parsed")
}

fn is_media_type(text: &str) -> bool {
    let is_sign = |it: char| it.is_ascii_alphanumeric() || "/.+-_;= ".contains(it);
    text.matches('/').count() == 1 && text.chars().all(is_sign)
}

const SHOWN: &str = "the front would send the source of what this runs or changes";
