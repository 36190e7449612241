use std::collections::BTreeSet;

use super::*;
use crate::gate::FILE_GATES;

fn keepalive(is_quick: bool) -> Experiment {
    Experiment::read("keepalive.toml", KEEPALIVE, is_quick).unwrap()
}

/// All faults of `keepalive.toml` with `from` replaced by `to`.
fn faults(from: &str, to: &str) -> String {
    assert!(KEEPALIVE.contains(from), "{from}");
    let text = KEEPALIVE.replacen(from, to, 1);
    match Experiment::read("keepalive.toml", &text, false) {
        Ok(_) => panic!("{to} passes"),
        Err(faults) => faults.to_string(),
    }
}

/// That this is the only fault, with its line's words.
fn check(from: &str, to: &str, expected: &str) {
    let said = faults(from, to);
    assert!(said.contains(expected), "{said}");
    assert_eq!(said.matches(" fault: ").count(), 1, "{said}");
    let place = said.strip_prefix("keepalive.toml:").expect(&said);
    let line = place.split_once(':').unwrap().0;
    assert!(line.parse::<usize>().unwrap() > 1, "{said}");
}

#[test]
fn cells_are_all_combinations_but_exceptions() {
    let whole = keepalive(false);
    assert_eq!(whole.cells.len(), 15);
    assert_eq!(whole.factors[0].name, "mpm");
    assert_eq!(
        whole.label(whole.control),
        "mpm=prefork keep=off idle=0 limit=100"
    );
    assert_eq!(whole.rounds, 12);
    let quick = keepalive(true);
    assert_eq!(quick.cells.len(), 5);
    assert_eq!(quick.rounds, 6);
    assert_eq!(quick.time(), Duration::from_millis(1500));
}

#[test]
fn claims_have_a_case_for_each_level() {
    let whole = keepalive(false);
    let first = &whole.claims[0];
    assert_eq!(first.cases.len(), 3);
    for case in &first.cases {
        let [contrast] = &case.contrasts[..] else {
            panic!("{case:?}")
        };
        let (above, below) = (
            &whole.cells[contrast.above[0]],
            &whole.cells[contrast.below[0]],
        );
        assert_eq!(above["keep"], Level::Text("on".to_owned()));
        assert_eq!(below["keep"], Level::Text("off".to_owned()));
        assert_eq!(above["mpm"], below["mpm"]);
    }
    assert!(
        keepalive(true)
            .claims
            .iter()
            .all(|claim| claim.cases.len() == 1)
    );
}

#[test]
fn templates_render_in_each_cell() {
    let experiment = keepalive(false);
    let cell = &experiment.cells[experiment.control];
    let server = experiment
        .server(cell, 0, &BTreeMap::new())
        .unwrap()
        .unwrap();
    assert_eq!(server.target, "httpd");
    assert!(
        server
            .set
            .contains(&("mpm".to_owned(), "prefork".to_owned()))
    );
    assert!(
        server
            .set
            .contains(&("start_workers".to_owned(), "320".to_owned()))
    );
    let ports = BTreeMap::from([("http".to_owned(), "http://127.0.0.1:8001".to_owned())]);
    let addresses = BTreeMap::from([("httpd".to_owned(), ports)]);
    let load = experiment.load(cell, &addresses).unwrap();
    assert_eq!(load.url, "http://127.0.0.1:8001/");
    assert!(!load.keep_alive && load.http == HttpVersion::Http1_1 && load.headers.is_empty());
    let expect = experiment.expect(cell, &addresses).unwrap();
    assert_eq!((expect.status, expect.body_bytes), (Some(200), Some(1456)));
    assert_eq!((expect.kept, expect.kept_requests_max), (Some(false), 100));
}

#[test]
fn a_browser_sends_fifteen_fields_with_host_and_those_of_the_experiment() {
    let head = "[load]\nhead = \"browser\"\nheaders = [\"X-A: b\", \"\"]";
    let text = KEEPALIVE.replacen("[load]", head, 1);
    let experiment = Experiment::read("keepalive.toml", &text, false).unwrap();
    let cell = &experiment.cells[experiment.control];
    let ports = BTreeMap::from([("http".to_owned(), "http://127.0.0.1:8001".to_owned())]);
    let addresses = BTreeMap::from([("httpd".to_owned(), ports)]);
    let load = experiment.load(cell, &addresses).unwrap();
    assert_eq!(load.headers.len(), 14 + 1, "{:?}", load.headers);
    check(
        "[load]",
        "[load]\nhead = \"curl\"",
        "head = curl: it is bare or browser",
    );
}

#[test]
fn a_status_has_three_digits() {
    for status in ["70000", "99", "\"ok\""] {
        let line = format!("[expect]\nstatus = {status}");
        let word = status.trim_matches('"');
        check(
            "[expect]\nstatus = 200",
            &line,
            &format!("status = {word}: it is a status from 100 to 999"),
        );
    }
}

#[test]
fn an_interaction_has_four_corners() {
    let text = KEEPALIVE.replacen(
        "level = { keep = \"on\" }\nover = { keep = \"off\" }\nwhere = { idle = 0, limit = 100 }\neach = \"mpm\"",
        "interaction = { of = { keep = [\"on\", \"off\"] }, across = { mpm = [\"worker\", \"prefork\"] } }\n\
         where = { idle = 0, limit = 100 }",
        1,
    );
    let experiment = Experiment::read("keepalive.toml", &text, false).unwrap();
    let [case] = &experiment.claims[0].cases[..] else {
        panic!("one case")
    };
    let [contrast] = &case.contrasts[..] else {
        panic!("one contrast: {case:?}")
    };
    let labels = |cells: &[usize]| {
        cells
            .iter()
            .map(|cell| experiment.label(*cell))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        labels(&contrast.above),
        [
            "mpm=worker keep=on idle=0 limit=100",
            "mpm=prefork keep=off idle=0 limit=100"
        ]
    );
    assert_eq!(
        labels(&contrast.below),
        [
            "mpm=worker keep=off idle=0 limit=100",
            "mpm=prefork keep=on idle=0 limit=100"
        ]
    );
}

#[test]
fn names_that_are_not_there() {
    check(
        "each = \"mpm\"",
        "each = \"mpn\"",
        "`each` names mpn, which is no factor",
    );
    check(
        "level = { idle = 200 }",
        "level = { idle = 300 }",
        "idle has no level 300; there are 0, 200",
    );
    check(
        "level = { idle = 200 }",
        "level = {}",
        "`level` and `over` name the same factors",
    );
    check(
        "measure = \"p99\"",
        "measure = \"max\"",
        "a maximum is one request of all",
    );
    check(
        "measure = \"p99\"",
        "measure = \"free\"",
        "free is of the whole machine, so whatever else runs on it decides a claim: `memory` is of the servers",
    );
    check(
        "syscalls = [\"httpd\"]",
        "syscalls = []",
        "syscalls is claimed, but [measure] does not name it",
    );
    check(
        "text = \"004-on\"",
        "text = \"005-on\"",
        "no published text `005-on`",
    );
    check(
        "bytes = [\"httpd.http\"]",
        "bytes = [\"httpd.http\", \"nginx.http\"]",
        "`nginx.http` is not SERVER.PORT",
    );
    check(
        "rounds = 12",
        "rounds = 61",
        "rounds = 61: it is from 6 to 60",
    );
}

#[test]
fn servers_that_no_target_makes() {
    check(
        "target = \"httpd\"",
        "target = \"apache\"",
        "no target `apache`; there are ",
    );
    check(
        "start_workers = 320",
        "spare_workers = 320",
        "no parameter `spare_workers`",
    );
    check(
        "{{ factor.keep }}\", keep_alive_requests",
        "{{ factor.kept }}\", keep_alive_requests",
        "undefined",
    );
    check(
        "max_workers = 400",
        "max_workers = \"many\"",
        "max_workers = many",
    );
    check("time = \"5s\"", "time = \"5\"", "time = 5");
}

#[test]
fn all_faults_come_at_once() {
    let text = KEEPALIVE
        .replacen("measure = \"p99\"", "measure = \"speed\"", 1)
        .replacen("rounds = 12", "rounds = 5", 1)
        .replacen("target = \"httpd\"", "target = \"apache\"", 1);
    let report = Experiment::read("k.toml", &text, false).unwrap_err();
    assert_eq!(report.faults(), 3, "{report}");
}

#[test]
fn bad_toml_and_unknown_keys_have_their_line() {
    let said = faults("seed = 5", "sead = 5\nround = 6");
    let fault = "keepalive.toml:49:1: fault: there is no key `sead` here; did you mean `seed`?\n   49 | sead = 5\n";
    assert!(said.contains(fault), "{said}");
    let fault =
        "keepalive.toml:50:1: fault: there is no key `round` here; did you mean `rounds`?\n";
    assert!(said.contains(fault), "{said}");
    let said = faults("seed = 5", "seed = ");
    assert!(
        said.starts_with("keepalive.toml:49:8: fault: syntax: "),
        "{said}"
    );
}

#[test]
fn servers_that_differ_in_a_line_that_the_file_does_not_say() {
    let compares = |text: &str| {
        let text = text
            .replacen(
                "mpm = [\"prefork\", \"worker\", \"event\"]",
                "mpm = [\"event\", \"nginx\"]",
                1,
            )
            .replacen("mpm = \"prefork\"", "mpm = \"event\"", 1)
            .replacen("mpm = [\"prefork\"]", "mpm = [\"event\"]", 1)
            .replacen(
                "target = \"httpd\"",
                "target = \"{{ lookup({'nginx': 'nginx'}, factor.mpm, 'httpd') }}\"",
                1,
            )
            .replacen(
                "level = { keep = \"on\" }\nover = { keep = \"off\" }",
                "level = { mpm = \"nginx\" }\nover = { mpm = \"event\" }",
                1,
            )
            .replacen(
                "where = { idle = 0, limit = 100 }\neach = \"mpm\"",
                "where = { idle = 0, limit = 100 }",
                1,
            );
        let (head, _) = text.split_once("[[published]]").unwrap();
        head.to_owned()
    };
    let Err(faults) = Experiment::read("k.toml", &compares(KEEPALIVE), false) else {
        panic!("their numbers of connections differ")
    };
    let said = faults.to_string();
    assert!(
        said.starts_with("k.toml:20:1: fault: gate lines: "),
        "{said}"
    );
    let of_files: Vec<&str> = FILE_GATES.iter().map(|gate| gate.name).collect();
    assert_eq!(of_files, ["lines"], "each has a file that fires it");
    assert!(said.contains(" also differ in: connections ("), "{said}");
    assert!(
        !said.contains("keep_alive_requests ("),
        "a factor varies it: {said}"
    );
    let alike = KEEPALIVE.replacen(
        "page_bytes = 1456",
        "page_bytes = 1456, connections = 1000",
        1,
    );
    Experiment::read("k.toml", &compares(&alike), false).unwrap();
}

#[test]
fn a_server_of_some_cells_alone() {
    let text = KEEPALIVE.replacen("core = 1\n", "core = 1\nonly = { mpm = \"event\" }\n", 1);
    let text = text.replacen("{{ server.httpd.http }}/", "http://127.0.0.1:1/", 1);
    let experiment = Experiment::read("k.toml", &text, false).unwrap();
    for cell in &experiment.cells {
        let server = experiment.server(cell, 0, &BTreeMap::new()).unwrap();
        assert_eq!(server.is_some(), cell["mpm"].to_string() == "event");
    }
    let said = faults("core = 1\n", "core = 1\nonly = { mpm = \"even\" }\n");
    assert!(said.contains("mpm has no level even"), "{said}");
}

#[test]
fn a_second_run_goes_on_with_the_servers_of_the_first() {
    let text = include_str!("../../experiments/io-models.toml");
    let read = |text: &str| Experiment::read("io.toml", text, false);
    let experiment = read(text).unwrap();
    let [first, second, third, _] = &experiment.as_published[..] else {
        panic!("two runs of either model");
    };
    assert!(!first.is_again && second.is_again && !third.is_again);
    assert!(experiment.of_published(first).nest.is_empty());
    let nest = experiment.of_published(second).nest;
    assert!(second.cell.keys().eq(&nest), "{nest:?}");
    // Nothing is before the first.
    let wrong = text.replacen(
        "keep_alive = true\n",
        "keep_alive = true\nagain = true\n",
        1,
    );
    let fault = read(&wrong).err().map(|faults| faults.to_string());
    assert!(fault.is_some_and(|it| it.contains("that run has another `cell`")));
}

#[test]
fn a_published_run_has_the_settings_of_its_source() {
    let text = include_str!("../../experiments/keepalive.toml");
    let experiment = Experiment::read("keepalive.toml", text, true).unwrap();
    let run = &experiment.as_published[1];
    assert_eq!(
        (run.name.as_str(), run.clients, run.keep_alive),
        ("004-on", 100, true)
    );
    assert_eq!(run.requests, 20_000);
    let last = run.deviations.last().unwrap();
    assert_eq!(last, "20000 requests instead of 1000000");
    let own = experiment.of_published(run);
    assert_eq!(own.cells, std::slice::from_ref(&run.cell));
    let web = own.server(&run.cell, 1, &BTreeMap::new()).unwrap().unwrap();
    for (name, value) in [
        ("max_workers", "256"),
        ("access_log", "on"),
        ("mpm", "prefork"),
    ] {
        assert!(
            web.set.contains(&(name.to_owned(), value.to_owned())),
            "{name}"
        );
    }
    let wrong = text.replacen(
        "set.web = { start_workers = 5",
        "set.web = { spare_workers = 5",
        1,
    );
    let Err(faults) = Experiment::read("k.toml", &wrong, false) else {
        panic!("the target has no such parameter")
    };
    assert!(
        faults.to_string().contains("no parameter `spare_workers`"),
        "{faults}"
    );
}

/// A run that cannot be read does not move the faults of the runs after it.
#[test]
fn a_fault_of_a_published_run_is_at_its_line() {
    let text = include_str!("../../experiments/keepalive.toml");
    let header = "[[as_published]]";
    let [head, first, second] = text.split(header).collect::<Vec<_>>()[..] else {
        panic!("two published runs")
    };
    let first = first.replace("text = \"004-off\"", "text = \"unknown\"");
    let second = second.replace("start_workers", "spare_workers");
    let before = [head, &first].join(header);
    let wrong = [&before, second.as_str()].join(header);
    let faults = Experiment::read("k.toml", &wrong, false).unwrap_err();
    let faults = faults.to_string();
    let fault = faults.lines().find(|line| line.contains("spare_workers"));
    let expected = format!("k.toml:{}:", before.lines().count() + 1);
    assert!(
        fault.is_some_and(|it| it.starts_with(&expected)),
        "{faults}"
    );
}

#[test]
fn the_short_form_may_keep_servers() {
    let text = KEEPALIVE.replace("[quick]", "[quick]\nserver.httpd.restart = \"never\"");
    let read = |is_quick| Experiment::read("keepalive.toml", &text, is_quick).unwrap();
    assert!(read(true).is_never_restarted());
    assert!(!read(false).is_never_restarted());
    let unknown = text.replace("server.httpd.restart", "server.nginx.restart");
    let faults = Experiment::read("keepalive.toml", &unknown, true).unwrap_err();
    assert!(
        faults
            .to_string()
            .contains("[quick] has a server `nginx`, which is not in the file")
    );
}

#[test]
fn no_server_goes_on_without_one_that_it_is_connected_to() {
    let text = include_str!("../../experiments/gateway.toml");
    let provider = "name = \"provider\"\n";
    let gateway = "name = \"gateway\"\ntarget";
    let memcached = "name = \"memcached\"\ntarget";
    assert!(
        [provider, gateway, memcached]
            .iter()
            .all(|line| text.contains(line))
    );
    let text = text.replace(provider, &format!("{provider}restart = 3\n"));
    let text = text.replace(gateway, "name = \"gateway\"\nrestart = 3\ntarget");
    for (restart, is_fine) in [
        ("", false),
        ("restart = 2\n", false),
        ("restart = 6\n", true),
        ("restart = 'never'\n", true),
    ] {
        let text = text.replace(memcached, &format!("name = \"memcached\"\n{restart}target"));
        let read = Experiment::read("g.toml", &text, false);
        let said = read.map_or_else(|faults| faults.to_string(), |_| String::new());
        let words = "`gateway` goes on when `memcached`, which it is connected to, is started anew";
        assert_eq!(!said.contains(words), is_fine, "{restart}: {said}");
    }
}

/// A network with a delay is started with the server before it, whatever goes on behind it.
#[test]
fn a_link_stands_between_servers_that_live_on() {
    let text = include_str!("../../experiments/modules.toml");
    let front = "name = \"front\"\n";
    let kept = text.replace(front, &format!("{front}restart = 3\n"));
    let faults = Experiment::read("m.toml", &kept, false)
        .unwrap_err()
        .to_string();
    assert!(
        faults.contains("`front` goes on when `front_link`"),
        "{faults}"
    );
    assert!(
        !faults.contains("`front` goes on when `tomcat1`"),
        "{faults}"
    );
}

#[test]
fn whole_forms_count_in_a_span_of_their_own() {
    assert!(keepalive(false).counts_apart());
    assert!(!keepalive(true).counts_apart());
    let mut uncounted = keepalive(false);
    uncounted.measure = CountPlan::default();
    assert!(!uncounted.counts_apart());
    // strace has a span of its own.
    let mut without = keepalive(false);
    without.is_without_bpf = true;
    assert!(!without.counts_apart());
}

/// A crowd would find what the one of the round before has made a server allocate.
#[test]
fn servers_with_a_crowd_are_started_for_each_run() {
    let whole = crate::builtin::experiment("io-models", false).unwrap();
    let rounds = |idle: &str| {
        let of = |cell: &&Levels| cell["idle"].to_string() == idle;
        let cell = whole.cells.iter().find(of).unwrap();
        let server = whole.server(cell, 0, &Addresses::new()).unwrap();
        server.unwrap().rounds
    };
    assert_eq!((rounds("0"), rounds("5000")), (1, 0));
}

#[test]
fn a_claim_on_the_only_server_is_one_on_all() {
    let experiment = crate::builtin::experiment("static", false).unwrap();
    let names: BTreeSet<&str> = experiment
        .claims
        .iter()
        .map(|it| it.measure.name())
        .collect();
    assert!(
        names.contains("cpu") && !names.contains("cpu.web"),
        "{names:?}"
    );
}

const KEEPALIVE: &str = include_str!("../../fixtures/keepalive.toml");
