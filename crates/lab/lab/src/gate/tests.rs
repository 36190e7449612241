mod firing;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::facts::{
    Expect, LatencyFacts, LevelChange, MachineFacts, PathFacts, ShareFacts, SilenceFacts,
};
use crate::judge::ROW_GATES;
use crate::{claim, judge};

/// A quiet run: 100 clients, 50,000 answers of 1,456 bytes in 5 s, as expected.
fn quiet() -> Facts {
    Facts {
        expect: Expect {
            status: Some(200),
            body_bytes: Some(1456),
            kept: Some(true),
            kept_requests_max: 100,
            delay_ms: Some(5.0),
            rare: 0.0,
        },
        clients: Some(100),
        seconds: Some(5.0),
        completed: 50_000,
        statuses: BTreeMap::from([(200, 50_000)]),
        non_2xx: Some(0),
        kept: Some(49_500),
        body_bytes: Some(1456.0),
        head_bytes: Some(300.0),
        rate: Some(10_000.0),
        latency_ms: Some(LatencyFacts {
            mean: 10.0,
            rounding: 0.001,
            min: Some(5.1),
            median: Some(9.5),
            max: 40.0,
            stddev: None,
        }),
        generator_busy: Some(0.6),
        generator_starved: Some(0.01),
        silences: Some(SilenceFacts {
            count: 0,
            min_ms: 100.0,
            longest_ms: 12.0,
            from_s: 3.0,
        }),
        asked: BTreeMap::from([(
            "app".to_owned(),
            PathFacts {
                expected: 1.0,
                counted: Some(1.0),
                cpu_us: Some(7.0),
            },
        )]),
        machine: Some(machine()),
        ..Facts::default()
    }
}

fn machine() -> MachineFacts {
    MachineFacts {
        load_core: Some(0.6),
        server_core: Some(0.98),
        foreign: 0.01,
        steal: 0.0,
        listen_overflows: 0,
        ports_used: Some(0.1),
        warmed_s: Some(4.0),
        moving: Some(0.01),
        hidden: None,
        changed: None,
        alarms: Vec::new(),
        compiling: Some(0.0),
        capped: Vec::new(),
        throttled: 0,
        shares: BTreeMap::new(),
        oom_kills: 0,
        uncounted: BTreeMap::new(),
        by_strace: None,
        own_cost: Some(0.002),
    }
}

/// The one gate that `change` provokes, with its words.
fn provoke(change: impl FnOnce(&mut Facts)) -> (String, Effect, String) {
    let mut facts = quiet();
    change(&mut facts);
    match &check_run(&facts)[..] {
        [fired] => (fired.gate.clone(), fired.effect, fired.words.clone()),
        others => panic!("one gate, not {others:?}"),
    }
}

/// As [`provoke`], for a fact of the machine.
fn disturb(change: impl FnOnce(&mut MachineFacts)) -> (String, Effect, String) {
    provoke(|facts| change(facts.machine.as_mut().unwrap()))
}

fn check(fired: (String, Effect, String), gate: &str, effect: Effect, words: &str) {
    assert_eq!((fired.0.as_str(), fired.1), (gate, effect));
    assert!(fired.2.contains(words), "{}", fired.2);
    assert!(run_gates().contains(&gate));
}

#[test]
fn a_quiet_run_passes_all() {
    assert_eq!(check_run(&quiet()), []);
    assert!(
        run_gates()
            .iter()
            .all(|name| applies(name, &quiet()) != (*name == "late"))
    );
    assert!(!applies("backlog", &Facts::default()));
    assert_eq!(check_pair(&quiet(), &quiet()), []);
}

#[test]
fn spans_without_an_answer() {
    let silences = SilenceFacts {
        count: 2,
        min_ms: 100.0,
        longest_ms: 203.0,
        from_s: 1.8,
    };
    let words =
        "No answer came for 203 ms from 1.8 s on, in 2 spans of 100 ms or more: clients that wait";
    let closed = provoke(|facts| facts.silences = Some(silences));
    check(closed, "silences", Effect::Note, words);
}

#[test]
fn answers_that_were_not_expected() {
    let redirects = provoke(|facts| facts.statuses = BTreeMap::from([(302, 50_000)]));
    let words = "50,000 of 50,000 answers were 302 and not 200: a redirect was measured.";
    check(redirects, "status", Effect::Void, words);
    let some = provoke(|facts| facts.statuses = BTreeMap::from([(200, 49_988), (503, 12)]));
    check(
        some,
        "status",
        Effect::Void,
        "12 of 50,000 answers were 503",
    );
    let untold = provoke(|facts| {
        facts.statuses.clear();
        facts.non_2xx = Some(7);
    });
    check(
        untold,
        "status",
        Effect::Void,
        "7 of 50,000 answers were not 2xx",
    );
    let longer = provoke(|facts| facts.body_bytes = Some(1500.0));
    check(
        longer,
        "body",
        Effect::Void,
        "1500.0 bytes on average, 1456 were expected",
    );
    let varying = provoke(|facts| facts.other_length = 3);
    check(varying, "body", Effect::Void, "3 of 50,000 bodies");
    let other = provoke(|facts| facts.other_body = 7);
    check(
        other,
        "body",
        Effect::Void,
        "7 of 50,000 bodies had other bytes",
    );
    let failed = provoke(|facts| facts.failed = 12);
    check(failed, "failed", Effect::Void, "12 of 50,012 requests");
}

#[test]
fn servers_that_were_not_asked() {
    let asked = |counted: Option<f64>, cpu_us| {
        move |facts: &mut Facts| {
            let asked = |expected, counted| PathFacts {
                expected,
                counted,
                cpu_us: Some(cpu_us),
            };
            // One that is asked seldom by the file, one as often as there are answers.
            let rare = asked(0.0, Some(0.0));
            facts.asked = BTreeMap::from([
                (
                    "rare".to_owned(),
                    PathFacts {
                        cpu_us: None,
                        ..rare
                    },
                ),
                ("app".to_owned(), asked(1.0, counted)),
            ]);
        }
    };
    let half = provoke(asked(Some(0.5), 7.0));
    let words = "The server app was asked 0.50 times for each answer, at least 1 expected";
    check(half, "path", Effect::Void, words);
    let idle = provoke(asked(None, 0.01));
    check(idle, "path", Effect::Void, "app took 0.01 µs of CPU time");
    for fine in [
        asked(Some(0.995), 7.0),
        asked(Some(3.0), 7.0),
        asked(None, 7.0),
    ] {
        let mut facts = quiet();
        fine(&mut facts);
        assert_eq!(check_run(&facts), []);
    }
}

#[test]
fn connections_that_were_not_kept_as_asked() {
    let none = provoke(|facts| facts.kept = Some(0));
    check(
        none,
        "keep-alive",
        Effect::Void,
        "asked for, and 0 of 50,000",
    );
    let some = provoke(|facts| facts.kept = Some(49_000));
    check(some, "keep-alive", Effect::Void, "49,000 of 50,000");
    let unasked = provoke(|facts| facts.expect.kept = Some(false));
    check(
        unasked,
        "keep-alive",
        Effect::Void,
        "not asked for, and 49,500",
    );
    // Without a limit of the server, 99 % is what is wanted.
    let mut facts = quiet();
    facts.expect.kept_requests_max = 0;
    assert_eq!(check_run(&facts), []);
}

#[test]
fn figures_that_do_not_fit_each_other() {
    let idle = provoke(|facts| facts.latency_ms.as_mut().unwrap().mean = 6.1);
    check(
        idle,
        "littles-law",
        Effect::Void,
        "100 clients are said, rate times latency is 61",
    );
    // What is rounded may be off by as much.
    let mut facts = quiet();
    facts.latency_ms.as_mut().unwrap().mean = 9.0;
    facts.latency_ms.as_mut().unwrap().rounding = 0.6;
    assert_eq!(check_run(&facts), []);
    let longest = provoke(|facts| facts.latency_ms.as_mut().unwrap().max = 1409.0);
    check(longest, "maximum", Effect::Note, "148 times the median");
    let few = provoke(|facts| {
        facts.completed = 100;
        facts.statuses = BTreeMap::from([(200, 100)]);
        facts.kept = Some(99);
    });
    check(few, "few-samples", Effect::Note, "100 requests are too few");
}

#[test]
fn clients_that_asked_as_often_as_a_delay_lets_them() {
    let near = provoke(|facts| facts.expect.delay_ms = Some(9.9));
    let words =
        "100 clients that wait 10 ms each can ask 10101/s at most, and 10000/s were reached";
    check(near, "ceiling", Effect::Note, words);
    let beyond = provoke(|facts| facts.expect.delay_ms = Some(20.0));
    check(
        beyond,
        "ceiling",
        Effect::Void,
        "the delay did not take place",
    );
}

#[test]
fn maxima_quotas_and_want_of_memory() {
    let capped = disturb(|machine| {
        machine.capped = vec!["httpd: server reached MaxRequestWorkers setting".to_owned()];
    });
    let words = "A maximum of the server's was reached: httpd: server reached MaxRequestWorkers";
    check(capped, "capped", Effect::Note, words);
    let quota = disturb(|machine| machine.throttled = 7);
    check(
        quota,
        "throttled",
        Effect::Void,
        "in 7 periods (nr_throttled), which no `core_share` declares",
    );
    let memory = disturb(|machine| machine.oom_kills = 1);
    check(
        memory,
        "throttled",
        Effect::Void,
        "killed 1 processes for want of memory",
    );
}

#[test]
fn a_declared_part_of_a_core_is_held_and_used_up() {
    let share = ShareFacts {
        declared: 0.5,
        used: 0.5,
        is_weight: false,
        is_tested: true,
        periods: 500,
        stopped: 498,
    };
    let with = |change: &dyn Fn(&mut ShareFacts)| {
        let mut share = share;
        change(&mut share);
        let mut facts = quiet();
        let machine = facts.machine.as_mut().unwrap();
        machine.shares.insert("front".to_owned(), share);
        check_run(&facts)
    };
    assert_eq!(with(&|_| {}), [], "a declared quota is no accident");
    for (change, gate, effect, words) in [
        (
            &(|it: &mut ShareFacts| it.used = 0.56) as &dyn Fn(&mut ShareFacts),
            "throttled",
            Effect::Time,
            "front took 56 % of its core, 50 % are declared: its quota did not hold it.",
        ),
        (
            &|it| (it.used, it.is_weight) = (0.6, true),
            "throttled",
            Effect::Note,
            "so ratios of throughput are too near to 1",
        ),
        (
            &|it| it.used = 0.3,
            "idle-server",
            Effect::Time,
            "front took 30 % of its core, 50 % are declared: throughput is not its own.",
        ),
    ] {
        let [fired] = &with(change)[..] else {
            panic!("{words}: {:?}", with(change))
        };
        check(
            (fired.gate.clone(), fired.effect, fired.words.clone()),
            gate,
            effect,
            words,
        );
    }
    let behind = with(&|it| (it.used, it.is_tested) = (0.3, false));
    assert_eq!(behind, [], "who is behind need not be the limit");
}

#[test]
fn too_few_open_files_refuse_the_beginning() {
    let limit = |value| {
        Check::of(
            value >= 10_100,
            "open files",
            value,
            "10100 needed: for tests",
        )
        .by("ulimit -n 10100")
    };
    let check_limits = |value| check_limits(&[limit(value)]);
    let refused = check_limits(1024).unwrap();
    assert_eq!(
        (refused.gate.as_str(), refused.effect),
        ("files", Effect::Refuse)
    );
    assert_eq!(
        refused.words,
        "1024 open files are allowed, 10100 needed: for tests; ulimit -n 10100"
    );
    assert_eq!(check_limits(20_000), None);
}

#[test]
fn reuse_that_differs_beside_what_is_compared() {
    let with = |dials| Facts {
        dials: Some(dials),
        ..quiet()
    };
    let [fired] = &check_pair(&with(0.0), &with(1.0))[..] else {
        panic!("one gate")
    };
    assert_eq!(
        (fired.gate.as_str(), fired.effect),
        ("confounded", Effect::Note)
    );
    assert!(
        fired
            .words
            .contains("0.00 connections to each other for a request at one level, 1.00"),
        "{}",
        fired.words
    );
    assert_eq!(check_pair(&with(0.01), &with(0.3)), []);
}

#[test]
fn a_load_that_was_the_limit() {
    let busy = provoke(|facts| {
        facts.generator_busy = Some(0.97);
        facts.machine.as_mut().unwrap().server_core = None;
    });
    check(busy, "generator", Effect::Time, "busy 97 %");
    let starved = provoke(|facts| facts.generator_starved = Some(0.2));
    check(starved, "generator", Effect::Time, "waited 20 %");
    let idle = disturb(|machine| {
        machine.load_core = Some(0.97);
        machine.server_core = Some(0.5);
    });
    check(
        idle,
        "idle-server",
        Effect::Time,
        "busy 50 % of the time, the load's 97 %",
    );
    let late = provoke(|facts| {
        let text = "requests were sent 3 ms late".to_owned();
        facts.warnings.insert("generator-late".to_owned(), text);
    });
    check(late, "late", Effect::Void, "3 ms late");
}

#[test]
fn a_machine_that_was_not_alone() {
    let foreign = disturb(|machine| machine.foreign = 0.31);
    check(
        foreign,
        "foreign",
        Effect::Note,
        "Other processes took 31 %",
    );
    let steal = disturb(|machine| machine.steal = 0.04);
    check(steal, "foreign", Effect::Note, "A hypervisor gave 4 %");
    let cost = disturb(|machine| machine.own_cost = Some(0.05));
    check(cost, "own-cost", Effect::Machine, "5.0 %");
}

#[test]
fn servers_that_were_not_fit() {
    let moving = disturb(|machine| machine.moving = Some(0.12));
    check(moving, "unsteady", Effect::Note, "moved up by 12 %");
    let unclear = |share| {
        move |machine: &mut MachineFacts| (machine.moving, machine.hidden) = (None, Some(share))
    };
    check(
        disturb(unclear(0.14)),
        "unsteady",
        Effect::Note,
        "may still have moved by 14 %",
    );
    check(disturb(unclear(1.0)), "unsteady", Effect::Note, "too short");
    let changed = |others| {
        disturb(move |machine| {
            machine.changed = Some(LevelChange {
                what: "rate".to_owned(),
                after_s: 1.4,
                shift: -0.31,
                others,
            });
        })
    };
    for (others, end) in [
        (None, "."),
        (Some([0.02, 0.04]), "."),
        (
            Some([0.02, 0.33]),
            ": others took 2 % of the servers' cores before that, and 33 % after it.",
        ),
    ] {
        let words =
            format!("Within the run, 1.4 s after its beginning, the rate fell by 31 %{end}");
        check(changed(others), "unsteady", Effect::Note, &words);
    }
    let mut warm = quiet();
    warm.machine.as_mut().unwrap().compiling = Some(0.02);
    assert_eq!(check_run(&warm), []);
    let tepid = disturb(|machine| machine.compiling = Some(0.05));
    check(tepid, "unsteady", Effect::Note, "took 0.05 of a core");
    let cold = disturb(|machine| machine.compiling = Some(2.84));
    check(cold, "unsteady", Effect::Machine, "took 2.84 of a core");
    let ports = disturb(|machine| machine.ports_used = Some(0.9));
    check(ports, "ports", Effect::Void, "90 % of the local ports");
    let backlog = disturb(|machine| machine.listen_overflows = 14);
    check(
        backlog,
        "backlog",
        Effect::Void,
        "14 handshakes were dropped",
    );
    let died = disturb(|machine| machine.alarms = vec!["httpd ended with signal 9".to_owned(); 3]);
    check(
        died,
        "died",
        Effect::Void,
        "httpd ended with signal 9 (and 2 more)",
    );
}

#[test]
fn pairs_that_differ_in_more_than_is_claimed() {
    let against = |change: fn(&mut Facts)| {
        let mut other = quiet();
        change(&mut other);
        let found = check_pair(&quiet(), &other);
        found
            .into_iter()
            .map(|fired| fired.words)
            .collect::<Vec<_>>()
    };
    let answers = against(|facts| facts.head_bytes = Some(327.0));
    assert!(answers[0].contains("differ by 27.0 bytes"), "{answers:?}");
    let failed = against(|facts| facts.failed = 5);
    assert!(
        failed[0].contains("One run had 0 failed requests and the other 5"),
        "{failed:?}"
    );
    let maxima = against(|facts| facts.latency_ms.as_mut().unwrap().max = 400.0);
    assert!(
        maxima[0].contains("a factor of 10 (40 and 400 ms)"),
        "{maxima:?}"
    );
    let foreign = against(|facts| facts.machine.as_mut().unwrap().foreign = 0.2);
    assert!(
        foreign[0].contains("1 % of the cores' time from one level and 20 %"),
        "{foreign:?}"
    );
}

#[test]
fn requests_at_the_ends_of_a_short_span_are_no_fault() {
    let mut facts = quiet();
    facts.seconds = Some(1.0);
    facts.rate = Some(920.0);
    facts.completed = 1000;
    facts.statuses = BTreeMap::from([(200, 1000)]);
    facts.kept = Some(990);
    facts.latency_ms.as_mut().unwrap().mean = 100.0;
    facts.latency_ms.as_mut().unwrap().median = Some(99.0);
    assert_eq!(check_run(&facts), []);
    facts.seconds = Some(10.0);
    assert_eq!(check_run(&facts)[0].gate, "littles-law");
}

#[test]
fn what_is_not_counted_is_named() {
    let refused = |base: &str| {
        let why = "the kernel refuses a program".to_owned();
        disturb(|machine| machine.uncounted = BTreeMap::from([(base.to_owned(), why)]))
    };
    let words = "System calls are not counted: the kernel refuses a program.";
    check(
        refused("syscalls"),
        "uncounted-syscalls",
        Effect::Note,
        words,
    );
    let words = "Bytes of hops are not counted: the kernel refuses a program.";
    check(refused("bytes"), "uncounted-bytes", Effect::Note, words);
    let by_strace = disturb(|machine| machine.by_strace = Some("the kernel refuses".to_owned()));
    let words = "System calls are counted by strace, in a span of their own whose times are not looked at: the \
                 kernel refuses.";
    check(by_strace, "strace", Effect::Note, words);
}

#[test]
fn a_load_generator_that_judges_itself_is_believed() {
    let mut facts = quiet();
    facts.judges_itself = true;
    facts.latency_ms.as_mut().unwrap().mean = 6.1;
    assert_eq!(check_run(&facts), []);
    let text = "clients were idle for 40 % of the time".to_owned();
    facts.warnings.insert("littles-law".to_owned(), text);
    assert_eq!(check_run(&facts)[0].gate, "littles-law");
}

#[test]
fn gates_on_runs_are_told_in_their_order() {
    let expected = [
        "status",
        "body",
        "keep-alive",
        "failed",
        "path",
        "littles-law",
        "generator",
        "idle-server",
        "late",
        "unsteady",
        "foreign",
        "ports",
        "backlog",
        "died",
        "throttled",
        "ceiling",
        "capped",
        "few-samples",
        "own-cost",
        "maximum",
        "silences",
        "not-ready",
        "strace",
        "uncounted-syscalls",
        "uncounted-bytes",
        "uncounted-requests",
    ];
    let told = run_gates().into_iter();
    let known: Vec<&str> = told.filter(|name| expected.contains(name)).collect();
    assert_eq!(known, expected);
}

/// A gate that a reader cannot look up is as good as none, and one that is only promised is worse.
#[test]
fn the_page_has_each_gate_and_no_other() {
    let page = include_str!("../../../../../docs/lab.md");
    let (_, table) = page
        .split_once("\n| gate | fires when | effect |\n|---|---|---|\n")
        .unwrap();
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = rows
        .map(|row| row.split('|').map(str::trim).collect())
        .collect();
    let named = |row: &[&'static str]| row[1].split('`').skip(1).step_by(2).collect::<Vec<_>>();
    let cases = claim::GATES.iter().map(|it| (it.name, it.words));
    let texts = judge::GATES.iter().map(|it| (it.name, it.words));
    let published = ROW_GATES.iter().map(|it| (it.name, it.words));
    let ours = words().into_iter();
    let gates: Vec<(&str, &str)> = ours.chain(cases).chain(texts).chain(published).collect();
    for (name, words) in &gates {
        let row = rows.iter().find(|row| named(row).contains(name));
        let row = row.unwrap_or_else(|| panic!("docs/lab.md has no gate `{name}`"));
        assert!(
            row[2].contains(words),
            "{name}: {words:?} is not in {row:?}"
        );
    }
    let names: BTreeSet<&str> = gates.iter().map(|(name, _)| *name).collect();
    for name in rows.iter().flat_map(|row| named(row)) {
        assert!(
            names.contains(name),
            "docs/lab.md has `{name}`, which is no gate"
        );
    }
}
