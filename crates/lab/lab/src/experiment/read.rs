//! Reads an experiment from its file, and reports everything that is wrong with the file, each fault with its line.

use std::collections::BTreeMap;

use catamaran_toml_file::derived;
use catamaran_toml_file::report::{Finding, Report};
use catamaran_toml_file::suggest::hint;
use toml::Spanned;

use super::check::{PreparedServer, check_server};
use super::claims::{self, Claim};
use super::file::{
    AsPublishedKeys, ClaimKeys, ExperimentFile, FileForm, MeasureKeys, QuickKeys, ServerKeys,
    Switch,
};
use super::template::Addresses;
use super::{
    CountPlan, Experiment, Factor, Form, Levels, MARGIN, OriginalRun, ROUNDS_MAX, ROUNDS_MIN,
    cells, lines,
};
use crate::gate::run_gates;
use crate::measure::{BYTES, MEMORY, Measure, SYSCALLS, UPSTREAM};

impl Experiment {
    /// Reads an experiment from `text`. `place` is the file's name in messages. `form` is the form to read; a `bool`
    /// says whether that is the short form.
    ///
    /// # Errors
    /// The file is not valid; the report has all faults.
    pub fn read(place: &str, text: &str, form: impl Into<Form>) -> Result<Self, Report> {
        let mut report = Report::new(place, text);
        let Some(mut file) = derived::read::<ExperimentFile>(text, &mut report) else {
            report.finish();
            return Err(report);
        };
        let mut reading = FileReader { text, report };
        reading.add_links(&mut file);
        let experiment = reading.experiment(file, form.into());
        reading.report.or(experiment)
    }
}

/// A file that is being read, with its faults so far.
pub(super) struct FileReader<'a> {
    text: &'a str,
    report: Report,
}

/// The number of rounds after a screen; `None` if there is no screen, or it does not say.
fn rounds_of_screen(file: &ExperimentFile) -> Option<usize> {
    file.screen.as_ref()?.get_ref().then.run.rounds
}

impl FileReader<'_> {
    /// Makes the experiment of a file in the form `form`; faults are added to the report.
    fn experiment(&mut self, mut file: ExperimentFile, form: Form) -> Experiment {
        let (is_quick, modules) = (form.is_quick, form.modules);
        if form.is_duel {
            file.form = FileForm::Duel;
        }
        let all = factors(&file.factor);
        self.check_levels(&file, &all);
        let is_reduced = self.reduce(&mut file, is_quick);
        let has_all_levels = self.leave_out(&mut file, &modules) && !is_reduced;
        let factors = factors(&file.factor);
        let exceptions = file.except.iter().flat_map(|it| it.get_ref().all());
        let cells = cells::combine(&factors, &exceptions.collect::<Vec<_>>());
        let (cells, screen) = self.screen(&file, cells, is_quick);
        let control = cells.iter().position(|cell| cell == file.control.get_ref());
        if control.is_none() && !is_reduced {
            let what = "`control` is no cell: it names a level of each factor, and no exception";
            self.fault(&file.control, what.to_owned());
        }
        let claims = self.claims(&file, &factors, &cells, has_all_levels);
        let measure = self.counted(&file);
        let published = file.published.iter();
        let published = published
            .flat_map(|it| self.published(it, &all, &cells))
            .collect();
        let original_runs = self.original_runs(&file.as_published, is_quick);
        self.check_run(&file, &cells);
        self.check_names(&file, &factors);
        let experiment = Experiment {
            name: file.name,
            question: file.question,
            source: file.source,
            factors,
            control: control.unwrap_or(0),
            servers: file.server.iter().map(|it| it.get_ref().clone()).collect(),
            core_share: file.core_share.as_ref().map(|it| it.get_ref().clone()),
            load: file.load.get_ref().clone(),
            beside: file.beside.iter().map(|it| it.get_ref().clone()).collect(),
            action: file.action.iter().map(|it| it.get_ref().clone()).collect(),
            nest: file.nest,
            sysctl: file.sysctl,
            gates_off: switched(&file.gates, Switch::Off),
            gates_of_times: switched(&file.gates, Switch::Times),
            expect: file.expect,
            measure,
            rounds: file.run.get_ref().rounds,
            decided_after: None,
            screen,
            seed: file.run.get_ref().seed,
            claims,
            published,
            as_published: original_runs.iter().map(|(run, _)| run.clone()).collect(),
            is_quick,
            is_published: file.form == FileForm::Published,
            is_duel: file.form == FileForm::Duel,
            modules,
            known_modules: file.module.into_keys().collect(),
            is_against: false,
            is_traced: false,
            is_without_bpf: false,
            text: self.text.to_owned(),
            cells,
        };
        let made = self.check_templates(&experiment, &file.server, &file.load);
        self.check_as_published(&experiment, &original_runs);
        self.check_duel(&file.load, &experiment);
        for (number, what) in lines::check(&experiment, &made) {
            self.fault(&file.server[number], format!("gate lines: {what}"));
        }
        experiment
    }

    /// Replaces values by those of `[duel]`, `[quick]` or the screen, if the file's form has them. Returns whether
    /// levels may be missing because of that.
    fn reduce(&mut self, file: &mut ExperimentFile, is_quick: bool) -> bool {
        let is_duel = file.form == FileForm::Duel;
        if is_duel {
            self.match_up(file);
        }
        if is_quick {
            self.quicken(file);
        } else if let Some(rounds) = rounds_of_screen(file) {
            file.run.get_mut().rounds = rounds;
        }
        is_quick || (is_duel && file.duel.is_some())
    }

    /// Replaces values by those of `[quick]`; without such a table, the short form is a fault.
    fn quicken(&mut self, file: &mut ExperimentFile) {
        let Some(quick) = file.quick.as_ref().map(|it| it.get_ref().clone()) else {
            let what = "there is no [quick], which says what `--quick` leaves out";
            self.report.push(Finding::absence(what));
            return;
        };
        self.replace(file, "quick", quick);
    }

    /// Replaces values of the file by those of the table called `table`.
    pub(super) fn replace(&mut self, file: &mut ExperimentFile, table: &str, keys: QuickKeys) {
        let QuickKeys {
            factor,
            run,
            load,
            server,
        } = keys;
        for (name, levels) in factor {
            if let Some(known) = file.factor.get_mut(&name) {
                *known.get_mut() = levels;
            }
        }
        for (name, keys) in server {
            let named = |it: &&mut Spanned<ServerKeys>| it.get_ref().name == name;
            match file.server.iter_mut().find(named) {
                Some(known) => {
                    let known = known.get_mut();
                    known.restart = keys.restart.unwrap_or(known.restart);
                    known.set.extend(keys.set);
                }
                None => {
                    let what = format!("[{table}] has a server `{name}`, which is not in the file");
                    self.report.push(Finding::absence(what));
                }
            }
        }
        if let Some(rounds) = run.rounds {
            file.run.get_mut().rounds = rounds;
        }
        let known = file.load.get_mut();
        if let Some(time) = load.time {
            known.time = time;
        }
        if let Some(warm) = load.warm {
            known.warm = warm;
        }
        if let Some(shares) = load.shares {
            known.shares = shares;
        }
    }

    /// Removes levels that need modules which this machine does not have; returns whether no level was removed.
    fn leave_out(&mut self, file: &mut ExperimentFile, modules: &[String]) -> bool {
        let known: Vec<&String> = file.module.keys().collect();
        if let Some(name) = modules.iter().find(|name| !known.contains(name)) {
            let known = known.iter().map(|name| name.as_str());
            let known = known.collect::<Vec<_>>().join(", ");
            let what = format!("no module `{name}` has levels in it; there are: {known}");
            self.report.push(Finding::absence(what));
        }
        let mut is_all = true;
        for (name, levels) in &file.module {
            if modules.contains(name) {
                continue;
            }
            is_all = false;
            for (factor, level) in levels.get_ref() {
                if let Some(known) = file.factor.get_mut(factor) {
                    known.get_mut().retain(|it| it != level);
                }
            }
        }
        is_all
    }

    /// Checks that each level that is named anywhere in the file is one of its factor's levels.
    fn check_levels(&mut self, file: &ExperimentFile, factors: &[Factor]) {
        self.check_named(&file.control, factors, &[file.control.get_ref()]);
        for except in &file.except {
            let all = except.get_ref().all();
            self.check_named(except, factors, &all.iter().collect::<Vec<_>>());
        }
        for levels in file.module.values() {
            self.check_named(levels, factors, &[levels.get_ref()]);
        }
        for server in &file.server {
            let ServerKeys { unless, only, .. } = server.get_ref();
            self.check_named(server, factors, &[unless, only]);
        }
        for claim in &file.claim {
            let named = claims::named(claim.get_ref());
            self.check_named(claim, factors, &named.iter().collect::<Vec<_>>());
            for (at, _) in claim.get_ref().published.all() {
                self.check_named(claim, factors, &[&at]);
            }
            for name in claim.get_ref().each.all() {
                if !factors.iter().any(|factor| factor.name == *name) {
                    self.fault(claim, format!("`each` names {name}, which is no factor"));
                }
            }
        }
        for run in &file.published {
            self.check_named(run, factors, &[&run.get_ref().cell]);
        }
        for run in &file.as_published {
            self.check_named(run, factors, &[&run.get_ref().cell]);
        }
        self.check_screen(file, factors);
        for quick in file.quick.iter().chain(&file.duel) {
            for (name, levels) in &quick.get_ref().factor {
                for level in levels {
                    let one = Levels::from([(name.clone(), level.clone())]);
                    self.check_named(quick, factors, &[&one]);
                }
            }
        }
    }

    /// Checks that the factors and levels in `named` exist; faults are reported at `at`.
    pub(super) fn check_named<T>(
        &mut self,
        at: &Spanned<T>,
        factors: &[Factor],
        named: &[&Levels],
    ) {
        for (name, level) in named.iter().flat_map(|levels| levels.iter()) {
            match factors.iter().find(|factor| factor.name == *name) {
                None => {
                    let known: Vec<&str> =
                        factors.iter().map(|factor| factor.name.as_str()).collect();
                    let fault = Finding::fault(format!("no factor `{name}`"), at.span());
                    self.push(fault.hint(hint(name, &known)));
                }
                Some(factor) if !factor.levels.contains(level) => {
                    let known: Vec<String> =
                        factor.levels.iter().map(ToString::to_string).collect();
                    let what = format!(
                        "{name} has no level {level}; there are {}",
                        known.join(", ")
                    );
                    self.fault(at, what);
                }
                Some(_) => {}
            }
        }
    }

    /// Reads the claims. One with faults is left out, as is one that no cells fit; the latter is a fault only if
    /// `has_all_levels`, which says that no level of the file was left out.
    fn claims(
        &mut self,
        file: &ExperimentFile,
        factors: &[Factor],
        cells: &[Levels],
        has_all_levels: bool,
    ) -> Vec<Claim> {
        let mut claims = Vec::new();
        for at in &file.claim {
            let Some(measure) = self.claimed_measure(at, file) else {
                continue;
            };
            let keys = at.get_ref();
            let cases = claims::cases(keys, factors, cells);
            if cases.is_empty() {
                if has_all_levels {
                    let what = format!("no two cells fit the claim \"{}\"", keys.says);
                    self.fault(at, what);
                }
                continue;
            }
            claims.push(Claim {
                says: keys.says.clone(),
                measure,
                level: keys.level.clone(),
                over: keys.over.clone(),
                expect: keys.expect,
                margin: keys.margin.unwrap_or(MARGIN),
                published: keys.published.all(),
                planted: keys.planted,
                names_reuse: claims::names_reuse(keys, &file.server),
                cases,
            });
        }
        claims
    }

    /// Checks a claim, and returns its measure; `None` if the claim has faults, those of [`Self::check_levels`]
    /// included.
    fn claimed_measure(
        &mut self,
        at: &Spanned<ClaimKeys>,
        file: &ExperimentFile,
    ) -> Option<Measure> {
        self.check_sides(at);
        let measure = match Measure::parse(&at.get_ref().measure) {
            Ok(measure) => measure,
            Err(what) => {
                self.fault(at, what);
                return None;
            }
        };
        self.check_counted(at, &measure, file);
        let mut findings = self.report.findings().iter();
        if findings.any(|it| it.span == Some(at.span())) {
            return None;
        }
        // If there is only one server, its measures are those of all servers, and are not taken for it alone.
        Some(match file.server.len() {
            1 => measure.of_all(),
            _ => measure,
        })
    }

    /// Checks that a claim has two sides with levels of the same factors, or an interaction instead.
    fn check_sides(&mut self, at: &Spanned<ClaimKeys>) {
        let keys = at.get_ref();
        let is_interaction = keys.interaction.is_some();
        if is_interaction != (keys.level.is_empty() && keys.over.is_empty()) {
            self.fault(
                at,
                "a claim has `level` and `over`, or `interaction`".to_owned(),
            );
        }
        if !keys.level.keys().eq(keys.over.keys()) {
            self.fault(at, "`level` and `over` name the same factors".to_owned());
        }
        if let Some(name) = keys
            .level
            .keys()
            .find(|name| keys.cells.contains_key(*name))
        {
            self.fault(at, format!("{name} is in `level` and in `where`"));
        }
    }

    /// Checks that the measure of a claim is counted for the server that the claim is about.
    fn check_counted(&mut self, at: &Spanned<ClaimKeys>, measure: &Measure, file: &ExperimentFile) {
        if let Some(other) = measure.record().of_servers {
            let what = format!(
                "{measure} is of the whole machine, so whatever else runs on it decides a claim: `{other}` is of the servers"
            );
            self.fault(at, what);
        }
        let empty = MeasureKeys::default();
        let counted = file.measure.as_ref().map_or(&empty, |it| it.get_ref());
        let list = match measure.base() {
            SYSCALLS => &counted.syscalls,
            MEMORY => &counted.memory,
            BYTES => &counted.bytes,
            _ => return,
        };
        let is_there = match measure.of() {
            None | Some(UPSTREAM) => !list.is_empty(),
            Some(of) => list.iter().any(|name| name == of),
        };
        if !is_there {
            let what = format!("{measure} is claimed, but [measure] does not name it");
            self.fault(at, what);
        }
    }

    /// Reads what is counted, and checks that servers of these names exist.
    fn counted(&mut self, file: &ExperimentFile) -> CountPlan {
        let Some(at) = &file.measure else {
            return CountPlan::default();
        };
        let keys = at.get_ref().clone();
        let knows = |name: &str| {
            file.server
                .iter()
                .any(|server| server.get_ref().name == name)
        };
        for name in keys.syscalls.iter().chain(&keys.memory).chain(&keys.jvm) {
            if !knows(name) {
                self.fault(at, format!("no server `{name}`"));
            }
        }
        let mut bytes = Vec::new();
        for hop in &keys.bytes {
            match hop.split_once('.') {
                Some((server, port)) if knows(server) => {
                    bytes.push((server.to_owned(), port.to_owned()));
                }
                _ => self.fault(
                    at,
                    format!("`{hop}` is not SERVER.PORT of a server of this file"),
                ),
            }
        }
        CountPlan {
            syscalls: keys.syscalls,
            memory: keys.memory,
            jvm: keys.jvm,
            bytes,
        }
    }

    /// Checks that a published form names its source and has no load that runs before servers, and that only such a
    /// form repeats runs in every round.
    fn check_published_form(&mut self, file: &ExperimentFile) {
        let is_published = file.form == FileForm::Published;
        if is_published && file.source.is_empty() {
            let what = "a published form names its `source`".to_owned();
            self.fault(&file.control, what);
        }
        if is_published && file.load.get_ref().preempts {
            let what = "a published form has no `preempts`: no source had a load that goes before its servers";
            self.fault(&file.load, what.to_owned());
        }
        for run in &file.as_published {
            if run.get_ref().every_round && !is_published {
                let what = "`every_round` is of a published form".to_owned();
                self.fault(run, what);
            }
        }
    }

    /// Checks that the factors in `nest`, the servers of actions and the gates in `gates` exist.
    fn check_names(&mut self, file: &ExperimentFile, factors: &[Factor]) {
        for name in &file.nest {
            if !factors.iter().any(|factor| factor.name == *name) {
                self.fault(
                    &file.control,
                    format!("`nest` names {name}, which is no factor"),
                );
            }
        }
        for action in &file.action {
            let name = &action.get_ref().server;
            if !file.server.iter().any(|it| it.get_ref().name == *name) {
                self.fault(action, format!("no server `{name}`"));
            }
        }
        let gates = run_gates();
        for name in file.gates.keys() {
            if !gates.contains(&name.as_str()) {
                let what = format!("no gate `{name}`; there are {}", gates.join(", "));
                self.fault(&file.control, what);
            }
        }
    }

    /// The published runs to repeat, each with its place in the file; those with faults are left out.
    fn original_runs<'file>(
        &mut self,
        runs: &'file [Spanned<AsPublishedKeys>],
        is_quick: bool,
    ) -> Vec<(OriginalRun, &'file Spanned<AsPublishedKeys>)> {
        runs.iter()
            .filter_map(|at| Some((self.as_published(at, is_quick)?, at)))
            .collect()
    }

    /// Checks that the targets of all servers accept their settings in the repeated published runs. Faults are reported
    /// at the run.
    fn check_as_published(
        &mut self,
        experiment: &Experiment,
        runs: &[(OriginalRun, &Spanned<AsPublishedKeys>)],
    ) {
        for (run, at) in runs {
            let own = experiment.of_published(run);
            for cell in &own.cells {
                let mut addresses = Addresses::new();
                for number in 0..own.servers() {
                    let checked = check_server(&own, cell, number, &mut addresses);
                    if let Err(faults) = checked {
                        self.push_faults_of_cell(at, cell, &faults);
                    }
                }
            }
        }
    }

    /// Checks the parts of cores, lifetimes of servers, the published form, runs with `again`, and the rounds.
    fn check_run(&mut self, file: &ExperimentFile, cells: &[Levels]) {
        self.check_core_shares(file, cells);
        self.check_restarts(&file.server);
        self.check_published_form(file);
        self.check_again(&file.as_published);
        let rounds = file.run.get_ref().rounds;
        if !(ROUNDS_MIN..=ROUNDS_MAX).contains(&rounds) {
            let fault = format!("rounds = {rounds}: it is from {ROUNDS_MIN} to {ROUNDS_MAX}");
            self.fault(&file.run, fault);
        }
    }

    /// Checks that all templates render in each cell, with made-up addresses. Returns the servers of each cell; `None`
    /// for a server that the cell does not have, or with faults.
    fn check_templates<S, L>(
        &mut self,
        experiment: &Experiment,
        servers: &[Spanned<S>],
        load: &Spanned<L>,
    ) -> Vec<Vec<Option<PreparedServer>>> {
        let mut made = Vec::new();
        for cell in &experiment.cells {
            let mut addresses = Addresses::new();
            let mut is_fine = true;
            let mut of_cell = Vec::new();
            for (number, at) in servers.iter().enumerate() {
                let checked = check_server(experiment, cell, number, &mut addresses);
                of_cell.push(checked.unwrap_or_else(|faults| {
                    is_fine = false;
                    self.push_faults_of_cell(at, cell, &faults);
                    None
                }));
            }
            made.push(of_cell);
            // Templates of the load may name a server that cannot be made, which would be a second fault for the same
            // cause.
            if !is_fine {
                continue;
            }
            if let Err(faults) = experiment.load(cell, &addresses) {
                self.push_faults_of_cell(load, cell, &faults);
                continue;
            }
            let others = experiment.beside(cell, &addresses).map(drop);
            for done in [others, experiment.acts(cell, &addresses).map(drop)] {
                if let Err(faults) = done {
                    self.push_faults_of_cell(load, cell, &faults);
                }
            }
            let asked = experiment.asked(cell, &addresses).map(drop);
            for done in [asked, experiment.expect(cell, &addresses).map(drop)] {
                if let Err(faults) = done {
                    self.push_faults_of_cell(load, cell, &faults);
                }
            }
        }
        made
    }

    /// Adds the faults of a cell at `at`. A fault that another cell has had there already is left out.
    fn push_faults_of_cell<T>(&mut self, at: &Spanned<T>, cell: &Levels, faults: &Report) {
        for Finding { message, hint, .. } in faults.findings() {
            let is_same = |other: &str| {
                let rest = other.strip_prefix(message.as_str());
                rest.is_some_and(|rest| rest.starts_with(" (cell "))
            };
            let mut findings = self.report.findings().iter();
            let is_known = findings.any(|it| it.span == Some(at.span()) && is_same(&it.message));
            if !is_known {
                let message = format!("{message} (cell {})", super::label(cell));
                self.report
                    .push(Finding::fault(message, at.span()).hint(hint));
            }
        }
    }

    pub(super) fn fault<T>(&mut self, at: &Spanned<T>, what: String) {
        self.push(Finding::fault(what, at.span()));
    }

    fn push(&mut self, finding: Finding) {
        if !self.report.findings().contains(&finding) {
            self.report.push(finding);
        }
    }
}

/// The names of the gates that a file sets to `switch`.
fn switched(gates: &BTreeMap<String, Switch>, switch: Switch) -> Vec<String> {
    let of_switch = gates.iter().filter(|(_, it)| **it == switch);
    of_switch.map(|(name, _)| name.clone()).collect()
}

/// The factors, in the file's order.
fn factors(keys: &BTreeMap<String, Spanned<Vec<super::Level>>>) -> Vec<Factor> {
    let mut factors: Vec<_> = keys.iter().collect();
    factors.sort_by_key(|(_, levels)| levels.span().start);
    let factor = |(name, levels): (&String, &Spanned<Vec<super::Level>>)| Factor {
        name: name.clone(),
        levels: levels.get_ref().clone(),
    };
    factors.into_iter().map(factor).collect()
}
