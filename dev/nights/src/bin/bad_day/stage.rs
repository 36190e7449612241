//! Everything that runs on the day: the name server, two Tomcats, the disk of the logs, certificates, three servers.

use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use catamaran_e2e::Cluster;
use catamaran_testkit::dns::A;
use catamaran_testkit::tls::Authority;
use catamaran_testkit::{Deadline, DnsAnswer, DnsRecord, DnsServer};
use tempfile::TempDir;

use crate::servers::{Kind, Server};

/// The `jvmRoute` of each Tomcat.
pub(crate) const NODES: [&str; 2] = ["one", "two"];

/// The DNS name of a Tomcat.
pub(crate) fn name(route: &str) -> String {
    format!("{route}.shop.test")
}

pub(crate) struct Stage {
    pub(crate) servers: Vec<Server>,
    pub(crate) cluster: Cluster,
    dns: Option<DnsServer>,
    authority: Authority,
    files: TempDir,
}

impl Stage {
    /// Starts everything, in a network and with mounts that are this process's own.
    pub(crate) fn build() -> anyhow::Result<Self> {
        run("ip", &["link", "set", "lo", "up"])?;
        let files = tempfile::tempdir()?;
        let resolver = files.path().join("resolv.conf");
        fs::write(&resolver, "nameserver 127.0.0.1\n")?;
        run("mount", &["--bind", path(&resolver)?, "/etc/resolv.conf"])?;
        let logs = files.path().join("logs");
        fs::create_dir(&logs)?;
        // A small disk, which can be filled.
        run(
            "mount",
            &["-t", "tmpfs", "-o", "size=4m", "tmpfs", path(&logs)?],
        )?;
        let authority = Authority::new("bad day")?;
        fs::write(files.path().join("authority.pem"), authority.pem())?;
        let mut stage = Self {
            servers: Vec::new(),
            cluster: Cluster::start(&NODES)?,
            dns: None,
            authority,
            files,
        };
        stage.start_dns()?;
        let expired = false;
        stage.put_certificate(expired)?;
        for kind in Kind::ALL {
            stage
                .servers
                .push(kind.start(stage.files.path(), &stage.cluster)?);
        }
        Ok(stage)
    }

    pub(crate) fn files(&self) -> &Path {
        self.files.path()
    }

    pub(crate) fn authority_file(&self) -> PathBuf {
        self.files.path().join("authority.pem")
    }

    /// The output of `catamaran status`.
    pub(crate) fn status(&self) -> anyhow::Result<String> {
        self.servers[0].status(self.files())
    }

    /// Ends the name server, so that nothing listens at its port.
    pub(crate) fn stop_dns(&mut self) {
        self.dns = None;
    }

    /// Starts the name server, which knows the addresses of both Tomcats.
    pub(crate) fn start_dns(&mut self) -> anyhow::Result<()> {
        // The name server before may still have the port.
        let dns = Deadline::default().poll("a name server at port 53", || {
            DnsServer::start_at(SocketAddr::from((Ipv4Addr::LOCALHOST, 53))).ok()
        })?;
        for route in NODES {
            let SocketAddr::V4(address) = self.cluster.node(route).ajp() else {
                anyhow::bail!("a Tomcat at an address of IPv6");
            };
            let records = DnsAnswer::Records(TTL_SECONDS, vec![DnsRecord::A(*address.ip())]);
            dns.set(&name(route), A, records);
        }
        self.dns = Some(dns);
        Ok(())
    }

    /// From now on the name server takes questions and answers none.
    pub(crate) fn mute_dns(&mut self) -> anyhow::Result<()> {
        self.stop_dns();
        self.start_dns()?;
        for route in NODES {
            let dns = self.dns.as_ref().context("no name server")?;
            dns.set(&name(route), A, DnsAnswer::Silence);
            dns.set(
                &name(route),
                catamaran_testkit::dns::AAAA,
                DnsAnswer::Silence,
            );
        }
        Ok(())
    }

    /// Writes a certificate in the form that each server needs; with `expired`, one that has expired.
    pub(crate) fn put_certificate(&self, expired: bool) -> anyhow::Result<()> {
        let files = self.files.path();
        if expired {
            self.authority.issue_expired(files, "www", &["localhost"])?;
        } else {
            self.authority.issue(files, "www", &["localhost"])?;
        }
        let [pem, key] = ["www.pem", "www.key"].map(|name| fs::read(files.join(name)));
        Ok(fs::write(files.join("both.pem"), [pem?, key?].concat())?)
    }

    pub(crate) fn reload(&mut self) -> anyhow::Result<()> {
        self.servers.iter_mut().try_for_each(Server::reload)
    }

    /// Fills the disk of the logs.
    pub(crate) fn fill_disk(&self) -> anyhow::Result<()> {
        let mut file = File::create(self.ballast())?;
        // The error that ends this is the full disk.
        while file.write_all(&[0; 4096]).is_ok() {}
        Ok(())
    }

    pub(crate) fn free_disk(&self) -> anyhow::Result<()> {
        Ok(fs::remove_file(self.ballast())?)
    }

    fn ballast(&self) -> PathBuf {
        self.files.path().join("logs/ballast")
    }
}

fn path(path: &Path) -> anyhow::Result<&str> {
    path.to_str().context("a path that is not UTF-8")
}

fn run(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program)
        .args(arguments)
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program} {arguments:?}: {errors}");
    Ok(())
}

const TTL_SECONDS: u32 = 5;
