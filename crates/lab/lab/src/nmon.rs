//! Writes a run's samples as a file of nmon, which nmon's own tools can read and draw.
//!
//! It has the sections AAA, CPU_ALL, MEM, NET, NETPACKET, DISKREAD, DISKWRITE, DISKXFER, PROC and
//! TOP, with a line ZZZZ for each interval. Figures that are not sampled are -1, as in nmon. In TOP
//! a server stands for all its processes, numbered from 1.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use catamaran_gauge::network::Interface;
use catamaran_gauge::system::Disk;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::host::Host;
use crate::sample::{CoreSample, Sample};

/// Converts the lines of `samples.jsonl` to a file of nmon; `None` for fewer than two samples.
/// `run` is the run's name in it.
#[must_use]
pub fn nmon(lines: &str, host: &Host, run: &str) -> Option<String> {
    let samples: Vec<Sample> = lines
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let [first, _, ..] = &samples[..] else {
        return None;
    };
    let mut file = NmonFile {
        text: String::new(),
        host,
    };
    file.heads(first, samples.len() - 1, run);
    for (number, pair) in samples.windows(2).enumerate() {
        file.interval(number + 1, &pair[0], &pair[1]);
    }
    Some(file.text)
}

struct NmonFile<'a> {
    text: String,
    host: &'a Host,
}

impl NmonFile<'_> {
    /// Writes a line with a column for each word.
    fn line(&mut self, words: &[String]) {
        // A comma would begin a new column.
        let columns: Vec<String> = words.iter().map(|word| word.replace(',', ";")).collect();
        let _ = writeln!(self.text, "{}", columns.join(","));
    }

    /// Writes the head of the file: facts about the machine, and the columns of each section.
    fn heads(&mut self, first: &Sample, intervals: usize, run: &str) {
        let (time, date) = clock(first.time_s);
        for (key, value) in [
            ("progname", "catamaran".to_owned()),
            ("version", self.host.catamaran.clone()),
            ("interval", "1".to_owned()),
            ("snapshots", intervals.to_string()),
            ("host", run.to_owned()),
            ("cpus", first.cores.len().to_string()),
            ("OS", format!("Linux {}", self.host.kernel)),
            ("time", time),
            ("date", date),
        ] {
            self.line(&["AAA".to_owned(), key.to_owned(), value]);
        }
        let fixed = |columns: &str| columns.split(',').map(str::to_owned).collect::<Vec<_>>();
        let bytes = columns(&first.interfaces, &["-read-KB/s", "-write-KB/s"]);
        let packets = columns(&first.interfaces, &["-read/s", "-write/s"]);
        let disks = columns(&first.disks, &[""]);
        for (section, title, columns) in [
            ("CPU_ALL", "CPU Total", &fixed(CPU)),
            ("MEM", "Memory MB", &fixed(MEM)),
            ("PROC", "Processes", &fixed(PROC)),
            ("NET", "Network I/O", &bytes),
            ("NETPACKET", "Network Packets", &packets),
            ("DISKREAD", "Disk Read KB/s", &disks),
            ("DISKWRITE", "Disk Write KB/s", &disks),
            ("DISKXFER", "Disk transfers per second", &disks),
            ("TOP", "%CPU Utilisation", &Vec::new()),
            ("TOP", "+PID", &fixed(TOP)),
        ] {
            let mut words = vec![section.to_owned(), format!("{title} {run}")];
            words.extend(columns.iter().cloned());
            self.line(&words);
        }
    }

    /// Writes the values of the interval between two samples.
    fn interval(&mut self, number: usize, before: &Sample, after: &Sample) {
        let mark = format!("T{number:04}");
        let (time, date) = clock(after.time_s);
        self.line(&["ZZZZ".to_owned(), mark.clone(), time, date]);
        let span = (after.time_s - before.time_s).max(1e-9);
        let mut section = |name: &str, values: Vec<f64>| {
            let mut words = vec![name.to_owned(), mark.clone()];
            words.extend(values.iter().map(|value| format!("{value:.1}")));
            self.line(&words);
        };
        section("CPU_ALL", cpu(before, after));
        section("MEM", memory(after));
        section("PROC", vec![NOT_SAMPLED; PROC.split(',').count()]);
        let kib = |bytes: u64| bytes as f64 / 1024.0;
        let count = |count: u64| count as f64;
        let network = |counters: fn(&Interface) -> [u64; 2], unit: fn(u64) -> f64| {
            rates(&before.interfaces, &after.interfaces, counters, span, unit)
        };
        section("NET", network(|it| [it.received_bytes, it.sent_bytes], kib));
        let packets = network(|it| [it.received_packets, it.sent_packets], count);
        section("NETPACKET", packets);
        let disk = |counter: fn(&Disk) -> [u64; 1], unit: fn(u64) -> f64| {
            rates(&before.disks, &after.disks, counter, span, unit)
        };
        section("DISKREAD", disk(|it| [it.read_bytes], kib));
        section("DISKWRITE", disk(|it| [it.written_bytes], kib));
        section("DISKXFER", disk(|it| [it.reads + it.writes], count));
        for (number, (name, cpu)) in after.servers.iter().enumerate() {
            // A server that has just started has no time before.
            let used = cpu - before.servers.get(name).copied().unwrap_or(*cpu);
            let share = format!("{:.1}", used / span * 100.0);
            let pid = (number + 1).to_string();
            let mut words = vec!["TOP".to_owned(), pid, mark.clone(), share];
            // The nine columns from `%Usr` to `MajorFault`.
            words.extend(std::iter::repeat_n(format!("{NOT_SAMPLED}"), 9));
            words.push(name.clone());
            self.line(&words);
        }
    }
}

/// The machine's memory in MiB, in the order of [`MEM`].
fn memory(sample: &Sample) -> Vec<f64> {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut values = vec![NOT_SAMPLED; MEM.split(',').count()];
    // The columns `memtotal`, `memfree`, `cached` and `slab`.
    values[0] = mib(sample.memory.total);
    values[4] = mib(sample.memory.free);
    values[9] = mib(sample.memory.cached);
    values[11] = mib(sample.memory.slab);
    values
}

/// The shares of all cores' time: user, system, wait, idle, steal, busy; and the number of cores.
fn cpu(before: &Sample, after: &Sample) -> Vec<f64> {
    let sum = |time: fn(&CoreSample) -> f64| {
        let cores = after.cores.iter().zip(&before.cores);
        cores
            .map(|(after, before)| time(after) - time(before))
            .sum::<f64>()
    };
    let total = sum(|core| core.total).max(1e-9);
    let percent = |time: fn(&CoreSample) -> f64| sum(time) / total * 100.0;
    let user = percent(|core| core.user);
    let system = percent(|core| core.system);
    let wait = percent(|core| core.wait);
    let steal = percent(|core| core.steal);
    let idle = (100.0 - user - system - wait - steal).max(0.0);
    vec![
        user,
        system,
        wait,
        idle,
        steal,
        user + system,
        after.cores.len() as f64,
    ]
}

/// The increase of counters in each second of `span`, as `unit` converts it: for each device, in the order of names,
/// the counters that `counters` reads from it.
fn rates<T, const N: usize>(
    before: &BTreeMap<String, T>,
    after: &BTreeMap<String, T>,
    counters: fn(&T) -> [u64; N],
    span: f64,
    unit: fn(u64) -> f64,
) -> Vec<f64> {
    let mut rates = Vec::new();
    for (name, device_before) in before {
        // A device that has gone has no increase.
        let device_after = after.get(name).unwrap_or(device_before);
        let counts = counters(device_before)
            .into_iter()
            .zip(counters(device_after));
        for (count_before, count_after) in counts {
            rates.push(unit(count_after.saturating_sub(count_before)) / span);
        }
    }
    rates
}

/// The column names: each device with each ending.
fn columns<T>(devices: &BTreeMap<String, T>, endings: &[&str]) -> Vec<String> {
    let mut columns = Vec::new();
    for name in devices.keys() {
        columns.extend(endings.iter().map(|ending| format!("{name}{ending}")));
    }
    columns
}

/// The time and the date, such as 14:03:09 and 22-NOV-2026, in UTC.
fn clock(time_s: f64) -> (String, String) {
    let time = Timestamp::from_second(time_s as i64).unwrap_or_default();
    let time = time.to_zoned(TimeZone::UTC);
    let date = time.strftime("%d-%b-%Y").to_string().to_uppercase();
    (time.strftime("%H:%M:%S").to_string(), date)
}

/// The value for a figure that is not sampled.
const NOT_SAMPLED: f64 = -1.0;

const CPU: &str = "User%,Sys%,Wait%,Idle%,Steal%,Busy,CPUs";
const MEM: &str = "memtotal,hightotal,lowtotal,swaptotal,memfree,highfree,lowfree,swapfree,memshared,cached,active,slab";
const PROC: &str = "Runnable,Swap-in,pswitch,syscall,read,write,fork,exec";
const TOP: &str =
    "Time,%CPU,%Usr,%Sys,Size,ResSet,ResText,ResData,ShdLib,MinorFault,MajorFault,Command";

#[cfg(test)]
mod tests {
    use catamaran_gauge::system::Memory;

    use super::*;

    fn sample(second: u32) -> Sample {
        let done = f64::from(second);
        let counted = u64::from(second);
        let core = CoreSample {
            user: done * 0.5,
            system: done * 0.25,
            wait: 0.0,
            steal: 0.0,
            total: done,
        };
        let lo = Interface {
            received_bytes: counted * 2048,
            received_packets: counted * 7,
            sent_bytes: counted * 1024,
            sent_packets: counted * 5,
        };
        let disk = Disk {
            reads: counted,
            writes: counted * 2,
            read_bytes: counted * 4096,
            written_bytes: counted * 8192,
        };
        Sample {
            time_s: 1_795_356_000.0 + done,
            cores: vec![core, core],
            memory: Memory {
                total: 1 << 30,
                free: 1 << 29,
                ..Memory::default()
            },
            interfaces: [("lo".to_owned(), lo)].into(),
            disks: [("vda".to_owned(), disk)].into(),
            servers: [("web".to_owned(), done * 0.9)].into(),
            ..Sample::default()
        }
    }

    /// Sections by name: columns of the head and values of each line, as nmon's tools read them.
    fn read(text: &str) -> BTreeMap<String, (Vec<String>, Vec<Vec<f64>>)> {
        let mut sections: BTreeMap<String, (Vec<String>, Vec<Vec<f64>>)> = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<&str> = line.split(',').collect();
            if ["AAA", "ZZZZ", "TOP"].contains(&words[0]) {
                continue;
            }
            let section = sections.entry(words[0].to_owned()).or_default();
            if words[1].starts_with('T') && words[1].len() == 5 {
                let values = words[2..].iter().map(|word| word.parse().unwrap());
                section.1.push(values.collect());
            } else {
                section.0 = words[2..].iter().map(|word| (*word).to_owned()).collect();
            }
        }
        sections
    }

    #[test]
    fn each_interval_has_a_value_for_each_column() {
        let lines: Vec<String> = (1..=3)
            .map(|second| serde_json::to_string(&sample(second)).unwrap())
            .collect();
        let text = nmon(&lines.join("\n"), &Host::default(), "run1").unwrap();
        let sections = read(&text);
        for name in [
            "CPU_ALL",
            "MEM",
            "PROC",
            "NET",
            "NETPACKET",
            "DISKREAD",
            "DISKWRITE",
            "DISKXFER",
        ] {
            let (columns, rows) = &sections[name];
            assert_eq!(rows.len(), 2, "{name}");
            for row in rows {
                assert_eq!(row.len(), columns.len(), "{name}");
            }
        }
        assert_eq!(
            sections["CPU_ALL"].1[0],
            [50.0, 25.0, 0.0, 25.0, 0.0, 75.0, 2.0]
        );
        assert_eq!(sections["NET"].0, ["lo-read-KB/s", "lo-write-KB/s"]);
        assert_eq!(sections["NET"].1[0], [2.0, 1.0]);
        assert_eq!(sections["DISKXFER"].1[1], [3.0]);
        assert!(
            text.contains("AAA,interval,1\n") && text.contains("ZZZZ,T0002,"),
            "{text}"
        );
        assert!(text.contains("TOP,1,T0001,90.0,"), "{text}");
    }

    /// pyNmonAnalyzer, which `cargo xtask needs` fetches: tables by section, columns with their head first.
    #[test]
    fn a_public_parser_reads_it() {
        let lines: Vec<String> = (1..=4)
            .map(|second| serde_json::to_string(&sample(second)).unwrap())
            .collect();
        let text = nmon(&lines.join("\n"), &Host::default(), "run1 keep=on").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("run.nmon");
        std::fs::write(&file, text).unwrap();
        let script = "import json, os, sys\n\
                      sys.path.insert(0, os.path.expanduser('~/.cache/catamaran/python'))\n\
                      from pynmonanalyzer.pyNmonParser import pyNmonParser\n\
                      print(json.dumps(pyNmonParser(sys.argv[1]).parse()))";
        let output = std::process::Command::new("python3")
            .args(["-c", script])
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "`cargo xtask needs` fetches the parser: {said}"
        );
        let tables: BTreeMap<String, Vec<Vec<String>>> =
            serde_json::from_slice(&output.stdout).unwrap();
        for (section, column, expected) in [
            ("CPU_ALL", "User%", "50.0"),
            ("CPU_ALL", "Wait%", "0.0"),
            ("MEM", "memfree", "512.0"),
            ("PROC", "Runnable", "-1.0"),
            ("NET", "lo-write-KB/s", "1.0"),
            ("NETPACKET", "lo-read/s", "7.0"),
            ("DISKREAD", "vda", "4.0"),
            ("DISKWRITE", "vda", "8.0"),
            ("DISKXFER", "vda", "3.0"),
            ("TOP", "%CPU", "90.0"),
            ("TOP", "Command", "web"),
        ] {
            let table = &tables[section];
            let found = table.iter().find(|it| it[0] == column).unwrap();
            assert_eq!(found[1..], [expected; 3], "{section} {column}");
            let times = ["22-NOV-2026 14:00:02", "22-NOV-2026 14:00:03"];
            assert_eq!(table[0][1..3], times, "{section}");
        }
        assert_eq!(tables.len(), 9, "{:?}", tables.keys());
    }

    #[test]
    fn one_sample_is_no_interval() {
        let line = serde_json::to_string(&sample(1)).unwrap();
        assert_eq!(nmon(&line, &Host::default(), "x"), None);
        assert_eq!(nmon("", &Host::default(), "x"), None);
    }
}
