//! The keys of `[[route]]` about files that the front serves itself.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use catamaran_proxy::config::{Coding, EtagRule, FilesConfig, Links, MediaPattern};
use http::HeaderValue;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use thiserror::Error;
use toml::Spanned;
use toml::de::DeValue;

use crate::file::Surroundings;
use crate::fill;
use crate::key::{ALL, Group, Key, Preset};
use crate::report::Finding;
use crate::table::Table;
use crate::value::text::file_path;
use crate::value::{
    Choices, Complaint, NamedValues, OneOrMore, Optional, OrOff, Syntax, Values, complaint,
};

/// The values of the keys, before they are checked against each other.
pub(super) struct RawFiles {
    root: Option<PathBuf>,
    types: Vec<(String, HeaderValue)>,
    caching: Vec<(String, Option<HeaderValue>)>,
    files: FilesConfig,
}

/// Reports a `fallback` beside an upstream, which answers all requests for which there is no file.
pub(super) fn complain_of_fallback(table: &mut Table<'_>) {
    let message = "`fallback` has no use beside `upstream`, which answers what is no file";
    table.push(Finding::fault(message, table.place_of("fallback")).hint("remove one of them"));
}

/// Reads the keys about files; `None` if the route has no files.
pub(super) fn read(table: &mut Table<'_>, surroundings: &Surroundings<'_>) -> Option<FilesConfig> {
    let mut written = RawFiles {
        root: None,
        types: Vec::new(),
        caching: Vec::new(),
        files: FilesConfig::new(PathBuf::new()),
    };
    table.read(KEYS, &mut written);
    let RawFiles {
        root,
        types,
        caching,
        mut files,
    } = written;
    if let Links::Also(directories) = &mut files.links {
        for directory in directories {
            *directory = surroundings.base.join(&*directory);
        }
    }
    files.types = types
        .into_iter()
        .map(|(extension, value)| (extension.to_ascii_lowercase(), value))
        .collect();
    if let Some(name) = files.types.keys().find(|name| name.contains(['.', '/'])) {
        let message = format!("`types` has `{name}`, which is no extension");
        let hint = "write what follows the last dot of the name, such as wasm";
        table.push(Finding::fault(message, table.place_of("types")).hint(hint));
    }
    files.cache_control_types = by_media_type(caching, table);
    if !table.has("files") {
        for (name, place) in table.written(KEYS, |group| group == OF_FILES) {
            let message = format!("`{name}` has no use without `files`");
            table.push(Finding::fault(message, place).hint("remove it"));
        }
    }
    files.root = surroundings.base.join(root?);
    // Without a look at the machine, the path alone tells whether it is all of the disk.
    if surroundings.sees_files() {
        inspect(table, &files.root, surroundings.base);
    } else if is_everything(&files.root) {
        everything(table);
    }
    Some(files)
}

/// The values of `cache_control_types` by their patterns, the most specific first.
fn by_media_type(
    written: Vec<(String, Option<HeaderValue>)>,
    table: &mut Table<'_>,
) -> Vec<(MediaPattern, Option<HeaderValue>)> {
    let mut found = Vec::with_capacity(written.len());
    for (name, value) in written {
        match MediaPattern::parse(&name) {
            Some(pattern) => found.push((pattern, value)),
            None => {
                let message = format!("`cache_control_types` has `{name}`, which is no media type");
                let hint = "write a type such as \"text/html\", or a pattern such as \"image/*\"";
                let place = table.place_of("cache_control_types");
                table.push(Finding::fault(message, place).hint(hint));
            }
        }
    }
    found.sort_by_key(|(pattern, _)| Reverse(pattern.precedence()));
    found
}

/// Reports a directory that cannot be served, and one that has more in it than clients should get.
fn inspect(table: &mut Table<'_>, root: &Path, base: &Path) {
    let place = table.place_of("files");
    let shown = root.display();
    let Ok(real) = root.canonicalize() else {
        let message = format!("there is no directory {shown}");
        table.push(Finding::fault(message, place).hint("create it, or write another path"));
        return;
    };
    if !real.is_dir() {
        let message = format!("{shown} is no directory");
        let hint = "name the directory that the file is in, and the file by `path` or `fallback`";
        table.push(Finding::fault(message, place).hint(hint));
        return;
    }
    if is_everything(&real) {
        everything(table);
        return;
    }
    let needed = Access::READ_OK | Access::EXEC_OK;
    if accessat(CWD, &real, needed, AtFlags::EACCESS).is_err() {
        let message = format!("{shown} may not be read by this user");
        let hint = "give the user of the front the right to read and search it";
        table.push(Finding::fault(message, place).hint(hint));
        return;
    }
    for (danger, hint) in dangers(&real, base) {
        let message = format!("{shown} {danger}");
        table.push(Finding::warning(message, place.clone()).hint(hint));
    }
}

/// What clients should not get from the directory `real`, and what to do about it. The configuration is in `base`.
fn dangers(real: &Path, base: &Path) -> Vec<(&'static str, &'static str)> {
    let mut dangers = Vec::new();
    let base = if base.as_os_str().is_empty() {
        Path::new(".")
    } else {
        base
    };
    if base.canonicalize().is_ok_and(|base| base.starts_with(real)) {
        dangers.push((
            "has this configuration in it, which clients could read",
            "serve a directory of its own",
        ));
    }
    if PRIVATE.iter().any(|private| real == Path::new(private)) {
        dangers.push((
            "is a directory of the system, with much that is not for clients",
            "serve a directory of its own, such as /srv/www",
        ));
    }
    if real.join("WEB-INF").is_dir() {
        dangers.push((
            "is an exploded WAR: classes, libraries and sources of JSPs are hidden, but other files that \
             only the application was to read are not",
            "look through it, hide what is not for clients by `hide`, or serve a directory below it",
        ));
    }
    if has_key(real) {
        dangers.push((
            "has the key of a certificate in it, which clients could read",
            "move the key elsewhere",
        ));
    }
    dangers
}

/// Faults a directory that is the whole machine.
fn everything(table: &mut Table<'_>) {
    let message = "`files` is `/`, every file of the machine";
    let place = table.place_of("files");
    table.push(Finding::fault(message, place).hint("serve a directory of its own"));
}

fn is_everything(path: &Path) -> bool {
    path.has_root() && path.components().count() == 1
}

/// Whether a file in the directory itself has the name of a private key.
fn has_key(directory: &Path) -> bool {
    let Ok(entries) = directory.read_dir() else {
        return false;
    };
    let mut names = entries.take(ENTRIES_MAX).flatten().map(|it| it.file_name());
    names.any(|name| {
        let name = name.to_string_lossy().to_ascii_lowercase();
        let is_plain = !name.starts_with('.');
        is_plain && (name.ends_with(".key") || name.ends_with("key.pem"))
    })
}

/// Why a text is not a value of a key about files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum FileNameError {
    /// The text is not a path below the directory.
    #[error("must be a name below `files`, without `..`, a slash at its beginning, or a backslash")]
    Name,
    /// The text names a file that a container makes, or one that is hidden.
    #[error("is never served: the application makes or hides it")]
    OfApplication,
    /// The text is not a pattern of a single name.
    #[error("must be 1 to 255 bytes without a slash: it is compared with one name at a time")]
    Pattern,
    /// The text is not the value of a field.
    #[error("must be printable ASCII characters")]
    Value,
    /// The text is not a media type.
    #[error("must be a type and a subtype with a slash between them")]
    MediaType,
    /// The text is not a charset.
    #[error("must be letters, digits, `-`, `_` or `.`")]
    Charset,
}

/// Parses the path of a file below the directory, such as `index.html`. Files that are never served are refused.
fn parse_name(text: &str) -> Result<String, FileNameError> {
    let is_name = |part: &str| !matches!(part, "" | "." | "..");
    if text.contains(['\\', '\0']) || !text.split('/').all(is_name) || text.len() > 255 {
        return Err(FileNameError::Name);
    }
    for part in text.split('/') {
        let part = part.to_ascii_lowercase();
        let is_source = [".jsp", ".jspx", ".jspf", ".tag"]
            .iter()
            .any(|suffix| part.ends_with(suffix));
        if is_source || part.starts_with('.') || matches!(&*part, "web-inf" | "meta-inf") {
            return Err(FileNameError::OfApplication);
        }
    }
    Ok(text.to_owned())
}

/// Parses a pattern of names, which are at most 255 bytes long on Linux.
fn parse_pattern(text: &str) -> Result<String, FileNameError> {
    if (1..=255).contains(&text.len()) && !text.contains('/') {
        Ok(text.to_owned())
    } else {
        Err(FileNameError::Pattern)
    }
}

fn parse_value(text: &str) -> Result<HeaderValue, FileNameError> {
    let text = text.trim();
    let is_good = !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let value = HeaderValue::from_str(text).ok().filter(|_| is_good);
    value.ok_or(FileNameError::Value)
}

/// Parses a media type, which may have parameters. A list of types is refused.
pub(super) fn parse_media_type(text: &str) -> Result<HeaderValue, FileNameError> {
    let value = parse_value(text)?;
    let name = text.split(';').next().unwrap_or_default().trim();
    match name.split_once('/') {
        Some((kind, subtype)) if !kind.is_empty() && !subtype.is_empty() && !text.contains(',') => {
            Ok(value)
        }
        _ => Err(FileNameError::MediaType),
    }
}

/// Parses the name of a character set.
fn parse_charset(text: &str) -> Result<String, FileNameError> {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_good) {
        Ok(text.to_owned())
    } else {
        Err(FileNameError::Charset)
    }
}

/// The value of `links`: where links may lead, as a word or a list of directories.
struct LinkRule;

impl Values for LinkRule {
    type Read = Links;

    fn read(&self, value: &Spanned<DeValue<'_>>) -> Result<Links, Vec<Complaint>> {
        let wrong_value = || complaint(format!("must be {}", self.describe()), value);
        if let Some(word) = value.get_ref().as_str() {
            return match word {
                "inside" => Ok(Links::Inside),
                "off" => Ok(Links::Off),
                _ => Err(wrong_value()),
            };
        }
        let mut directories = Vec::new();
        for entry in value.get_ref().as_array().ok_or_else(wrong_value)? {
            match entry.get_ref().as_str() {
                Some(path) if !path.is_empty() => directories.push(PathBuf::from(path)),
                _ => return Err(wrong_value()),
            }
        }
        if directories.is_empty() {
            return Err(wrong_value());
        }
        Ok(Links::Also(directories))
    }

    fn describe(&self) -> String {
        "\"inside\" or \"off\", or a list of directories".to_owned()
    }
}

/// System directories that nobody should serve as a whole.
const PRIVATE: &[&str] = &[
    "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/opt", "/proc", "/root", "/run", "/sbin",
    "/srv", "/sys", "/tmp", "/usr", "/var",
];

/// The most entries of a directory that are examined.
const ENTRIES_MAX: usize = 10_000;

const FILE_NAME: Syntax<String, FileNameError> = Syntax {
    what: "a file's name such as \"index.html\"",
    parse: parse_name,
};

/// Keys that have no use without `files`.
const OF_FILES: Group = Group("files");

pub(super) static KEYS: &[Key<RawFiles>] = &[
    Key {
        name: "files",
        group: ALL,
        value: fill!(
            Optional(file_path("a directory such as \"/srv/www\"")),
            RawFiles.root
        ),
        preset: Preset::Unset("the front serves no files"),
        sample: "\"/srv/www\"",
        effect: "The directory whose files are served, by the path as it would be forwarded: `/a/b.css` is \
                 `DIR/a/b.css`, and with `path = \"/static\"` and `rewrite = \"/\"` `/static/b.css` is \
                 `DIR/b.css`. Alone, a request without a file is answered 404. Beside `upstream` a GET or \
                 HEAD without a file goes to the upstream, as do all other methods. It may be a link: \
                 another target is used within a second. [files.md](files.md) explains it.",
        extremes: "Never served are names that begin with a dot (but `.well-known`), `WEB-INF`, `META-INF`, \
                   `*.jsp`, `*.jspx`, `*.jspf`, `*.tag`, and what is no regular file. Replace files by \
                   rename: one that is written to while it is sent is cut (`file-changed`).",
        elsewhere: "nginx `root`, `alias`, `try_files`; httpd `DocumentRoot`, `Alias`",
    },
    Key {
        name: "index",
        group: OF_FILES,
        value: fill!(OneOrMore(FILE_NAME), RawFiles.files.index),
        preset: Preset::Value("[\"index.html\"]"),
        sample: "[\"index.html\", \"index.htm\"]",
        effect: "The files that stand for a directory: the first that exists. A path of such a directory \
                 without a slash at its end is redirected to the one with it (308).",
        extremes: "`[]` serves no directory. A directory is never listed.",
        elsewhere: "nginx `index`; httpd `DirectoryIndex`",
    },
    Key {
        name: "fallback",
        group: OF_FILES,
        value: fill!(Optional(FILE_NAME), RawFiles.files.fallback),
        preset: Preset::Unset("a missing file is answered 404"),
        sample: "\"index.html\"",
        effect: "The file that stands in for a missing page, with status 200: for applications that have \
                 their routes in the browser. It does so if the client accepts `text/html` and the last name \
                 of the path has no dot, so that a missing script or image stays 404.",
        extremes: "Beside `upstream` it is a fault: the upstream answers what is missing.",
        elsewhere: "nginx `try_files $uri /index.html`; httpd `FallbackResource`",
    },
    Key {
        name: "links",
        group: OF_FILES,
        value: fill!(LinkRule, RawFiles.files.links),
        preset: Preset::Value("\"inside\""),
        sample: "[\"/srv/media\"]",
        effect: "Where symbolic links below `files` may lead: `\"inside\"` anywhere inside the directory, by \
                 a relative path; `\"off\"` nowhere; or a list of directories that they may lead to besides. \
                 A link to elsewhere is answered 404 and logged (`files-outside`). The kernel itself keeps \
                 the path inside, so that no swap of a directory for a link helps.",
        extremes: "With `\"inside\"` a link by an absolute path leads outside, even to a file inside. Who may \
                   write to a directory of the list decides what clients see.",
        elsewhere: "nginx `disable_symlinks`; httpd `Options FollowSymLinks`, `SymLinksIfOwnerMatch`",
    },
    Key {
        name: "hide",
        group: OF_FILES,
        value: fill!(
            OneOrMore(Syntax {
                what: "a name such as \"private\", or a pattern such as \"*.map\"",
                parse: parse_pattern,
            }),
            RawFiles.files.hide
        ),
        preset: Preset::Value("[]"),
        sample: "[\"*.map\", \"private\"]",
        effect: "Names of files and directories that are not served, besides those that never are. `*` \
                 stands for any characters, `?` for one; a pattern is compared with each name of the path.",
        extremes: "It holds for the path that the client asks for: a link of another name to such a file is \
                   followed.",
        elsewhere: "httpd `<Files>` with `Require all denied`; nginx `location ~` with `deny all`",
    },
    Key {
        name: "etag",
        group: OF_FILES,
        value: fill!(
            Choices(&[("time", EtagRule::Time), ("content", EtagRule::Content)]),
            RawFiles.files.etag
        ),
        preset: Preset::Value("\"time\""),
        sample: "\"content\"",
        effect: "What the `ETag` of files is made of: `\"time\"` the time of the last change and the size, \
                 `\"content\"` a digest of the bytes (SHA-256). The latter is for directories in which all \
                 files have the same time whatever their version, as in images of containers. Files whose \
                 time is 1970 get one of their content in any case, and no `Last-Modified`.",
        extremes: "The first request for each version waits until a thread has read all of the file; others \
                   get no `ETag` meanwhile. A file that was written within the last two seconds has none.",
        elsewhere: "httpd `FileETag MTime Size`, `FileETag Digest`; nginx `etag on` (time and size)",
    },
    Key {
        name: "cache_control",
        group: OF_FILES,
        value: fill!(
            Optional(Syntax {
                what: "a value such as \"max-age=3600\"",
                parse: parse_value,
            }),
            RawFiles.files.cache_control
        ),
        preset: Preset::Unset(
            "the field is not sent, and clients ask whether a file has changed as they see fit",
        ),
        sample: "\"public, max-age=31536000, immutable\"",
        effect: "The value of `Cache-Control` of files (200, 206, 304), and not of errors.",
        extremes: "A long one is for names that change with their content, such as `app.3f2a.js`; a page \
                   under a fixed name then stays old for as long.",
        elsewhere: "nginx `expires`, `add_header`; httpd `ExpiresDefault`, `Header set`",
    },
    Key {
        name: "cache_control_types",
        group: OF_FILES,
        value: fill!(
            NamedValues {
                what: "media types with values, such as { \"text/html\" = \"no-cache\" }",
                of: OrOff(Syntax {
                    what: "a value such as \"max-age=3600\"",
                    parse: parse_value,
                }),
            },
            RawFiles.caching
        ),
        preset: Preset::Value("{}"),
        sample: "{ \"text/html\" = \"no-cache\", \"image/*\" = \"max-age=2592000\" }",
        effect: "In place of `cache_control`, for files of these media types, without parameters; `*` stands for any \
                 characters of the subtype. A type counts before a pattern, a longer pattern before a shorter one. With \
                 `\"off\"` the field is not sent.",
        extremes: "Pages name the other files of a site: one that is kept for long keeps on naming old ones.",
        elsewhere: "nginx `expires` with a `map` of `$sent_http_content_type`; httpd `ExpiresByType`",
    },
    Key {
        name: "charset",
        group: OF_FILES,
        value: fill!(
            OrOff(Syntax {
                what: "a charset such as \"utf-8\"",
                parse: parse_charset,
            }),
            RawFiles.files.charset
        ),
        preset: Preset::Value("\"utf-8\""),
        sample: "\"iso-8859-1\"",
        effect: "The `charset` in `Content-Type` of files of `text/*`.",
        extremes: "A wrong one beats what a page says of itself.",
        elsewhere: "nginx `charset`; httpd `AddDefaultCharset`",
    },
    Key {
        name: "types",
        group: OF_FILES,
        value: fill!(
            NamedValues {
                what: "extensions with their types, such as { glb = \"model/gltf-binary\" }",
                of: Syntax {
                    what: "a media type such as \"model/gltf-binary\"",
                    parse: parse_media_type,
                },
            },
            RawFiles.types
        ),
        preset: Preset::Value("{}"),
        sample: "{ dat = \"text/plain; charset=utf-8\" }",
        effect: "Types of files by extension, before those that the front knows.",
        extremes: "A file whose extension nobody knows is `application/octet-stream`: browsers save it.",
        elsewhere: "nginx `types`; httpd `AddType`",
    },
    Key {
        name: "precompressed",
        group: OF_FILES,
        value: fill!(
            OneOrMore(Choices(&[
                ("br", Coding::Brotli),
                ("gzip", Coding::Gzip),
                ("zstd", Coding::Zstd),
            ])),
            RawFiles.files.precompressed
        ),
        preset: Preset::Value("[\"br\", \"gzip\"]"),
        sample: "[\"zstd\", \"br\", \"gzip\"]",
        effect: "Codings in which a file may also exist, as `NAME.br`, `NAME.gz`, `NAME.zst`: the client gets \
                 the one that it weighs most, of equals the first of this list. Without the plain file there \
                 is none.",
        extremes: "One that is older than the plain file by more than a minute is not used, and logged \
                   (`sibling-older`). Each name costs an open whenever a file is looked up; `[]` saves it where \
                   there are none.",
        elsewhere: "nginx `gzip_static`, `brotli_static`; httpd a recipe of `mod_rewrite`",
    },
];
