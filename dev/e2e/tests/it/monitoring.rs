//! The page of metrics, the alert rules and the dashboard in `docs/examples`: promtool takes them, and the
//! names they use are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use catamaran_e2e::Front;
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Process, address};
use serde_json::Value;

use crate::reload::application;

fn example(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    PathBuf::from(folder).join(name)
}

/// Runs promtool, which must find nothing wrong; gives what it said.
fn promtool(arguments: &[&str], input: &str) -> String {
    let mut child = Command::new("promtool")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is installed: `cargo xtask needs`");
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

/// A front of which every family has a sample: with a certificate, an answer and a failure.
fn front() -> (Front, Process) {
    let (application, url) = application();
    let refusing = address::refusing().unwrap();
    let files = tempfile::tempdir().unwrap();
    let authority = Authority::new("authority").unwrap();
    authority.issue(files.path(), "a", &["a.test"]).unwrap();
    let at = files.path().display();
    let front = Front::with_config(&format!(
        "[[listen]]\naddress = \"127.0.0.1:0\"\n\
         [[listen]]\naddress = \"127.0.0.1:0\"\ntls = \"www\"\n\
         [tls.www]\n[[tls.www.certificate]]\nchain = \"{at}/a.pem\"\nkey = \"{at}/a.key\"\n\
         [[route]]\nupstream = \"app\"\n\
         [[upstream.app.backend]]\nname = \"blue\"\nurl = \"{url}\"\n\
         [[upstream.app.backend]]\nname = \"gone\"\nurl = \"http://{refusing}\"\n\
         [admin]\naddress = \"127.0.0.1:0\"\n"
    ))
    .unwrap();
    // Each worker begins with another backend: so many that one of them meets the one that is gone.
    for _ in 0..8 {
        assert_eq!(front.get("/").unwrap().status, 200);
    }
    (front, application)
}

fn scrape(front: &Front) -> String {
    front.ask_admin("/metrics").unwrap().text()
}

#[test]
fn promtool_finds_nothing_wrong_with_a_scrape() {
    let (front, _application) = front();
    let said = promtool(&["check", "metrics"], &scrape(&front));
    assert_eq!(said, "");
}

#[test]
fn alerts_fire_when_they_should() {
    let rules = example("prometheus/catamaran.rules.yml");
    promtool(&["check", "rules", rules.to_str().unwrap()], "");
    let tests = example("prometheus/catamaran.rules.test.yml");
    promtool(&["test", "rules", tests.to_str().unwrap()], "");
    let tests = fs::read_to_string(tests).unwrap();
    let rules = fs::read_to_string(rules).unwrap();
    let told = fs::read_to_string(example("../monitoring.md")).unwrap();
    let alerts = rules
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- alert: "));
    let alerts: Vec<&str> = alerts.collect();
    assert!(alerts.len() >= 20, "{alerts:?}");
    for alert in alerts {
        assert!(
            tests.contains(&format!("alertname: {alert}\n")),
            "{alert} has no test"
        );
        assert!(
            told.contains(&format!("| `{alert}` |")),
            "docs/monitoring.md lacks {alert}"
        );
    }
}

/// The labels of each family that has samples. Those of a histogram are named by the family.
fn labels(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let typed = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let histograms: BTreeSet<&str> = typed
        .filter_map(|line| line.strip_suffix(" histogram"))
        .collect();
    let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in page.lines().filter(|line| !line.starts_with('#')) {
        let (series, _) = line.rsplit_once(' ').unwrap();
        let (name, pairs) = series.split_once('{').unwrap_or((series, ""));
        let cut = ["_bucket", "_sum", "_count"].iter().find_map(|suffix| {
            name.strip_suffix(suffix)
                .filter(|name| histograms.contains(name))
        });
        let known = families.entry(cut.unwrap_or(name).to_owned()).or_default();
        known.extend(
            words(pairs)
                .into_iter()
                .filter(|(_, next)| *next == '=')
                .map(|it| it.0),
        );
    }
    families
}

/// The names in an expression, each with the sign behind it; what is quoted is left out.
fn words(text: &str) -> Vec<(String, char)> {
    let unquoted: String = text.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    let is_part = |it: char| it.is_ascii_alphanumeric() || it == '_';
    let mut words = Vec::new();
    let mut rest = unquoted.as_str();
    while let Some(at) = rest.find(is_part) {
        let word = &rest[at..];
        let end = word.find(|it| !is_part(it)).unwrap_or(word.len());
        let next = word[end..].trim_start().chars().next().unwrap_or(' ');
        words.push((word[..end].to_owned(), next));
        rest = &word[end..];
    }
    words
}

/// What an expression asks for that is not there: metrics, labels of selectors, labels to group by.
fn missing(expression: &str, families: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let of_scrape = ["instance", "job"];
    let named: Vec<String> = words(expression)
        .into_iter()
        .map(|(word, _)| word)
        .filter(|word| word.starts_with("catamaran_") || word.starts_with("process_"))
        .collect();
    let family = |name: &String| {
        let cut = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|it| name.strip_suffix(it));
        families.get(name).or_else(|| families.get(cut?))
    };
    let mut missing: Vec<String> = named
        .iter()
        .filter(|name| family(name).is_none())
        .cloned()
        .collect();
    let known: BTreeSet<&String> = named.iter().filter_map(family).flatten().collect();
    let mut asked: Vec<String> = Vec::new();
    for part in expression.split('{').skip(1) {
        let selector = part.split('}').next().unwrap();
        let of_selector = words(selector).into_iter();
        asked.extend(
            of_selector
                .filter(|(_, next)| "=!".contains(*next))
                .map(|it| it.0),
        );
    }
    for grouping in ["by (", "on ("] {
        for part in expression.split(grouping).skip(1) {
            asked.extend(
                words(part.split(')').next().unwrap())
                    .into_iter()
                    .map(|it| it.0),
            );
        }
    }
    asked.retain(|label| !known.contains(label) && !of_scrape.contains(&label.as_str()));
    missing.extend(asked);
    missing
}

/// The expressions of the rules, each of one line or of a block.
fn expressions_of_rules() -> Vec<String> {
    let rules = fs::read_to_string(example("prometheus/catamaran.rules.yml")).unwrap();
    let mut expressions: Vec<String> = Vec::new();
    let mut inside = false;
    for line in rules.lines() {
        if let Some(expression) = line.trim().strip_prefix("expr: ") {
            inside = true;
            expressions.push(expression.trim_start_matches('|').to_owned());
        } else if line.starts_with("          ") && inside {
            let last = expressions.last_mut().unwrap();
            last.push(' ');
            last.push_str(line.trim());
        } else {
            inside = false;
        }
    }
    expressions
}

fn dashboard() -> Value {
    let text = fs::read_to_string(example("grafana/catamaran.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Those of panels and annotations, as Prometheus gets them.
fn expressions_of_dashboard(dashboard: &Value) -> Vec<String> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let annotations = dashboard["annotations"]["list"].as_array().unwrap();
    let all = targets
        .chain(annotations)
        .map(|it| it["expr"].as_str().unwrap());
    all.map(|it| it.replace("$__rate_interval", "5m")).collect()
}

#[test]
fn what_rules_and_dashboard_ask_for_is_there() {
    let (front, _application) = front();
    let families = labels(&scrape(&front));
    let dashboard = expressions_of_dashboard(&dashboard());
    let rules = expressions_of_rules();
    assert!(dashboard.len() > 40 && rules.len() >= 20);
    for expression in dashboard.iter().chain(&rules) {
        let missing = missing(expression, &families);
        assert!(missing.is_empty(), "{missing:?} of {expression}");
    }
    // The check itself notices what is not there.
    for wrong in [
        "catamaran_nothing",
        "catamaran_ready{upstream=\"a\"}",
        "sum by (backend) (catamaran_upstream_panic)",
    ] {
        assert_eq!(missing(wrong, &families).len(), 1, "{wrong}");
    }
}

#[test]
fn the_dashboard_is_well_formed() {
    let dashboard = dashboard();
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<&str> = variables
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["datasource", "job", "instance", "upstream", "backend"]
    );
    let mut rules = String::from("groups:\n- name: dashboard\n  rules:\n");
    for (number, expression) in expressions_of_dashboard(&dashboard).iter().enumerate() {
        for (_, rest) in expression
            .match_indices('$')
            .map(|(at, _)| expression.split_at(at + 1))
        {
            assert!(names.iter().any(|name| rest.starts_with(name)), "${rest}");
        }
        rules += &format!("  - record: query:{number}\n    expr: '{expression}'\n");
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dashboard.yml");
    fs::write(&file, rules).unwrap();
    promtool(&["check", "rules", file.to_str().unwrap()], "");

    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<u64> = panels.iter().map(|it| it["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "each id once");
    let mut cells = BTreeSet::new();
    for panel in panels {
        let title = &panel["title"];
        let of = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(of("x") + of("w") <= 24, "{title} is too wide");
        for y in of("y")..of("y") + of("h") {
            for x in of("x")..of("x") + of("w") {
                assert!(cells.insert((x, y)), "{title} covers another panel");
            }
        }
        let told = panel["description"]
            .as_str()
            .is_some_and(|it| it.ends_with('.'));
        assert!(panel["type"] == "row" || told, "{title} is not described");
    }
}
