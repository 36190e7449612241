//! A load generator that tells on its way how far it is.

use std::io::{BufRead as _, BufReader, Read as _};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use catamaran_load::document::Tick;
use catamaran_tier::{Signal, Task};

use super::bench::{self, Call};
use super::stage::Stage;
use super::{DriveFault, Driver};
use crate::extra::now;

/// A load generator that runs.
pub(super) struct Ticking {
    task: Task,
    lines: Receiver<String>,
    readers: [JoinHandle<()>; 2],
    /// The last line that is no tick.
    said: String,
}

/// What is heard of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Heard {
    /// How far it is.
    Tick(Tick),
    /// Nothing in the time that was waited for.
    Nothing,
    /// It has ended.
    Ended,
}

impl Ticking {
    /// Starts `bench`, which tells how far it is so often.
    pub(super) fn start(
        driver: &Driver,
        stage: &Stage,
        call: Call<'_>,
        every: Duration,
    ) -> Result<Self, DriveFault> {
        let mut words = bench::words(driver, stage, call)?;
        words.insert(2, format!("--ticks={}ms", every.as_millis()));
        let mut task = stage.space.run(&call.load.job(call.name, &words))?;
        let (sender, lines) = sync_channel(LINES);
        let stderr = task.child.stderr.take();
        let stdout = task.child.stdout.take();
        let ticks = thread::spawn(move || {
            let lines = stderr
                .into_iter()
                .flat_map(|pipe| BufReader::new(pipe).lines());
            for line in lines.map_while(Result::ok) {
                // After the end of `lines` it goes on reading: a full pipe would hold the load up.
                let _ = sender.send(line);
            }
        });
        // Its report is of no use, but a full pipe would hold it up.
        let report = thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stdout.map(|pipe| pipe.take(REPORT_MAX).read_to_end(&mut bytes));
        });
        Ok(Self {
            task,
            lines,
            readers: [ticks, report],
            said: String::new(),
        })
    }

    /// Waits so long for a tick at most.
    pub(super) fn next(&mut self, wait: Duration) -> Heard {
        match self.lines.recv_timeout(wait) {
            Ok(line) => match serde_json::from_str(&line) {
                Ok(tick) => Heard::Tick(tick),
                Err(_) => {
                    self.said = line;
                    Heard::Nothing
                }
            },
            Err(RecvTimeoutError::Timeout) => Heard::Nothing,
            Err(RecvTimeoutError::Disconnected) => Heard::Ended,
        }
    }

    /// Ends it.
    pub(super) fn end(mut self) {
        self.task.signal(Signal::Term);
        let start = now();
        while self.next(LOOK) != Heard::Ended && now().duration_since(start) < PATIENCE {}
        self.task.kill();
        self.wait();
    }

    /// Of one that has ended by itself: a fault unless its exit code is one of `fine`.
    pub(super) fn ended(mut self, fine: &[i32]) -> Result<(), DriveFault> {
        let status = self.task.child.wait();
        let code = status.as_ref().ok().and_then(|it| it.code());
        let is_fine = code.is_some_and(|code| fine.contains(&code));
        let said = std::mem::take(&mut self.said);
        self.wait();
        if is_fine {
            return Ok(());
        }
        let how = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        Err(DriveFault::Load { how, said })
    }

    fn wait(self) {
        let Self {
            mut task,
            lines,
            readers,
            ..
        } = self;
        drop(lines);
        for reader in readers {
            // A reader that has panicked has nothing to tell either.
            let _ = reader.join();
        }
        let _ = task.child.wait();
    }
}

/// Exit codes of a load that was driven: 1 tells of failed requests, which gates judge.
pub(super) const DRIVEN: [i32; 2] = [0, 1];
/// How often the end of one that was told to end is looked for.
const LOOK: Duration = Duration::from_millis(20);
/// How long it may take to end when it is told to.
const PATIENCE: Duration = Duration::from_secs(3);
/// Lines that wait to be read.
const LINES: usize = 16;
/// No report is longer.
const REPORT_MAX: u64 = 1 << 20;
