//! One run of one cell, on real servers and with the built binary as the load.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catamaran_lab::drive::{Driver, RunRequest, Stages};
use catamaran_lab::experiment::Experiment;
use catamaran_lab::gate::GateFinding;
use catamaran_lab::run::{Run, RunKey};
use catamaran_testkit::{binary, timely};

/// What one run is made of: the parts of an experiment's file that a test changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// Keys before the first table, such as `sysctl.NAME = "…"`.
    pub(crate) top: &'static str,
    /// The `[[server]]` tables.
    pub(crate) servers: &'static str,
    /// What is asked for.
    pub(crate) url: &'static str,
    pub(crate) clients: u32,
    pub(crate) keep: &'static str,
    /// Further keys of `[load]`.
    pub(crate) load: &'static str,
    /// The keys of `[expect]`.
    pub(crate) expect: &'static str,
    /// The keys of `[measure]`.
    pub(crate) measure: &'static str,
    /// The warm-up and the measured span.
    pub(crate) times: [&'static str; 2],
    /// Whether the kernel may be asked to count by BPF.
    pub(crate) has_bpf: bool,
}

impl Scene {
    /// Our application and twenty clients, with nothing wrong.
    pub(crate) const QUIET: Self = Self {
        top: "",
        servers: APP,
        url: "{{ server.app.http }}/",
        clients: 20,
        keep: "on",
        load: "",
        expect: "status = 200\nbody_bytes = 347\nkept = 'on'",
        measure: "",
        times: ["200ms", "400ms"],
        has_bpf: true,
    };

    /// Makes the run. Whoever runs beside others would fire gates by them: runs of this process follow each
    /// other.
    pub(crate) fn run(self) -> Run {
        let _alone = alone();
        self.run_beside()
    }

    /// Makes the run for somebody who has seen to being [`alone`].
    pub(crate) fn run_beside(self) -> Run {
        let mut experiment = self.experiment();
        experiment.is_without_bpf = !self.has_bpf;
        let stop = Arc::new(AtomicBool::new(false));
        let driver = Driver {
            catamaran: binary().unwrap(),
            against: None,
            programs: BTreeMap::new(),
            space: space(),
            stop: Arc::clone(&stop),
        };
        let request = RunRequest {
            at: RunKey { cell: 0, round: 0 },
            place: 0,
            attempt: 0,
            capacity: &BTreeMap::new(),
            stop: &stop,
        };
        let run = driver.run(&experiment, &mut Stages::default(), request);
        run.unwrap_or_else(|fault| panic!("{fault}\n{}", experiment.text))
            .0
    }

    /// Makes the run until it is as `is_so` says.
    pub(crate) fn run_until(self, is_so: impl Fn(&Run) -> bool) -> Run {
        timely(|| self.run(), is_so)
    }

    /// A run with nothing wrong but what a busy machine does to it.
    pub(crate) fn quiet() -> Run {
        let has_answers = |run: &Run| run.facts.completed > MANY;
        Self::QUIET.run_until(|run| has_answers(run) && is_undisturbed(run, &[]))
    }

    fn experiment(self) -> Experiment {
        let Self {
            top,
            servers,
            url,
            clients,
            keep,
            load,
            expect,
            measure,
            times: [warm, time],
            ..
        } = self;
        let text = format!(
            "name = 'provoked'\nquestion = 'Does a gate fire?'\ncontrol = {{ side = 'one' }}\n{top}\n\
             [factor]\nside = ['one']\n[run]\nrounds = 6\nseed = 1\n{servers}\n[load]\nurl = \"{url}\"\n\
             core = 0\nclients = {clients}\nkeep_alive = '{keep}'\ntime = '{time}'\n\
             warm = {{ at_least = '{warm}', at_most = '{warm}', first = '{warm}' }}\n{load}\n\
             [expect]\n{expect}\n[measure]\n{measure}\n"
        );
        let read = Experiment::read("provoked.toml", &text, false);
        read.unwrap_or_else(|faults| panic!("{faults}\n{text}"))
    }
}

/// Whether `wanted` fired, and none but it, `companions` and those that a busy machine fires.
pub(crate) fn fires(run: &Run, wanted: &str, companions: &[&str]) -> bool {
    let has_fired = run.gates.iter().any(|fired| fired.gate == wanted);
    has_fired && is_undisturbed(run, &[companions, &[wanted]].concat())
}

/// Whether no gate but `expected` and those of a busy machine fired.
fn is_undisturbed(run: &Run, expected: &[&str]) -> bool {
    let mut gates = run.gates.iter().map(|fired| fired.gate.as_str());
    gates.all(|gate| expected.contains(&gate) || OF_THE_MACHINE.contains(&gate))
}

/// Keeps other tests waiting meanwhile.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the names of network namespaces and cgroups of this process begin with.
pub(crate) fn space() -> String {
    format!("catamaran-lab-it.{}", std::process::id())
}

/// Fails unless the gate `wanted` fired, and none but it, `companions` and those that a busy machine fires.
#[track_caller]
pub(crate) fn only(gates: &[GateFinding], wanted: &str, companions: &[&str]) -> GateFinding {
    let fired = gates.iter().find(|fired| fired.gate == wanted);
    let Some(fired) = fired else {
        panic!("{wanted} did not fire: {gates:#?}");
    };
    for other in gates.iter().map(|fired| fired.gate.as_str()) {
        let is_known = other == wanted || companions.contains(&other);
        assert!(is_known || OF_THE_MACHINE.contains(&other), "{gates:#?}");
    }
    fired.clone()
}

/// More answers than a run has in which somebody stood still nearly all the time.
pub(crate) const MANY: u64 = 100;

/// Our application, with a core of its own.
pub(crate) const APP: &str = "[[server]]\nname = 'app'\ntarget = 'app'\ncore = 1";

/// Gates that fire whenever something else has the machine, as other tests have, or when a span is as short
/// as here.
pub(crate) const OF_THE_MACHINE: [&str; 8] = [
    "foreign",
    "generator",
    "idle-server",
    "maximum",
    "own-cost",
    "silences",
    "unsteady",
    "few-samples",
];
