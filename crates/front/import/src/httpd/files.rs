//! Files that httpd serves itself: `DocumentRoot`, `Alias`, and the `<Directory>` and `<Files>` sections about
//! them.
//!
//! The front serves a directory if all its access rules can be converted, it contains no programs, and no `.htaccess`
//! may restrict access to its files. Otherwise its requests go to the old server, or are closed.

use std::path::Path;

use crate::directive::Directive;
use crate::directory::{Contents, are_error_pages, contents};
use crate::files::Files;
use crate::httpd::access::{self, Guards};
use crate::httpd::expires::Expiry;
use crate::httpd::fields;
use crate::httpd::processing::{self, FileTreatment, has_alternatives, names_of, placed};
use crate::httpd::section::skip_template;
use crate::judge::PlaceUse;
use crate::ledger::{Id, Ledger, LedgerKeeper as _};
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
    expiry: Expiry,
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
        // The files have the paths of the requests.
        let rewrite = None;
        self.directory(directive.id, path, inside, rewrite, ledger)
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
        let names = self.files.names(Path::new(target)).unwrap_or_default();
        if are_error_pages(&names) {
            let text = "it holds only the error pages of the distribution, and the front has pages of its own";
            ledger.dropped(directive.id, text);
            let sections = self.all().filter(|it| it.name == "directory");
            for section in sections.filter(|it| plain(it.word(0)).as_deref() == Some(target)) {
                let all = [section].into_iter().chain(section.inside());
                all.for_each(|it| ledger.dropped_if_open(it.id, text));
            }
            return None;
        }
        let inside = contents(self.files, Path::new(target), &self.htaccess_names());
        let rewrite = Some("/".to_owned());
        self.directory(directive.id, target, inside, rewrite, ledger)
    }

    /// Whether the directory of a `ScriptAlias` is there and empty. httpd appends the rest of a path to the text of the
    /// directory, so this says something of all paths only if both end with a slash, or neither does.
    pub(crate) fn has_no_programs(&self, directive: &Directive) -> bool {
        let (path, target) = (directive.word(0), directive.word(1));
        let are_alike = path.ends_with('/') == target.ends_with('/');
        let names = self.files.names(Path::new(target));
        target.starts_with('/') && are_alike && names.is_some_and(|it| it.is_empty())
    }

    /// The directory at a path on the source's machine, if the front can serve it with all its settings; else reports
    /// why not. Only a document root has no `rewrite`.
    fn directory(
        &self,
        id: Id,
        path: &str,
        inside: Contents,
        rewrite: Option<String>,
        ledger: &mut Ledger,
    ) -> Option<ServedDirectory> {
        let mut keys = Keys::new();
        keys.insert("charset".to_owned(), quoted(&self.charset(ledger)));
        if let Some(fallback) = self.fallback_page(ledger)
            && rewrite.is_none()
        {
            match fallback.word(0).strip_prefix('/') {
                // The page of another directory may have other settings.
                Some(page) if !page.contains('/') => {
                    keys.insert("fallback".to_owned(), quoted(page));
                    ledger.mapped(fallback.id);
                }
                _ => ledger.lost(fallback.id, "this page was not converted"),
            }
        }
        let scopes = plain(path).and_then(|it| self.scopes(&it, &mut keys, ledger));
        let Some(scopes) = scopes.filter(|it| !it[0].processing.is_whole) else {
            let text = "the importer cannot express the access rules of these files";
            ledger.kept_or_risk(id, text);
            self.leave_guards(ledger);
            return None;
        };
        if let Some(reason) = self.refusal(path, inside) {
            ledger.kept_or_risk(id, &format!("the front does not serve `{path}`: {reason}"));
            self.leave_guards(ledger);
            return None;
        }
        ledger.mapped(id);
        let serve = Serve {
            directory: self.files.located(Path::new(path)),
            source: path.to_owned(),
            rewrite,
            upstream: None,
            keys,
        };
        let action = Action::Serve(Box::new(serve));
        Some(ServedDirectory { action, scopes })
    }

    /// Why the front does not serve a directory; `None` if it does.
    fn refusal(&self, path: &str, inside: Contents) -> Option<&'static str> {
        if self.files.names(Path::new(path)).is_none() {
            Some(
                "the directory does not exist on this machine: create it and import again, or run the import where it is",
            )
        } else if inside.is_hidden {
            Some("it holds more files than the importer checks")
        } else if inside.has_scripts {
            Some("it contains programs, and the front would send their source")
        } else if !self.overrides(path) {
            None
        } else if inside.has_guards {
            Some("it contains a `.htaccess`, which may restrict access")
        } else if self.has_htaccess_above(path) {
            Some("a directory above it contains a `.htaccess`, which may restrict access")
        } else {
            None
        }
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

    /// The charset of texts that have none (`AddDefaultCharset`); `off` is also the default.
    fn charset(&self, ledger: &mut Ledger) -> String {
        let Some(directive) = self.find("adddefaultcharset") else {
            return "off".to_owned();
        };
        ledger.mapped(directive.id);
        let charset = directive.word(0).to_ascii_lowercase();
        if charset != "off" {
            let text = "httpd adds it to pages of applications as well, the front to files alone";
            ledger.note(directive.id, text);
        }
        match charset.as_str() {
            "on" => "iso-8859-1".to_owned(),
            _ => charset,
        }
    }

    /// The first `FallbackResource`, in sections or outside of them; marks all of them as handled.
    fn fallback_page(&self, ledger: &mut Ledger) -> Option<&'a Directive> {
        let sections = self.all().filter(|it| it.name == "directory");
        let directives = sections.flat_map(Directive::inside).chain(self.all());
        let mut first = None;
        for fallback in directives.filter(|it| it.name == "fallbackresource") {
            ledger.handle(fallback.id);
            first.get_or_insert(fallback);
        }
        first
    }

    /// Whether `.htaccess` in this directory, or above or below it, may change settings: some section allows it, or
    /// none forbids it here. Without any `AllowOverride` httpd reads the file, and refuses all requests for its
    /// directory.
    fn overrides(&self, path: &str) -> bool {
        let mut is_forbidden_here = false;
        for section in self.all().filter(|it| it.name.starts_with("directory")) {
            for directive in section.inside() {
                if !directive.name.starts_with("allowoverride") {
                    continue;
                }
                if !directive.word(0).eq_ignore_ascii_case("none") {
                    return true;
                }
                is_forbidden_here |= Path::new(path).starts_with(section.word(0));
            }
        }
        !is_forbidden_here
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
        // The first scope is that of the directory itself.
        let mut scopes = vec![FileScope::default()];
        for block in [self.main, self.inner] {
            scopes[0].processing.add(block, ledger);
            scopes[0].expiry.add(block, ledger);
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
        if scopes.iter().any(|it| it.guards.admits_by_either()) {
            names.close_strict(ledger)?;
        }
        let NameSections {
            mut hidden, closed, ..
        } = names;
        hidden.extend(scopes.iter().flat_map(|it| it.processing.hidden.clone()));
        if !hidden.is_empty() {
            hidden.sort();
            hidden.dedup();
            keys.insert("hide".to_owned(), quoted_list(hidden));
        }
        for scope in &mut scopes {
            scope.processing.close(closed.clone());
        }
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
    /// Sections that replace an outer `Satisfy Any`, and otherwise let in all clients; with their files, or `None` if the
    /// section may be about any directory.
    strict: Vec<(Id, Option<String>)>,
}

impl NameSections {
    /// Notes a section that replaces a `Satisfy Any`: what that lets in by their address alone may be refused then.
    fn replace_satisfy_any(&mut self, section: &Directive, files: Option<String>) {
        self.strict.push((section.id, files));
    }

    /// Closes the files of the sections that replace a `Satisfy Any`, where one is in force; `None` if the importer does not
    /// know which these are.
    fn close_strict(&mut self, ledger: &mut Ledger) -> Option<()> {
        for (section, files) in std::mem::take(&mut self.strict) {
            ledger.unmapped(section, UNSAID);
            self.closed.push(files?);
        }
        Some(())
    }
}

impl FileScope {
    /// Adds the settings of a `<Directory>` section.
    fn add(&mut self, section: &Directive, ledger: &mut Ledger) {
        let inner = section.inside();
        self.processing.add(inner, ledger);
        self.expiry.add(inner, ledger);
        let mut settings = fields::settings(inner, None, ledger);
        // Of the keys of routes, those of files are read apart; a limit of bodies is left.
        settings.keys.retain(|key, _| key == "body_max");
        self.settings.merge(&settings.into());
    }
}

impl ServedDirectory {
    /// Replaces the action [`Action::Files`] of rules: they serve this directory, with its guards.
    pub(crate) fn fill(&self, rules: &mut [Rule]) {
        for rule in rules.iter_mut().filter(|it| it.action == Action::Files) {
            rule.action = self.action.clone();
            if rule.settings.access == Access::Open {
                set_guards(rule, &self.scopes[0].guards);
            }
        }
    }

    /// Makes the rule of an `Alias` serve this directory, with its guards.
    pub(crate) fn rule(&self, mut rule: Rule) -> Rule {
        rule.action = self.action.clone();
        set_guards(&mut rule, &self.scopes[0].guards);
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
                // The guards of the directory itself are those that `fill` or `rule` has set.
                if !scope.below.is_empty() {
                    set_guards(rule, &scope.guards);
                }
                rule.settings.merge(&scope.settings);
                scope.processing.over(rule);
                scope.expiry.over(rule);
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
            let paths = self.scopes.iter().map(|it| format!("{above}{}", it.below));
            let mut scopes = self.scopes.iter().zip(paths).rev();
            // The innermost directory that contains all paths of the rule.
            let scope = scopes.find(|(_, path)| is_above(path, start.trim_end_matches('/')));
            let Some((scope, path)) = scope.filter(|_| self.is_own(&rule)) else {
                next.push(rule);
                continue;
            };
            for names in scope.processing.programs() {
                let programs = placed(&path, names);
                match rule.matcher.common(&programs) {
                    Common::Nothing => {}
                    Common::Set(common) if common == rule.matcher => rule.action = Action::Closed,
                    Common::Set(common) => next.push(Rule {
                        action: Action::Closed,
                        ..rule.narrowed(common)
                    }),
                    Common::Unsaid => {
                        next.push(Rule::new(rule.place.as_ref(), programs, Action::Closed));
                    }
                }
            }
            next.push(rule);
        }
        *rules = next;
    }

    /// Whether a rule serves this directory, by an alias as this one or not.
    fn is_own(&self, rule: &Rule) -> bool {
        match (&rule.action, &self.action) {
            (Action::Serve(one), Action::Serve(two)) => {
                let are_alike = one.rewrite.is_some() == two.rewrite.is_some();
                one.directory == two.directory && are_alike
            }
            _ => false,
        }
    }
}

/// Gives a rule the guards of a directory, in place of those that it has.
fn set_guards(rule: &mut Rule, guards: &Guards) {
    rule.settings.access = guards.authz.clone().unwrap_or_default();
    rule.settings.compat = guards.compat.clone().unwrap_or_default();
    rule.settings.methods = guards.methods.clone().unwrap_or_default();
    rule.settings.tls_only = guards.tls_only;
    rule.settings.is_strange = guards.is_strange;
    rule.settings.has_require = guards.authz.is_some();
    rule.settings.satisfy = guards.satisfy;
    rule.settings.auth = guards.auth.clone();
}

/// A directory's path without empty and `.` segments; `None` if it has wildcards or `..`, or if it is relative.
fn plain(path: &str) -> Option<String> {
    let inner = path.strip_prefix('/')?;
    if path.contains(['*', '?', '[']) {
        return None;
    }
    let mut plain = String::with_capacity(path.len());
    for name in inner.split('/') {
        match name {
            "" | "." => {}
            ".." => return None,
            _ => plain.extend(["/", name]),
        }
    }
    Some(plain)
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
    // With two words, the second one is an expression. `None`: an expression, or wildcards.
    let own_path = plain(section.word(0)).filter(|_| section.words.len() == 1);
    let below = match &own_path {
        Some(own) if own != path && is_above(path, own) => &own[path.len()..],
        _ => "",
    };
    let is_deeper = !below.is_empty();
    // A deeper directory begins with the guards of the one around it.
    let outer = scopes.iter().rev().find(|it| is_above(&it.below, below));
    let mut scope = outer.cloned().unwrap_or_default();
    if is_deeper {
        // The rules have the settings of the outer one already.
        scope.settings = SharedSettings::default();
    }
    let is_apart = match &own_path {
        Some(own) => !is_deeper && !is_above(own, path),
        None => is_elsewhere(section, path),
    };
    if is_apart {
        ledger.in_place(|ledger| section_guards(section, names, ledger));
        drop_rest(section, ledger);
        return Some(());
    }
    let (converted, judged) = ledger.in_place(|ledger| {
        let converted = section_guards(section, names, ledger);
        scope.add(section, ledger);
        (converted, SERVES.judge(section.inside(), ledger))
    });
    // Only a deeper directory can be closed alone. Any other section decides about all that is served.
    let guards = match converted {
        Some(converted) if is_deeper || !judged.closes() => converted,
        None if is_deeper => {
            ledger.unmapped(section.id, UNSAID);
            Guards::strange()
        }
        _ => return None,
    };
    drop_rest(section, ledger);
    if own_path.is_none() {
        // The section may be about any of the directories.
        if guards.replaces_satisfy_any() {
            names.replace_satisfy_any(section, None);
        }
        let is_open = !guards.closes() && !section.inside().iter().any(is_of_responses);
        return (is_open && !changes_files(section)).then_some(());
    }
    scope.guards.merge(guards);
    scope.guards.add(judged);
    if is_deeper {
        below.clone_into(&mut scope.below);
        scopes.push(scope);
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
    let (said, judged) = ledger.in_place(|ledger| {
        let said = section_guards(section, names, ledger);
        (said, SERVES.judge(section.inside(), ledger))
    });
    drop_rest(section, ledger);
    let is_changed = section.inside().iter().any(is_of_responses) || changes_files(section);
    let guards = said?;
    let is_open = !guards.closes() && !judged.closes() && !is_changed;
    // The front serves no names with a dot, so such a section needs no rule, except for `.well-known`. What is served
    // may lie in a hidden directory itself.
    let dotted = behind_dot(section).filter(|_| !path.contains("/."));
    if dotted.is_none_or(|it| !names_others(it)) {
        if guards.replaces_satisfy_any() {
            let files = dotted.map(|_| WELL_KNOWN_FILES.to_owned());
            names.replace_satisfy_any(section, files);
        }
        if !is_open && dotted.is_some() {
            names.hidden.push(WELL_KNOWN.to_owned());
        }
    }
    (is_open || dotted.is_some()).then_some(())
}

/// The access rules of a section; `None` if it does more than the importer can express. Reads the `<Files>` sections
/// inside it into `names`.
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
    let is_filter = name.ends_with("filter") && !processing::compresses(directive.word(0));
    is_field || is_filter || PROCESSING.contains(&name)
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
    if is_of_dots(section) {
        // The files are hidden whatever the result is.
        access::of_section(section.inside(), ledger);
        ledger.mapped(section.id);
        return Some(());
    }
    let mut changes_responses = false;
    let (guards, judged) = ledger.in_place(|ledger| {
        // Sections inside of this one would be about other names.
        let guards = section_guards(section, &mut NameSections::default(), ledger);
        for directive in section.inside().iter().filter(|it| is_of_responses(it)) {
            // The files are closed, so changes to their responses do not matter.
            ledger.unmapped(directive.id, UNSAID);
            changes_responses = true;
        }
        (guards, SERVES.judge(section.inside(), ledger))
    });
    let guards = guards?;
    drop_rest(section, ledger);
    let name = section.word(0);
    let is_plain = section.name == "files"
        && section.words.len() == 1
        && !name.is_empty()
        && !name.contains(['/', '[', '\\']);
    // With other passwords than around it, the files are closed.
    match access::if_strange(guards.asks_otherwise(), guards.joined()) {
        Access::Open if changes_responses || judged.closes() => {
            names.closed.push(names_of(section)?);
        }
        Access::Open if guards.replaces_satisfy_any() => {
            let files = names_of(section)?;
            names.replace_satisfy_any(section, Some(files));
        }
        Access::Open => {}
        Access::Nobody if is_plain => names.hidden.push(name.to_owned()),
        Access::Nobody => names.closed.push(names_of(section)?),
        Access::Clients(_) | Access::Methods { .. } | Access::Unsaid => {
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
    let mut behind = starts.iter().filter_map(|start| text.strip_prefix(*start));
    // A quantifier would make the dot optional.
    behind.find(|it| !it.starts_with(['?', '*', '{']) && !has_alternatives(it))
}

/// Whether an expression behind a dot begins with other names than that of [`WELL_KNOWN`].
fn names_others(expression: &str) -> bool {
    let in_group = expression
        .strip_prefix("(?:")
        .or_else(|| expression.strip_prefix('('));
    let text = in_group.unwrap_or(expression);
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_|".contains(sign);
    let names_end = text.find(|sign| !is_plain(sign)).unwrap_or(text.len());
    let (names, behind_names) = text.split_at(names_end);
    let behind = match in_group {
        Some(_) => behind_names.strip_prefix(')'),
        None => Some(behind_names),
    };
    // A quantifier would make what stands before it optional.
    if behind.is_none_or(|it| it.starts_with(['?', '*', '{'])) {
        return false;
    }
    // Each name must begin with another sign than `well-known`.
    let is_other_sign = |sign: char| sign.is_ascii_alphanumeric() && !"wW".contains(sign);
    names.split('|').all(|name| name.starts_with(is_other_sign))
}

/// The directory whose name begins with a dot and that the front serves.
const WELL_KNOWN: &str = ".well-known";

/// All files below such a directory, as an expression for [`placed`].
const WELL_KNOWN_FILES: &str = "(?:.*/)?\\.well-known(?:/.*)?$";

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
