//! What a directory that the source serves contains, which decides whether the front may serve it.

use std::path::{Path, PathBuf};

use crate::files::Files;

/// What [`contents`] found in a directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Whether the directory cannot be read, or holds more names than the importer checks.
    pub(crate) is_hidden: bool,
    /// Whether it contains nothing but the default page of a distribution.
    pub(crate) is_bare: bool,
    /// Whether it holds a file such as `.htaccess`, which may restrict access to files beside it, or of another name that
    /// was looked for.
    pub(crate) has_guards: bool,
    /// Whether it holds programs that a server runs instead of sending their source.
    pub(crate) has_scripts: bool,
}

/// Looks through a directory. `guards` are the names of files to look for, such as those that may restrict access:
/// `.htaccess`.
pub(crate) fn contents(files: &dyn Files, directory: &Path, guards: &[String]) -> Contents {
    let mut contents = Contents {
        is_bare: true,
        ..Contents::default()
    };
    let mut unread: Vec<PathBuf> = vec![directory.to_owned()];
    let mut name_count = 0;
    while let Some(path) = unread.pop() {
        let is_top = path == directory;
        // A file has no names, which tells something only of the directory itself.
        let Some(names) = files.names(&path) else {
            contents.is_hidden |= is_top;
            continue;
        };
        for name in names {
            name_count += 1;
            contents.has_scripts |= is_script(&name);
            // Whatever is below an entry of a distribution, such as `icons`, is the distribution's, too.
            contents.is_bare &= !is_top || is_of_distribution(files, &path.join(&name));
            contents.has_guards |= guards.contains(&name);
            if name_count > NAMES_MAX {
                contents.is_hidden = true;
                return contents;
            }
            // Only reading a name as a directory tells whether it is one.
            unread.push(path.join(&name));
        }
    }
    contents
}

/// Whether a directory with these names holds only the error pages that httpd's distributions have at `/error/`.
pub(crate) fn are_error_pages(names: &[String]) -> bool {
    let is_page = |name: &&String| name.starts_with("HTTP_") && name.ends_with(".html.var");
    let is_beside = |name: &String| BESIDE_ERROR_PAGES.contains(&name.as_str());
    names.iter().any(|it| is_page(&it)) && names.iter().all(|it| is_page(&it) || is_beside(it))
}

/// Whether a distribution put this file into the default document root: an icon for listings, or a page that has one
/// of these names and one of these sentences.
fn is_of_distribution(files: &dyn Files, path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if name == "icons" {
        return true;
    }
    let page = files.read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&page);
    DISTRIBUTION.contains(&name.as_ref()) && SENTENCES.iter().any(|it| text.contains(it))
}

/// Whether a file of this name may be a program. httpd finds an extension anywhere in a name, as in `page.php.bak`.
fn is_script(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let mut extensions = lower.split('.').skip(1);
    extensions.any(|extension| SCRIPTS.contains(&extension))
}

/// The most names that [`contents`] looks at.
const NAMES_MAX: usize = 20_000;

/// Names of pages that distributions put into the default document root.
const DISTRIBUTION: &[&str] = &[
    "index.html",
    "index.nginx-debian.html",
    "50x.html",
    "index.lighttpd.html",
];

/// Names beside a distribution's error pages.
const BESIDE_ERROR_PAGES: &[&str] = &["contact.html.var", "include", "noindex.html", "README"];

/// Sentences of these pages that are on hardly any other page: of httpd, Debian, Ubuntu, Fedora and nginx.
const SENTENCES: &[&str] = &[
    "<h1>It works!</h1>",
    "Apache2 Debian Default Page",
    "Apache2 Ubuntu Default Page",
    "Test Page for the",
    "Welcome to nginx!",
    "Sorry, the page you are looking for is currently unavailable.",
    "lighttpd server package",
];

/// File name extensions of programs that servers run: sending such a file would show its source.
pub(crate) const SCRIPTS: &[&str] = &[
    "php", "php3", "php4", "php5", "php7", "php8", "phtml", "phps", "inc", "cgi", "fcgi", "pl",
    "py", "rb", "asp", "aspx", "cfm", "shtml", "sh", "lua", "var",
];
