//! The source's error pages, as files that the front can show.

use std::path::Path;

use crate::files::Files;
use crate::toml_text::quoted;

/// The file of an error page, as a route names it.
///
/// # Errors
/// The reason why the front cannot show the page.
pub(crate) fn page(files: &dyn Files, path: &str) -> Result<String, String> {
    let extension = path.rsplit_once('.').map_or("", |it| it.1);
    if !EXTENSIONS.contains(&extension) {
        return Err(format!("the front has no such page as `{path}`"));
    }
    match files.read(Path::new(path)) {
        Err(error) => Err(format!("its page `{path}` cannot be read: {error}")),
        Ok(bytes) if bytes.len() > PAGE_MAX => {
            Err(format!("its page `{path}` is larger than 1 MiB"))
        }
        Ok(_) => Ok(quoted(&files.located(Path::new(path)))),
    }
}

/// The status as a key of an error page; `None` unless it is 400 to 599.
pub(crate) fn status(text: &str) -> Option<String> {
    let status = text.parse::<u16>().ok()?;
    (400..600).contains(&status).then(|| status.to_string())
}

const PAGE_MAX: usize = 1 << 20;

/// The extensions of error pages, by which the front knows their media type.
const EXTENSIONS: [&str; 6] = ["html", "htm", "xhtml", "txt", "json", "xml"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_errors_have_pages() {
        for (text, expected) in [
            ("404", Some("404")),
            ("302", None),
            ("5xx", None),
            ("600", None),
        ] {
            assert_eq!(status(text).as_deref(), expected, "{text}");
        }
    }
}
