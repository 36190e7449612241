//! A start of a duel on real servers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamaran_lab::drive::{Driver, RunRequest, Stages};
use catamaran_lab::experiment::{Experiment, Form};
use catamaran_lab::run::RunKey;
use catamaran_testkit::binary;

use crate::scene::{alone, space};

#[test]
fn two_tiers_are_measured_in_turn() {
    let _alone = alone();
    let text = include_str!("../../../../../docs/lab/planted.toml");
    let form = Form {
        is_duel: true,
        ..Form::default()
    };
    let experiment = Experiment::read("planted.toml", text, form).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let driver = Driver {
        catamaran: binary().unwrap(),
        against: None,
        programs: BTreeMap::new(),
        space: space(),
        stop: Arc::clone(&stop),
    };
    let capacity = BTreeMap::new();
    let requests = [4, 0].map(|cell| RunRequest {
        at: RunKey { cell, round: 3 },
        place: 0,
        attempt: 0,
        capacity: &capacity,
        stop: &stop,
    });
    let made = driver.duel(&experiment, &mut Stages::default(), &requests);
    let made = made.unwrap();
    let [(dear, files), (cheap, _)] = &made[..] else {
        panic!("{} runs", made.len())
    };
    assert_eq!((dear.cell, cheap.cell, dear.round), (4, 0, 3));
    for run in [dear, cheap] {
        assert_eq!(run.blocks["cpu"].len(), 4, "{run:#?}");
        assert_eq!(run.blocks["throughput"].len(), 4);
        assert_eq!(run.facts.statuses.keys().collect::<Vec<_>>(), [&200]);
        assert!(run.facts.completed > 0 && run.facts.machine.is_some());
    }
    assert_ne!(dear.starts["app"], cheap.starts["app"], "each its own");
    let reports: Vec<serde_json::Value> = serde_json::from_str(&files.bench).unwrap();
    assert_eq!(reports.len(), 4);
    let completed = reports
        .iter()
        .filter_map(|it| it["requests"]["completed"].as_u64());
    assert_eq!(completed.sum::<u64>(), dear.facts.completed);
    assert!(!files.latency.is_empty() && !files.samples.is_empty());
}
