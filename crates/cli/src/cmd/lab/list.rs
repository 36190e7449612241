//! `lab list`: lists the experiments.

use std::io::{self, Write as _};
use std::process::ExitCode;

use catamaran_lab::builtin;
use catamaran_lab::claim::reach;
use catamaran_lab::experiment::{Eras, Experiment, Form};
use catamaran_lab::plan::plan;

use crate::failure::Failure;

/// List the experiments, with their cells and rounds
#[derive(clap::Args)]
pub(super) struct LabListArgs {
    /// Experiments or files to look at; all of ours if none is given
    #[arg(value_name = "NAME|FILE")]
    experiments: Vec<String>,

    /// Print every fault of them, and exit with 1 if there is one
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &LabListArgs) -> Result<ExitCode, Failure> {
    let builtin_names: Vec<String> = builtin::names().map(str::to_owned).collect();
    let names = if args.experiments.is_empty() {
        &builtin_names
    } else {
        &args.experiments
    };
    let mut out = io::stdout().lock();
    let mut is_fine = true;
    for name in names {
        match builtin::experiment(name, false) {
            Ok(experiment) if args.check => {
                writeln!(out, "{name}: fine ({} cells)", experiment.cells.len())?;
                say_reach(&mut out, &experiment)?;
            }
            Ok(experiment) => {
                let cases = experiment.claims.iter().map(|claim| claim.cases.len());
                let claims: usize = cases.sum();
                writeln!(out, "{:<14} {}", experiment.name, experiment.question)?;
                let whole_plan = plan(&experiment, 0);
                writeln!(out, "{:<14} {claims} claims, {whole_plan}", "")?;
                say_reach(&mut out, &experiment)?;
                if let Ok(quick) = builtin::experiment(name, true) {
                    writeln!(out, "{:<14} --quick: {}", "", plan(&quick, 0))?;
                }
                say_published(&mut out, name)?;
            }
            Err(faults) => {
                is_fine = false;
                write!(io::stderr(), "{faults}")?;
            }
        }
    }
    Ok(if is_fine {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(1)
    })
}

/// Writes the plan of the published form, and the shorter one with today's software alone.
fn say_published(out: &mut impl io::Write, name: &str) -> io::Result<()> {
    let form = |eras| Form {
        is_published: true,
        eras,
        ..Form::default()
    };
    let Ok(both) = builtin::experiment(name, form(Eras::Both)) else {
        return Ok(());
    };
    writeln!(out, "{:<14} --published: {}", "", plan(&both, 0))?;
    if both.old_software().next().is_some()
        && let Ok(now) = builtin::experiment(name, form(Eras::AsModules))
    {
        writeln!(out, "{:<14} --published --now: {}", "", plan(&now, 0))?;
    }
    Ok(())
}

/// Writes a line about the claims that the planned runs cannot show, if there are any.
fn say_reach(out: &mut impl io::Write, experiment: &Experiment) -> io::Result<()> {
    match reach(experiment).to_string() {
        all if all.is_empty() => Ok(()),
        words => writeln!(out, "{:<14} {words}", ""),
    }
}
