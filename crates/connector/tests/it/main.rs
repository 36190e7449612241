//! The connector over real sockets on loopback, port 0 and temporary paths.
//!
//! Every test runs on each driver and with each kind of application: the same bytes have to get the same answers. What a connection
//! does with bytes is tested as transcripts beside `Conn`; here it is what sockets add.

#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is told"
)]

mod ajp13;
mod ajp_client;
mod ajp_rows;
mod blocking;
mod churn;
mod deadlines;
mod http11;
mod http_rows;
mod knobs;
mod listeners;
mod packets;
mod played;
mod service;
mod shutdown;
mod smuggling;
mod status;
mod tomcat_cases;

use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;

use ajp_client::AjpClient;
use catamaran_connector::{
    App, Application, Config, Handler, IoModel, Listener, Protocol, Running, Snapshot, start,
};
use catamaran_testkit::{Address, Deadline, HttpClient};

/// What a test is run on.
#[derive(Clone, Copy, Debug)]
struct Model {
    io: IoModel,
    kind: Kind,
}

impl Model {
    /// Where it makes no difference.
    const SIMPLEST: Self = Self {
        io: IoModel::Epoll,
        kind: Kind::Inline,
    };
}

/// Where the application runs.
#[derive(Clone, Copy, Debug)]
enum Kind {
    /// On the event loop.
    Inline,
    /// On threads of the executor.
    Threads,
    /// In tasks.
    Service,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Inline, Self::Threads, Self::Service];

    fn application(self, handler: impl Handler) -> Application {
        match self {
            Self::Inline => handler.into(),
            Self::Threads => Application::on_threads(handler),
            Self::Service => played::application(handler),
        }
    }
}

/// A connector with one listener for each protocol.
struct Tier {
    running: Running,
}

impl Tier {
    fn start(model: Model) -> Self {
        Self::with(model, |_| {})
    }

    fn with(model: Model, change: impl FnOnce(&mut Config)) -> Self {
        Self::serving(model, App::new(), change)
    }

    fn serving(model: Model, handler: impl Handler, change: impl FnOnce(&mut Config)) -> Self {
        Self::running(model.io, model.kind.application(handler), change)
    }

    fn running(io: IoModel, application: Application, change: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config {
            listeners: vec![loopback(Protocol::Http), loopback(Protocol::Ajp)],
            workers: NonZeroUsize::new(2).unwrap(),
            // As many as any test has connections.
            max_threads: NonZeroUsize::new(600).unwrap(),
            io,
            ..Config::default()
        };
        change(&mut config);
        let _runtime = played::RUNTIME.enter();
        Self {
            running: start(config, application).unwrap(),
        }
    }

    fn address(&self, protocol: Protocol) -> Address {
        let mut addresses = self.running.addresses().iter();
        let listener = addresses
            .find(|listener| listener.protocol == protocol)
            .unwrap();
        address_of(listener)
    }

    fn http(&self) -> HttpClient {
        HttpClient::connect(self.address(Protocol::Http)).unwrap()
    }

    fn ajp(&self) -> AjpClient {
        AjpClient::connect(&self.address(Protocol::Ajp))
    }

    /// Waits until the reason has been counted, and says how often.
    fn refused(&self, reason: &str) -> u64 {
        Deadline::default()
            .poll(format!("a count of {reason}"), || {
                let count = self.running.counters().refused.get(reason).copied();
                count.filter(|count| *count > 0)
            })
            .unwrap_or_else(|expired| panic!("{expired}: {:?}", self.running.counters()))
    }

    /// Waits until the reason has been counted so often: each by the thread that closes a connection.
    fn wait_for_refused(&self, reason: &str, times: u64) {
        let counted =
            || (self.running.counters().refused.get(reason) == Some(&times)).then_some(());
        Deadline::default()
            .poll(format!("{times} times {reason}"), counted)
            .unwrap_or_else(|expired| panic!("{expired}: {:?}", self.running.counters()));
    }

    /// Waits until `reason` has been counted once more than `before`.
    fn counted(&self, reason: &str, before: &Snapshot, name: &str) {
        let count = |snapshot: &Snapshot| snapshot.refused.get(reason).copied().unwrap_or(0);
        let once_more = Deadline::default().poll(format!("{reason} for {name}"), || {
            (count(&self.running.counters()) == count(before) + 1).then_some(())
        });
        once_more.unwrap_or_else(|expired| panic!("{expired}: {:?}", self.running.counters()));
    }

    /// Waits until no connection is open.
    fn wait_until_quiet(&self) {
        Deadline::default()
            .poll("all connections to be closed", || {
                (self.running.counters().open() == 0).then_some(())
            })
            .unwrap();
    }
}

fn loopback(protocol: Protocol) -> Listener {
    let address = catamaran_connector::Address::Tcp("127.0.0.1:0".parse().unwrap());
    Listener { protocol, address }
}

fn unix(protocol: Protocol, path: &Path) -> Listener {
    Listener {
        protocol,
        address: catamaran_connector::Address::Unix(path.to_owned()),
    }
}

fn address_of(listener: &Listener) -> Address {
    match &listener.address {
        catamaran_connector::Address::Tcp(address) => (*address).into(),
        catamaran_connector::Address::Unix(path) => path.clone().into(),
    }
}

/// Runs `check` once for each driver.
fn on_each_model(check: impl Fn(IoModel)) {
    IoModel::ALL.iter().for_each(|io| check(*io));
}

/// Runs `check` once for each driver and each kind of application.
fn on_each_driver(check: impl Fn(Model)) {
    on_each_model(|io| {
        for kind in Kind::ALL {
            check(Model { io, kind });
        }
    });
}

/// As [`on_each_driver`], with the example application as it is.
fn on_each_tier(check: impl Fn(Tier)) {
    on_each_driver(|io| check(Tier::start(io)));
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

/// So soon that a test may wait for it, so late that nothing else hits it.
const SOON: Duration = Duration::from_millis(50);
