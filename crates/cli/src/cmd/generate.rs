//! `completions` and `generate`: make the completions of shells and the man pages.
//!
//! Both are made from the types of the commands, and for `bench` from its own flags. The completions ask
//! the running front for the names of its upstreams and backends.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::Duration;

use catamaran_admin_api::FrontStatus;
use catamaran_bench::FlagHelp;
use catamaran_config::parse_listen_address;
use clap::{Arg, ArgAction, Command, Subcommand};
use clap_complete::Shell;
use clap_mangen::Man;

use super::client::At;
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
    /// The upstreams and backends of the front that runs, a line each; none if it does not answer at once
    Backends {
        /// The line that a shell completes, which may name the front by --admin
        #[arg(
            value_name = "WORD",
            trailing_var_arg = true,
            allow_hyphen_values = true
        )]
        line: Vec<String>,
    },
}

pub(crate) fn completions(args: &Completions, command: Command) -> Result<(), Failure> {
    let mut command = with_flags_of_bench(command);
    let mut output = Vec::new();
    clap_complete::generate(args.shell, &mut command, NAME, &mut output);
    let text = String::from_utf8_lossy(&output);
    let script = with_backends(args.shell, &text, &commands_of_backends(&command));
    io::stdout().write_all(script.as_bytes())?;
    Ok(())
}

pub(crate) fn run(args: &Generate, command: Command) -> Result<(), Failure> {
    match &args.kind {
        Kind::Backends { line } => backends(line),
        Kind::Man { folder } => {
            let mut command = with_flags_of_bench(command).disable_help_subcommand(true);
            command.build();
            write_page(&command, NAME, folder)?;
            pages_below(&command, NAME, folder)
        }
    }
}

/// Adds the flags of `bench` to its command. clap does not know them otherwise, because `bench` parses
/// them itself.
fn with_flags_of_bench(command: Command) -> Command {
    let argument = |flag: FlagHelp| {
        let named = Arg::new(flag.long).long(flag.long).short(flag.short);
        let arg = named.help(flag.help).help_heading(flag.group);
        match flag.value {
            None => arg.action(ArgAction::SetTrue),
            Some(name) if flag.is_optional => {
                arg.value_name(name).num_args(0..=1).require_equals(true)
            }
            Some(name) => arg.value_name(name),
        }
    };
    command.mut_subcommand("bench", |bench| {
        bench.args(catamaran_bench::flags().map(argument))
    })
}

/// The names of the commands that take an upstream or a backend as an argument.
fn commands_of_backends(command: &Command) -> Vec<&str> {
    let has_them = |it: &&Command| it.get_positionals().any(|arg| arg.get_id() == TARGET);
    let commands = command.get_subcommands().filter(has_them);
    commands.map(Command::get_name).collect()
}

/// The completion script of a shell, extended so that it completes the running front's upstreams and
/// backends for `commands`.
fn with_backends(shell: Shell, script: &str, commands: &[&str]) -> String {
    let (bar, blank) = (commands.join("|"), commands.join(" "));
    match shell {
        Shell::Bash => {
            let script = script.replace("complete -F _catamaran ", "complete -F _catamaran_live ");
            format!("{BASH}{script}").replace("COMMANDS", &bar)
        }
        Shell::Zsh => {
            let target = format!(":{TARGET} -- ");
            let with_backends = |line: &str| {
                if line.contains(&target) {
                    line.replace(":_default'", ":_catamaran_backends'")
                } else {
                    line.to_owned()
                }
            };
            // The first line names the command.
            let (head, body) = script.split_once('\n').expect("it has lines");
            let body: Vec<String> = body.lines().map(with_backends).collect();
            format!("{}\n\n{ZSH}{}\n", with_backends(head), body.join("\n"))
        }
        Shell::Fish => format!("{script}{FISH}").replace("COMMANDS", &blank),
        _ => script.to_owned(),
    }
}

/// Prints the upstreams and backends of the running front that `line` names by `--admin`, one on each line. It prints
/// nothing if the front does not answer within [`PATIENCE`].
fn backends(line: &[String]) -> Result<(), Failure> {
    let admin = admin_in(line).and_then(|address| parse_listen_address(address).ok());
    let at = At::new(admin, None);
    let (sender, receiver) = sync_channel(1);
    // The request may take longer than `PATIENCE`. It has a thread of its own, which ends with the process.
    let thread = thread::Builder::new().name("ask".to_owned());
    let started = thread.spawn(move || {
        let client = at.client();
        let status = client.and_then(|client| client.object::<FrontStatus>("GET", STATUS, None));
        // After `PATIENCE` the receiver is gone.
        let _ = sender.send(status);
    });
    started.map_err(|error| Failure::Fault(format!("cannot start a thread: {error}")))?;
    let Ok(Ok(status)) = receiver.recv_timeout(PATIENCE) else {
        return Ok(());
    };
    let mut names = String::new();
    for upstream in status.upstreams {
        names += &format!("{}\n", upstream.name);
        for member in upstream.backends {
            names += &format!("{}/{}\n", upstream.name, member.backend.name);
        }
    }
    io::stdout().write_all(names.as_bytes())?;
    Ok(())
}

/// The value of `--admin` in the words of a command line, as a word of its own or behind `=`.
fn admin_in(line: &[String]) -> Option<&str> {
    if let Some(index) = line.iter().position(|word| word == "--admin")
        && let Some(value) = line.get(index + 1)
    {
        return Some(value);
    }
    line.iter().find_map(|word| word.strip_prefix("--admin="))
}

/// Writes a page for each command below this one: `catamaran-lab-run` is the page of `catamaran lab run`.
fn pages_below(command: &Command, name: &str, folder: &Path) -> Result<(), Failure> {
    for below in command.get_subcommands() {
        if below.is_hide_set() {
            continue;
        }
        let page = format!("{name}-{}", below.get_name());
        write_page(below, &page, folder)?;
        pages_below(below, &page, folder)?;
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

/// The name of the argument that takes an upstream or a backend.
const TARGET: &str = "target";

const STATUS: &str = "/api/v1/status";

/// How long a completion may wait for the front.
const PATIENCE: Duration = Duration::from_secs(1);

const BASH: &str = r#"_catamaran_live() {
    _catamaran "$@"
    case "${COMP_WORDS[1]}" in
        COMMANDS)
            # Not COMP_WORDS, which bash divides at colons as well. It puts an answer behind the last one.
            local name prefix="" word=${COMP_LINE:0:COMP_POINT}
            word=${word##*[[:blank:]]}
            if [[ ${word} == *:* && ${COMP_WORDBREAKS} == *:* ]]; then
                COMPREPLY=() prefix=${word%"${word##*:}"}
            fi
            while IFS= read -r name; do
                [[ ${name} != "${word}"* ]] || COMPREPLY+=("${name#"${prefix}"}")
            done < <(set -f; catamaran generate backends ${COMP_LINE} 2>/dev/null)
            ;;
    esac
}

"#;

const ZSH: &str = r#"_catamaran_backends() {
    compadd -- ${(f)"$(catamaran generate backends $words 2>/dev/null)"}
}

"#;

const FISH: &str = r#"complete -c catamaran -n "__fish_catamaran_using_subcommand COMMANDS" -f -a "(catamaran generate backends (commandline -opc) 2>/dev/null)"
"#;
