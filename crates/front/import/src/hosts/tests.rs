use super::*;
use crate::condition::{Condition, of_host};
use crate::matcher::Matcher;

fn redirect(condition: Condition, to: &str, capture: Option<&str>) -> Rule {
    let action = Action::Redirect {
        to: to.to_owned(),
        status: 301,
    };
    Rule {
        when: Some(Box::new(When {
            condition,
            ids: Vec::new(),
            capture: capture.map(str::to_owned),
        })),
        ..Rule::new(None, Matcher::everything(), action)
    }
}

/// The rules in a form to compare: the scheme of each, and where it leads.
type ShownRules = Vec<(Option<Scheme>, String)>;

/// Resolves the rules of a virtual host on a listener in the clear and one with TLS. The host is the
/// default of both, so it also gets requests for names that it does not have.
fn resolved(names: &[&str], rules: Vec<Rule>) -> Vec<(Vec<String>, ShownRules)> {
    let mut plan = Plan::default();
    plan.listener("[::]:80", 80);
    plan.listener("[::]:443", 443);
    plan.listeners[1].tls = Some(crate::plan::Tls::default());
    plan.hosts.push(VirtualHost {
        names: names.iter().map(|&it| it.to_owned()).collect(),
        listeners: vec![0, 1],
        default_on: vec![0, 1],
        rules,
        ..VirtualHost::default()
    });
    resolve(&mut plan, &mut Ledger::new(false));
    let shown = |rule: Rule| match rule.action {
        Action::Redirect { to, .. } => (rule.scheme, to),
        other => (rule.scheme, format!("{other:?}")),
    };
    let hosts = plan.hosts.into_iter();
    hosts
        .map(|it| (it.names, it.rules.into_iter().map(shown).collect()))
        .collect()
}

#[test]
fn hosts_that_are_treated_alike_are_one() {
    let not_www = of_host("^www\\.a\\.org$", &[]).negated_if(true);
    let http = Condition::Scheme(Scheme::Http);
    let either = Condition::any([http, not_www]);
    let found = resolved(
        &["www.a.org", "a.org", "b.org"],
        vec![redirect(either, "/x", None)],
    );
    let names = |texts: &[&str]| texts.iter().map(|&it| it.to_owned()).collect::<Vec<_>>();
    assert_eq!(
        found,
        [
            (
                names(&["www.a.org"]),
                vec![(Some(Scheme::Http), "/x".to_owned())]
            ),
            (names(&["a.org", "b.org"]), vec![(None, "/x".to_owned())]),
        ]
    );
}

#[test]
fn the_rest_of_a_host_is_written_for_those_that_are_named() {
    let www = of_host("^www\\.(.+)$", &[]);
    let rule = redirect(www, "https://{captured}/", Some("www."));
    let found = resolved(&["a.org", "www.a.org"], vec![rule]);
    let targets: Vec<(&str, Vec<&str>)> = found
        .iter()
        .map(|(names, rules)| {
            let targets = rules.iter().map(|it| it.1.as_str()).collect();
            (names.first().map_or("", String::as_str), targets)
        })
        .collect();
    assert_eq!(
        targets,
        [
            ("a.org", vec![]),
            ("www.a.org", vec!["https://a.org/"]),
            ("", vec!["Closed"])
        ]
    );
}

#[test]
fn what_is_no_redirect_is_closed_for_hosts_that_nobody_names() {
    let mut rule = redirect(of_host("^intern\\.", &[]), "", None);
    rule.action = Action::Answer(404);
    let found = resolved(&["a.org", "intern.a.org"], vec![rule]);
    let shown: Vec<&str> = found
        .iter()
        .flat_map(|it| &it.1)
        .map(|it| it.1.as_str())
        .collect();
    assert_eq!(shown, ["Answer(404)", "Closed"]);
}

#[test]
fn a_host_that_only_a_condition_names_is_one_of_its_own() {
    let found = resolved(
        &["a.org"],
        vec![redirect(of_host("^old\\.org$", &[]), "/x", None)],
    );
    let names: Vec<&[String]> = found.iter().map(|it| &it.0[..]).collect();
    assert_eq!(names, [["a.org"], ["old.org"]]);
    assert_eq!(found[1].1.len(), 1);
}

/// The rest of a host that nobody names is not known, and what is behind the redirect is not for all of them.
#[test]
fn a_redirect_for_hosts_that_nobody_names_is_closed_or_for_all_of_them() {
    let not_www = of_host("^www\\.", &[]).negated_if(true);
    let old = of_host("^old\\.", &[]);
    for (condition, to, expected) in [
        (&not_www, "https://www.a.org{path_query}", None),
        (&not_www, "{scheme}://www.a.org:8443/x", None),
        // The host is one that the redirect is for, or is not known.
        (&not_www, "https://a.org{path_query}", Some("Closed")),
        (&not_www, "https://{host}{path_query}", Some("Closed")),
        (&not_www, "https://www.a.org{query}", Some("Closed")),
        (&not_www, "https://www.{host}/", Some("Closed")),
        (&not_www, "/x", Some("Closed")),
        // It is for few hosts.
        (&old, "https://www.a.org/", Some("Closed")),
    ] {
        let found = resolved(&["a.org"], vec![redirect(condition.clone(), to, None)]);
        let of_others = found.iter().find(|it| it.0.is_empty());
        let shown = of_others.map(|it| it.1.clone());
        let expected = vec![(None, expected.unwrap_or(to).to_owned())];
        assert_eq!(shown, Some(expected), "{condition:?} {to}");
    }
    // The host to which all others are redirected has its own routes.
    let rule = redirect(not_www, "https://www.a.org{path_query}", None);
    let found = resolved(&["*.a.org"], vec![rule]);
    let of_www = found.iter().find(|it| it.0 == ["www.a.org"]);
    assert_eq!(of_www.map(|it| it.1.len()), Some(0), "{found:?}");
}

#[test]
fn a_redirect_of_one_scheme_stays_one_for_hosts_that_nobody_names() {
    let not_www = of_host("^www\\.", &[]).negated_if(true);
    let over_http = Condition::all([Condition::Scheme(Scheme::Http), not_www]);
    let to = "https://www.a.org{path_query}";
    let found = resolved(&["www.a.org"], vec![redirect(over_http, to, None)]);
    let of_others = found.iter().find(|it| it.0.is_empty());
    let expected = vec![(Some(Scheme::Http), to.to_owned())];
    assert_eq!(of_others.map(|it| it.1.clone()), Some(expected));
}
