use std::time::Duration;

use tempfile::TempDir;

use super::*;

/// The files of a machine that has enough of everything for [`demand`].
struct Planted(TempDir);

impl Planted {
    fn new() -> Self {
        let planted = Self(tempfile::tempdir().unwrap());
        for (path, text) in [
            ("proc/sys/fs/nr_open", "1048576\n"),
            ("proc/sys/net/core/somaxconn", "4096"),
            ("proc/sys/net/ipv4/tcp_max_syn_backlog", "4096"),
            ("proc/sys/net/ipv4/tcp_syncookies", "1"),
            ("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999"),
            ("proc/sys/net/ipv4/tcp_fin_timeout", "60"),
            ("proc/sys/net/ipv4/tcp_tw_reuse", "2"),
            ("proc/sys/net/ipv4/tcp_timestamps", "1"),
            ("proc/sys/net/ipv4/tcp_max_tw_buckets", "65536"),
            ("proc/sys/net/netfilter/nf_conntrack_max", "65536"),
            ("proc/sys/net/netfilter/nf_conntrack_count", "10"),
            ("proc/sys/net/core/rmem_max", "212992"),
            (
                "proc/self/cgroup",
                "4:memory:/\n2:cpu,cpuacct:/a\n0::/b/c\n",
            ),
            ("proc/stat", "cpu 50 0 0 46 0 0 0 4 0 0\ncpu0 1\n"),
            ("sys/fs/cgroup/b/c/cpu.max", "max 100000"),
            ("sys/fs/cgroup/b/memory.max", "max"),
            ("sys/fs/cgroup/b/c/pids.max", "100"),
            (
                "sys/fs/cgroup/memory/memory.limit_in_bytes",
                "9223372036854771712",
            ),
            (
                "etc/systemd/system/catamaran.service",
                "LimitNOFILE=1024:65536\nTimeoutStopSec=1min 30s",
            ),
        ] {
            planted.write(path, text);
        }
        planted
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The names of the checks that are short or folklore.
    fn found(&self) -> Vec<String> {
        let machine = Machine::below(self.0.path());
        let unit = machine.unit("catamaran.service");
        let checks = machine.examine(&demand(), unit.as_ref());
        let found = checks
            .iter()
            .filter(|check| matches!(check.verdict, Verdict::Short | Verdict::Folklore));
        let found: Vec<_> = found.collect();
        assert!(
            found.iter().all(|check| !check.command.is_empty()),
            "{found:?}"
        );
        found.iter().map(|check| check.what.clone()).collect()
    }
}

fn demand() -> ServerDemand {
    ServerDemand {
        clients: 20_000,
        backends: 200,
        files: 20_264,
        burst: 1024,
        dials: vec![("10.0.0.1:8009".to_owned(), 200)],
        workers: 1,
        memory: 100 << 20,
    }
}

#[test]
fn a_machine_with_enough_has_no_findings() {
    assert_eq!(Planted::new().found(), Vec::<String>::new());
}

#[test]
fn each_limit_that_is_lowered_is_found_alone() {
    let unit = "LimitNOFILE of /etc/systemd/system/catamaran.service";
    let ports = "net.ipv4.ip_local_port_range to 10.0.0.1:8009";
    for (path, text, expected) in [
        ("proc/sys/fs/nr_open", "20000", "fs.nr_open"),
        ("proc/sys/net/core/somaxconn", "128", "net.core.somaxconn"),
        (
            "proc/sys/net/ipv4/tcp_max_syn_backlog",
            "512",
            "net.ipv4.tcp_max_syn_backlog",
        ),
        (
            "proc/sys/net/ipv4/tcp_syncookies",
            "0",
            "net.ipv4.tcp_syncookies",
        ),
        (
            "proc/sys/net/ipv4/ip_local_port_range",
            "60900 60999",
            ports,
        ),
        (
            "proc/sys/net/netfilter/nf_conntrack_max",
            "40399",
            "net.netfilter.nf_conntrack_max",
        ),
        (
            "proc/sys/net/netfilter/nf_conntrack_count",
            "52429",
            "tracked connections",
        ),
        ("proc/stat", "cpu 50 0 0 40 0 0 0 10 0 0\n", "steal"),
        ("sys/fs/cgroup/b/cpu.max", "50000 100000", "cgroup cpu.max"),
        ("sys/fs/cgroup/b/memory.max", "1000000", "cgroup memory.max"),
        ("sys/fs/cgroup/b/pids.max", "16", "cgroup pids.max"),
        (
            "sys/fs/cgroup/memory/memory.limit_in_bytes",
            "4096",
            "cgroup memory.max",
        ),
        (
            "etc/systemd/system/catamaran.service.d/a.conf",
            "[Service]\nLimitNOFILE=4096\n",
            unit,
        ),
    ] {
        let planted = Planted::new();
        planted.write(path, text);
        assert_eq!(planted.found(), [expected], "{path}");
    }
    let planted = Planted::new();
    planted.write("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "20000");
    planted.write("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000");
    assert_eq!(planted.found(), ["cgroup cpu.max"]);
}

#[test]
fn folklore_is_named_from_files_and_from_the_kernel() {
    for (path, text, expected) in [
        (
            "proc/sys/net/ipv4/tcp_tw_reuse",
            "1",
            "net.ipv4.tcp_tw_reuse",
        ),
        (
            "proc/sys/net/ipv4/tcp_fin_timeout",
            "15",
            "net.ipv4.tcp_fin_timeout",
        ),
        (
            "proc/sys/net/ipv4/tcp_timestamps",
            "0",
            "net.ipv4.tcp_timestamps",
        ),
        (
            "proc/sys/net/ipv4/tcp_max_tw_buckets",
            "5000",
            "net.ipv4.tcp_max_tw_buckets",
        ),
        (
            "proc/sys/net/core/rmem_max",
            "134217728",
            "net.core.rmem_max",
        ),
        (
            "etc/sysctl.d/90-fast.conf",
            "# fast\nnet.ipv4.tcp_tw_recycle = 1\n",
            "net.ipv4.tcp_tw_recycle",
        ),
        (
            "etc/sysctl.conf",
            "net/ipv4/tcp_wmem=4096 16777216 33554432",
            "net.ipv4.tcp_wmem",
        ),
    ] {
        let planted = Planted::new();
        planted.write(path, text);
        assert_eq!(planted.found(), [expected], "{path}");
    }
    let planted = Planted::new();
    planted.write(
        "etc/sysctl.d/90-fast.conf",
        "#net.ipv4.tcp_tw_recycle = 1\n",
    );
    assert_eq!(planted.found(), Vec::<String>::new());
}

#[test]
fn a_unit_is_read_with_its_drop_ins() {
    let planted = Planted::new();
    let machine = Machine::below(planted.0.path());
    let unit = machine.unit("catamaran.service").unwrap();
    assert_eq!(unit.open_files, Some(65_536));
    assert_eq!(unit.stop_timeout, Some(Duration::from_secs(90)));
    planted.write(
        "run/systemd/system/catamaran.service.d/b.conf",
        "TimeoutStopSec=infinity\n",
    );
    let unit = machine.unit("catamaran.service").unwrap();
    assert_eq!(unit.stop_timeout, Some(Duration::MAX));
    assert_eq!(machine.unit("other.service"), None);
}

#[test]
fn this_machine_is_examined() {
    let checks = Machine::here().examine(&demand(), None);
    let names: Vec<_> = checks.iter().map(|check| check.what.as_str()).collect();
    for name in [
        "open files",
        "fs.nr_open",
        "net.core.somaxconn",
        "usable cores",
        "steal",
    ] {
        assert!(names.contains(&name), "{names:?}");
    }
}
