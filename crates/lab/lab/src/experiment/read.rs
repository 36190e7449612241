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
    CountPlan, Experiment, Factor, Form, Level, Levels, MARGIN, OriginalRun, PublishedRun,
    ROUNDS_MAX, ROUNDS_MIN, cells, era, lines,
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

/// All combinations of levels without the exceptions of the file and without those that are `left_out`.
fn combinations(file: &ExperimentFile, factors: &[Factor], left_out: Vec<Levels>) -> Vec<Levels> {
    let of_file = file.except.iter().flat_map(|except| except.get_ref().all());
    let all: Vec<Levels> = of_file.chain(left_out).collect();
    cells::combine(factors, &all)
}

impl FileReader<'_> {
    /// Makes the experiment of a file in the form `form`; faults are added to the report.
    fn experiment(&mut self, mut file: ExperimentFile, form: Form) -> Experiment {
        let (is_quick, modules) = (form.is_quick, era::modules(&form, &file));
        if form.is_duel {
            file.form = FileForm::Duel;
        }
        // The names in a file are checked by all of its levels, also those that the form leaves out.
        let all_factors = factors(&file.factor);
        self.check_levels(&file, &all_factors);
        self.check_eras(&file);
        let is_reduced = self.reduce(&mut file, is_quick);
        let left_out = self.leave_out(&mut file, &modules);
        let has_all_levels = left_out.is_empty() && !is_reduced;
        let factors = factors(&file.factor);
        let combinations = combinations(&file, &factors, left_out);
        let (cells, screen) = self.screen(&file, combinations, is_quick);
        let control = cells.iter().position(|cell| cell == file.control.get_ref());
        if control.is_none() && !is_reduced {
            let what = "`control` is no cell: it names a level of each factor, and no exception";
            self.fault(&file.control, what.to_owned());
        }
        let claims = self.claims(&file, &factors, &cells, has_all_levels);
        let measure = self.count_plan(&file);
        let layout = self.layout(&file);
        let published = self.all_published(&file, &all_factors, &cells);
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
            layout,
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
            has_own_jdk: false,
            is_against: false,
            is_traced: false,
            is_without_bpf: false,
            text: self.text.to_owned(),
            cells,
        };
        let servers_of_cells = self.check_templates(&experiment, &file.server, &file.load);
        self.check_as_published(&experiment, &original_runs);
        self.check_duel(&file.load, &experiment);
        for (number, what) in lines::check(&experiment, &servers_of_cells) {
            self.fault(&file.server[number], format!("gate lines: {what}"));
        }
        experiment
    }

    /// The figures of all `[[published]]` tables.
    fn all_published(
        &mut self,
        file: &ExperimentFile,
        factors: &[Factor],
        cells: &[Levels],
    ) -> Vec<PublishedRun> {
        let mut published = Vec::new();
        for entry in &file.published {
            published.extend(self.published(entry, factors, cells));
        }
        published
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
            let mut servers = file.server.iter_mut().map(Spanned::get_mut);
            match servers.find(|server| server.name == name) {
                Some(server) => {
                    server.restart = keys.restart.unwrap_or(server.restart);
                    server.set.extend(keys.set);
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
        let file_load = file.load.get_mut();
        if let Some(time) = load.time {
            file_load.time = time;
        }
        if let Some(warm) = load.warm {
            file_load.warm = warm;
        }
        if let Some(shares) = load.shares {
            file_load.shares = shares;
        }
    }

    /// Removes a level that needs a module which is not in `modules`, and the published runs that would be repeated
    /// there; returns all levels whose cells are left out in this way. If several levels together need the module, each
    /// of them stays in other cells. A name in `modules` that the file does not know is a fault.
    fn leave_out(&mut self, file: &mut ExperimentFile, modules: &[String]) -> Vec<Levels> {
        if let Some(name) = modules.iter().find(|name| !file.module.contains_key(*name)) {
            let known: Vec<&str> = file.module.keys().map(String::as_str).collect();
            let known = known.join(", ");
            let what = format!("no module `{name}` has levels in it; there are: {known}");
            self.report.push(Finding::absence(what));
        }
        let mut left_out = Vec::new();
        for (name, needing) in &file.module {
            if modules.contains(name) {
                continue;
            }
            left_out.push(needing.get_ref().clone());
            if needing.get_ref().len() == 1 {
                for (factor, level) in needing.get_ref() {
                    if let Some(levels) = file.factor.get_mut(factor) {
                        levels.get_mut().retain(|other| other != level);
                    }
                }
            }
            file.as_published
                .retain(|run| !cells::matches(&run.get_ref().cell, needing.get_ref()));
        }
        left_out
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
            let named = claims::levels_of(claim.get_ref());
            self.check_named(claim, factors, &named.iter().collect::<Vec<_>>());
            for (levels, _) in claim.get_ref().published.all() {
                self.check_named(claim, factors, &[&levels]);
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
                self.check_levels_of(quick, factors, name, levels);
            }
        }
    }

    /// Checks that the factor `name` exists and has each of `levels`; faults are reported at `entry`.
    pub(super) fn check_levels_of<'l, T>(
        &mut self,
        entry: &Spanned<T>,
        factors: &[Factor],
        name: &str,
        levels: impl IntoIterator<Item = &'l Level>,
    ) {
        for level in levels {
            let named = Levels::from([(name.to_owned(), level.clone())]);
            self.check_named(entry, factors, &[&named]);
        }
    }

    /// Checks that the factors and levels in `named` exist; faults are reported at `entry`.
    pub(super) fn check_named<T>(
        &mut self,
        entry: &Spanned<T>,
        factors: &[Factor],
        named: &[&Levels],
    ) {
        for (name, level) in named.iter().flat_map(|levels| levels.iter()) {
            let Some(factor) = factors.iter().find(|factor| factor.name == *name) else {
                let known: Vec<&str> = factors.iter().map(|factor| factor.name.as_str()).collect();
                let fault = Finding::fault(format!("no factor `{name}`"), entry.span());
                self.push(fault.hint(hint(name, &known)));
                continue;
            };
            if !factor.levels.contains(level) {
                let known: Vec<String> = factor.levels.iter().map(ToString::to_string).collect();
                let what = format!(
                    "{name} has no level {level}; there are {}",
                    known.join(", ")
                );
                self.fault(entry, what);
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
        for claim in &file.claim {
            let Some(measure) = self.claimed_measure(claim, file) else {
                continue;
            };
            let keys = claim.get_ref();
            let cases = claims::cases(keys, factors, cells);
            if cases.is_empty() {
                if has_all_levels {
                    let what = format!("no two cells fit the claim \"{}\"", keys.says);
                    self.fault(claim, what);
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
        claim: &Spanned<ClaimKeys>,
        file: &ExperimentFile,
    ) -> Option<Measure> {
        self.check_sides(claim);
        let measure = match Measure::parse(&claim.get_ref().measure) {
            Ok(measure) => measure,
            Err(what) => {
                self.fault(claim, what);
                return None;
            }
        };
        self.check_counted(claim, &measure, file);
        let mut findings = self.report.findings().iter();
        if findings.any(|finding| finding.span == Some(claim.span())) {
            return None;
        }
        // If there is only one server, its measures are those of all servers, and are not taken for it alone.
        Some(match file.server.len() {
            1 => measure.of_all(),
            _ => measure,
        })
    }

    /// Checks that a claim has two sides with levels of the same factors, or an interaction instead.
    fn check_sides(&mut self, claim: &Spanned<ClaimKeys>) {
        let keys = claim.get_ref();
        let has_sides = !keys.level.is_empty() || !keys.over.is_empty();
        if keys.interaction.is_some() == has_sides {
            let what = "a claim has `level` and `over`, or `interaction`";
            self.fault(claim, what.to_owned());
        }
        if !keys.level.keys().eq(keys.over.keys()) {
            self.fault(claim, "`level` and `over` name the same factors".to_owned());
        }
        let mut names = keys.level.keys();
        if let Some(name) = names.find(|name| keys.cells.contains_key(*name)) {
            self.fault(claim, format!("{name} is in `level` and in `where`"));
        }
    }

    /// Checks that the measure of a claim is counted for the server that the claim is about.
    fn check_counted(
        &mut self,
        claim: &Spanned<ClaimKeys>,
        measure: &Measure,
        file: &ExperimentFile,
    ) {
        if let Some(other) = measure.record().of_servers {
            let what = format!(
                "{measure} is of the whole machine, so whatever else runs on it decides a claim: `{other}` is of the servers"
            );
            self.fault(claim, what);
        }
        let no_counts = MeasureKeys::default();
        let counts = file.measure.as_ref().map_or(&no_counts, Spanned::get_ref);
        let names = match measure.base() {
            SYSCALLS => &counts.syscalls,
            MEMORY => &counts.memory,
            BYTES => &counts.bytes,
            // All other measures are taken in each run.
            _ => return,
        };
        let is_counted = match measure.of() {
            None | Some(UPSTREAM) => !names.is_empty(),
            Some(server) => names.iter().any(|name| name == server),
        };
        if !is_counted {
            let what = format!("{measure} is claimed, but [measure] does not name it");
            self.fault(claim, what);
        }
    }

    /// Reads what is counted, and checks that servers of these names exist.
    fn count_plan(&mut self, file: &ExperimentFile) -> CountPlan {
        let Some(table) = &file.measure else {
            return CountPlan::default();
        };
        let keys = table.get_ref().clone();
        let is_server = |name: &str| {
            let mut servers = file.server.iter();
            servers.any(|server| server.get_ref().name == name)
        };
        for name in keys.syscalls.iter().chain(&keys.memory).chain(&keys.jvm) {
            if !is_server(name) {
                self.fault(table, format!("no server `{name}`"));
            }
        }
        let mut bytes = Vec::new();
        for hop in &keys.bytes {
            match hop.split_once('.') {
                Some((server, port)) if is_server(server) => {
                    bytes.push((server.to_owned(), port.to_owned()));
                }
                _ => self.fault(
                    table,
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
        let mut original_runs = Vec::new();
        for entry in runs {
            if let Some(run) = self.as_published(entry, is_quick) {
                original_runs.push((run, entry));
            }
        }
        original_runs
    }

    /// Checks that the targets of all servers accept their settings in the repeated published runs. Faults are reported
    /// at the run.
    fn check_as_published(
        &mut self,
        experiment: &Experiment,
        runs: &[(OriginalRun, &Spanned<AsPublishedKeys>)],
    ) {
        for (run, entry) in runs {
            let of_run = experiment.of_published(run);
            for cell in &of_run.cells {
                let mut addresses = Addresses::new();
                for number in 0..of_run.servers() {
                    if let Err(faults) = check_server(&of_run, cell, number, &mut addresses) {
                        self.push_faults_of_cell(entry, cell, &faults);
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
        let mut servers_of_cells = Vec::new();
        for cell in &experiment.cells {
            let mut addresses = Addresses::new();
            let mut are_servers_valid = true;
            let mut servers_of_cell = Vec::new();
            for (number, entry) in servers.iter().enumerate() {
                let checked = check_server(experiment, cell, number, &mut addresses);
                servers_of_cell.push(checked.unwrap_or_else(|faults| {
                    are_servers_valid = false;
                    self.push_faults_of_cell(entry, cell, &faults);
                    None
                }));
            }
            servers_of_cells.push(servers_of_cell);
            // Templates of the load may name a server that cannot be made, which would be a second fault for the same
            // cause.
            if !are_servers_valid {
                continue;
            }
            // The loads beside it are rendered from the main one, and would repeat its faults.
            if let Err(faults) = experiment.load(cell, &addresses) {
                self.push_faults_of_cell(load, cell, &faults);
                continue;
            }
            let rendered = [
                experiment.beside(cell, &addresses).map(drop),
                experiment.acts(cell, &addresses).map(drop),
                experiment.asked(cell, &addresses).map(drop),
                experiment.expect(cell, &addresses).map(drop),
            ];
            for faults in rendered.into_iter().filter_map(Result::err) {
                self.push_faults_of_cell(load, cell, &faults);
            }
        }
        servers_of_cells
    }

    /// Adds the faults of a cell at `entry`. A fault that another cell has had there already is left out.
    fn push_faults_of_cell<T>(&mut self, entry: &Spanned<T>, cell: &Levels, faults: &Report) {
        for Finding { message, hint, .. } in faults.findings() {
            // The messages of other cells differ only in the cell at their end.
            let beginning = format!("{message} (cell ");
            let mut findings = self.report.findings().iter();
            let is_known = findings.any(|known| {
                known.span == Some(entry.span()) && known.message.starts_with(&beginning)
            });
            if !is_known {
                let message = format!("{message} (cell {})", super::label(cell));
                self.report
                    .push(Finding::fault(message, entry.span()).hint(hint));
            }
        }
    }

    /// Adds a fault at the line of `entry`.
    pub(super) fn fault<T>(&mut self, entry: &Spanned<T>, what: String) {
        self.push(Finding::fault(what, entry.span()));
    }

    /// Adds a fault that the report does not have yet.
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
fn factors(keys: &BTreeMap<String, Spanned<Vec<Level>>>) -> Vec<Factor> {
    let mut factors: Vec<_> = keys.iter().collect();
    factors.sort_by_key(|(_, levels)| levels.span().start);
    let factor = |(name, levels): (&String, &Spanned<Vec<Level>>)| Factor {
        name: name.clone(),
        levels: levels.get_ref().clone(),
    };
    factors.into_iter().map(factor).collect()
}
