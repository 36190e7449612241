//! Pebble, Let's Encrypt's authority for tests, and its DNS server, for which every name has this process's loopback
//! address.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, Process, address};

use crate::go_program;

/// A running Pebble.
#[derive(Debug)]
pub struct Pebble {
    process: Process,
    _dns: Process,
    listen: SocketAddr,
    /// Where it asks for answers to challenges http-01.
    challenges: SocketAddr,
    /// Where it makes the handshakes of challenges tls-alpn-01.
    tls_challenges: SocketAddr,
    /// Where its DNS server takes records.
    dns_management: SocketAddr,
}

/// What a Pebble does otherwise than others.
#[derive(Debug)]
pub struct PebbleSettings {
    /// Whether each account must be bound to that of [`Pebble::EAB_KEY_ID`].
    pub binds_accounts: bool,
    /// How long its certificates are valid.
    pub lifetime: Duration,
    /// Whether it asks at the ports 80 and 443, as others do, which this process may have in a namespace of its own.
    pub asks_at_usual_ports: bool,
}

impl Default for PebbleSettings {
    fn default() -> Self {
        Self {
            binds_accounts: false,
            lifetime: Duration::from_secs(90 * 24 * 60 * 60),
            asks_at_usual_ports: false,
        }
    }
}

impl Pebble {
    /// A name for which it issues no certificate.
    pub const BLOCKED: &'static str = "blocked.test";

    /// The id of the key of its account outside of ACME.
    pub const EAB_KEY_ID: &'static str = "kid-1";

    /// The key of that account, in base64url.
    pub const EAB_HMAC_KEY: &'static str =
        "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

    /// Starts one with these lines of its environment, such as `("PEBBLE_WFE_NONCEREJECT", "50")`.
    ///
    /// # Errors
    /// Pebble is not installed (`cargo xtask needs` does it) or did not start; the message has its log.
    pub fn start(environment: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start_with(environment, &PebbleSettings::default())
    }

    /// As [`Pebble::start`], with other settings.
    ///
    /// # Errors
    /// As there.
    pub fn start_with(
        environment: &[(&str, &str)],
        settings: &PebbleSettings,
    ) -> anyhow::Result<Self> {
        let directory = tempfile::tempdir()?;
        let at = |file: &str| directory.path().join(file);
        let (listen, management) = (address::unused()?, address::unused()?);
        let (dns, dns_management) = (address::unused()?, address::unused()?);
        let (mut challenges, mut tls_challenges) = (address::unused()?, address::unused()?);
        if settings.asks_at_usual_ports {
            challenges.set_port(80);
            tls_challenges.set_port(443);
        }
        // The server's certificate must be that of an authority's leaf.
        let authority = Authority::new("of-pebble")?;
        authority.issue(directory.path(), "server", &[&listen.ip().to_string()])?;
        fs::write(at("ca.pem"), authority.pem())?;
        let config = serde_json::json!({"pebble": {
            "listenAddress": listen.to_string(),
            "managementListenAddress": management.to_string(),
            "certificate": at("server.pem"),
            "privateKey": at("server.key"),
            "httpPort": challenges.port(),
            "tlsPort": tls_challenges.port(),
            "ocspResponderURL": "",
            "externalAccountBindingRequired": settings.binds_accounts,
            "externalAccountMACKeys": {(Self::EAB_KEY_ID): Self::EAB_HMAC_KEY},
            "domainBlocklist": [Self::BLOCKED],
            "retryAfter": {"authz": 1, "order": 1},
            "profiles": {"default": {"description": "", "validityPeriod": settings.lifetime.as_secs()}},
        }});
        fs::write(at("pebble.json"), config.to_string())?;
        let mut dns_command = Command::new(go_program("pebble-challtestsrv")?);
        dns_command
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""])
            .args(["-dnsserver", &dns.to_string()])
            .args(["-management", &dns_management.to_string()])
            .args(["-defaultIPv4", &listen.ip().to_string(), "-defaultIPv6", ""]);
        let dns_process = Process::spawn(&mut dns_command)?;
        let mut command = Command::new(go_program("pebble")?);
        command
            .args(["-config", "pebble.json", "-dnsserver", &dns.to_string()])
            .current_dir(directory.path())
            .env("PEBBLE_VA_NOSLEEP", "1")
            .envs(environment.iter().copied());
        let process = Process::spawn_in(&mut command, directory)?;
        let started = Self {
            process,
            _dns: dns_process,
            listen,
            challenges,
            tls_challenges,
            dns_management,
        };
        let is_up = || {
            std::net::TcpStream::connect(listen).ok()?;
            std::net::TcpStream::connect(dns_management).ok()
        };
        let up = Deadline::default().poll("Pebble and its DNS server", is_up);
        up.with_context(|| started.log())?;
        Ok(started)
    }

    /// The URL of its directory.
    #[must_use]
    pub fn directory_url(&self) -> String {
        format!("https://{}/dir", self.listen)
    }

    /// The file of the authority that issued the certificate of its own server.
    #[must_use]
    pub fn ca_file(&self) -> PathBuf {
        self.process.directory().join("ca.pem")
    }

    /// The address at which it asks for answers to challenges http-01.
    #[must_use]
    pub fn challenges(&self) -> SocketAddr {
        self.challenges
    }

    /// The address at which it makes the handshakes of challenges tls-alpn-01.
    #[must_use]
    pub fn tls_challenges(&self) -> SocketAddr {
        self.tls_challenges
    }

    /// The address at which its DNS server takes records, as pebble-challtestsrv does.
    #[must_use]
    pub fn dns_management(&self) -> SocketAddr {
        self.dns_management
    }

    /// What it has logged.
    #[must_use]
    pub fn log(&self) -> String {
        self.process.stdout() + &self.process.stderr()
    }
}
