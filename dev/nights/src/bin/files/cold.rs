//! Measures requests for small pages while a large file is read from a slow disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use rustix::fs::{Advice, fadvise};
use tokio::time::Instant;

use crate::server::{Kind, Server};
use crate::throttle::Throttle;

/// Prints a line for each server.
///
/// # Errors
/// The disk cannot be made slow, or a server does not serve.
pub(crate) fn table(time: Duration) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    let root = directory.path();
    fs::write(root.join("page.html"), vec![b'a'; 1456])?;
    write_large(&root.join("large.bin"))?;
    println!(
        "A file of {} MiB from a disk of {} MB/s, and pages of 1,456 bytes one after the other for {} s:\n",
        LARGE >> 20,
        RATE / 1_000_000,
        time.as_secs()
    );
    println!("| server | pages | p50 | p99 | longest | of the file |");
    println!("|---|---|---|---|---|---|");
    for (kind, note) in [
        (Kind::Front, ""),
        (Kind::Nginx(false), ", sendfile in its loop"),
        (Kind::Nginx(true), ", `aio threads`"),
    ] {
        let throttle = Throttle::new(root, RATE)?;
        let mut server = kind.start(root)?;
        throttle.add(server.id())?;
        let row = measure(&server, root, time)?;
        println!("| {}{note} | {row} |", kind.title()?);
        drop(server);
    }
    Ok(())
}

fn write_large(path: &Path) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    let piece = vec![b'b'; 1 << 20];
    for _ in 0..LARGE >> 20 {
        file.write_all(&piece)?;
    }
    file.sync_all().context("the large file")
}

/// Counts the bytes of a body.
struct Counted<'c> {
    bytes: &'c AtomicU64,
    is_over: &'c AtomicBool,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        if self.is_over.load(Ordering::Relaxed) {
            Err(io::ErrorKind::WriteZero.into())
        } else {
            Ok(bytes.len())
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Measures how long a page takes while the same server sends a large file from a slow disk.
fn measure(server: &Server, root: &Path, time: Duration) -> anyhow::Result<String> {
    let page = b"GET /page.html HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut client = server.connect()?;
    // From here on the page and what serves it are in memory.
    for _ in 0..100 {
        client.send(page)?;
        ensure!(client.receive()?.status == 200, "no page");
    }
    let large = File::open(root.join("large.bin"))?;
    fadvise(&large, 0, None, Advice::DontNeed)?;
    let (bytes, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut times = Vec::new();
    thread::scope(|scope| -> anyhow::Result<()> {
        let mut download = server.connect()?;
        download.send(b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n")?;
        let mut counted = Counted {
            bytes: &bytes,
            is_over: &is_over,
        };
        // It ends at the end of the file, or with the error of the sink when the time is over.
        scope.spawn(move || download.receive_into(&mut counted).is_ok());
        let began = Instant::now();
        while began.elapsed() < time {
            let start = Instant::now();
            let is_sent = client.send(page).is_ok();
            let is_page = is_sent && client.receive().is_ok_and(|answer| answer.status == 200);
            times.push(start.elapsed());
            if !is_page {
                break;
            }
        }
        is_over.store(true, Ordering::Relaxed);
        Ok(())
    })?;
    let received = bytes.load(Ordering::Relaxed);
    ensure!(received > 0, "nothing of the large file came");
    ensure!(received < LARGE, "the disk was not slow");
    times.sort_unstable();
    let percentile = |share: f64| {
        let index = ((times.len() as f64 - 1.0) * share) as usize;
        times.get(index).copied().unwrap_or_default()
    };
    Ok(format!(
        "{} | {:.2?} | {:.2?} | {:.2?} | {} MiB",
        times.len(),
        percentile(0.5),
        percentile(0.99),
        percentile(1.0),
        received >> 20
    ))
}

/// The size of the large file.
const LARGE: u64 = 1 << 30;

/// The rate at which the disk is read, in bytes per second.
const RATE: u64 = 20_000_000;
