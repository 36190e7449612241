use super::*;

#[test]
fn a_pattern_with_a_bar_is_two() {
    let text = Text {
        name: "u".into(),
        path: "u".into(),
        text: "/app|/*=w;reply_timeout=5000\n!/x=*\n".into(),
    };
    let mut ledger = Ledger::new(false);
    let mounts = read_map(&text, &mut ledger);
    let shown: Vec<_> = mounts
        .iter()
        .map(|it| (it.pattern.as_str(), it.excludes))
        .collect();
    assert_eq!(shown, [("/app", false), ("/app/*", false), ("/x", true)]);
    assert_eq!(
        mounts[1].extensions,
        [("reply_timeout".to_owned(), "5000".to_owned())]
    );
}

#[test]
fn a_prefix_has_its_own_path_unless_another_rule_takes_it() {
    let answer =
        |text: &str, status: u16| Rule::new(None, Matcher::pattern(text), Action::Answer(status));
    let mut ledger = Ledger::new(false);
    let mut alone = vec![answer("/app/*", 201)];
    join_prefixes(&mut alone, &mut ledger);
    assert_eq!(alone[0].matcher, Matcher::prefix("/app"));
    let mut both = vec![answer("/app/*", 201), answer("/app", 201)];
    join_prefixes(&mut both, &mut ledger);
    assert_eq!(both.len(), 1);
    let mut other = vec![answer("/app/*", 201), answer("/*", 202)];
    join_prefixes(&mut other, &mut ledger);
    let shown: Vec<_> = other
        .iter()
        .map(|it| (it.matcher.clone(), it.action.clone()))
        .collect();
    assert_eq!(
        shown,
        [
            (Matcher::Exact("/app".into()), Action::Answer(202)),
            (Matcher::prefix("/app"), Action::Answer(201)),
            (Matcher::everything(), Action::Answer(202)),
        ]
    );
}
