//! `completions` and `generate`: what shells and `man` know of the commands, from the same types.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{Command, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::failure::Failure;

/// Print what a shell needs to complete commands and options
///
/// For bash: `catamaran completions bash > /etc/bash_completion.d/catamaran`.
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Write files that packages contain
#[derive(clap::Args)]
pub(crate) struct Generate {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Subcommand)]
enum Kind {
    /// A man page of each command
    Man {
        /// An existing directory
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

pub(crate) fn completions(args: &Completions, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, NAME, &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}

pub(crate) fn run(args: &Generate, command: Command) -> Result<(), Failure> {
    let Kind::Man { folder } = &args.kind;
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write_page(&command, NAME, folder)?;
    pages_below(&command, NAME, folder)
}

/// A page of each command below this one: `catamaran-lab-run` is that of `catamaran lab run`.
fn pages_below(command: &Command, name: &str, folder: &Path) -> Result<(), Failure> {
    let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
    for below in visible {
        let name = format!("{name}-{}", below.get_name());
        write_page(below, &name, folder)?;
        pages_below(below, &name, folder)?;
    }
    Ok(())
}

fn write_page(command: &Command, name: &str, folder: &Path) -> Result<(), Failure> {
    let path = folder.join(format!("{name}.1"));
    let failed = |error: io::Error| {
        let path = path.display();
        Failure::Fault(format!("cannot write {path}: {error}"))
    };
    let mut page = Vec::new();
    let man = Man::new(command.clone()).title(name);
    man.render(&mut page).map_err(failed)?;
    fs::write(&path, page).map_err(failed)
}

const NAME: &str = "catamaran";
