use super::*;

fn forward(upstream: usize, rewrite: Option<&str>) -> Action {
    Action::Forward {
        upstream,
        rewrite: rewrite.map(str::to_owned),
    }
}

#[test]
fn a_split_changes_the_common_paths_alone() {
    let mut rules = vec![Rule::new(
        None,
        Matcher::prefix("/shop"),
        forward(0, Some("/app")),
    )];
    let close = |rule: &mut Rule| rule.settings.access = Access::Nobody;
    split(&mut rules, &Matcher::prefix("/shop/admin"), close, close);
    assert_eq!(rules.len(), 2);
    assert_eq!(rules[0].action, forward(0, Some("/app/admin")));
    assert_eq!(rules[0].settings.access, Access::Nobody);
    assert_eq!(rules[1].settings.access, Access::Open);
    split(&mut rules, &Matcher::pattern("/*x*"), |_| (), close);
    assert!(
        rules.iter().all(|it| it.settings.access == Access::Nobody),
        "{rules:?}"
    );
}

#[test]
fn equal_upstreams_are_shared_and_others_get_other_names() {
    let mut plan = Plan::default();
    let upstream = |url: &str| Upstream {
        name: "a b".to_owned(),
        backends: vec![Backend {
            url: url.to_owned(),
            ..Backend::default()
        }],
        ..Upstream::default()
    };
    let first = plan.upstream(upstream("ajp://a:8009"));
    assert_eq!(plan.upstream(upstream("ajp://a:8009")), first);
    assert_ne!(plan.upstream(upstream("ajp://b:8009")), first);
    let names: Vec<&str> = plan.upstreams.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["a-b", "a-b-2"]);
}

#[test]
fn hosts_are_found_by_name_then_wildcard_then_default() {
    let host = |names: &[&str], default: bool| VirtualHost {
        names: names.iter().map(|&it| it.to_owned()).collect(),
        listeners: vec![0],
        default_on: default.then_some(0).into_iter().collect(),
        ..VirtualHost::default()
    };
    let plan = Plan {
        hosts: vec![
            host(&["a.org"], true),
            host(&["*.b.org"], false),
            host(&["x.b.org"], false),
        ],
        ..Plan::default()
    };
    let model = Model::new(&plan);
    for (name, index) in [("x.b.org", 2), ("y.b.org", 1), ("b.org", 0), ("?", 0)] {
        assert_eq!(model.host(0, name), Some(index), "{name}");
    }
    assert_eq!(model.host(1, "a.org"), None);
}

#[test]
fn a_rule_of_a_place_that_nobody_judged_is_closed() {
    let mut plan = Plan::default();
    let rule = |action: Action| Rule::new(None, Matcher::everything(), action);
    plan.hosts.push(VirtualHost {
        rules: vec![rule(forward(0, None)), rule(Action::Answer(404))],
        ..VirtualHost::default()
    });
    let mut ledger = Ledger::new(false);
    plan.close_unjudged(&mut ledger);
    let actions: Vec<&Action> = plan.hosts[0].rules.iter().map(|it| &it.action).collect();
    assert_eq!(actions, [&Action::Closed, &Action::Answer(404)]);
    assert_eq!(ledger.finish().1.len(), 1);
}
