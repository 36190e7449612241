//! The performance data of a HotSpot JVM: heap, garbage collection and compilation.
//!
//! The JVM keeps the file `hsperfdata_USER/PID` in the system's directory of temporary files mapped; `jstat` reads
//! the same file. Reading it costs the JVM nothing. The usage of eden is updated every 50 ms with the serial and
//! the parallel collector, but only at collections with G1. With `-XX:-UsePerfData` there is no such file; then
//! `jcmd PID GC.heap_info` is what remains.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::{cpu, process};

/// The state of a JVM at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Jvm {
    /// The bytes of the heap that hold objects, including dead ones.
    pub heap_used: u64,
    /// The bytes of the heap that the JVM has allocated.
    pub heap_committed: u64,
    /// The JVM's garbage collectors.
    pub collectors: Vec<Collector>,
    /// The CPU time that the just-in-time compilers have used so far; `None` if it is not known.
    ///
    /// For a JVM that does not name its threads (before Java 9) it is elapsed time instead, which also passes while
    /// the compilers wait for a core.
    pub compiling: Option<Duration>,
}

/// One garbage collector's totals so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collector {
    /// The JVM's name for it, such as `G1 young collection pauses`.
    pub name: String,
    /// The number of collections so far.
    pub collections: u64,
    /// The total time of these collections.
    pub took: Duration,
}

/// Why a JVM's performance data cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum JvmFault {
    /// There is no file with performance data of the process with this id: it is not a HotSpot JVM, is just starting,
    /// or runs with `-XX:-UsePerfData`.
    #[error("no performance data of process {0}: a JVM that runs with -XX:-UsePerfData has none")]
    NoFile(u32),
    /// The file cannot be read. Only the JVM's user and root may read it.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The JVM has not filled the file yet, or the file is damaged.
    #[error("performance data is not complete: {0}")]
    Data(&'static str),
}

/// Reads the data of one JVM repeatedly.
///
/// It remembers where the file is and which threads compile, and looks for those threads again only when the number
/// of threads has changed: searching dozens of JVMs each second would be a load of its own.
#[derive(Debug)]
pub struct JvmReader {
    id: u32,
    state: Mutex<JvmState>,
}

/// The state of a JVM at the last reading.
#[derive(Debug, Default)]
struct JvmState {
    file: Option<PathBuf>,
    /// The number of threads at the last search for the compilers' threads; 0 if a search is due.
    threads: usize,
    compilers: Vec<u32>,
}

impl JvmReader {
    /// A reader for the JVM with process id `id`. Nothing is read yet.
    #[must_use]
    pub fn new(id: u32) -> Self {
        Self {
            id,
            state: Mutex::default(),
        }
    }

    /// The process id of the JVM.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Reads the current data of the JVM.
    ///
    /// # Errors
    /// There is no performance data, or it cannot be read or understood.
    pub fn read(&self) -> Result<Jvm, JvmFault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let path = match state.file.take() {
            Some(path) => path,
            None => find(self.id).ok_or(JvmFault::NoFile(self.id))?,
        };
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(source) => return Err(JvmFault::File { path, source }),
        };
        // A file that cannot be read is searched for again at the next reading.
        state.file = Some(path);
        let mut jvm = interpret(&parse(&file)?)?;
        // More exact than the elapsed time that the file has.
        if let Some(cpu) = state.compiling_time(self.id) {
            jvm.compiling = Some(cpu);
        }
        Ok(jvm)
    }
}

impl JvmState {
    /// The CPU time of the compilers' threads; `None` if no thread has a compiler's name.
    fn compiling_time(&mut self, id: u32) -> Option<Duration> {
        let threads = process::threads(&[id]);
        if threads != self.threads {
            self.compilers = compilers(id);
            self.threads = threads;
        }
        let directories = self
            .compilers
            .iter()
            .map(|task| format!("/proc/{id}/task/{task}"));
        let times = directories.filter_map(|directory| cpu::run_time(Path::new(&directory)));
        let known_times: Vec<Duration> = times.collect();
        if known_times.len() < self.compilers.len() {
            // A thread has ended; another may have taken its place.
            self.threads = 0;
        }
        if known_times.is_empty() {
            return None;
        }
        Some(known_times.iter().sum())
    }
}

/// Reads the current data of the JVM with process id `id`.
///
/// # Errors
/// There is no performance data, or it cannot be read or understood.
pub fn read(id: u32) -> Result<Jvm, JvmFault> {
    JvmReader::new(id).read()
}

/// The ids of the threads that compile.
fn compilers(id: u32) -> Vec<u32> {
    let directory = fs::read_dir(format!("/proc/{id}/task"));
    let entries = directory.into_iter().flatten().flatten();
    let mut tasks: Vec<u32> = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    tasks.sort_unstable();
    // A virtual machine begins them before any thread of an application.
    tasks.truncate(THREADS_OF_ITS_OWN);
    tasks.retain(|task| {
        let comm = fs::read_to_string(format!("/proc/{id}/task/{task}/comm"));
        let name = comm.unwrap_or_default();
        COMPILERS.iter().any(|compiler| name.starts_with(compiler))
    });
    tasks
}

/// The path of the JVM's file. It is in `/tmp` of the JVM's own root directory, whatever `java.io.tmpdir` says.
fn find(id: u32) -> Option<PathBuf> {
    let own_root = format!("/proc/{id}/root/tmp");
    let root = if Path::new(&own_root).exists() {
        own_root
    } else {
        "/tmp".to_owned()
    };
    let folders = fs::read_dir(root).ok()?.flatten().filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy().starts_with("hsperfdata_")
    });
    folders
        .map(|folder| folder.path().join(id.to_string()))
        .find(|path| path.exists())
}

/// The value of an entry. Entries of other types are ignored.
#[derive(Clone, Debug, PartialEq)]
enum Value {
    Number(u64),
    Text(String),
}

type Values = BTreeMap<String, Value>;

/// Takes the state of a JVM out of the values of its file.
fn interpret(values: &Values) -> Result<Jvm, JvmFault> {
    let number = |name: &str| match values.get(name) {
        Some(Value::Number(number)) => Some(*number),
        _ => None,
    };
    let Some(ticks_a_second @ 1..) = number("sun.os.hrt.frequency") else {
        return Err(JvmFault::Data("no sun.os.hrt.frequency"));
    };
    let time = |ticks: u64| {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_a_second);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    let heap_sum = |figure: &str| -> u64 {
        let figures = heap_names(figure).filter_map(|name| number(&name));
        figures.sum()
    };
    let collectors = (0..8).map_while(|index| {
        let entry = |figure: &str| format!("sun.gc.collector.{index}.{figure}");
        Some(Collector {
            name: match values.get(&entry("name")) {
                Some(Value::Text(name)) => name.clone(),
                _ => String::new(),
            },
            collections: number(&entry("invocations"))?,
            took: time(number(&entry("time"))?),
        })
    });
    let heap_committed = heap_sum("capacity");
    if heap_committed == 0 {
        return Err(JvmFault::Data("no generation has a capacity"));
    }
    Ok(Jvm {
        heap_used: heap_sum("used"),
        heap_committed,
        collectors: collectors.collect(),
        compiling: number("java.ci.totalTime").map(time),
    })
}

/// The names of the figures `figure`, such as `capacity`, of the heap's spaces. Generation 2 of old JVMs is the
/// permanent one, which is no part of the heap.
fn heap_names(figure: &str) -> impl Iterator<Item = String> {
    let spaces = (0..2).flat_map(|generation| (0..3).map(move |space| (generation, space)));
    spaces.map(move |(generation, space)| {
        format!("sun.gc.generation.{generation}.space.{space}.{figure}")
    })
}

/// Reads the entries of a file in the format of `perfMemory.hpp`.
///
/// There is a header of 32 bytes, then entries, each with its length, a name that ends in a zero byte, and data:
/// one long (`J`), or text (`B`, an array of bytes).
fn parse(file: &[u8]) -> Result<Values, JvmFault> {
    if file.get(..4) != Some(&MAGIC) {
        return Err(JvmFault::Data(
            "it begins with other bytes than performance data",
        ));
    }
    if file.get(5) != Some(&2) {
        return Err(JvmFault::Data("its version is not 2"));
    }
    let file = PerfFile {
        bytes: file,
        is_little_endian: file.get(4) == Some(&1),
    };
    let cut = || JvmFault::Data("it is shorter than it says");
    let mut start = file.word(24).ok_or_else(cut)?;
    let count = file.word(28).ok_or_else(cut)?;
    let mut values = Values::new();
    // An entry has 20 bytes at least, so the file bounds how many there are.
    for _ in 0..count.min(file.bytes.len() / ENTRY_BYTES_MIN) {
        let length = match file.word(start) {
            Some(length) if length >= ENTRY_BYTES_MIN => length,
            _ => return Err(cut()),
        };
        let end = start.checked_add(length).ok_or_else(cut)?;
        let entry = file.bytes.get(start..end).ok_or_else(cut)?;
        if let Some((name, value)) = file.entry(start, entry) {
            values.insert(name, value);
        }
        start = end;
    }
    Ok(values)
}

/// A file with performance data.
struct PerfFile<'a> {
    bytes: &'a [u8],
    is_little_endian: bool,
}

impl PerfFile<'_> {
    /// The 32-bit word at an offset.
    fn word(&self, offset: usize) -> Option<usize> {
        let bytes = self.bytes.get(offset..)?.first_chunk::<4>()?;
        let word = if self.is_little_endian {
            u32::from_le_bytes(*bytes)
        } else {
            u32::from_be_bytes(*bytes)
        };
        usize::try_from(word).ok()
    }

    /// The name and the value of the entry that begins at `start`; `None` if its type is another one. Its words are
    /// the offset of the name (4), the length of an array (8), the type (12), and the offset of the data (16).
    fn entry(&self, start: usize, entry: &[u8]) -> Option<(String, Value)> {
        let name = entry.get(self.word(start + 4)?..)?;
        let data = entry.get(self.word(start + 16)?..)?;
        let value = match (entry[12], self.word(start + 8)?) {
            (b'J', 0) => {
                let bytes = data.first_chunk::<8>()?;
                Value::Number(if self.is_little_endian {
                    u64::from_le_bytes(*bytes)
                } else {
                    u64::from_be_bytes(*bytes)
                })
            }
            (b'B', length) => Value::Text(until_zero(data.get(..length)?)),
            _ => return None,
        };
        Some((until_zero(name), value))
    }
}

fn until_zero(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const ENTRY_BYTES_MIN: usize = 20;

/// The names of the compilers' threads, cut to the length that the kernel keeps.
const COMPILERS: [&str; 2] = ["C1 CompilerThre", "C2 CompilerThre"];

/// How many threads of a JVM may come before that of the last compiler.
const THREADS_OF_ITS_OWN: usize = 64;

#[cfg(test)]
mod tests;
