//! Checks the queues of listeners, the ports for connections to backends, and the table
//! of tracked connections.

use super::{Check, Machine, ServerDemand, Verdict};

impl Machine {
    pub(super) fn network(&self, demand: &ServerDemand) -> Vec<Check> {
        let mut checks = self.queues(demand.burst);
        checks.extend(self.cookies());
        checks.extend(self.ports(demand));
        checks.extend(self.tracked(demand));
        if let Some(name) = self.sysctl("net.ipv4.tcp_congestion_control") {
            let note =
                "clients far away get large responses faster by bbr; nothing else depends on it";
            checks.push(Check::new(
                Verdict::Note,
                "net.ipv4.tcp_congestion_control",
                name,
                note,
            ));
        }
        checks
    }

    /// Checks the queues of a listener at which `burst` connections arrive within a
    /// second.
    #[must_use]
    pub fn queues(&self, burst: u64) -> Vec<Check> {
        let mut checks = Vec::new();
        for (name, meaning) in [
            ("net.core.somaxconn", "connections that wait to be accepted"),
            ("net.ipv4.tcp_max_syn_backlog", "handshakes under way"),
        ] {
            if let Some(value) = self.number(name) {
                let needed = format!("{burst} needed for a second's burst: {meaning}");
                let command = format!("sysctl -w {name}={burst}");
                checks.push(Check::of(value >= burst, name, value, needed).by(command));
            }
        }
        checks
    }

    fn cookies(&self) -> Option<Check> {
        let value = self.number(COOKIES)?;
        let needed = "1 needed: without it a flood of SYN locks clients out";
        let command = format!("sysctl -w {COOKIES}=1");
        Some(Check::of(value > 0, COOKIES, value, needed).by(command))
    }

    /// Checks the local ports for connections to backends. A connection that the front
    /// closes keeps its port for 60 seconds.
    fn ports(&self, demand: &ServerDemand) -> Vec<Check> {
        let range = self.sysctl(PORTS).unwrap_or_default();
        let bounds: Vec<u64> = range.split_whitespace().flat_map(str::parse).collect();
        let [first, last] = bounds[..] else {
            return Vec::new();
        };
        let ports = (last + 1).saturating_sub(first);
        let check = |(address, connections): &(String, u64)| {
            let what = format!("{PORTS} to {address}");
            let value = format!("{ports} ports, {} dials a second", ports / TIME_WAIT);
            let needed = format!("{connections} ports needed: `connections_max` of its backends");
            let command = format!("sysctl -w {PORTS}=\"1024 65535\"");
            Check::of(ports >= *connections, what, value, needed).by(command)
        };
        demand.dials.iter().map(check).collect()
    }

    /// Checks the size of the table of tracked connections, and how full it is; nothing if connections are not tracked.
    fn tracked(&self, demand: &ServerDemand) -> Vec<Check> {
        let Some(max) = self.number(TRACKED_MAX) else {
            return Vec::new();
        };
        let need = 2 * (demand.clients + demand.backends);
        let needed = format!("{need} needed: twice the connections of clients and backends");
        let command = format!("sysctl -w {TRACKED_MAX}={need}");
        let mut checks = vec![Check::of(max >= need, TRACKED_MAX, max, needed).by(command)];
        if let Some(count) = self.number("net.netfilter.nf_conntrack_count") {
            let needed = "less than 80 % used; what does not fit is dropped";
            let command = format!("sysctl -w {TRACKED_MAX}={}", max * 2);
            let suffices = count * 5 < max * 4;
            checks.push(Check::of(suffices, "tracked connections", count, needed).by(command));
        }
        checks
    }
}

const COOKIES: &str = "net.ipv4.tcp_syncookies";
const PORTS: &str = "net.ipv4.ip_local_port_range";
const TRACKED_MAX: &str = "net.netfilter.nf_conntrack_max";
/// How long a closed connection keeps its port, in seconds.
const TIME_WAIT: u64 = 60;
