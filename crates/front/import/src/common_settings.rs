//! Settings that all routes share and the written file states once: response header fields and
//! error pages.

use crate::plan::{Action, Fields, Keys};
use crate::routes::{Route, RouteGroup, outcome};

/// The contents of `[server.response_headers]` and `[error_pages]` in the written file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommonSettings {
    pub(crate) response_fields: Fields,
    pub(crate) pages: Keys,
}

impl CommonSettings {
    /// Collects the fields and pages that all routes of `groups` have alike; empty if there are fewer than two
    /// routes.
    pub(crate) fn new(groups: &[RouteGroup]) -> Self {
        let routes = || groups.iter().flat_map(|group| group.routes.iter());
        let (Some(first_route), Some(_)) = (routes().next(), routes().nth(1)) else {
            return Self::default();
        };
        let first = &first_route.rule.settings.response_fields;
        // A field that a route changes twice depends on the order of both changes.
        let is_common = |name: &str, has_change: &dyn Fn(&Fields) -> bool| {
            routes().all(|route| {
                let fields = &route.rule.settings.response_fields;
                has_change(fields) && fields.mentions(name) == 1
            })
        };
        let mut response_fields = Fields::default();
        for (name, value) in &first.set {
            if is_common(name, &|fields| fields.set.get(name) == Some(value)) {
                response_fields.set.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in &first.add {
            if is_common(name, &|fields| fields.add.get(name) == Some(value)) {
                response_fields.add.insert(name.clone(), value.clone());
            }
        }
        for name in &first.remove {
            if is_common(name, &|fields| fields.remove.contains(name)) {
                response_fields.remove.push(name.clone());
            }
        }
        Self {
            response_fields,
            pages: pages(routes().filter(|route| shows_pages(route))),
        }
    }

    /// The fields of `own` that are not among the common settings, so that the route's own table must have them.
    pub(crate) fn fields_left(&self, own: &Fields) -> Fields {
        let common = &self.response_fields;
        let mut left = own.clone();
        left.remove.retain(|name| !common.remove.contains(name));
        left.set.retain(|name, _| !common.set.contains_key(name));
        left.add.retain(|name, _| !common.add.contains_key(name));
        left
    }

    /// The pages of `own` that are not among the common settings, so that the route's own table must have them.
    pub(crate) fn pages_left<'o>(
        &'o self,
        own: &'o Keys,
    ) -> impl Iterator<Item = (&'o String, &'o String)> {
        own.iter().filter(|it| self.pages.get(it.0) != Some(it.1))
    }
}

/// Whether a route may answer with an error. Only redirects never do.
pub(crate) fn shows_pages(route: &Route) -> bool {
    !matches!(outcome(&route.rule), Action::Redirect { .. })
}

/// The pages that all these routes have alike, without `replace_errors`.
fn pages<'r>(routes: impl Iterator<Item = &'r Route>) -> Keys {
    let mut shared: Option<Keys> = None;
    for route in routes {
        let own = &route.rule.settings.pages;
        match &mut shared {
            None => {
                let mut pages = own.clone();
                pages.remove(REPLACE_ERRORS);
                shared = Some(pages);
            }
            Some(pages) => pages.retain(|name, value| own.get(name) == Some(value)),
        }
    }
    shared.unwrap_or_default()
}

/// The key that says which error responses of backends the front replaces with its own pages.
pub(crate) const REPLACE_ERRORS: &str = "replace_errors";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::rc::Rc;

    use super::*;
    use crate::matcher::Matcher;
    use crate::plan::Rule;

    /// Names of fields or keys with their values.
    type Pairs<'p> = &'p [(&'p str, &'p str)];

    fn group(routes: &[(Pairs<'_>, Pairs<'_>)]) -> Vec<RouteGroup> {
        let texts = |pairs: Pairs<'_>| -> BTreeMap<String, String> {
            let pairs = pairs.iter();
            pairs.map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
        };
        let route = |(fields, pages): &(Pairs<'_>, Pairs<'_>)| {
            let mut rule = Rule::new(None, Matcher::everything(), Action::Answer(404));
            rule.settings.response_fields.set = texts(fields);
            rule.settings.pages = texts(pages);
            Route {
                before_regex: false,
                rule,
                exclude: std::collections::BTreeSet::new(),
            }
        };
        let routes: Rc<[Route]> = routes.iter().map(route).collect();
        vec![RouteGroup {
            host: 0,
            hosts: Vec::new(),
            listeners: Vec::new(),
            routes,
        }]
    }

    #[test]
    fn what_is_alike_everywhere_is_said_once() {
        let groups = group(&[
            (
                &[("A", "1"), ("B", "2")],
                &[("404", "a"), ("replace_errors", "500")],
            ),
            (&[("A", "1"), ("B", "3")], &[("404", "a"), ("503", "b")]),
        ]);
        let shared = CommonSettings::new(&groups);
        let names: Vec<&String> = shared.response_fields.set.keys().collect();
        assert_eq!(names, ["A"]);
        assert_eq!(shared.pages.keys().collect::<Vec<_>>(), ["404"]);
        let settings = &groups[0].routes[1].rule.settings;
        let left = shared.fields_left(&settings.response_fields);
        assert_eq!(left.set.keys().collect::<Vec<_>>(), ["B"]);
        let pages: Vec<&String> = shared.pages_left(&settings.pages).map(|it| it.0).collect();
        assert_eq!(pages, ["503"]);
    }

    #[test]
    fn one_route_says_all_itself() {
        let groups = group(&[(&[("A", "1")], &[("404", "a")])]);
        assert_eq!(CommonSettings::new(&groups), CommonSettings::default());
    }
}
