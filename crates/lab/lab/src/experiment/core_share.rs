//! `core_share`: the part of a core that a server may have, and how it is held to that part.
//!
//! On a machine with two cores, the load has one core and the servers share the other one. With parts of that core, the
//! tested server is the limit by design: it uses up its part before the load or the servers behind it reach their
//! limits.

#[cfg(test)]
mod simulated;

use std::collections::BTreeMap;
use std::time::Duration;

use catamaran_gauge::CpuLimit;
use toml::Spanned;

use super::file::{ExperimentFile, ServerKeys};
use super::load::CellRenderer;
use super::read::FileReader;
use super::{Experiment, Level, Levels, cells};

/// The part of its core that a server may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoreShare {
    /// The part in thousandths of the core, from 1 to 999.
    pub thousandths: u32,
    /// The means by which the server is held to that part.
    pub by: Holder,
}

/// The means by which servers are held to their parts of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A quota: in each period of this length, the kernel stops a server that has used up its part until the period
    /// ends.
    Quota(Duration),
    /// Weights of the scheduler. A process that computes all the time has the weight that is left of the core. A server
    /// gets at least its part, and also a share of what other servers on the core do not use.
    Spinner,
}

impl CoreShare {
    /// The part as a share of one core.
    #[must_use]
    pub fn of_core(self) -> f64 {
        f64::from(self.thousandths) / 1000.0
    }

    /// The limit that the kernel is given.
    #[must_use]
    pub fn limit(self) -> CpuLimit {
        match self.by {
            Holder::Quota(period) => CpuLimit::Quota {
                time: period * self.thousandths / 1000,
                period,
            },
            Holder::Spinner => CpuLimit::Weight(self.thousandths),
        }
    }
}

impl Experiment {
    /// Whether any server has a declared part of its core.
    pub(crate) fn has_core_shares(&self) -> bool {
        self.servers
            .iter()
            .any(|server| server.core_share.is_some())
    }

    /// The part of its core that a server may have in the cell of `renderer`; `None`: no limit. Faults are added to
    /// `renderer`.
    pub(super) fn core_share(
        &self,
        server: &ServerKeys,
        renderer: &mut CellRenderer<'_>,
    ) -> Option<CoreShare> {
        // `check_core_shares` reports shares outside 0.001 to 0.999.
        let thousandths = (server.core_share? * 1000.0).round() as u32;
        let keys = self.core_share.as_ref();
        let means = keys.and_then(|keys| keys.by.as_deref()).unwrap_or(QUOTA);
        let means = Level::Text(means.to_owned());
        let period = keys.and_then(|keys| keys.period.as_deref());
        let by = match renderer.one_of("core_share.by", &means, &[QUOTA, "spinner", "none"]) {
            0 => Holder::Quota(renderer.duration("core_share.period", period.unwrap_or(PERIOD))),
            1 => Holder::Spinner,
            _ => return None,
        };
        let share = CoreShare { thousandths, by };
        if let CpuLimit::Quota { time, period } = share.limit()
            && (time < QUOTA_TIME_MIN || period > QUOTA_PERIOD_MAX)
        {
            renderer.fault(format!(
                "core_share.period = {period:?}: a server would run for {time:?} of it; the kernel knows quotas of a \
                 millisecond or more in periods up to a second"
            ));
        }
        Some(share)
    }
}

impl FileReader<'_> {
    /// Checks the parts of cores: the load has a core of its own, and the parts on each core add up to one core at
    /// most.
    pub(super) fn check_core_shares(&mut self, file: &ExperimentFile, cells: &[Levels]) {
        let mut servers = file.server.iter();
        if let Some(table) = &file.core_share
            && servers.all(|server| server.get_ref().core_share.is_none())
        {
            let what = "[core_share] says how shares are held, and no server has a `core_share`";
            self.fault(table, what.to_owned());
        }
        let load_core = file.load.get_ref().core;
        for server in &file.server {
            let keys = server.get_ref();
            let Some(share) = keys.core_share else {
                continue;
            };
            if !(0.001..=0.999).contains(&share) {
                let what =
                    format!("core_share = {share}: it is above 0 and below 1, in thousandths");
                self.fault(server, what);
            }
            let Some(core) = keys.core else {
                let what = "core_share is a part of a core: `core` says of which";
                self.fault(server, what.to_owned());
                continue;
            };
            if load_core.is_none_or(|load_core| load_core == core) {
                let what = "core_share: the load needs a core of its own; `core` of [load] is another than this server's";
                self.fault(server, what.to_owned());
            }
            for cell in cells {
                self.check_core(server, core, &file.server, cell);
            }
        }
    }

    /// Checks the servers of a cell that may run on `core`: each has a part of its core, and the parts on `core` add up
    /// to one core at most. Faults are reported at `server`.
    fn check_core(
        &mut self,
        server: &Spanned<ServerKeys>,
        core: usize,
        servers: &[Spanned<ServerKeys>],
        cell: &Levels,
    ) {
        let is_in_cell = |keys: &&ServerKeys| {
            let is_left_out = !keys.unless.is_empty() && cells::matches(cell, &keys.unless);
            !is_left_out && cells::matches(cell, &keys.only)
        };
        let mut sum = 0.0;
        for keys in servers.iter().map(Spanned::get_ref).filter(is_in_cell) {
            // A server without a core may run on any.
            let may_run_here = keys.core.is_none_or(|of_server| of_server == core);
            match keys.core_share {
                Some(share) if keys.core == Some(core) => sum += share,
                None if may_run_here => {
                    let what = format!(
                        "core_share: {} may run on core {core}, too, and has no core_share",
                        keys.name
                    );
                    self.fault(server, what);
                }
                Some(_) | None => {}
            }
        }
        // The sum of thousandths is not exact.
        if sum > 1.0005 {
            let what =
                format!("core_share: the servers on core {core} have {sum:.2} of it together");
            self.fault(server, what);
        }
    }
}

/// For each core whose servers are held by weights, the thousandths of it that no server has. `servers` has the core
/// and the share of each server.
pub(crate) fn thousandths_left(
    servers: impl Iterator<Item = (Option<usize>, Option<CoreShare>)>,
) -> BTreeMap<usize, u32> {
    let mut left_by_core = BTreeMap::new();
    for (core, share) in servers {
        if let (Some(core), Some(share)) = (core, share)
            && share.by == Holder::Spinner
        {
            let left = left_by_core.entry(core).or_insert(1000_u32);
            *left = left.saturating_sub(share.thousandths);
        }
    }
    left_by_core.retain(|_, left| *left > 0);
    left_by_core
}

const QUOTA: &str = "quota";

/// The default period of quotas.
const PERIOD: &str = "10ms";

/// The kernel's limits for quotas.
const QUOTA_TIME_MIN: Duration = Duration::from_millis(1);
const QUOTA_PERIOD_MAX: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    /// An experiment with a front and an application on core 1.
    fn file(by: &str, front: &str, app: &str, load: &str) -> String {
        format!(
            "name = 'shares'\nquestion = '?'\ncontrol = {{ side = 'a' }}\n[factor]\nside = ['a']\n\
             [run]\nrounds = 6\nseed = 1\n{by}\n[[server]]\nname = 'app'\ntarget = 'bare'\n{app}\n[[server]]\n\
             name = 'front'\ntarget = 'bare'\n{front}\n[load]\nurl = '{{{{ server.front.http }}}}/'\n{load}\n\
             clients = 1\nkeep_alive = 'on'\ntime = '1s'\nwarm = {{ at_least = '1s', at_most = '1s' }}\n"
        )
    }

    fn shares(text: &str) -> Vec<Option<CoreShare>> {
        let experiment = Experiment::read("s.toml", text, false).unwrap();
        let servers = experiment.servers_of(0).into_iter();
        servers.map(|server| server.core_share).collect()
    }

    #[test]
    fn a_part_is_a_quota_unless_the_file_says_otherwise() {
        let parts = ["core = 1\ncore_share = 0.5", "core = 1\ncore_share = 0.4"];
        let read = |by| shares(&file(by, parts[0], parts[1], "core = 0"));
        let [app, front] = read("")[..] else {
            panic!("two servers")
        };
        let quota = |thousandths| CoreShare {
            thousandths,
            by: Holder::Quota(Duration::from_millis(10)),
        };
        assert_eq!((app, front), (Some(quota(400)), Some(quota(500))));
        let limit = CpuLimit::Quota {
            time: Duration::from_millis(4),
            period: Duration::from_millis(10),
        };
        assert_eq!(quota(400).limit(), limit);
        assert_eq!(read("[core_share]\nby = 'none'"), [None, None]);
        let held =
            read("[core_share]\nby = \"{{ 'spinner' if factor.side == 'a' else 'quota' }}\"");
        assert_eq!(held[0].map(CoreShare::limit), Some(CpuLimit::Weight(400)));
        let left = thousandths_left(held.iter().map(|share| (Some(1), *share)));
        assert_eq!(left, BTreeMap::from([(1, 100)]));
    }

    #[test]
    fn what_cannot_be_held_is_a_fault() {
        let half = "core = 1\ncore_share = 0.5";
        for (by, front, app, load, words) in [
            (
                "",
                "core = 1\ncore_share = 1.5",
                half,
                "core = 0",
                "above 0 and below 1",
            ),
            (
                "",
                "core_share = 0.5",
                half,
                "core = 0",
                "`core` says of which",
            ),
            (
                "",
                half,
                half,
                "core = 1",
                "the load needs a core of its own",
            ),
            ("", half, half, "", "the load needs a core of its own"),
            (
                "",
                half,
                "core = 1",
                "core = 0",
                "app may run on core 1, too",
            ),
            ("", half, "", "core = 0", "app may run on core 1, too"),
            (
                "",
                half,
                "core = 1\ncore_share = 0.6",
                "core = 0",
                "have 1.10 of it together",
            ),
            (
                "[core_share]\nperiod = '1ms'",
                half,
                half,
                "core = 0",
                "quotas of a millisecond",
            ),
            (
                "[core_share]\nby = 'luck'",
                half,
                half,
                "core = 0",
                "it is quota or spinner or none",
            ),
            (
                "[core_share]\nby = 'quota'",
                "core = 1",
                "core = 1",
                "core = 0",
                "no server has",
            ),
        ] {
            let text = file(by, front, app, load);
            let faults = Experiment::read("s.toml", &text, false).unwrap_err();
            assert!(faults.to_string().contains(words), "{words}: {faults}");
        }
        let apart = file("", half, "core = 0", "core = 2");
        assert!(Experiment::read("s.toml", &apart, false).is_ok());
    }
}
