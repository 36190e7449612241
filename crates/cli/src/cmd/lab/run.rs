//! `lab run`: an experiment from its first server to its report.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_lab::drive::Driver;
use catamaran_lab::experiment::{Experiment, round_up};
use catamaran_lab::host::Host;
use catamaran_lab::result::ResultDocument;
use catamaran_lab::rounds::{self, Asked, Event, Rounds};
use catamaran_lab::store::Store;
use catamaran_lab::{builtin, doctor, report};

use crate::descriptors::raise_limit;
use crate::failure::Failure;

/// Run an experiment and write its result
#[derive(clap::Args)]
pub(super) struct Args {
    /// An experiment of `lab list`, or a file
    #[arg(value_name = "NAME|FILE")]
    experiment: String,

    /// The short form, for a first look: few cells, few rounds, nothing is proved
    #[arg(long)]
    quick: bool,

    /// Rounds to begin with, of 6, 9, 12, 15, 17 and 20; others are rounded up
    #[arg(long, value_name = "N")]
    rounds: Option<usize>,

    /// The directory of the result [default: lab-NAME-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut experiment = builtin::experiment(&args.experiment, args.quick)
        .map_err(|faults| Failure::Fault(faults.to_string()))?;
    if let Some(rounds) = args.rounds {
        experiment.rounds = round_up(rounds);
    }
    // The servers and the load inherit it.
    raise_limit();
    let refusal = doctor::refusal(&experiment);
    if let Some(refusal) = refusal.map_err(|faults| Failure::Fault(faults.to_string()))? {
        return Err(Failure::Fault(format!(
            "gate {}: {}",
            refusal.gate, refusal.words
        )));
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let directory = args.out.clone();
    let directory = directory.unwrap_or_else(|| format!("lab-{}-{now}", experiment.name).into());
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let catamaran = super::own_path()?;
    let driver = Driver {
        catamaran,
        space: format!("catamaran-lab.{}", std::process::id()),
    };
    let host = Host::read(now);
    let mut store = Store::create(&directory, &experiment, &host).map_err(fault)?;
    let asked = Asked {
        experiment: &experiment,
        driver: &driver,
        stop: &stop,
    };
    let mut servers = Vec::new();
    let ended = rounds::run(
        &asked,
        &mut |run, left| {
            store.add(run, left)?;
            if servers.is_empty() {
                servers.clone_from(&left.servers);
                store.servers(&servers)?;
            }
            Ok(())
        },
        &mut |event| tell(&experiment, event),
    );
    let outcome = finish(&store, ended)?;
    Ok(outcome)
}

/// Writes what follows from the runs, and says it.
fn finish(store: &Store, ended: Result<Rounds, rounds::RoundsFault>) -> Result<ExitCode, Failure> {
    let directory = store.directory().display();
    let (code, is_complete) = match &ended {
        Ok(Rounds {
            is_complete: true, ..
        }) => (ExitCode::SUCCESS, true),
        Ok(_) => (ExitCode::from(130), false),
        Err(fault) => {
            writeln!(io::stderr(), "error: {fault}")?;
            (ExitCode::from(1), false)
        }
    };
    let (store, stored) = Store::open(store.directory()).map_err(fault)?;
    if stored.runs.is_empty() {
        return Ok(code);
    }
    let document = ResultDocument::of(&stored, is_complete);
    super::report::write(&store, &document)?;
    write!(io::stdout(), "{}", report::terminal(&document))?;
    writeln!(io::stderr(), "\nThe report: {directory}/report.html")?;
    let never_valid = document.cells.iter().any(|cell| cell.runs == 0);
    Ok(if never_valid && is_complete {
        ExitCode::from(1)
    } else {
        code
    })
}

/// A line for each run.
fn tell(experiment: &Experiment, event: Event<'_>) {
    let mut stderr = io::stderr().lock();
    // Nobody is told when standard error is closed, and the runs are worth more than their progress.
    let _ = match event {
        Event::Begins {
            round,
            rounds,
            place,
            cell,
        } => write!(
            stderr,
            "round {round}/{rounds}, {place}/{}: {} ",
            experiment.cells.len(),
            experiment.label(cell)
        ),
        Event::Ended(run) => {
            let rate = run.measures.get("throughput").copied().unwrap_or_default();
            let void = rounds::void_reasons(run);
            let void: Vec<String> = void
                .iter()
                .map(|fired| format!("; void: {}", fired.words))
                .collect();
            writeln!(stderr, "{rate:.0}/s{}", void.concat())
        }
        Event::Extended(rounds) => writeln!(stderr, "intervals are wide: on to {rounds} rounds"),
    };
}

fn fault(fault: catamaran_lab::store::StoreFault) -> Failure {
    Failure::Fault(fault.to_string())
}
