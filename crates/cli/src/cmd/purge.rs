//! `purge`: removes stored responses from a cache of a running front.

use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

use super::client::At;
use super::operate::escape;
use crate::failure::Failure;

/// Take stored responses out of a cache of a running front
///
/// What is being fetched when a purge comes is not stored, either.
#[derive(clap::Args)]
#[command(group(clap::ArgGroup::new("what").required(true).args(["url", "prefix", "tag", "all"])))]
pub(crate) struct PurgeArgs {
    /// The cache, as in [cache.NAME]
    #[arg(value_name = "NAME")]
    cache: String,

    /// All responses of this URL, such as `https://www.example.org/a?b`
    #[arg(long, value_name = "URL")]
    url: Option<String>,

    /// All responses whose URL begins so, such as `https://www.example.org/images/`
    #[arg(long, value_name = "URL")]
    prefix: Option<String>,

    /// All responses with this tag in `Surrogate-Key` or `Cache-Tag`
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,

    /// All responses
    #[arg(long)]
    all: bool,

    /// Make them stale instead: they may still be used if the application fails
    #[arg(long)]
    soft: bool,

    #[command(flatten)]
    at: At,
}

pub(crate) fn run(args: &PurgeArgs) -> Result<(), Failure> {
    let mut request = Map::new();
    for (key, value) in [
        ("url", &args.url),
        ("prefix", &args.prefix),
        ("tag", &args.tag),
    ] {
        if let Some(value) = value {
            request.insert(key.to_owned(), json!(value));
        }
    }
    if args.all {
        request.insert("all".to_owned(), json!(true));
    }
    request.insert("soft".to_owned(), json!(args.soft));
    let path = format!("/api/v1/caches/{}/purge", escape(&args.cache));
    args.at
        .client()?
        .expect("POST", &path, Some(&Value::Object(request)))?;
    writeln!(io::stdout(), "purged")?;
    Ok(())
}
