//! Debian's memcached.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, bail};
use catamaran_testkit::{Deadline, Process};

use crate::server;

/// A running memcached.
#[derive(Debug)]
pub struct Memcached {
    process: Process,
    address: SocketAddr,
}

impl Memcached {
    /// Starts one with `megabytes` MiB for its items.
    ///
    /// # Errors
    /// memcached is not installed or did not start; the message has its log.
    pub fn start(megabytes: usize) -> anyhow::Result<Self> {
        let set = [("megabytes", megabytes.to_string())];
        let set = set.each_ref().map(|(name, value)| (*name, value.as_str()));
        let (process, address) = server::start_on("memcached", "memcached", &set)?;
        Ok(Self { process, address })
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The process, to stop it and let it continue.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The numbers that its command `stats` reports.
    ///
    /// # Errors
    /// memcached did not answer.
    pub fn stats(&self) -> anyhow::Result<BTreeMap<String, u64>> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Deadline::DEFAULT))?;
        stream.write_all(b"stats\r\n")?;
        let mut numbers = BTreeMap::new();
        for line in BufReader::new(stream).lines() {
            let line = line?;
            let mut words = line.split_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("STAT"), Some(name), Some(value)) => {
                    // Versions and fractional times are left out.
                    if let Ok(value) = value.parse() {
                        numbers.insert(name.to_owned(), value);
                    }
                }
                (Some("END"), ..) => return Ok(numbers),
                _ => bail!("memcached answers {line:?} to stats"),
            }
        }
        Err(anyhow::anyhow!("it closed the connection")).context("stats of memcached")
    }

    /// One number that its command `stats` reports.
    ///
    /// # Errors
    /// memcached did not answer, or reports no such number.
    pub fn stat(&self, name: &str) -> anyhow::Result<u64> {
        let stats = self.stats()?;
        let value = stats.get(name).copied();
        value.with_context(|| format!("memcached has no {name} among its stats"))
    }
}
