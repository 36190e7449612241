//! What httpd does with files besides sending them: programs, filters and types, by names and by directories.
//!
//! The front must never send the source of a program. So files with any handler or filter are closed, except for
//! compression. httpd finds an extension anywhere in a name, as in `page.html.fr`.

use std::collections::BTreeMap;

use crate::directive::Directive;
use crate::directory::SCRIPTS;
use crate::expression::{literal, translated};
use crate::ledger::Ledger;
use crate::matcher::Matcher;
use crate::plan::{Action, Rule};
use crate::toml_text::{inline_table, quoted, quoted_list};

/// How httpd processes the files of a directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileTreatment {
    /// Files below the directory that have a handler or a filter, as expressions for [`placed`].
    handled: Vec<String>,
    /// Files that run because of their type, unless `ForceType` replaces it.
    typed: Vec<String>,
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
    /// Whether symbolic links are not followed, or only those of their target's owner (`Options`).
    refuses_links: bool,
    /// The files that stand for a directory (`DirectoryIndex`); `None`: the front's own.
    index: Option<Vec<String>>,
}

impl FileTreatment {
    /// Adds the directives of a server, or of a section for a deeper directory.
    pub(super) fn add<'d>(
        &mut self,
        directives: impl IntoIterator<Item = &'d Directive>,
        ledger: &mut Ledger,
    ) {
        let mut index: Option<Vec<String>> = None;
        for directive in directives {
            let (id, value) = (directive.id, directive.word(0));
            match directive.name.as_str() {
                // Several directives of one section name further files.
                "directoryindex" => {
                    let names = index.get_or_insert_default();
                    names.extend_from_slice(&directive.words);
                    ledger.mapped(id);
                }
                "addhandler" => self.add_programs(directive, ledger),
                "addoutputfilter" if !compresses(value) => self.add_programs(directive, ledger),
                // A type that is no media type is the name of a handler.
                "addtype" if is_run(value) || !is_media_type(value) => {
                    self.add_programs(directive, ledger);
                }
                "addtype" => self.add_type(directive, ledger),
                "forcetype" if value.eq_ignore_ascii_case("none") => {
                    self.unforced = self.forced.take().or_else(|| self.unforced.take());
                    ledger.mapped(id);
                }
                "forcetype" if is_media_type(value) && !is_run(value) => {
                    self.forced = Some(value.to_owned());
                    ledger.mapped(id);
                }
                "options" => {
                    self.refuses_links = refuses_links(directive, self.refuses_links);
                    ledger.mapped(id);
                }
                // These change no file. `compress` has converted the filters.
                "sethandler" if matches!(value, "None" | "none" | "default-handler") => {
                    ledger.handle(id);
                }
                "addoutputfilter" | "setoutputfilter" | "addoutputfilterbytype"
                    if compresses(value) =>
                {
                    ledger.handle(id);
                }
                "xbithack" if value.eq_ignore_ascii_case("off") => ledger.handle(id),
                // The handler's files are those that `AddHandler` gives it.
                "action" if !value.contains('/') => ledger.handle(id),
                "forcetype"
                | "sethandler"
                | "setoutputfilter"
                | "addoutputfilterbytype"
                | "xbithack"
                | "action" => {
                    self.is_whole = true;
                    ledger.unmapped(id, SHOWN);
                }
                _ => {}
            }
        }
        if let Some(mut names) = index {
            let is_off = matches!(&names[..], [only] if only.eq_ignore_ascii_case("disabled"));
            // A name with a slash is in another directory, where the front has no index. The names after it count
            // only if it is missing, so they are left out, too.
            let elsewhere = names.iter().position(|name| name.contains('/'));
            names.truncate(elsewhere.unwrap_or(names.len()));
            self.index = Some(if is_off { Vec::new() } else { names });
        }
    }

    /// Marks files with these extensions as programs. Those in [`SCRIPTS`] are hidden, because no directory with such
    /// files is served; the paths of others are closed.
    fn add_programs(&mut self, directive: &Directive, ledger: &mut Ledger) {
        for word in directive.words.iter().skip(1) {
            let extension = word.trim_start_matches('.');
            let lower = extension.to_ascii_lowercase();
            if SCRIPTS.contains(&lower.as_str()) {
                ledger.mapped(directive.id);
                // `hide` distinguishes upper and lower case.
                for name in [lower, extension.to_ascii_uppercase()] {
                    let patterns = [format!("*.{name}"), format!("*.{name}.*")];
                    self.hidden.extend(patterns);
                }
                continue;
            }
            ledger.unmapped(directive.id, SHOWN);
            let end = literal(&format!(".{extension}"));
            let names = [format!(".*(?i:{end})$"), format!(".*(?i:{end}\\.)")];
            match directive.name.as_str() {
                "addtype" => self.typed.extend(names),
                _ => self.handled.extend(names),
            }
        }
    }

    /// Adds the media type of an `AddType` for the extensions that it names.
    fn add_type(&mut self, directive: &Directive, ledger: &mut Ledger) {
        for word in directive.words.iter().skip(1) {
            let extension = word.trim_start_matches('.').to_ascii_lowercase();
            self.types.insert(extension, directive.word(0).to_owned());
        }
        ledger.mapped(directive.id);
    }

    /// Closes these files below the directory.
    pub(super) fn close(&mut self, files: Vec<String>) {
        self.handled.extend(files);
    }

    /// Files below the directory that must not be sent unchanged, as expressions for [`placed`].
    pub(super) fn programs(&self) -> impl Iterator<Item = &String> {
        let typed = self.typed.iter().filter(|_| self.forced.is_none());
        self.handled.iter().chain(typed)
    }

    /// Applies the directory's settings to a rule: media types, index files, and whether links are followed. If any
    /// file may have a handler, the rule is marked as strange, because the source may not send the files unchanged.
    pub(super) fn over(&self, rule: &mut Rule) {
        if self.is_whole {
            rule.settings.is_strange = true;
        }
        let fields = &mut rule.settings.response_fields;
        if self.unforced.is_some() && fields.set.get("Content-Type") == self.unforced.as_ref() {
            fields.set.remove("Content-Type");
        }
        if let Some(forced) = &self.forced {
            fields.set.insert("Content-Type".to_owned(), forced.clone());
        }
        let Action::Serve(serve) = &mut rule.action else {
            return;
        };
        // The key may be that of an outer directory, which follows no links.
        serve.keys.remove("links");
        if let Some(names) = &self.index {
            serve.keys.insert("index".to_owned(), quoted_list(names));
        }
        if self.refuses_links {
            serve.keys.insert("links".to_owned(), quoted("off"));
        }
        if !self.types.is_empty() {
            let types = self.types.iter();
            let pairs = types.map(|(extension, to)| (quoted(extension), quoted(to)));
            serve.keys.insert("types".to_owned(), inline_table(pairs));
        }
    }
}

/// Whether `Options` refuses symbolic links, or follows only those whose owner is that of their target. `before` is
/// the answer without this directive.
pub(super) fn refuses_links(options: &Directive, before: bool) -> bool {
    // Words without a sign replace all options of an outer section.
    let is_relative = options.words.iter().any(|it| it.starts_with(['+', '-']));
    let mut refuses = before || !is_relative;
    for word in &options.words {
        let name = word.trim_start_matches(['+', '-']).to_ascii_lowercase();
        if matches!(name.as_str(), "followsymlinks" | "all") {
            refuses = word.starts_with('-');
        }
    }
    refuses
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

/// The files of a `<Files>` or `<FilesMatch>` section, and maybe others, as an expression for [`placed`]; `None` if
/// they may be any.
pub(super) fn names_of(section: &Directive) -> Option<String> {
    let text = section.words.last().map_or("", String::as_str);
    if section.name == "files" && section.words.len() == 1 {
        let sign = |sign: char| match sign {
            '*' => "[^/]*".to_owned(),
            '?' => "[^/]".to_owned(),
            other => literal(&other.to_string()),
        };
        // The expression is used only up to a bracket or a backslash.
        let (plain, end) = match text.find(['[', '\\']) {
            Some(at) => (&text[..at], ""),
            None => (text, "$"),
        };
        let name: String = plain.chars().map(sign).collect();
        return Some(format!("(?:.*/)?{name}{end}"));
    }
    // `^` is the beginning of the name, which is not that of the path.
    match text.strip_prefix('^') {
        Some(name) if !name.contains('^') && !has_alternatives(name) => {
            Some(format!("(?:.*/)?{name}"))
        }
        None if !text.contains('^') => Some(format!(".*(?:{text})")),
        _ => None,
    }
}

/// Whether a regular expression has, or may have, alternatives (`|`) outside its groups.
pub(super) fn has_alternatives(expression: &str) -> bool {
    // In an escape or a class, a parenthesis belongs to no group.
    if ["\\(", "\\)", "["].iter().any(|it| expression.contains(it)) {
        return expression.contains('|');
    }
    let mut depth = 0;
    for sign in expression.chars() {
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            '|' if depth < 1 => return true,
            _ => {}
        }
    }
    false
}

/// The paths below `above` whose remaining part, after a slash, matches the expression `files`.
pub(super) fn placed(above: &str, files: &str) -> Matcher {
    let text = format!("^{}/{files}", literal(above));
    Matcher::Expression(translated(&text, false))
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
