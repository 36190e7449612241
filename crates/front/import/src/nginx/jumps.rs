//! `error_page` of a location that answers every request by the same `return`: what answers instead.
//!
//! `return` comes before guards, `error_page` behind it, and only once for a request. So all requests of the location get
//! what the page's location says, and its guards.

use catamaran_config::foreign_answer;

use crate::directive::Directive;
use crate::judge::PlaceUse;
use crate::ledger::{Id, Ledger, LedgerKeeper as _};
use crate::nginx::answer::{TextType, answer, template};
use crate::nginx::certificates::certificate_key;
use crate::nginx::fields::response_fields;
use crate::nginx::location::{Scope, claim_idle, judge};
use crate::nginx::pages;
use crate::nginx::rewrite::redirect_of_all;
use crate::plan::{Action, Settings, SharedSettings, redirect_status};

/// What answers in the place of a location's `return`.
pub(super) enum Jump<'d> {
    /// This action, with these fields of responses.
    Action(Action, SharedSettings),
    /// A named location, which gets requests as they are.
    Named(&'d Directive),
}

/// The `return` of a location and the `error_page` for its status.
pub(super) struct ErrorJump<'d> {
    answer: &'d Directive,
    page: &'d Directive,
    status: u16,
}

impl<'d> ErrorJump<'d> {
    /// Finds both; `None` if the location does anything else before, or no page is for its status.
    pub(super) fn read(scope: Scope<'d>) -> Option<Self> {
        let answer = scope.own("return")?;
        let status = answer.word(0).parse().ok()?;
        // Texts are sent as they are.
        let is_error = answer.word(1).is_empty() || redirect_status(status).is_some();
        let is_found = scope.own("internal").is_none();
        let is_last = scope.find("recursive_error_pages").is_none();
        let mut pages = scope.level(|it| it.name == "error_page").into_iter();
        let page = pages.find(|it| it.words.iter().any(|word| word == answer.word(0)))?;
        let is_plain = is_error && is_found && is_last && only_answers(scope.blocks.first()?);
        is_plain.then_some(Self {
            answer,
            page,
            status,
        })
    }

    /// The two directives.
    pub(super) fn ids(&self) -> [Id; 2] {
        [self.answer.id, self.page.id]
    }

    /// What answers; `None` if the front cannot do the same. `scope` is that of the location, and `server` the directives
    /// of its server.
    pub(super) fn target(
        &self,
        scope: Scope<'d>,
        server: &'d [Directive],
        port: u16,
        ledger: &mut Ledger,
    ) -> Option<Jump<'d>> {
        let (uri, codes) = self.page.words.split_last()?;
        let given = codes.iter().find_map(|it| it.strip_prefix('='));
        if !uri.starts_with(['/', '@']) {
            let status = given.and_then(|it| redirect_status(it.parse().ok()?));
            let to = template(uri, None)?;
            let status = status.unwrap_or(302);
            return Some(with_fields(
                Action::Redirect { to, status },
                scope,
                port,
                ledger,
            ));
        }
        let is_named = uri.starts_with('@');
        let location = if is_named {
            let mut all = server.iter().filter(|it| it.name == "location");
            all.find(|it| it.word(0) == uri)?
        } else if uri.contains(['$', '?', '#', '%']) {
            return None;
        } else {
            pages::location(uri, server).ok()??
        };
        let inner = location.inside();
        if !only_answers(inner) {
            return None;
        }
        let outer = scope.blocks.get(1..)?;
        let blocks: Vec<&[Directive]> = [&[inner][..], outer].concat();
        let scope = Scope {
            blocks: &blocks,
            expression: None,
            upstreams: scope.upstreams,
        };
        let action = match (scope.own("return"), redirect_of_all(inner)) {
            (Some(own), _) => answer(own, TextType::of(scope, None), None, ledger),
            (None, Some((_, action))) => action,
            // Its responses keep their own status.
            (None, None) => {
                let keeps_status = is_named && given == Some("");
                return keeps_status.then_some(Jump::Named(location));
            }
        };
        let mut action = self.with_status(action, given)?;
        if let Action::Redirect { to, .. } = &mut action
            && !is_named
        {
            *to = to.replace("{search}", "").replace("{and_query}", "");
        }
        (is_named || !names_request(&action)).then(|| with_fields(action, scope, port, ledger))
    }

    /// The action with the status that the `error_page` gives it.
    fn with_status(&self, action: Action, given: Option<&str>) -> Option<Action> {
        let status = |own: u16| match given {
            Some("") => Some(own),
            Some(given) => given.parse().ok(),
            None => Some(self.status),
        };
        let is_plain = |status: &u16| matches!(status, 200..=299 | 400..=599);
        match action {
            Action::Redirect { .. } | Action::Answer(400..) => Some(action),
            Action::Answer(own) => status(own).filter(is_plain).map(Action::Answer),
            Action::Text(mut text) => {
                text.status = status(text.status).filter(is_plain)?;
                Some(Action::Text(text))
            }
            _ => None,
        }
    }
}

/// The action of a place with the fields of its responses; closed if something of the place is not known.
fn with_fields<'d>(action: Action, scope: Scope<'_>, port: u16, ledger: &mut Ledger) -> Jump<'d> {
    let mut settings = Settings::default();
    let is_closed = ledger.in_place(|ledger| {
        response_fields(scope, port, &mut settings, ledger);
        settings.keys.extend(certificate_key(scope, ledger));
        closes(scope, ledger)
    });
    let action = if is_closed { Action::Closed } else { action };
    Jump::Action(action, settings.into())
}

/// Whether a place has a directive that may refuse requests before a `return`, or one that is not known.
pub(super) fn closes(scope: Scope<'_>, ledger: &mut Ledger) -> bool {
    claim_idle(scope, ledger);
    for directive in scope.blocks.iter().copied().flatten() {
        let name = directive.name.as_str();
        let is_asked_before = BEFORE_RETURN.contains(&name);
        if foreign_answer("nginx", name).is_some() && !is_asked_before {
            ledger.handle(directive.id);
        }
    }
    judge(scope, PlaceUse::default(), ledger).closes()
}

/// Whether an action depends on what the location of a page does not see of the request: that gets GET and its own path,
/// without a query.
fn names_request(action: &Action) -> bool {
    let text = match action {
        Action::Redirect { to, .. } => to,
        Action::Text(text) => &text.text,
        _ => return false,
    };
    ["{path", "{query", "{method"]
        .iter()
        .any(|it| text.contains(it))
}

/// Whether nothing in a location is asked before it answers.
fn only_answers(own: &[Directive]) -> bool {
    let has = |names: &[&str]| own.iter().any(|it| names.contains(&it.name.as_str()));
    !has(&ASKS) && (!has(&["rewrite"]) || redirect_of_all(own).is_some())
}

/// Directives by which nginx refuses requests before its rewrite phase. For `ssl_verify_client` the rules ask for a
/// certificate.
const BEFORE_RETURN: [&str; 2] = ["ssl_reject_handshake", "ssl_ocsp"];

/// Directives that are asked before or instead of a `return`, or make its page one of several.
const ASKS: [&str; 7] = [
    "if",
    "limit_except",
    "location",
    "set",
    "break",
    "try_files",
    "recursive_error_pages",
];
