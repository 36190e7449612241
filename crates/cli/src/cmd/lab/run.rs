//! `lab run`: runs an experiment from starting its servers to writing its report.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

use catamaran_lab::claim::reach;
use catamaran_lab::drive::Driver;
use catamaran_lab::experiment::{Eras, Experiment, Form, ROUNDS_MAX, ROUNDS_MIN, is_old_software};
use catamaran_lab::host::Host;
use catamaran_lab::plan::plan;
use catamaran_lab::rounds::{self, Event, Rounds, RoundsFault, RoundsRequest};
use catamaran_lab::run::{Run, ServerRecord};
use catamaran_lab::store::Store;
use catamaran_lab::{builtin, report, screen};

use super::needs;
use crate::failure::Failure;
use crate::profile;

/// Run an experiment and write its result
#[derive(clap::Args)]
pub(super) struct LabRunArgs {
    /// An experiment of `lab list`, or a file
    #[arg(value_name = "NAME|FILE", required_unless_present = "resume")]
    experiment: Option<String>,

    /// The short form, for a first look: few cells, few rounds, nothing is proved
    #[arg(long)]
    quick: bool,

    /// The published form: the cells and claims of the source that the experiment repeats
    #[arg(long, conflicts_with = "quick")]
    published: bool,

    /// Today's software alone, of an experiment that also has the software of a published test
    #[arg(long)]
    now: bool,

    /// All cells up at once, measured in blocks of 300 ms in turn: finds a small difference soonest
    #[arg(long, conflicts_with = "published")]
    duel: bool,

    /// Rounds at most, from 6 to 60; the lab looks after 8, 12, 16, … and ends once each claim is decided [default: the
    /// file's; with --resume those asked for before]
    #[arg(long, value_name = "N", value_parser = rounds_of)]
    rounds: Option<usize>,

    /// Go on with the rounds of a result that was interrupted, up to as many as were asked for
    #[arg(long, value_name = "DIR", conflicts_with_all = ["experiment", "quick", "published", "now", "duel", "out"])]
    resume: Option<PathBuf>,

    /// Run also if too few starts of servers are planned to show any claim
    #[arg(long)]
    exploratory: bool,

    /// Compare this binary of ours with an older one, in all cells that have a server of ours
    #[arg(long, value_name = "BINARY", value_parser = needs::binary)]
    against: Option<PathBuf>,

    /// Take the time of system calls, too, and count each process, for `lab report --strace`; this costs
    /// CPU time
    #[arg(long, conflicts_with = "resume")]
    strace: bool,

    /// Do without BPF: strace counts system calls, in spans of their own, and bytes of hops are not counted
    #[arg(long, conflicts_with_all = ["strace", "resume"])]
    no_bpf: bool,

    /// A module of a server that is in no package, such as nginx_ajp=FILE.so: its levels are run, too
    #[arg(long, value_name = "NAME=FILE", value_parser = needs::module)]
    module: Vec<(String, PathBuf)>,

    /// The JDK for servers of published tests, whose versions want an older one: a folder with bin/java [default:
    /// Debian's]
    #[arg(long, value_name = "DIR", value_parser = needs::jdk)]
    jdk: Option<PathBuf>,

    /// Install missing packages, and fetch containers with Maven
    #[arg(long)]
    install: bool,

    /// The directory of the result [default: lab-NAME-TIME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &LabRunArgs) -> Result<ExitCode, Failure> {
    let (mut store, experiment, resumed) = match &args.resume {
        Some(directory) => resume(directory, args)?,
        None => begin(args)?,
    };
    let next_round = resumed.runs.iter().map(|run| run.round + 1).max();
    let planned = plan(&experiment, next_round.unwrap_or(0));
    writeln!(io::stderr(), "{}: {planned}", experiment.name)?;
    say_reach(&experiment)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let driver = Driver {
        catamaran: super::own_path()?,
        against: args.against.clone(),
        programs: needs::programs(&needs::with_jdk(&args.module, args.jdk.as_ref()))?,
        space: format!("catamaran-lab.{}", std::process::id()),
        stop: Arc::clone(&stop),
    };
    let request = RoundsRequest {
        experiment: &experiment,
        driver: &driver,
        stop: &stop,
        done: resumed.runs,
        capacity: resumed.capacity,
        published: resumed.published,
        servers: resumed.servers,
    };
    let result = rounds::run(request, &mut store, &mut |event| {
        print_progress(&experiment, event);
    });
    finish(&store, result)
}

/// Prints, before the runs begin, which claims the plan cannot show.
fn say_reach(experiment: &Experiment) -> io::Result<()> {
    let reach = reach(experiment);
    let words = match reach.to_string() {
        all if all.is_empty() => return Ok(()),
        words if reach.is_exploratory() => format!("exploratory: {words}"),
        words => format!("note: {words}"),
    };
    writeln!(io::stderr(), "{words}")
}

fn rounds_of(text: &str) -> Result<usize, String> {
    let rounds = text.parse().ok();
    let rounds = rounds.filter(|rounds| (ROUNDS_MIN..=ROUNDS_MAX).contains(rounds));
    rounds.ok_or_else(|| format!("it is a number from {ROUNDS_MIN} to {ROUNDS_MAX}"))
}

/// The measurements that a resumed result has already.
#[derive(Default)]
struct ResumedResult {
    runs: Vec<Run>,
    capacity: BTreeMap<u64, f64>,
    servers: Vec<ServerRecord>,
    /// The names of the published runs that have been made.
    published: Vec<String>,
}

/// Begins a new result.
fn begin(args: &LabRunArgs) -> Result<(Store, Experiment, ResumedResult), Failure> {
    let name = args.experiment.as_deref().unwrap_or_default();
    let form = Form {
        is_quick: args.quick,
        is_published: args.published,
        is_duel: args.duel,
        modules: needs::names(&args.module),
        eras: if args.now {
            Eras::AsModules
        } else {
            Eras::Both
        },
    };
    let mut experiment =
        builtin::experiment(name, form).map_err(|report| Failure::of_report(&report))?;
    if args.against.is_some() {
        experiment = experiment.against();
    }
    if experiment.is_duel {
        experiment.seed = new_seed();
        writeln!(io::stderr(), "a duel, with the seed {}", experiment.seed)?;
    }
    experiment.has_own_jdk = args.jdk.is_some();
    experiment.is_traced = args.strace;
    experiment.is_without_bpf = args.no_bpf;
    if let Some(rounds) = args.rounds {
        experiment.rounds = rounds;
    }
    let reach = reach(&experiment);
    if reach.is_exploratory() && !args.quick && !args.exploratory {
        return Err(Failure::Usage(format!(
            "{}: {reach} --exploratory runs it all the same.",
            experiment.name
        )));
    }
    check(&experiment, args)?;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let directory = match &args.out {
        Some(directory) => directory.clone(),
        None => default_directory(&experiment, now),
    };
    let host = Host::read(now, profile::NAME);
    if let Some(warning) = host.slow_build() {
        writeln!(io::stderr(), "warning: {warning}")?;
    }
    let store = Store::create(&directory, &experiment, &host).map_err(fault)?;
    Ok((store, experiment, ResumedResult::default()))
}

/// Checks what must exist before anything is started.
fn check(experiment: &Experiment, args: &LabRunArgs) -> Result<(), Failure> {
    let given = needs::with_jdk(&args.module, args.jdk.as_ref());
    needs::check(experiment, &given, args.install)
}

/// The directory of a result that begins at `now`, in seconds since 1970.
fn default_directory(experiment: &Experiment, now: u64) -> PathBuf {
    let kind = match (experiment.is_published, experiment.is_duel) {
        (true, _) => "-published",
        (false, true) => "-duel",
        (false, false) => "",
    };
    format!("lab-{}{kind}-{now}", experiment.name).into()
}

/// Opens a result whose rounds continue where they ended. The binary, the versions and the host must be the
/// same.
fn resume(
    directory: &Path,
    args: &LabRunArgs,
) -> Result<(Store, Experiment, ResumedResult), Failure> {
    let (mut store, mut stored) = Store::open(directory).map_err(fault)?;
    store.keep_whole_rounds(&mut stored).map_err(fault)?;
    let mut experiment = stored.experiment;
    if let Some(obstacle) = obstacle(&experiment, &stored.host, args) {
        let directory = directory.display();
        return Err(Failure::Fault(format!("{directory} {obstacle}")));
    }
    if let Some(rounds) = args.rounds
        && rounds != experiment.rounds
    {
        if !screen::is_unseen(&experiment, &stored.runs) {
            return Err(Failure::Usage(format!(
                "{} has six rounds or more of the {} that were planned: looks at them rest on that number. Go on without \
                 --rounds, or begin anew with --out",
                directory.display(),
                experiment.rounds
            )));
        }
        experiment.rounds = rounds;
        store.keep_form(&experiment).map_err(fault)?;
    }
    check(&experiment, args)?;
    let resumed = ResumedResult {
        runs: stored.runs,
        capacity: stored.capacity,
        servers: stored.servers,
        published: stored
            .as_published
            .into_iter()
            .map(|run| run.name)
            .collect(),
    };
    Ok((store, experiment, resumed))
}

/// Why the rounds of a result cannot continue, and what to do; `None` if they can.
fn obstacle(experiment: &Experiment, host: &Host, args: &LabRunArgs) -> Option<String> {
    let now = Host::read(host.started_at_s, profile::NAME);
    if let Some(difference) = host.differs_from(&now) {
        return Some(format!("cannot go on: {difference}; begin anew with --out"));
    }
    if experiment.is_against && args.against.is_none() {
        return Some("compares two binaries: name the older one again with --against".to_owned());
    }
    match (experiment.has_own_jdk, &args.jdk) {
        (true, None) => return Some("was made with --jdk: name the same JDK again".to_owned()),
        (false, Some(_)) => return Some("was made without --jdk: go on without it".to_owned()),
        (true, Some(_)) | (false, None) => {}
    }
    let is_given = |name: &String| args.module.iter().any(|(given, _)| given == name);
    let mut modules = experiment.modules.iter();
    // Software of a published test has a folder of its own, where it is looked for.
    let missing = modules.find(|name| !is_given(name) && !is_old_software(name))?;
    Some(format!(
        "has servers with the module {missing}: name its file again with --module {missing}=FILE"
    ))
}

/// Writes and prints the conclusions from the runs, and returns the exit code.
fn finish(store: &Store, result: Result<Rounds, RoundsFault>) -> Result<ExitCode, Failure> {
    let directory = store.directory().display();
    let (code, is_complete) = match &result {
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
    let document = super::report::document(&store, &stored, is_complete);
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

/// Prints a line of progress for each run.
fn print_progress(experiment: &Experiment, event: Event<'_>) {
    let mut stderr = io::stderr().lock();
    // If standard error is closed, the runs go on without the lines.
    let _ = match event {
        Event::Begins {
            round,
            rounds,
            place,
            cells,
            cell,
        } => write!(
            stderr,
            "round {round}/{rounds}, {place}/{cells}: {} ",
            experiment.label(cell)
        ),
        Event::Duels { round, rounds } => writeln!(stderr, "start {round}/{rounds}"),
        Event::Screened(cells) => writeln!(stderr, "screened: {} cells go on", cells.len()),
        Event::Publishes(run) => writeln!(stderr, "as published: {}", run.name),
        Event::Calibrates { cell, cells } => write!(
            stderr,
            "capacity, {}/{cells}: {} ",
            cell + 1,
            experiment.label(cell)
        ),
        Event::Ended(run) => {
            let rate = run.measures.get("throughput").copied().unwrap_or_default();
            let reasons = rounds::void_reasons(run);
            let void: Vec<String> = reasons
                .iter()
                .map(|fired| format!("; void: {}", fired.words))
                .collect();
            // Those of a duel end together.
            let label = if experiment.is_duel {
                format!("    {}: ", experiment.label(run.cell))
            } else {
                String::new()
            };
            writeln!(stderr, "{label}{rate:.0}/s{}", void.concat())
        }
        Event::Decided(rounds) => {
            writeln!(
                stderr,
                "each claim is decided after {rounds} rounds: no more are made"
            )
        }
    };
}

/// A seed that no other run has: the time in nanoseconds since 1970.
fn new_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.unwrap_or_default().as_nanos() as u64
}

fn fault(fault: catamaran_lab::store::StoreFault) -> Failure {
    Failure::Fault(fault.to_string())
}
