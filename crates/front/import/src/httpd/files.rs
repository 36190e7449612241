//! Files that httpd serves itself: `DocumentRoot`, `Alias`, and the `<Directory>` and `<Files>` sections about
//! them.
//!
//! The front serves a directory if all its access rules can be converted, it contains no programs, and no `.htaccess`
//! may restrict access to its files. Otherwise its requests go to the old server, or are closed.

use std::path::Path;

use crate::directive::Directive;
use crate::directory::{Contents, contents};
use crate::files::Files;
use crate::httpd::access::{self, Guards};
use crate::httpd::fields;
use crate::httpd::processing::{self, FileTreatment, has_alternatives, names_of, placed};
use crate::httpd::section::skip_template;
use crate::judge::PlaceUse;
use crate::ledger::{Id, Ledger};
use crate::matcher::{Common, Matcher};
use crate::plan::{Access, Action, Keys, Rule, Serve, SharedSettings, split};
use crate::toml_text::{quoted, quoted_list};

/// The directives of a virtual host and of the server that say which files are served.
#[derive(Clone, Copy)]
pub(crate) struct Site<'a> {
    pub(crate) main: &'a [Directive],
    pub(crate) inner: &'a [Directive],
    pub(crate) files: &'a dyn Files,
}

/// A directory that the front serves, with the settings for its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServedDirectory {
    pub(crate) action: Action,
    /// The settings of the directory, and then of each directory below it that has a section.
    scopes: Vec<FileScope>,
}

/// The settings of the files of one directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct FileScope {
    /// The path of the directory, relative to the directory that is served; empty for that directory itself.
    below: String,
    guards: Guards,
    settings: SharedSettings,
    processing: FileTreatment,
}

impl<'a> Site<'a> {
    pub(super) fn all(&self) -> impl Iterator<Item = &'a Directive> + use<'a> {
        self.main.iter().chain(self.inner)
    }

    /// The directive of this name that is in force: the last of the virtual host, else the last of the server.
    pub(super) fn find(&self, name: &str) -> Option<&'a Directive> {
        let last = |block: &'a [Directive]| block.iter().rev().find(|it| it.name == name);
        last(self.inner).or_else(|| last(self.main))
    }

    /// The directory of `DocumentRoot`; `None` if the front does not serve it.
    pub(crate) fn root(&self, ledger: &mut Ledger) -> Option<ServedDirectory> {
        let all = self.all().filter(|it| it.name == "documentroot");
        all.for_each(|it| ledger.handle(it.id));
        let directive = self.find("documentroot")?;
        if let Some(other) = self.main.iter().find(|it| it.name == "documentroot") {
            ledger.dropped_if_open(other.id, "each virtual host has its own");
        }
        let path = directive.word(0).trim_end_matches('/');
        let inside = contents(self.files, Path::new(path), &self.htaccess_names());
        if self.files.names(Path::new(path)).is_some() && inside.is_bare {
            let text = "it holds only the default page of the distribution";
            ledger.dropped(directive.id, text);
            return None;
        }
        self.directory(directive.id, path, inside, None, ledger)
    }

    /// The directory of an `Alias`; `None` if the front does not serve it.
    pub(crate) fn alias(
        &self,
        directive: &Directive,
        ledger: &mut Ledger,
    ) -> Option<ServedDirectory> {
        let (path, target) = (directive.word(0), directive.word(1));
        if path.ends_with('/') != target.ends_with('/') || !path.starts_with('/') {
            ledger.kept_or_risk(directive.id, "one of path and directory ends with a slash");
            self.leave_guards(ledger);
            return None;
        }
        let target = target.trim_end_matches('/');
        let inside = contents(self.files, Path::new(target), &self.htaccess_names());
        let rewrite = Some("/".to_owned());
        self.directory(directive.id, target, inside, rewrite, ledger)
    }

    /// The directory at a path on the source's machine, if the front can serve it with all its settings.
    fn directory(
        &self,
        id: Id,
        path: &str,
        inside: Contents,
        rewrite: Option<String>,
        ledger: &mut Ledger,
    ) -> Option<ServedDirectory> {
        let mut keys = self.keys(rewrite.is_none(), ledger);
        let scopes = plain(path).and_then(|it| self.scopes(&it, &mut keys, ledger));
        let Some(scopes) = scopes.filter(|it| !it[0].processing.is_whole) else {
            let text = "the importer cannot express the access rules of these files";
            ledger.kept_or_risk(id, text);
            self.leave_guards(ledger);
            return None;
        };
        let reason = match inside {
            _ if self.files.names(Path::new(path)).is_none() => {
                "the directory does not exist on this machine: create it and import again, or run the import where it is"
            }
            Contents {
                is_hidden: true, ..
            } => "it holds more files than the importer checks",
            Contents {
                has_scripts: true, ..
            } => "it contains programs, and the front would send their source",
            Contents {
                has_guards: true, ..
            } if self.overrides(path) => "it contains a `.htaccess`, which may restrict access",
            _ if self.overrides(path) && self.has_htaccess_above(path) => {
                "a directory above it contains a `.htaccess`, which may restrict access"
            }
            _ => {
                ledger.mapped(id);
                let serve = Serve {
                    directory: self.files.located(Path::new(path)),
                    source: path.to_owned(),
                    rewrite,
                    upstream: None,
                    keys,
                };
                let action = Action::Serve(Box::new(serve));
                return Some(ServedDirectory { action, scopes });
            }
        };
        ledger.kept_or_risk(id, &format!("the front does not serve `{path}`: {reason}"));
        self.leave_guards(ledger);
        None
    }

    /// Notes that address guards of these directories are left to the old server, because the front does not
    /// serve them.
    fn leave_guards(&self, ledger: &mut Ledger) {
        let is_of_files =
            |it: &&Directive| it.name.starts_with("directory") || it.name.starts_with("files");
        for section in self.all().filter(is_of_files) {
            let asked = access::addresses(section.inside());
            ledger.address_guards.void(asked);
        }
    }

    fn keys(&self, is_root: bool, ledger: &mut Ledger) -> Keys {
        let mut keys = Keys::new();
        let charset = self.find("adddefaultcharset");
        if let Some(directive) = charset {
            ledger.mapped(directive.id);
            if !directive.word(0).eq_ignore_ascii_case("off") {
                let text =
                    "httpd adds it to pages of applications as well, the front to files alone";
                ledger.note(directive.id, text);
            }
        }
        let default_charset = charset.map_or("off", |it| it.word(0));
        let charset = match default_charset.to_ascii_lowercase().as_str() {
            "on" => "iso-8859-1".to_owned(),
            other => other.to_owned(),
        };
        keys.insert("charset".to_owned(), quoted(&charset));
        let in_sections = || {
            self.all()
                .filter(|it| it.name == "directory")
                .flat_map(Directive::inside)
        };
        // The directive is global: its last value applies to all directories of a server.
        let find = |name: &str| in_sections().chain(self.all()).find(|it| it.name == name);
        let all = in_sections().chain(self.all());
        let fallbacks = all.filter(|it| it.name == "fallbackresource");
        fallbacks.for_each(|it| ledger.handle(it.id));
        if let Some(fallback) = find("fallbackresource").filter(|_| is_root) {
            match fallback
                .word(0)
                .strip_prefix('/')
                .filter(|it| !it.contains('/'))
            {
                Some(page) => {
                    keys.insert("fallback".to_owned(), quoted(page));
                    ledger.mapped(fallback.id);
                }
                None => ledger.lost(fallback.id, "this page was not converted"),
            }
        }
        keys
    }

    /// Whether `.htaccess` in this directory, or above or below it, may change settings: some section allows it, or
    /// none forbids it here. Without any `AllowOverride` httpd reads the file, and refuses all requests for its
    /// directory.
    fn overrides(&self, path: &str) -> bool {
        let sections = self.all().filter(|it| it.name.starts_with("directory"));
        let said = sections.flat_map(|section| {
            let inner = section.inside().iter();
            inner
                .filter(|it| it.name.starts_with("allowoverride"))
                .map(move |it| (section.word(0), it.word(0)))
        });
        let said: Vec<(&str, &str)> = said.collect();
        let is_forbidden = |it: &&(&str, &str)| it.1.eq_ignore_ascii_case("none");
        let covers = |it: &(&str, &str)| Path::new(path).starts_with(it.0);
        !said.iter().all(|it| is_forbidden(&it)) || !said.iter().any(covers)
    }

    /// The names of files that httpd reads as `.htaccess` (`AccessFileName`).
    fn htaccess_names(&self) -> Vec<String> {
        let directives = self.all().filter(|it| it.name == "accessfilename");
        let named = directives.flat_map(|it| it.words.iter().cloned());
        named.chain([".htaccess".to_owned()]).collect()
    }

    /// Whether a directory above this one has such a file.
    fn has_htaccess_above(&self, path: &str) -> bool {
        let htaccess_names = self.htaccess_names();
        let mut above = Path::new(path).ancestors().skip(1);
        above.any(|directory| {
            let inside = self.files.names(directory).unwrap_or_default();
            inside.iter().any(|name| htaccess_names.contains(name))
        })
    }

    /// The settings of a directory and of those below it; `None` if the importer cannot express them. Adds `hide`
    /// to `keys`.
    fn scopes(&self, path: &str, keys: &mut Keys, ledger: &mut Ledger) -> Option<Vec<FileScope>> {
        let mut sections: Vec<&Directive> =
            self.all().filter(|it| it.name == "directory").collect();
        // Shorter paths first, as httpd merges them.
        let depth = |it: &&Directive| plain(it.word(0)).map(|it| it.matches('/').count());
        sections.sort_by_key(depth);
        let mut names = NameSections::default();
        let mut scopes = vec![FileScope::default()];
        for block in [self.main, self.inner] {
            scopes[0].processing.add(block, ledger);
        }
        for section in sections {
            directory_section(section, path, &mut scopes, &mut names, ledger)?;
        }
        for section in self.all() {
            match section.name.as_str() {
                "directorymatch" => match_section(section, path, &mut names, ledger)?,
                "files" | "filesmatch" => files_section(section, &mut names, ledger)?,
                _ => {}
            }
        }
        let NameSections { mut hidden, closed } = names;
        hidden.extend(scopes.iter().flat_map(|it| it.processing.hidden.clone()));
        if !hidden.is_empty() {
            hidden.sort();
            hidden.dedup();
            keys.insert("hide".to_owned(), quoted_list(hidden));
        }
        let scopes_of_names = scopes.iter_mut();
        scopes_of_names.for_each(|it| it.processing.close(closed.clone()));
        Some(scopes)
    }
}

/// The rules on file names in `<Files>` sections.
#[derive(Debug, Default)]
struct NameSections {
    /// Patterns of names that no client may get.
    hidden: Vec<String>,
    /// Files whose section the front cannot express, so that they are closed.
    closed: Vec<String>,
}

impl FileScope {
    /// Adds the settings of a `<Directory>` section.
    fn add(&mut self, section: &Directive, ledger: &mut Ledger) {
        let inner = section.inside();
        self.processing.add(inner, ledger);
        let mut settings = fields::settings(inner, None, ledger);
        settings.keys.clear();
        self.settings.merge(&settings.into());
    }
}

impl ServedDirectory {
    /// Replaces the action [`Action::Files`] of rules: they serve this directory, with its guards.
    pub(crate) fn fill(&self, rules: &mut [Rule]) {
        for rule in rules.iter_mut().filter(|it| it.action == Action::Files) {
            rule.action = self.action.clone();
            if rule.settings.access == Access::Open {
                guard(rule, &self.scopes[0].guards);
            }
        }
    }

    /// Makes the rule of an `Alias` serve this directory, with its guards.
    pub(crate) fn rule(&self, mut rule: Rule) -> Rule {
        rule.action = self.action.clone();
        guard(&mut rule, &self.scopes[0].guards);
        rule
    }

    /// Applies the settings of the directory, and of those below it, to the rules that serve it. `above` is the
    /// URL path at which it is served.
    pub(crate) fn lay(&self, above: &str, rules: &mut Vec<Rule>) {
        for scope in &self.scopes {
            let matcher = Matcher::prefix(&format!("{above}{}", scope.below));
            let change = |rule: &mut Rule| {
                if !self.is_own(rule) {
                    return;
                }
                if !scope.below.is_empty() {
                    guard(rule, &scope.guards);
                }
                rule.settings.merge(&scope.settings);
                scope.processing.over(rule);
            };
            let whole = |rule: &mut Rule| {
                if self.is_own(rule) {
                    rule.settings.is_strange = true;
                }
            };
            split(rules, &matcher, change, whole);
        }
        self.close_programs(above, rules);
    }

    /// Closes the paths of files that httpd runs or changes, in each directory.
    fn close_programs(&self, above: &str, rules: &mut Vec<Rule>) {
        let mut next = Vec::with_capacity(rules.len());
        for mut rule in rules.drain(..) {
            let start = rule.matcher.start().into_owned();
            let has = |it: &&FileScope| {
                is_above(&format!("{above}{}", it.below), start.trim_end_matches('/'))
            };
            let scope = self
                .scopes
                .iter()
                .rev()
                .find(has)
                .filter(|_| self.is_own(&rule));
            let place = scope.map_or(String::new(), |it| format!("{above}{}", it.below));
            for program in scope.iter().flat_map(|it| it.processing.programs()) {
                let program = placed(&place, program.as_str());
                match rule.matcher.common(&program) {
                    Common::Nothing => {}
                    Common::Set(set) if set == rule.matcher => rule.action = Action::Closed,
                    Common::Set(set) => next.push(Rule {
                        action: Action::Closed,
                        ..rule.narrowed(set)
                    }),
                    Common::Unsaid => {
                        next.push(Rule::new(rule.place.as_ref(), program, Action::Closed));
                    }
                }
            }
            next.push(rule);
        }
        *rules = next;
    }

    fn is_own(&self, rule: &Rule) -> bool {
        match (&rule.action, &self.action) {
            (Action::Serve(one), Action::Serve(two)) => one.directory == two.directory,
            _ => false,
        }
    }
}

/// Gives a rule the guards of a directory.
fn guard(rule: &mut Rule, guards: &Guards) {
    rule.settings.access = guards.authz.clone().unwrap_or_default();
    rule.settings.compat = guards.compat.clone().unwrap_or_default();
    rule.settings.methods = guards.methods.clone().unwrap_or_default();
    rule.settings.tls_only = guards.tls_only;
    rule.settings.is_strange = guards.is_strange;
}

/// A directory's path without empty and `.` segments; `None` if it has wildcards or `..`, or if it is relative.
fn plain(path: &str) -> Option<String> {
    let inner = path.strip_prefix('/')?;
    let mut names = inner.split('/').filter(|it| !matches!(*it, "" | "."));
    let is_one = !path.contains(['*', '?', '[']) && names.clone().all(|it| it != "..");
    is_one.then(|| names.by_ref().map(|it| format!("/{it}")).collect())
}

/// Whether the directory `above` is `below` itself, or contains it.
fn is_above(above: &str, below: &str) -> bool {
    below
        .strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Adds the settings of a `<Directory>` section about the directory `path`, or one below it, to `scopes`; `None` if
/// the importer cannot express them.
fn directory_section(
    section: &Directive,
    path: &str,
    scopes: &mut Vec<FileScope>,
    names: &mut NameSections,
    ledger: &mut Ledger,
) -> Option<()> {
    let literal = plain(section.word(0)).filter(|_| section.words.len() == 1);
    let is_plain = literal.is_some();
    let of = literal.as_deref().unwrap_or_default();
    let is_deeper = is_plain && path != of && is_above(path, of);
    let below = if is_deeper { &of[path.len()..] } else { "" };
    let outer = scopes.iter().rev().find(|it| is_above(&it.below, below));
    let mut scope = outer.cloned().unwrap_or_default();
    ledger.begin();
    let converted = section_guards(section, names, ledger);
    let is_apart = if is_plain {
        !is_deeper && !is_above(of, path)
    } else {
        is_elsewhere(section, path)
    };
    if is_apart {
        ledger.end();
        drop_rest(section, ledger);
        return Some(());
    }
    scope.add(section, ledger);
    let judged = SERVES.judge(section.inside(), ledger);
    ledger.end();
    let said = match converted {
        Some(converted) if is_deeper || !judged.closes() => converted,
        None if is_deeper => {
            ledger.unmapped(section.id, UNSAID);
            Guards::strange()
        }
        _ => return None,
    };
    drop_rest(section, ledger);
    if !is_plain {
        // The section may be about any of the directories.
        let is_open = !said.closes() && !section.inside().iter().any(is_of_responses);
        return (is_open && !changes_files(section)).then_some(());
    }
    scope.guards.merge(said);
    scope.guards.add(judged);
    if is_deeper {
        scopes.push(FileScope {
            below: below.to_owned(),
            ..scope
        });
    } else {
        scopes[0] = scope;
    }
    Some(())
}

/// Whether a `<Directory>` with wildcards cannot match `path` or a directory below it, because the text before its
/// first wildcard differs.
fn is_elsewhere(section: &Directive, path: &str) -> bool {
    let text = section.word(0);
    let start = text.split(['*', '?', '[']).next().unwrap_or_default();
    let is_sure = section.words.len() == 1 && start.starts_with('/') && !start.contains("/.");
    let own = format!("{path}/");
    is_sure && !start.contains("//") && !own.starts_with(start) && !start.starts_with(&own)
}

/// Reads a `<DirectoryMatch>` that may match the directory `path`; `None` if the importer cannot express what the
/// section does.
fn match_section(
    section: &Directive,
    path: &str,
    names: &mut NameSections,
    ledger: &mut Ledger,
) -> Option<()> {
    ledger.begin();
    let said = section_guards(section, names, ledger);
    let judged = SERVES.judge(section.inside(), ledger);
    ledger.end();
    drop_rest(section, ledger);
    let is_changed = section.inside().iter().any(is_of_responses) || changes_files(section);
    let is_open = !said?.closes() && !judged.closes() && !is_changed;
    // What is served may lie in a hidden directory itself.
    let dotted = behind_dot(section).filter(|_| !path.contains("/."));
    if !is_open && dotted.is_some_and(|it| !names_others(it)) {
        names.hidden.push(WELL_KNOWN.to_owned());
    }
    (is_open || dotted.is_some()).then_some(())
}

/// The access rules of a section; `None` if it does more than the importer can express.
fn section_guards(
    section: &Directive,
    names: &mut NameSections,
    ledger: &mut Ledger,
) -> Option<Guards> {
    let mut is_strange = false;
    for directive in section.inside() {
        match directive.name.as_str() {
            "files" | "filesmatch" => {
                files_section(directive, names, ledger)?;
                ledger.handle(directive.id);
            }
            name if name.starts_with("rewrite")
                || name.starts_with("redirect")
                || name == "sslverifyclient" =>
            {
                is_strange = true;
            }
            "header" if is_of_freshness(directive) => ledger.handle(directive.id),
            "options" => ledger.handle(directive.id),
            "allowoverride" | "allowoverridelist" => {
                ledger.dropped(
                    directive.id,
                    "a directory with a `.htaccess` is not served then",
                );
            }
            name => {
                skip_template(directive, ledger);
                let is_guard = name.starts_with("require") || access::is_limit(name);
                is_strange |= directive.inner.is_some() && !is_guard;
            }
        }
    }
    let guards = access::of_section(section.inside(), ledger);
    if is_strange {
        return None;
    }
    ledger.mapped(section.id);
    Some(guards)
}

/// Drops the directives of a section that were not handled, after the section was judged.
fn drop_rest(section: &Directive, ledger: &mut Ledger) {
    let is_needless = |it: &&Directive| !is_of_responses(it) && !it.name.starts_with("expires");
    for directive in section.inside().iter().filter(is_needless) {
        let text = "it is about files that the front serves without it";
        ledger.dropped_if_open(directive.id, text);
    }
}

/// Whether a section may refuse symbolic links, or sets the index of directories.
fn changes_files(section: &Directive) -> bool {
    let refuses = |it: &Directive| it.name == "options" && processing::refuses_links(it, false);
    let mut all = section.inside().iter();
    all.any(|it| refuses(it) || it.name == "directoryindex")
}

/// Whether a directive changes the body or the header fields of a file's response, apart from caching.
fn is_of_responses(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    let is_field = name == "header" && !is_of_freshness(directive);
    is_field
        || PROCESSING.contains(&name) && !name.ends_with("filter")
        || name.ends_with("filter") && !processing::compresses(directive.word(0))
}

/// Whether a `Header` sets caching or cross-origin fields. A response without them allows clients less, so it may
/// be left out.
fn is_of_freshness(directive: &Directive) -> bool {
    let first = directive.word(0).to_ascii_lowercase();
    let at = 1 + usize::from(matches!(first.as_str(), "always" | "onsuccess"));
    let name = directive.word(at).to_ascii_lowercase();
    FRESHNESS.contains(&name.as_str()) || name.starts_with("access-control-")
}

/// Reads a `<Files>` section into `names`; `None` if the importer cannot express what it does.
fn files_section(section: &Directive, names: &mut NameSections, ledger: &mut Ledger) -> Option<()> {
    let mut none = NameSections::default();
    if is_of_dots(section) {
        // The files are hidden whatever the result is.
        access::of_section(section.inside(), ledger);
        ledger.mapped(section.id);
        return Some(());
    }
    ledger.begin();
    let guards = section_guards(section, &mut none, ledger);
    let changes = section.inside().iter().any(is_of_responses);
    if changes {
        // The files are closed, so changes to their responses do not matter.
        let all = section.inside().iter().filter(|it| is_of_responses(it));
        all.for_each(|it| ledger.unmapped(it.id, UNSAID));
    }
    let judged = SERVES.judge(section.inside(), ledger);
    ledger.end();
    let guards = guards?;
    drop_rest(section, ledger);
    let name = section.word(0);
    let is_plain = section.name == "files"
        && section.words.len() == 1
        && !name.is_empty()
        && !name.contains(['/', '[', '\\']);
    match guards.joined() {
        Access::Open if changes || judged.closes() => {
            names.closed.push(names_of(section)?);
        }
        Access::Open => {}
        Access::Nobody if is_plain => names.hidden.push(name.to_owned()),
        Access::Nobody => names.closed.push(names_of(section)?),
        Access::Networks { .. } | Access::Methods { .. } | Access::Unsaid => {
            names.closed.push(names_of(section)?);
            ledger.unmapped(section.id, UNSAID);
            let asked = access::addresses(section.inside());
            ledger.address_guards.void(asked);
        }
    }
    Some(())
}

/// Whether a section is only about names that begin with a dot, which the front never serves.
fn is_of_dots(section: &Directive) -> bool {
    let is_expression = section.name.ends_with("match") || section.words.len() > 1;
    if is_expression {
        behind_dot(section).is_some()
    } else {
        section.word(0).starts_with(".ht")
    }
}

/// What stands in the expression of a section behind the dot with which all names begin that it concerns; `None`: it may
/// concern others.
fn behind_dot(section: &Directive) -> Option<&str> {
    let text = section.words.last().map_or("", String::as_str);
    let starts = ["^\\.", "/\\.", "(^|/)\\.", "(^|\\/)\\."];
    let mut found = starts.iter().filter_map(|it| text.strip_prefix(*it));
    found.find(|rest| !rest.starts_with(['?', '*', '{']) && !has_alternatives(rest))
}

/// Whether an expression behind a dot begins with other names than that of [`WELL_KNOWN`].
fn names_others(rest: &str) -> bool {
    let group = rest.strip_prefix("(?:").or_else(|| rest.strip_prefix('('));
    let text = group.unwrap_or(rest);
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_|".contains(it);
    let end = text.find(|it| !is_plain(it)).unwrap_or(text.len());
    let (names, after) = text.split_at(end);
    let behind = match group {
        Some(_) => after.strip_prefix(')'),
        None => Some(after),
    };
    let is_other =
        |it: &str| it.starts_with(|it: char| it.is_ascii_alphanumeric() && !"wW".contains(it));
    behind.is_some_and(|it| !it.starts_with(['?', '*', '{'])) && names.split('|').all(is_other)
}

/// The directory whose name begins with a dot and that the front serves.
const WELL_KNOWN: &str = ".well-known";

/// What a section about files does with requests: it serves files.
const SERVES: PlaceUse = PlaceUse {
    forwards: false,
    serves: true,
    leaves: false,
};

const UNSAID: &str = "the importer cannot express what it does with these files";

/// Directives that decide how a file is processed before it is sent.
const PROCESSING: &[&str] = &[
    "addhandler",
    "addtype",
    "forcetype",
    "sethandler",
    "action",
    "xbithack",
    "removetype",
];

/// Caching fields: without them a response is kept for a shorter time.
const FRESHNESS: &[&str] = &[
    "cache-control",
    "expires",
    "pragma",
    "etag",
    "vary",
    "age",
    "last-modified",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_above_others() {
        for (above, below, expected) in [
            ("", "/var/www", true),
            ("/var/www", "/var/www", true),
            ("/var/www", "/var/www/x", true),
            ("/var/www", "/var/www2", false),
        ] {
            assert_eq!(is_above(above, below), expected, "{above} {below}");
        }
    }
}
