//! Rules for the URLs in fields of backends' responses: the tables `[[route.reverse_url]]`.

use super::expression::PathExpression;
use super::template::Template;

/// Which URLs a route changes, and into what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlRule {
    /// The URLs that are changed.
    pub from: UrlPattern,
    /// What stands in the place of the part that `from` names.
    pub to: Template,
}

/// The URLs that a [`UrlRule`] changes, as the response has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UrlPattern {
    /// Those that begin with this text, which is replaced.
    Prefix(Template),
    /// Those in which this expression matches. They are replaced as a whole.
    Expression(PathExpression),
}
