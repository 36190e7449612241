//! `limit`: has a limit of a running front forget what a client owes.

use std::io::{self, Write as _};

use catamaran_admin_api::ForgottenKey;
use serde_json::json;

use super::client::At;
use super::operate::escape;
use crate::failure::Failure;

/// The limits of a front that runs; `status --limits` shows them
#[derive(clap::Args)]
pub(crate) struct LimitArgs {
    #[command(subcommand)]
    command: LimitCommand,
}

#[derive(clap::Subcommand)]
enum LimitCommand {
    Forget(ForgetArgs),
}

/// Forget what a client owes to a limit, so that its next request passes
#[derive(clap::Args)]
struct ForgetArgs {
    /// The limit, as in [limit.NAME]
    #[arg(value_name = "NAME")]
    limit: String,

    /// The key as `status --limits` shows it, such as 192.0.2.1 or 2001:db8::/64
    #[arg(value_name = "KEY")]
    key: String,

    #[command(flatten)]
    at: At,
}

pub(crate) fn run(args: &LimitArgs) -> Result<(), Failure> {
    let LimitCommand::Forget(ForgetArgs { limit, key, at }) = &args.command;
    let path = format!("/api/v1/limits/{}/forget", escape(limit));
    let request = json!({ "key": key });
    let forgotten: ForgottenKey = at.client()?.object("POST", &path, Some(&request))?;
    let text = if forgotten.known {
        "forgotten"
    } else {
        "it owed nothing"
    };
    writeln!(io::stdout(), "{text}")?;
    Ok(())
}
