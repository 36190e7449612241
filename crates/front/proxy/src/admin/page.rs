//! The page at `/`, by which a front is watched and steered in a browser: four files that are part of the
//! program. They hold no data of a front: the page asks [`super::api`] for all that it shows.

use http::StatusCode;

use super::reply::Reply;

/// Whether the path is one of a file of the page.
pub(super) fn is_part(path: &[u8]) -> bool {
    find(path).is_some()
}

/// Answers a request for a file of the page; `None` for another path.
pub(super) fn answer(path: &[u8]) -> Option<Reply> {
    let (content_type, text) = find(path)?;
    Some(Reply::new(StatusCode::OK, content_type, text))
}

fn find(path: &[u8]) -> Option<(&'static str, &'static str)> {
    Some(match path {
        b"/" => ("text/html; charset=utf-8", include_str!("page/page.html")),
        b"/page.css" => ("text/css; charset=utf-8", include_str!("page/page.css")),
        b"/page.js" => (
            "text/javascript; charset=utf-8",
            include_str!("page/page.js"),
        ),
        b"/favicon.svg" => ("image/svg+xml", include_str!("page/favicon.svg")),
        _ => return None,
    })
}

#[cfg(test)]
mod tests;
