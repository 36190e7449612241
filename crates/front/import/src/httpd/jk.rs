//! mod_jk's directives in files of httpd: workers, maps and mounts.

use std::path::PathBuf;

use crate::directive::Directive;
use crate::files::{ImportError, Text};
use crate::httpd::tree::Expansion;
use crate::ledger::Ledger;
use crate::mod_jk::mounts::{self, Mount, Source};
use crate::mod_jk::workers::Workers;
use crate::sources::Sources;

/// Adds the mounts that workers declare by their property `mount`. They are taken out of `workers`, which has no other
/// use for them.
pub(super) fn worker_mounts(workers: &mut Workers, server_mounts: &mut Vec<Mount>) {
    for (pattern, worker, id) in std::mem::take(&mut workers.mounts) {
        mounts::add(server_mounts, &pattern, |pattern| Mount {
            pattern,
            written: String::new(),
            worker: worker.clone(),
            excludes: false,
            extensions: Vec::new(),
            source: Source::Worker,
            id,
        });
    }
}

/// Drops the server's mounts if no virtual host copies them: they reach no request.
pub(super) fn drop_dead_mounts(mounts: &[Mount], is_copied: bool, ledger: &mut Ledger) {
    if is_copied {
        return;
    }
    for mount in mounts {
        let text =
            "each address has a virtual host, and none has JkMountCopy: this mount serves nothing";
        ledger.dropped(mount.id, text);
        ledger.note(mount.id, text);
    }
}

/// Reads the worker files and the `uriworkermap` files of mod_jk that were given on the command line, whether or not
/// files of httpd were given with them. Adds the workers, and returns the mounts.
pub(super) fn read_given_jk_files(
    sources: &Sources,
    expansion: &mut Expansion<'_>,
    workers: &mut Workers,
) -> Vec<Mount> {
    for text in &sources.workers {
        workers.add(text, expansion.ledger, expansion.files);
    }
    let maps = sources.maps.iter();
    maps.flat_map(|text| mounts::read_map(text, expansion.ledger))
        .collect()
}

/// Reads the files that `JkWorkersFile` and `JkMountFile` name, and `JkWorkerProperty`. Adds the workers, and returns
/// the mounts.
pub(super) fn jk_files(
    directives: &[Directive],
    sources: &Sources,
    expansion: &mut Expansion<'_>,
    workers: &mut Workers,
) -> Result<Vec<Mount>, ImportError> {
    let mut found = Vec::new();
    for directive in directives {
        match directive.name.as_str() {
            "jkworkersfile" => {
                let text = jk_file(directive, &sources.workers, sources, expansion)?;
                if let Some(text) = text {
                    workers.add(&text, expansion.ledger, expansion.files);
                }
            }
            "jkmountfile" => {
                let text = jk_file(directive, &sources.maps, sources, expansion)?;
                if let Some(text) = text {
                    found.extend(mounts::read_map(&text, expansion.ledger));
                }
            }
            "jkworkerproperty" => {
                let line = directive.words.join(" ");
                let (name, value) = line.split_once('=').unwrap_or((&line, ""));
                let (name, value, id) = (name.trim(), value.trim(), directive.id);
                expansion.ledger.mapped(id);
                workers.set(name, value, id, expansion.ledger, expansion.files);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The file that a directive names. `None` if it does not exist, or if a file of its kind was `given` that is this
/// one or replaces it.
fn jk_file(
    directive: &Directive,
    given: &[Text],
    sources: &Sources,
    expansion: &mut Expansion<'_>,
) -> Result<Option<Text>, ImportError> {
    let mut paths = Vec::new();
    if let Some(main) = sources.httpd.first() {
        paths = expansion.paths(directive.word(0), main);
    }
    let is_read_already = |path: &PathBuf| {
        let mut all_given = sources.workers.iter().chain(&sources.maps);
        all_given.any(|text| text.path == *path)
    };
    // A given file replaces one that does not exist here.
    if !given.is_empty() && paths.first().is_none_or(is_read_already) {
        expansion.ledger.mapped(directive.id);
        return Ok(None);
    }
    let Some(path) = paths.first() else {
        let text = format!(
            "the file `{}` does not exist; give its path, or the root directory with --root",
            directive.word(0)
        );
        expansion.ledger.risk(directive.id, text);
        return Ok(None);
    };
    let text = expansion.budget.read(expansion.files, path)?;
    expansion.ledger.mapped(directive.id);
    Ok(Some(text))
}

/// The mounts of `JkMount` and `JkUnMount`; inside of a section they are for its path.
pub(super) fn jk_mounts(
    directives: &[Directive],
    section: Option<&str>,
    ledger: &mut Ledger,
) -> Vec<Mount> {
    let mut found = Vec::new();
    for directive in directives {
        let words = &directive.words;
        match (directive.name.as_str(), section, &words[..]) {
            ("jkmount" | "jkunmount", Some(path), [worker]) => {
                let mount = |pattern| mount(pattern, worker, directive);
                mounts::add(&mut found, path, mount);
            }
            ("jkmount" | "jkunmount", _, [pattern, worker]) => {
                let mount = |pattern| mount(pattern, worker, directive);
                mounts::add(&mut found, pattern, mount);
            }
            ("jkmount" | "jkunmount", ..) => ledger.risk(directive.id, "it needs two words"),
            ("location", None, [path]) => {
                found.extend(jk_mounts(directive.inside(), Some(path), ledger));
            }
            ("jkmountcopy", ..) => ledger.mapped(directive.id),
            _ => {}
        }
    }
    found
}

/// The mount of one pattern of a `JkMount` or `JkUnMount`.
fn mount(pattern: String, worker: &str, directive: &Directive) -> Mount {
    Mount {
        pattern,
        written: String::new(),
        worker: worker.to_owned(),
        excludes: directive.name == "jkunmount",
        extensions: Vec::new(),
        source: Source::Directive,
        id: directive.id,
    }
}
