//! The directory of a result: the experiment as it ran, the host, each run, and the result.
//!
//! Its files are `experiment.toml`, `host.json`, `servers.json`, `runs.jsonl` (a line for each run,
//! written when it has ended), `runs/N/bench.json`, `runs/N/latency.hlog`, `result.json`,
//! `report.html` and `report.md`. A person may add `note.md`, which reports show. A committed
//! result has neither the runs nor their files.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::builtin;
use crate::drive::RunFiles;
use crate::experiment::{Eras, Experiment, Form, OriginalRun};
use crate::host::Host;
use crate::result::{PrintedRun, ResultDocument, SCHEMA, StoredResult};
use crate::run::{Run, ServerRecord};
use crate::screen::whole_rounds;
use crate::strace::Traces;

/// The directory of a result, open for writing.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    /// The number of runs stored, void ones included.
    runs: usize,
    /// The outputs of published runs that were made here.
    as_published: Vec<PrintedRun>,
}

/// Why a directory cannot be written or read.
#[derive(Debug, Error)]
pub enum StoreFault {
    /// The file system reports an error, such as no space or no permission.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The directory contains a result already.
    #[error("{} has a result already; give another directory with --out", .0.display())]
    Taken(PathBuf),
    /// The contents of a file are not valid.
    #[error("{}: {what}", path.display())]
    Content {
        /// The path of the file.
        path: PathBuf,
        /// The fault of the contents, in words.
        what: String,
    },
}

impl Store {
    /// Makes a new directory for a result of `experiment`.
    ///
    /// # Errors
    /// The directory has a result already, or cannot be written.
    pub fn create(
        directory: &Path,
        experiment: &Experiment,
        host: &Host,
    ) -> Result<Self, StoreFault> {
        if directory.join(RUNS).exists() {
            return Err(StoreFault::Taken(directory.to_owned()));
        }
        let store = Self {
            directory: directory.to_owned(),
            runs: 0,
            as_published: Vec::new(),
        };
        fs::create_dir_all(directory).map_err(|source| io_fault(directory, source))?;
        store.write("experiment.toml", experiment.text.as_bytes())?;
        store.keep_form(experiment)?;
        store.write_json("host.json", host)?;
        store.write(RUNS, b"")?;
        Ok(store)
    }

    /// Writes what the command line has added to the experiment's file: form, a duel with its seed, planned rounds,
    /// ways to count, and modules; and the number of rounds after which all claims were decided.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_form(&self, experiment: &Experiment) -> Result<(), StoreFault> {
        let form = if experiment.is_quick { QUICK } else { "whole" };
        let mut words = vec![form.to_owned(), format!("{ROUNDS}{}", experiment.rounds)];
        if experiment.is_duel {
            words.extend([DUEL.to_owned(), format!("{SEED}{}", experiment.seed)]);
        }
        if let Some(rounds) = experiment.decided_after {
            words.push(format!("{DECIDED}{rounds}"));
        }
        for (word, is_set) in [
            (OWN_JDK, experiment.has_own_jdk),
            (AGAINST, experiment.is_against),
            (STRACE, experiment.is_traced),
            (NO_BPF, experiment.is_without_bpf),
        ] {
            words.extend(is_set.then(|| word.to_owned()));
        }
        let modules = experiment.modules.iter();
        words.extend(modules.map(|name| format!("{MODULE}{name}")));
        self.write(FORM, words.join(" ").as_bytes())
    }

    /// Notes that all claims were decided after this number of rounds, without those of a screen.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_end(&self, experiment: &Experiment, rounds: usize) -> Result<(), StoreFault> {
        let mut ended = experiment.clone();
        ended.decided_after = Some(rounds);
        self.keep_form(&ended)
    }

    /// The result's directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Stores a run and its files.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn add(&mut self, run: &Run, files: &RunFiles) -> Result<(), StoreFault> {
        let directory = self.run_directory(self.runs);
        self.runs += 1;
        fs::create_dir_all(&directory).map_err(|source| io_fault(&directory, source))?;
        for (name, text) in [
            ("bench.json", &files.bench),
            ("latency.hlog", &files.latency),
            (SAMPLES, &files.samples),
            (TRACES, &files.traces),
        ] {
            let path = directory.join(name);
            fs::write(&path, text).map_err(|source| io_fault(&path, source))?;
        }
        // The run counts once its line is there, so the line is written last.
        let path = self.directory.join(RUNS);
        let mut line = serde_json::to_string(run).map_err(|error| content(&path, error))?;
        line.push('\n');
        let file = OpenOptions::new().append(true).open(&path);
        let result = file.and_then(|mut file: File| file.write_all(line.as_bytes()));
        result.map_err(|source| io_fault(&path, source))
    }

    /// The samples of the run with this number, counted from 0, as lines of JSON; `None` if they
    /// are missing, as in a committed result.
    #[must_use]
    pub fn samples(&self, run: usize) -> Option<String> {
        fs::read_to_string(self.run_directory(run).join(SAMPLES)).ok()
    }

    /// The system calls of servers in the run with this number, counted from 0; `None` if they are missing.
    #[must_use]
    pub fn traces(&self, run: usize) -> Option<Traces> {
        let text = fs::read_to_string(self.run_directory(run).join(TRACES)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// The directory of the run with this number, counted from 0; its name counts from 1.
    fn run_directory(&self, run: usize) -> PathBuf {
        self.directory.join("runs").join((run + 1).to_string())
    }

    /// Stores the output of a published run that was made here.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn published(&mut self, run: &OriginalRun, printed: &str) -> Result<(), StoreFault> {
        self.as_published.push(PrintedRun {
            name: run.name.clone(),
            deviations: run.deviations.clone(),
            text: printed.to_owned(),
        });
        self.write_json(PUBLISHED, &self.as_published)
    }

    /// Stores the capacity of the slowest cell for each number of clients.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn capacity(&self, capacity: &BTreeMap<u64, f64>) -> Result<(), StoreFault> {
        self.write_json(CAPACITY, capacity)
    }

    /// Removes the runs of rounds that are not whole, so that these rounds are made again.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_whole_rounds(&mut self, stored: &mut StoredResult) -> Result<(), StoreFault> {
        let whole = whole_rounds(&stored.experiment, &stored.runs);
        stored.runs.retain(|run| run.round < whole);
        let path = self.directory.join(RUNS);
        let mut text = String::new();
        for run in &stored.runs {
            text += &serde_json::to_string(run).map_err(|error| content(&path, error))?;
            text.push('\n');
        }
        self.runs = stored.runs.len();
        self.write(RUNS, text.as_bytes())
    }

    /// Stores the records of servers.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn servers(&self, servers: &[ServerRecord]) -> Result<(), StoreFault> {
        self.write_json("servers.json", &servers)
    }

    /// Writes a file of the directory.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<(), StoreFault> {
        let path = self.directory.join(name);
        fs::write(&path, bytes).map_err(|source| io_fault(&path, source))
    }

    fn write_json(&self, name: &str, value: &impl Serialize) -> Result<(), StoreFault> {
        let path = self.directory.join(name);
        let text = serde_json::to_string_pretty(value).map_err(|error| content(&path, error))?;
        self.write(name, (text + "\n").as_bytes())
    }

    /// Opens a directory that has a result, so that what follows from its runs can be written anew.
    ///
    /// # Errors
    /// A file is missing or not valid; [`StoreFault`] says which.
    pub fn open(directory: &Path) -> Result<(Self, StoredResult), StoreFault> {
        let text = |name: &str| {
            let path = directory.join(name);
            fs::read_to_string(&path).map_err(|source| io_fault(&path, source))
        };
        let path = directory.join(EXPERIMENT);
        let experiment = read_experiment(&path, &text(EXPERIMENT)?, &text(FORM)?)?;
        let host = serde_json::from_str(&text("host.json")?);
        let host = host.map_err(|error| content(&directory.join("host.json"), error))?;
        let runs = read_runs(&directory.join(RUNS), &text(RUNS)?)?;
        let as_published: Vec<PrintedRun> = read_json(&directory.join(PUBLISHED))?;
        let store = Self {
            directory: directory.to_owned(),
            runs: runs.len(),
            as_published: as_published.clone(),
        };
        let stored = StoredResult {
            as_published,
            note: note(directory),
            capacity: read_json(&directory.join(CAPACITY))?,
            experiment,
            host,
            servers: read_json(&directory.join("servers.json"))?,
            runs,
        };
        Ok((store, stored))
    }
}

/// Reads the experiment at `path` from its file's `text` and from `form`, which [`Store::keep_form`] has written.
fn read_experiment(path: &Path, text: &str, form: &str) -> Result<Experiment, StoreFault> {
    let has = |word: &str| form.split_whitespace().any(|other| other == word);
    let values = |prefix: &'static str| {
        let words = form.split_whitespace();
        words.filter_map(move |word| word.strip_prefix(prefix))
    };
    let experiment_form = Form {
        is_quick: has(QUICK),
        is_duel: has(DUEL),
        modules: values(MODULE).map(str::to_owned).collect(),
        ..Form::default()
    };
    let experiment = Experiment::read(&path.display().to_string(), text, experiment_form);
    let mut experiment = experiment.map_err(|faults| content(path, faults))?;
    if has(AGAINST) {
        experiment = experiment.against();
    }
    experiment.has_own_jdk = has(OWN_JDK);
    experiment.is_traced = has(STRACE);
    experiment.is_without_bpf = has(NO_BPF);
    // In older results these numbers are those of the experiment's file.
    if let Some(Ok(rounds)) = values(ROUNDS).next().map(str::parse) {
        experiment.rounds = rounds;
    }
    if let Some(Ok(seed)) = values(SEED).next().map(str::parse) {
        experiment.seed = seed;
    }
    if let Some(Ok(rounds)) = values(DECIDED).next().map(str::parse) {
        experiment.decided_after = Some(rounds);
    }
    Ok(experiment)
}

/// Opens a result without its runs, as it is committed. Claims of an older version are evaluated
/// anew from the ratios of its rounds, and so is the answer. The experiment is that of
/// `experiment.toml` beside the result, or else ours of the same name.
///
/// # Errors
/// There is no `result.json`, or it is of another version.
pub fn open_result(directory: &Path) -> Result<(Store, ResultDocument), StoreFault> {
    open_result_file(&directory.join(RESULT))
}

/// Reads a result's file, which may have any name, with its directory.
///
/// # Errors
/// There is no such file, or it is of another version.
pub fn open_result_file(path: &Path) -> Result<(Store, ResultDocument), StoreFault> {
    let directory = path.parent().unwrap_or(path);
    let text = fs::read_to_string(path).map_err(|source| io_fault(path, source))?;
    let mut result: ResultDocument =
        serde_json::from_str(&text).map_err(|error| content(path, error))?;
    if result.schema != SCHEMA {
        let what = format!("its schema is {}, this is {SCHEMA}", result.schema);
        return Err(content(path, what));
    }
    let experiment = experiment_of(directory, &result)?;
    result = result.by_todays_rules(&experiment);
    result.note = note(directory);
    let store = Store {
        directory: directory.to_owned(),
        runs: 0,
        as_published: Vec::new(),
    };
    Ok((store, result))
}

/// The experiment of a result, in the result's form: that of `experiment.toml` in `directory`, else ours of this name.
/// It has all modules if the result has levels that need one, else none.
fn experiment_of(directory: &Path, result: &ResultDocument) -> Result<Experiment, StoreFault> {
    let file = directory.join(EXPERIMENT);
    let has_file = file.exists();
    let name = if has_file {
        file.display().to_string()
    } else {
        result.name.clone()
    };
    let read = |modules: Vec<String>| {
        let form = Form {
            is_quick: result.is_quick,
            is_duel: result.is_duel,
            // A file of the result's own tells its form itself.
            is_published: result.is_published && !has_file,
            modules,
            eras: Eras::AsModules,
        };
        builtin::experiment(&name, form).map_err(|faults| content(&file, faults))
    };
    let without_modules = read(Vec::new())?;
    let mut cells = result.cells.iter();
    if cells.all(|cell| without_modules.cells.contains(&cell.levels)) {
        return Ok(without_modules);
    }
    read(without_modules.known_modules)
}

/// Whether a directory has a result but not its runs.
#[must_use]
pub fn is_without_runs(directory: &Path) -> bool {
    !directory.join(RUNS).exists() && directory.join(RESULT).exists()
}

/// The contents of `note.md`; empty if there is none.
fn note(directory: &Path) -> String {
    let text = fs::read_to_string(directory.join(NOTE)).unwrap_or_default();
    text.trim().to_owned()
}

/// The contents of a JSON file; the default if there is no such file, as before the first run has ended.
fn read_json<T: Default + DeserializeOwned>(path: &Path) -> Result<T, StoreFault> {
    match fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| content(path, error)),
        Err(_) => Ok(T::default()),
    }
}

/// Reads the lines of `runs.jsonl`. A last line that was cut, as when the lab was killed, is ignored.
fn read_runs(path: &Path, text: &str) -> Result<Vec<Run>, StoreFault> {
    let whole_lines = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut runs = Vec::new();
    for (index, line) in whole_lines.lines().enumerate() {
        let run = serde_json::from_str(line);
        runs.push(run.map_err(|error| content(path, format!("line {}: {error}", index + 1)))?);
    }
    Ok(runs)
}

fn io_fault(path: &Path, source: io::Error) -> StoreFault {
    let path = path.to_owned();
    StoreFault::Io { path, source }
}

fn content(path: &Path, what: impl std::fmt::Display) -> StoreFault {
    StoreFault::Content {
        path: path.to_owned(),
        what: what.to_string(),
    }
}

const RUNS: &str = "runs.jsonl";
const EXPERIMENT: &str = "experiment.toml";
/// The name of the file with a run's samples.
const SAMPLES: &str = "samples.jsonl";
/// The name of the file with a run's system calls.
const TRACES: &str = "strace.json";
const FORM: &str = "form";
const CAPACITY: &str = "capacity.json";
const PUBLISHED: &str = "as_published.json";
const RESULT: &str = "result.json";
const NOTE: &str = "note.md";
const QUICK: &str = "quick";
const DUEL: &str = "duel";
const OWN_JDK: &str = "jdk";
const AGAINST: &str = "against";
const STRACE: &str = "strace";
const NO_BPF: &str = "no-bpf";
/// The prefix of the option with the number of rounds.
const ROUNDS: &str = "rounds=";
/// Before the seed of a duel's orders.
const SEED: &str = "seed=";
const DECIDED: &str = "decided=";
/// Before the name of a module.
const MODULE: &str = "module=";

#[cfg(test)]
mod tests {
    use super::*;

    fn experiment() -> Experiment {
        let text = include_str!("../fixtures/keepalive.toml");
        Experiment::read("keepalive.toml", text, true).unwrap()
    }

    #[test]
    fn runs_are_read_as_they_were_written() {
        let directory = tempfile::tempdir().unwrap();
        let mut experiment = experiment();
        (experiment.is_traced, experiment.is_without_bpf) = (true, true);
        let mut store = Store::create(directory.path(), &experiment, &Host::default()).unwrap();
        let run = Run {
            cell: 3,
            levels: experiment.cells[3].clone(),
            round: 2,
            measures: [("cpu".to_owned(), 7.5)].into(),
            ..Run::default()
        };
        let left = RunFiles {
            samples: "{}\n".to_owned(),
            traces: "{\"web\": {\"all\": {}}}".to_owned(),
            ..RunFiles::default()
        };
        store.add(&run, &left).unwrap();
        // A run that was being written when the lab was killed.
        let path = directory.path().join(RUNS);
        let text = fs::read_to_string(&path).unwrap() + "{\"cell\": 1, \"lev";
        fs::write(&path, text).unwrap();
        let (store, stored) = Store::open(directory.path()).unwrap();
        assert_eq!(stored.runs, [run]);
        assert!(stored.experiment.is_traced && stored.experiment.is_without_bpf);
        assert_eq!(store.samples(0).unwrap(), left.samples);
        assert!(store.traces(0).unwrap().contains_key("web"));
        assert!(store.samples(1).is_none() && store.traces(1).is_none());
        assert!(stored.experiment.is_quick);
        assert_eq!(stored.experiment.cells.len(), 5);
    }

    #[test]
    fn rounds_that_are_not_whole_are_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = experiment();
        let mut store = Store::create(directory.path(), &experiment, &Host::default()).unwrap();
        let cells = experiment.cells.len();
        for (round, cell) in (0..2).flat_map(|round| (0..cells).map(move |cell| (round, cell))) {
            let run = Run {
                cell,
                round,
                ..Run::default()
            };
            if (round, cell) != (1, cells - 1) {
                store.add(&run, &RunFiles::default()).unwrap();
            }
        }
        let (mut store, mut stored) = Store::open(directory.path()).unwrap();
        store.keep_whole_rounds(&mut stored).unwrap();
        assert!(stored.runs.iter().all(|run| run.round == 0));
        let (_, again) = Store::open(directory.path()).unwrap();
        assert_eq!(again.runs.len(), cells);
    }

    #[test]
    fn rounds_that_were_asked_for_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut experiment = experiment();
        let of_file = experiment.rounds;
        experiment.rounds = 9;
        assert_ne!(of_file, 9);
        let rounds = || Store::open(directory.path()).unwrap().1.experiment.rounds;
        let store = Store::create(directory.path(), &experiment, &Host::default()).unwrap();
        assert_eq!(rounds(), 9);
        experiment.rounds = 20;
        store.keep_form(&experiment).unwrap();
        assert_eq!(rounds(), 20);
        store.keep_end(&experiment, 12).unwrap();
        let decided = Store::open(directory.path()).unwrap().1.experiment;
        assert_eq!((decided.rounds, decided.decided_after), (20, Some(12)));
        // As an older version wrote it.
        store.write(FORM, b"quick").unwrap();
        assert_eq!(rounds(), of_file);
    }

    #[test]
    fn a_duel_keeps_its_seed() {
        let directory = tempfile::tempdir().unwrap();
        let form = Form {
            is_duel: true,
            ..Form::default()
        };
        let text = include_str!("../../../../docs/lab/planted.toml");
        let mut duel = Experiment::read("planted.toml", text, form).unwrap();
        duel.seed = 1_795_918_324_454_636_950;
        Store::create(directory.path(), &duel, &Host::default()).unwrap();
        let (_, stored) = Store::open(directory.path()).unwrap();
        assert!(stored.experiment.is_duel);
        assert_eq!(stored.experiment.seed, duel.seed);
        let result = ResultDocument::of(&stored, false);
        assert_eq!((result.is_duel, result.seed), (true, duel.seed));
    }

    #[test]
    fn modules_stay_at_hand() {
        let form = |modules: &[&str]| Form {
            is_quick: true,
            modules: modules.iter().map(|name| (*name).to_owned()).collect(),
            ..Form::default()
        };
        let read = |modules: &[&str]| {
            let text = include_str!("../experiments/modules.toml");
            Experiment::read("modules.toml", text, form(modules))
        };
        let levels = |experiment: &Experiment| experiment.factors[0].levels.len();
        let (without, with) = (read(&[]).unwrap(), read(&["nginx_ajp"]).unwrap());
        assert_eq!((levels(&without), levels(&with)), (3, 4));
        let directory = tempfile::tempdir().unwrap();
        Store::create(directory.path(), &with, &Host::default()).unwrap();
        let (_, stored) = Store::open(directory.path()).unwrap();
        assert_eq!(stored.experiment.cells, with.cells);
        let fault = read(&["mod_jk"]).unwrap_err().to_string();
        assert!(fault.contains("there are: nginx_ajp"), "{fault}");
    }

    #[test]
    fn two_binaries_stay_a_factor() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = experiment().against();
        assert_eq!(experiment.cells.len(), 10);
        assert_eq!(
            experiment.label(experiment.control),
            "keep=off idle=0 limit=100 binary=old"
        );
        for claim in &experiment.claims {
            let [case] = &claim.cases[..] else {
                panic!("one case over all cells")
            };
            for contrast in &case.contrasts {
                let [above, below] = [contrast.above[0], contrast.below[0]]
                    .map(|cell| experiment.cells[cell].clone());
                assert_eq!(above["binary"].to_string(), "new");
                assert_eq!(below["binary"].to_string(), "old");
                assert_eq!(above["keep"], below["keep"]);
            }
        }
        Store::create(directory.path(), &experiment, &Host::default()).unwrap();
        let (_, stored) = Store::open(directory.path()).unwrap();
        assert!(stored.experiment.is_against && stored.experiment.is_quick);
        assert!(!stored.experiment.is_traced && !stored.experiment.is_without_bpf);
        assert_eq!(stored.experiment.cells, experiment.cells);
    }

    #[test]
    fn a_result_is_not_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        Store::create(directory.path(), &experiment(), &Host::default()).unwrap();
        let again = Store::create(directory.path(), &experiment(), &Host::default());
        assert!(again.unwrap_err().to_string().contains("--out"));
    }

    #[test]
    fn a_result_is_read_without_its_runs() {
        let directory = tempfile::tempdir().unwrap();
        assert!(!is_without_runs(directory.path()));
        let stored = StoredResult::of(experiment(), Vec::new());
        let mut result = ResultDocument::of(&stored, false);
        result.answer = "of an older version".to_owned();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        write(EXPERIMENT, &stored.experiment.text);
        write(RESULT, &serde_json::to_string(&result).unwrap());
        write(NOTE, "Beside other work.\n");
        assert!(is_without_runs(directory.path()));
        let (_, read) = open_result(directory.path()).unwrap();
        assert_eq!(read.answer, ResultDocument::of(&stored, false).answer);
        assert_eq!(read.note, "Beside other work.");
        result.schema = "catamaran-lab/9".to_owned();
        write(RESULT, &serde_json::to_string(&result).unwrap());
        let fault = open_result(directory.path()).unwrap_err().to_string();
        assert!(
            fault.contains("result.json: its schema is catamaran-lab/9"),
            "{fault}"
        );
        write(RUNS, "");
        assert!(!is_without_runs(directory.path()));
    }

    #[test]
    fn damage_is_named_with_its_file() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Store::open(directory.path()).is_err());
        Store::create(directory.path(), &experiment(), &Host::default()).unwrap();
        fs::write(directory.path().join(RUNS), "{}\nnonsense\n").unwrap();
        let fault = Store::open(directory.path()).unwrap_err().to_string();
        assert!(fault.contains("runs.jsonl: line 1"), "{fault}");
    }
}
