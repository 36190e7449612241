//! The command line of `cargo xtask compare`.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::connector::{Kind, Load, ToolKind};
use super::contender::{Contender, Scale};

/// How it is called, for the usage text.
pub(crate) const USAGE: &str = "\
  compare [page|idle|bulk|all|connector|crowd] [OPTION...]
                  our front beside nginx, HAProxy and Apache: page, idle or bulk alone, or all three;
                  our connector on each I/O model beside Tomcat and nginx: connector for requests,
                  crowd for what idle connections cost
      --rounds N      how often each front is measured (page 10, bulk 3)
      --seconds S     how long one measurement of the page takes (3), of idleness (10)
      --connections N idle connections (10000)
      --mebibytes N   size of a bulk body (1024)
      --routes N, --backends N, --workers N
                      also measure our front with so many, as scaled-ajp and scaled-http (page);
                      unless --only says otherwise, beside our own front alone
      --only A,B      ours-ajp ours-http nginx haproxy mod_jk mod_proxy_ajp mod_proxy_http,
                      and bare-relay, which looks at nothing it moves (for the page)
      --servers A,B   threads epoll uring tomcat nginx, for connector and crowd, and bare-answer,
                      which looks at nothing it is asked (for connector)
      --loads A,B     10 100 500 closing leaving idle, for connector
      --load TOOL     bench, or wrk, which speaks no AJP13 (bench)
      --access-log    every front writes its access log (off)
      --binary PATH   measure this build of ours (default: builds the workspace's)
      --quick         3 rounds of 1 s, 1000 idle connections, 128 MiB
";

/// What to compare, and how thoroughly.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Options {
    pub(super) modes: Vec<Mode>,
    pub(super) contenders: Vec<Contender>,
    /// Whom the connector is compared with, itself included.
    pub(super) servers: Vec<Kind>,
    /// Under which loads.
    pub(super) loads: Vec<Load>,
    /// Made by whom.
    pub(super) tool: ToolKind,
    /// Our own program; `None` to build it.
    pub(super) binary: Option<PathBuf>,
    pub(super) access_log: bool,
    /// What the scaled contenders have.
    pub(super) scale: Scale,
    pub(super) page_rounds: usize,
    pub(super) page_seconds: u32,
    pub(super) idle_connections: usize,
    pub(super) idle_seconds: u32,
    pub(super) bulk_rounds: usize,
    pub(super) bulk_bytes: u64,
}

/// One kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Small responses, as many as the front can give.
    Page,
    /// Connections that do nothing.
    Idle,
    /// One large body at a time, in either direction.
    Bulk,
    /// The connector under several loads.
    Connector,
    /// Connections to the connector that do nothing.
    Crowd,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            modes: vec![Mode::Page],
            contenders: Contender::ALL.to_vec(),
            servers: Kind::ALL.to_vec(),
            loads: Load::ALL.to_vec(),
            tool: ToolKind::Bench,
            binary: None,
            access_log: false,
            scale: Scale::default(),
            page_rounds: 10,
            page_seconds: 3,
            idle_connections: 10_000,
            idle_seconds: 10,
            bulk_rounds: 3,
            bulk_bytes: 1 << 30,
        }
    }
}

impl Options {
    /// Later words override earlier ones, so `--quick` goes first.
    pub(super) fn parse(arguments: &[&str]) -> anyhow::Result<Self> {
        let mut options = Self::default();
        let mut words = arguments.iter().copied();
        while let Some(word) = words.next() {
            match word {
                "page" => options.modes = vec![Mode::Page],
                "idle" => options.modes = vec![Mode::Idle],
                "bulk" => options.modes = vec![Mode::Bulk],
                "connector" => options.modes = vec![Mode::Connector],
                "crowd" => options.modes = vec![Mode::Crowd],
                "all" => options.modes = vec![Mode::Page, Mode::Idle, Mode::Bulk],
                "--access-log" => options.access_log = true,
                "--quick" => options.make_quick(),
                _ => {
                    let value = words.next();
                    let value = value.with_context(|| format!("{word}: unknown, or no value"))?;
                    options.set(word, value)?;
                }
            }
        }
        if options.scale != Scale::default() && options.contenders == Contender::ALL {
            options.contenders = Contender::SCALED.to_vec();
        }
        Ok(options)
    }

    /// Whether something of [`super::bare`] is among what is measured.
    pub(super) fn measures_bare(&self) -> bool {
        let is_measured = |mode: &Mode| match mode {
            Mode::Page => self.contenders.contains(&Contender::Bare),
            Mode::Connector => self.servers.contains(&Kind::Bare),
            Mode::Idle | Mode::Bulk | Mode::Crowd => false,
        };
        self.modes.iter().any(is_measured)
    }

    fn make_quick(&mut self) {
        self.page_rounds = 3;
        self.page_seconds = 1;
        self.idle_connections = 1000;
        self.idle_seconds = 2;
        self.bulk_rounds = 1;
        self.bulk_bytes = 128 << 20;
    }

    fn set(&mut self, name: &str, value: &str) -> anyhow::Result<()> {
        match name {
            "--only" => {
                self.contenders = value.split(',').map(contender).collect::<Result<_, _>>()?;
                return Ok(());
            }
            "--servers" => {
                let name = Kind::name;
                self.servers = choose(value, &Kind::ALL, |kind| name(*kind).to_owned())?;
                return Ok(());
            }
            "--loads" => {
                self.loads = choose(value, &Load::ALL, Load::key)?;
                return Ok(());
            }
            "--load" => {
                let all = [ToolKind::Bench, ToolKind::Wrk];
                let chosen = choose(value, &all, |tool| tool.name().to_owned())?;
                self.tool = *chosen.last().context("--load names no tool")?;
                return Ok(());
            }
            "--binary" => {
                let binary = Path::new(value).canonicalize();
                self.binary = Some(binary.with_context(|| format!("--binary {value}"))?);
                return Ok(());
            }
            _ => {}
        }
        let number: u32 = value
            .parse()
            .ok()
            .filter(|number| *number > 0)
            .with_context(|| format!("{name}: {value} should be a number from 1"))?;
        match name {
            "--rounds" => {
                self.page_rounds = number as usize;
                self.bulk_rounds = number as usize;
            }
            "--seconds" => {
                self.page_seconds = number;
                self.idle_seconds = number;
            }
            "--routes" => self.scale.routes = number,
            "--backends" => self.scale.backends = number,
            "--workers" => self.scale.workers = number,
            "--connections" => self.idle_connections = number as usize,
            "--mebibytes" => self.bulk_bytes = u64::from(number) << 20,
            _ => bail!("compare: unknown option {name}\n{USAGE}"),
        }
        Ok(())
    }
}

/// Those of `all` whose keys are in the list, in its order.
fn choose<T: Copy>(list: &str, all: &[T], key: impl Fn(&T) -> String) -> anyhow::Result<Vec<T>> {
    let find = |wanted: &str| {
        let found = all.iter().find(|each| key(each) == wanted);
        found.copied().with_context(|| {
            let keys: Vec<String> = all.iter().map(&key).collect();
            format!("{wanted} is none of {}", keys.join(" "))
        })
    };
    list.split(',').map(find).collect()
}

fn contender(name: &str) -> anyhow::Result<Contender> {
    let mut all = Contender::ALL.into_iter().chain(Contender::SCALED);
    all.find(|contender| contender.name() == name)
        .with_context(|| {
            let names = Contender::ALL.map(Contender::name).join(" ");
            format!("--only: {name} is none of {names}")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_said_is_the_page_by_all() {
        assert_eq!(Options::parse(&[]).unwrap(), Options::default());
    }

    #[test]
    fn what_is_said_later_wins() {
        let words = [
            "all",
            "--quick",
            "--rounds",
            "1",
            "--only",
            "nginx,ours-ajp",
        ];
        let options = Options::parse(&words).unwrap();
        assert_eq!((options.page_rounds, options.page_seconds), (1, 1));
        assert_eq!(options.contenders, [Contender::Nginx, Contender::OursAjp]);
        assert_eq!(options.modes, [Mode::Page, Mode::Idle, Mode::Bulk]);
    }

    #[test]
    fn a_scale_is_measured_beside_our_own_front() {
        let options = Options::parse(&["--routes", "10000", "--workers", "2"]).unwrap();
        let scale = options.scale;
        assert_eq!(
            (scale.routes, scale.backends, scale.workers),
            (10_000, 1, 2)
        );
        assert_eq!(options.contenders, Contender::SCALED);
        let words = ["--backends", "1000", "--only", "ours-ajp,scaled-ajp"];
        let options = Options::parse(&words).unwrap();
        let expected = [Contender::OursAjp, Contender::ScaledAjp];
        assert_eq!(options.contenders, expected);
    }

    #[test]
    fn servers_and_loads_are_chosen_by_name() {
        let words = [
            "connector",
            "--servers",
            "nginx,epoll",
            "--loads",
            "closing",
            "--load",
            "wrk",
        ];
        let options = Options::parse(&words).unwrap();
        assert_eq!(options.modes, [Mode::Connector]);
        assert_eq!(options.servers, [Kind::Nginx, Kind::Epoll]);
        assert_eq!(options.loads, [Load::Closing(500)]);
        assert_eq!(options.tool, ToolKind::Wrk);
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for words in [
            &["--rounds"][..],
            &["--rounds", "0"],
            &["--rounds", "many"],
            &["--loud", "1"],
            &["--only", "iis"],
            &["--servers", "iis"],
            &["--loads", "1000"],
            &["--load", "ab"],
            &["pages"],
            &["--binary", "no/such/program"],
        ] {
            assert!(Options::parse(words).is_err(), "{words:?}");
        }
    }
}
