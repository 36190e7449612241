//! Checks the cores that this process may use, and the time that a hypervisor takes from
//! them.

use rustix::thread::sched_getaffinity;

use super::{Check, Machine, ServerDemand, Verdict};

impl Machine {
    pub(super) fn cores(&self, demand: &ServerDemand) -> Vec<Check> {
        let mut checks = Vec::new();
        if let Ok(affinity) = sched_getaffinity(None) {
            let (cores, workers) = (u64::from(affinity.count()), demand.workers);
            let needed = format!("{workers} needed: `workers`");
            let command = "taskset or CPUAffinity with more cores, or fewer `workers`";
            checks.push(Check::of(cores >= workers, "usable cores", cores, needed).by(command));
        }
        let governor = self.read("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
        if let Some(governor) = governor {
            let note = "with `powersave` a core that was idle answers later";
            checks.push(Check::new(Verdict::Note, "governor", governor, note));
        }
        checks.extend(self.steal());
        checks
    }

    /// Checks the stolen time in `/proc/stat`: the eighth number of the first line (see
    /// proc(5)). The two numbers after it are part of others already.
    fn steal(&self) -> Option<Check> {
        let text = self.read("proc/stat")?;
        let words = text.lines().next()?.split_whitespace().skip(1).take(8);
        let ticks: Vec<u64> = words.flat_map(str::parse).collect();
        let stolen = *ticks.get(7)?;
        let all = ticks.iter().sum::<u64>().max(1);
        let value = format!("{} % since the machine started", stolen * 100 / all);
        let needed = "at most 5 %: the hypervisor gave the rest to other machines";
        let command = "ask who runs the hypervisor";
        Some(Check::of(stolen * 20 <= all, "steal", value, needed).by(command))
    }
}
