//! Converts `return`: statuses, texts and redirects.

use catamaran_config::{TEXT_MAX, is_inert_type};
use catamaran_proxy::config::{Placeholder, Template};

use crate::condition::CAPTURED;
use crate::directive::Directive;
use crate::ledger::Ledger;
use crate::nginx::location::Scope;
use crate::nginx::variables::{expand, expand_text};
use crate::plan::{Action, AnswerText, redirect_status};

/// The media type of the texts that a `return` sends.
#[derive(Clone, Copy)]
pub(crate) enum TextType<'d> {
    /// That of this `default_type`; text/plain without one.
    Default(Option<&'d Directive>),
    /// It is not known.
    Unknown,
}

impl<'d> TextType<'d> {
    /// The type in this scope.
    pub(crate) fn of(scope: Scope<'d>) -> Self {
        Self::Default(scope.find("default_type"))
    }

    fn name(self) -> Option<&'d str> {
        match self {
            Self::Default(directive) => Some(directive.map_or("text/plain", |it| it.word(0))),
            Self::Unknown => None,
        }
    }
}

/// Converts a `return`.
pub(crate) fn answer(
    directive: &Directive,
    text_type: TextType<'_>,
    ledger: &mut Ledger,
) -> Action {
    let (first, text) = (directive.word(0), directive.word(1));
    let (status, text) = match first.parse::<u16>() {
        Ok(status) => (status, text),
        Err(_) => (302, first),
    };
    let action = match status {
        444 => Some(Action::Answer(403)),
        301 | 302 | 303 | 307 | 308 => template(text)
            .zip(redirect_status(status))
            .map(|(to, status)| Action::Redirect { to, status }),
        200..=299 | 400..=599 if text.is_empty() => Some(Action::Answer(status)),
        200..=299 | 400..=599 if !matches!(status, 204 | 205) => text_type
            .name()
            .and_then(|media_type| text_answer(status, text, media_type))
            .map(|answer| Action::Text(Box::new(answer))),
        _ => None,
    };
    match action {
        Some(action) => {
            ledger.mapped(directive.id);
            if let (Action::Text(_), TextType::Default(Some(default))) = (&action, text_type) {
                ledger.mapped(default.id);
            }
            action
        }
        None => {
            ledger.unmapped(
                directive.id,
                &format!("`{}` was not converted", directive.shown(ledger)),
            );
            Action::Closed
        }
    }
}

/// The answer with a text; `None` if the front cannot fill it in, or will not show what clients sent in this type.
fn text_answer(status: u16, text: &str, media_type: &str) -> Option<AnswerText> {
    let known = |name: &str| {
        Some(match name {
            "host" => "{host}".to_owned(),
            "http_host" => "{authority}".to_owned(),
            "scheme" => "{scheme}".to_owned(),
            "remote_addr" => "{client_ip}".to_owned(),
            "request_id" => "{request_id}".to_owned(),
            "uri" | "document_uri" => "{path}".to_owned(),
            "request_uri" => PATH_QUERY.to_owned(),
            "args" | "query_string" => "{query}".to_owned(),
            _ => return None,
        })
    };
    let filled = expand_text(text, known)?;
    let template = Template::parse_text(&filled, Placeholder::OF_TEXTS);
    let is_type = matches!(media_type.split_once('/'), Some((_, subtype)) if !subtype.is_empty());
    let may_show = !template.shows_client() || is_inert_type(media_type);
    (is_type && may_show && filled.len() <= TEXT_MAX).then(|| AnswerText {
        status,
        text: filled,
        media_type: media_type.to_owned(),
    })
}

/// The target of a redirect, with placeholders of the front; `None` if it has other variables.
pub(crate) fn template(text: &str) -> Option<String> {
    let known = |name: &str| {
        Some(match name {
            "host" => "{host}".to_owned(),
            "http_host" => "{authority}".to_owned(),
            "scheme" => "{scheme}".to_owned(),
            "request_uri" => PATH_QUERY.to_owned(),
            _ => return None,
        })
    };
    // What an expression of hosts took is marked by a sign that is in no text.
    let pieces: Option<Vec<String>> = text
        .split(HOST_CAPTURE)
        .map(|piece| expand(piece, known))
        .collect();
    let mut to = pieces?.join(CAPTURED);
    if let Some(base) = to.strip_suffix(PATH_QUERY) {
        to = format!("{}{PATH_QUERY}", base.trim_end_matches('/'));
    }
    if to.matches(PATH_QUERY).count() > usize::from(to.ends_with(PATH_QUERY)) {
        return None;
    }
    let rest = ["http://", "https://", "{scheme}://"]
        .iter()
        .find_map(|it| to.strip_prefix(it));
    let starts = match rest {
        Some(rest) => {
            !rest.is_empty() && !rest.starts_with(['/', '?', '#']) && !rest.starts_with("{path")
        }
        None => to.starts_with('/') || to.starts_with("{path"),
    };
    let plain = to
        .chars()
        .all(|it| it.is_ascii_graphic() && !"\"<>\\^`|$".contains(it));
    (starts && plain).then_some(to)
}

/// Placeholder for a request's path and query, at the end of a redirect's target.
const PATH_QUERY: &str = "{path_query}";

/// Placeholder for what the host expression of an `if` captured, inside that `if`.
pub(crate) const HOST_CAPTURE: &str = "$\u{1}";
