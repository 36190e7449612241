//! What the network says of an authority and of names, for `check --online`. Nothing is ordered.

use std::io;
use std::net::ToSocketAddrs as _;

use serde_json::Value;

use super::client::AuthorityClient;
use crate::config::AcmeConfig;

/// What the network says of an authority or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlineFinding {
    /// The URL of the directory, or the DNS name.
    pub subject: String,
    /// What was found; the error says what an order would fail for.
    pub outcome: Result<String, String>,
}

/// Asks the authority of a profile for its directory, and the system's resolver for the addresses of each name that is no
/// wildcard.
#[must_use]
pub fn look_online(config: &AcmeConfig) -> Vec<OnlineFinding> {
    let mut findings = vec![finding(&config.directory, directory(config))];
    for name in config.names.iter().filter(|name| !name.starts_with("*.")) {
        findings.push(finding(name, addresses(name)));
    }
    findings
}

fn finding(subject: &str, outcome: io::Result<String>) -> OnlineFinding {
    OnlineFinding {
        subject: subject.to_owned(),
        outcome: outcome.map_err(|error| error.to_string()),
    }
}

fn directory(config: &AcmeConfig) -> io::Result<String> {
    let body = AuthorityClient::new(config.roots.clone()).get(&config.directory)?;
    let directory: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !directory["newOrder"].is_string() {
        return Err(io::Error::other("what answers is no directory of ACME"));
    }
    Ok(match directory["meta"]["termsOfService"].as_str() {
        Some(terms) => format!("a directory of ACME, with terms at {terms}"),
        None => "a directory of ACME".to_owned(),
    })
}

fn addresses(name: &str) -> io::Result<String> {
    let addresses = (name, 80).to_socket_addrs()?;
    let mut texts: Vec<String> = addresses.map(|it| it.ip().to_string()).collect();
    texts.dedup();
    if texts.is_empty() {
        return Err(io::Error::other("it has no address"));
    }
    Ok(texts.join(", "))
}
