//! Finds settings that old pages recommend for fast servers, in effect or in the files of
//! sysctl(8).

use super::{Check, Machine, Verdict};

impl Machine {
    /// A check for each setting, in effect or in the files of sysctl(8), that old pages recommend for fast servers.
    /// The check says what the setting really does.
    #[must_use]
    pub fn folklore(&self) -> Vec<Check> {
        let written = self.written();
        let mut checks = Vec::new();
        for (name, is_folklore, note) in LEGENDS {
            // What a file says is in effect again after the next start, so it comes first. Of several entries the last
            // one counts.
            let value = match written.iter().rfind(|(key, _)| key == name) {
                Some((_, value)) => Some(value.clone()),
                None => self.sysctl(name),
            };
            if let Some(value) = value
                && is_folklore(&value)
            {
                let command = format!("remove {name} from /etc/sysctl.d");
                checks.push(Check::new(Verdict::Folklore, *name, value, *note).by(command));
            }
        }
        checks
    }

    /// The settings written in the files of sysctl(8), as names and values. Those of later files
    /// come last.
    fn written(&self) -> Vec<(String, String)> {
        let folder = std::fs::read_dir(self.root.join("etc/sysctl.d"));
        let entries = folder.into_iter().flatten().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
        paths.retain(|path| {
            path.extension()
                .is_some_and(|extension| extension == "conf")
        });
        paths.sort();
        paths.push(self.root.join("etc/sysctl.conf"));
        let mut written = Vec::new();
        for path in paths {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            for line in text.lines() {
                let Some((name, value)) = line.split_once('=') else {
                    continue;
                };
                // A `-` before a name makes sysctl(8) ignore errors; `/` may stand for `.`.
                let key = name.trim().trim_start_matches('-').replace('/', ".");
                if !key.starts_with(['#', ';']) {
                    written.push((key, value.trim().to_owned()));
                }
            }
        }
        written
    }
}

/// A setting, whether a value of it is folklore, and what the setting really does.
type Legend = (&'static str, fn(&str) -> bool, &'static str);

/// Reads a text as a number. A text that is not a number reads as 8192, so that it is not reported as a small
/// value.
fn number(text: &str) -> u64 {
    text.parse().unwrap_or(8192)
}

/// Whether the second of three sizes, with which a connection begins, is more than a megabyte.
fn begins_large(sizes: &str) -> bool {
    let initial = sizes.split_whitespace().nth(1);
    initial.is_some_and(|size| number(size) > 1 << 20)
}

const LEGENDS: &[Legend] = &[
    (
        "net.ipv4.tcp_tw_recycle",
        |_| true,
        "Linux 4.12 removed it; before, it dropped clients behind NAT",
    ),
    (
        "net.ipv4.tcp_tw_reuse",
        |value| value == "1",
        "it does nothing for connections of clients; kept connections to backends need no help",
    ),
    (
        "net.ipv4.tcp_fin_timeout",
        |value| value != "60",
        "it is the time of FIN-WAIT-2 of orphans, not of TIME-WAIT, which is fixed",
    ),
    (
        "net.ipv4.tcp_timestamps",
        |value| value == "0",
        "without them sequence numbers wrap on fast lines and ports cannot be used again",
    ),
    (
        "net.ipv4.tcp_max_tw_buckets",
        |value| number(value) < 8192,
        "beyond it TIME-WAIT ends at once, which lets old segments into new connections",
    ),
    (
        "net.core.rmem_max",
        |value| number(value) > HUGE,
        "it is no speed: TCP sizes its buffers by tcp_rmem, and large ones add latency",
    ),
    (
        "net.core.wmem_max",
        |value| number(value) > HUGE,
        "it is no speed: TCP sizes its buffers by tcp_wmem, and large ones add latency",
    ),
    (
        "net.ipv4.tcp_rmem",
        begins_large,
        "each connection begins with that much",
    ),
    (
        "net.ipv4.tcp_wmem",
        begins_large,
        "each connection begins with that much",
    ),
];

const HUGE: u64 = 64 << 20;
