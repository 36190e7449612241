//! Converts `return`: statuses, texts and redirects.

use catamaran_config::{TEXT_MAX, is_inert_type};
use catamaran_proxy::config::{Placeholder, Template};

use crate::condition::CAPTURED;
use crate::directive::Directive;
use crate::expression::Expression;
use crate::ledger::Ledger;
use crate::nginx::files::type_of;
use crate::nginx::location::Scope;
use crate::nginx::variables::{expand, expand_text, placeholder};
use crate::plan::{Action, AnswerText, redirect_status};

/// The media type of the texts that a `return` sends.
#[derive(Clone, Copy)]
pub(crate) struct TextType<'d> {
    /// `None`: it is not known.
    name: Option<&'d str>,
    /// The `default_type` that is in force.
    default: Option<&'d Directive>,
}

impl<'d> TextType<'d> {
    pub(crate) const UNKNOWN: Self = Self {
        name: None,
        default: None,
    };

    /// The type in this scope: that of the extension of the location's path, else that of `default_type`, else
    /// text/plain. Below a path nginx takes the extension of each request's path, which the front does not do.
    pub(crate) fn of(scope: Scope<'d>, path: Option<&str>) -> Self {
        let default = scope.find("default_type");
        let of_extension = path.and_then(|it| type_of(it, scope));
        let of_default = || default.map_or("text/plain", |it| it.word(0));
        Self {
            name: Some(of_extension.unwrap_or_else(of_default)),
            default,
        }
    }
}

/// Converts a `return`, and marks it as mapped; one that cannot be converted is reported, and its place is closed. The
/// groups of `expression` are variables.
pub(crate) fn answer(
    directive: &Directive,
    text_type: TextType<'_>,
    expression: Option<&Expression>,
    ledger: &mut Ledger,
) -> Action {
    let first = directive.word(0);
    let (status, text) = match first.parse::<u16>() {
        Ok(status) => (status, directive.word(1)),
        // A URL alone is a redirect.
        Err(_) => (302, first),
    };
    let action = match status {
        // nginx closes the connection without an answer.
        444 => Some(Action::Answer(403)),
        301 | 302 | 303 | 307 | 308 => template(text, expression)
            .zip(redirect_status(status))
            .map(|(to, status)| Action::Redirect { to, status }),
        200..=299 | 400..=599 if text.is_empty() => Some(Action::Answer(status)),
        // Responses with these two have no body.
        200..=299 | 400..=599 if !matches!(status, 204 | 205) => text_type
            .name
            .and_then(|media_type| text_answer(status, text, media_type))
            .map(|answer| Action::Text(Box::new(answer))),
        _ => None,
    };
    match action {
        Some(action) => {
            ledger.mapped(directive.id);
            if let (Action::Text(_), Some(default)) = (&action, text_type.default) {
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

/// The answer with a text. `None` if the front cannot fill in its variables, if the text is too long or its type none,
/// or if the text has a client's values and browsers would run this type.
fn text_answer(status: u16, text: &str, media_type: &str) -> Option<AnswerText> {
    let filled = expand_text(text, placeholder)?;
    let template = Template::parse_text(&filled, Placeholder::OF_TEXTS);
    let is_type = matches!(media_type.split_once('/'), Some((_, subtype)) if !subtype.is_empty());
    // A client's value in a type such as text/html could contain a script.
    let is_safe = !template.shows_client() || is_inert_type(media_type);
    (is_type && is_safe && filled.len() <= TEXT_MAX).then(|| AnswerText {
        status,
        text: filled,
        media_type: media_type.to_owned(),
        is_guarded: false,
    })
}

/// The target of a redirect, with placeholders of the front and of the groups of an expression. `None` if it has
/// variables that the front does not have, or is no target that the front accepts.
pub(crate) fn template(text: &str, expression: Option<&Expression>) -> Option<String> {
    let known = |name: &str| {
        let captured = expression.and_then(|it| it.placeholder(name));
        let is_known = |it: &String| Template::parse(it, Placeholder::OF_REDIRECTS).is_ok();
        captured.or_else(|| placeholder(name).filter(is_known))
    };
    // A sign that is in no text of a configuration marks what an expression for hosts captured.
    let pieces: Option<Vec<String>> = text
        .split(HOST_CAPTURE)
        .map(|piece| expand(piece, known))
        .collect();
    let mut to = pieces?.join(CAPTURED);
    // The path begins with a slash of its own.
    if let Some(base) = to.strip_suffix(PATH_QUERY) {
        to = format!("{}{PATH_QUERY}", base.trim_end_matches('/'));
    }
    // The front accepts this placeholder only at the end; its two parts may stand anywhere.
    if to.matches(PATH_QUERY).count() > usize::from(to.ends_with(PATH_QUERY)) {
        to = to.replace(&format!("/{PATH_QUERY}"), PATH_QUERY);
        to = to.replace(PATH_QUERY, "{path}{search}");
    }
    let schemes = ["http://", "https://", "{scheme}://"];
    let behind_scheme = schemes.iter().find_map(|it| to.strip_prefix(it));
    let has_valid_start = match behind_scheme {
        // A host must follow, which is no part of the client's path.
        Some(host) => {
            !host.is_empty() && !host.starts_with(['/', '?', '#']) && !host.starts_with("{path")
        }
        // `/{path}` would begin with `//`, behind which browsers expect a host.
        None => (to.starts_with('/') && !to.starts_with("/{path")) || to.starts_with("{path"),
    };
    let is_sign = |it: char| it.is_ascii_graphic() && !"\"<>\\^`|$".contains(it);
    (has_valid_start && to.chars().all(is_sign)).then_some(to)
}

/// Placeholder for a request's path and query, at the end of a redirect's target.
const PATH_QUERY: &str = "{path_query}";

/// Placeholder for what the host expression of an `if` captured, inside that `if`.
pub(crate) const HOST_CAPTURE: &str = "$\u{1}";
