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

use crate::process;

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
    known: Mutex<JvmState>,
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
            known: Mutex::default(),
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
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let path = match known.file.take() {
            Some(path) => path,
            None => find(self.id).ok_or(JvmFault::NoFile(self.id))?,
        };
        let file = match fs::read(&path) {
            Ok(file) => file,
            Err(source) => return Err(JvmFault::File { path, source }),
        };
        // A file that cannot be read is searched for again at the next reading.
        known.file = Some(path);
        let mut jvm = interpret(&parse(&file)?)?;
        if let Some(cpu) = known.compiled(self.id) {
            jvm.compiling = Some(cpu);
        }
        Ok(jvm)
    }
}

impl JvmState {
    /// The CPU time of the compilers' threads; `None` if no thread has a compiler's name.
    fn compiled(&mut self, id: u32) -> Option<Duration> {
        let threads = process::threads(&[id]);
        if threads != self.threads {
            self.compilers = compilers(id);
            self.threads = threads;
        }
        let times = self.compilers.iter().filter_map(|task| cpu(id, *task));
        let each: Vec<Duration> = times.collect();
        if each.len() < self.compilers.len() {
            // A thread has ended; another may have taken its place.
            self.threads = 0;
        }
        (!each.is_empty()).then(|| each.iter().sum())
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
        .filter_map(|task| task.file_name().to_str()?.parse().ok())
        .collect();
    tasks.sort_unstable();
    // A virtual machine begins them before any thread of an application.
    tasks.truncate(THREADS_OF_ITS_OWN);
    tasks.retain(|task| {
        let name = fs::read_to_string(format!("/proc/{id}/task/{task}/comm"));
        name.is_ok_and(|name| COMPILERS.iter().any(|it| name.starts_with(it)))
    });
    tasks
}

/// The CPU time of the thread `task` of the process `id`.
fn cpu(id: u32, task: u32) -> Option<Duration> {
    let schedstat = fs::read_to_string(format!("/proc/{id}/task/{task}/schedstat")).ok()?;
    let nanos = schedstat.split(' ').next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
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
    let frequency = number("sun.os.hrt.frequency").filter(|ticks| *ticks > 0);
    let frequency = frequency.ok_or(JvmFault::Data("no sun.os.hrt.frequency"))?;
    let time = |ticks: u64| {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(frequency);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    let heap = |what: &str| {
        heap_names(what)
            .filter_map(|name| number(&name))
            .sum::<u64>()
    };
    let collectors = (0..8).map_while(|place| {
        let of = |what: &str| format!("sun.gc.collector.{place}.{what}");
        Some(Collector {
            name: match values.get(&of("name")) {
                Some(Value::Text(name)) => name.clone(),
                _ => String::new(),
            },
            collections: number(&of("invocations"))?,
            took: time(number(&of("time"))?),
        })
    });
    let heap_committed = heap("capacity");
    if heap_committed == 0 {
        return Err(JvmFault::Data("no generation has a capacity"));
    }
    Ok(Jvm {
        heap_used: heap("used"),
        heap_committed,
        collectors: collectors.collect(),
        compiling: number("java.ci.totalTime").map(time),
    })
}

/// The names of the values `what`, such as `capacity`, of the heap's spaces. Generation 2 of old JVMs is the permanent
/// one, which is no part of the heap.
fn heap_names(what: &str) -> impl Iterator<Item = String> {
    let spaces = (0..2).flat_map(|generation| (0..3).map(move |space| (generation, space)));
    spaces.map(move |(generation, space)| {
        format!("sun.gc.generation.{generation}.space.{space}.{what}")
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
    let little = file.get(4) == Some(&1);
    if file.get(5) != Some(&2) {
        return Err(JvmFault::Data("its version is not 2"));
    }
    let word = |at: usize| {
        let bytes: [u8; 4] = file.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let word = if little {
            u32::from_le_bytes(bytes)
        } else {
            u32::from_be_bytes(bytes)
        };
        usize::try_from(word).ok()
    };
    let cut = || JvmFault::Data("it is shorter than it says");
    let mut entry = word(24).ok_or_else(cut)?;
    let count = word(28).ok_or_else(cut)?;
    let mut values = Values::new();
    // An entry has 20 bytes at least, so the file bounds how many there are.
    for _ in 0..count.min(file.len() / ENTRY_BYTES_MIN) {
        let length = word(entry)
            .filter(|it| *it >= ENTRY_BYTES_MIN)
            .ok_or_else(cut)?;
        let end = entry.checked_add(length).ok_or_else(cut)?;
        let bytes = file.get(entry..end).ok_or_else(cut)?;
        let offset = |at: usize| word(entry + at).filter(|offset| *offset < length);
        let (name, data) = (offset(4), offset(16));
        if let (Some(name), Some(data)) = (name, data) {
            let name = until_zero(&bytes[name..]);
            if let Some(value) = value(bytes[12], word(entry + 8), &bytes[data..], little) {
                values.insert(name, value);
            }
        }
        entry = end;
    }
    Ok(values)
}

fn value(kind: u8, length: Option<usize>, data: &[u8], little: bool) -> Option<Value> {
    match (kind, length) {
        (b'J', Some(0)) => {
            let bytes = data.first_chunk::<8>()?;
            let number = if little {
                u64::from_le_bytes(*bytes)
            } else {
                u64::from_be_bytes(*bytes)
            };
            Some(Value::Number(number))
        }
        (b'B', Some(length)) => Some(Value::Text(until_zero(data.get(..length)?))),
        _ => None,
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
