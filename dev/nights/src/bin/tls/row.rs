//! The rows of the table: what is measured, and with which clients.

use anyhow::Context as _;
use catamaran_tier::Process;

use crate::stand::{FRONTS, Key, Stand, cpu};
use crate::{idle, load};

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// What is measured, with its unit.
    pub(crate) what: &'static str,
    /// The highest ratio to nginx's figure that is wanted.
    pub(crate) goal: f64,
    how: How,
}

#[derive(Debug)]
enum How {
    /// Microseconds of CPU per handshake, with these options of `openssl s_time`.
    Handshakes(Key, &'static str),
    /// Microseconds of CPU per request, with these options of `bench`: from the difference between a long run and a
    /// short one, so that connecting and handshakes are not counted.
    Requests(Requests),
    /// As `Requests`, over TLS minus without TLS.
    Surcharge(Requests),
    /// Bytes of memory of a connection that made one request.
    Idle,
}

#[derive(Clone, Copy, Debug)]
struct Requests {
    options: &'static str,
    path: &'static str,
    few: usize,
    many: usize,
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "full-ecdsa",
        what: "full handshake, TLS 1.3, P-256, µs",
        goal: 0.55,
        how: How::Handshakes(Key::Ecdsa, "-new -tls1_3"),
    },
    Row {
        name: "full-rsa",
        what: "full handshake, TLS 1.3, RSA of 2,048 bits, µs",
        goal: 0.8,
        how: How::Handshakes(Key::Rsa, "-new -tls1_3"),
    },
    Row {
        name: "resumed",
        what: "resumed handshake, TLS 1.2, µs",
        goal: 0.75,
        how: How::Handshakes(Key::Ecdsa, "-reuse -tls1_2"),
    },
    Row {
        name: "resumed-get",
        what: "resumed handshake, TLS 1.3, and a request that is proxied, µs",
        goal: 0.65,
        how: How::Handshakes(Key::Ecdsa, "-reuse -tls1_3 -www /"),
    },
    Row {
        name: "kept",
        what: "request on a kept connection, 100 clients, µs",
        goal: 0.85,
        how: How::Requests(PAGE),
    },
    Row {
        name: "surcharge",
        what: "the same, less a request in clear, µs",
        goal: 0.55,
        how: How::Surcharge(PAGE),
    },
    Row {
        name: "bulk",
        what: "32 MiB down, µs",
        goal: 1.0 / 1.3,
        how: How::Requests(BULK),
    },
    Row {
        name: "h2-10x10",
        what: "HTTP/2, 10 connections of 10 streams, µs",
        goal: 0.75,
        how: How::Requests(Requests {
            options: "--http2 -c 10 --streams 10",
            ..PAGE
        }),
    },
    Row {
        name: "h2-100x1",
        what: "HTTP/2, 100 connections of 1 stream, µs",
        goal: 0.85,
        how: How::Requests(Requests {
            options: "--http2 -c 100",
            ..PAGE
        }),
    },
    Row {
        name: "h2-bulk",
        what: "HTTP/2, 32 MiB down, µs",
        goal: 1.0 / 1.3,
        how: How::Requests(Requests {
            options: "--http2 -c 1",
            ..BULK
        }),
    },
    Row {
        name: "idle",
        what: "memory of an idle connection, B",
        goal: 0.36,
        how: How::Idle,
    },
];

impl Row {
    /// The figure of one front.
    pub(crate) fn measure(&self, stand: &Stand, front: usize) -> anyhow::Result<f64> {
        let running = |key| stand.running(front, key);
        let measured = match &self.how {
            How::Handshakes(key, options) => {
                let front = running(*key);
                let before = cpu(front)?;
                let count = load::handshakes(&stand.space, front, options)?;
                Ok((cpu(front)? - before).as_secs_f64() / count * MICROS)
            }
            How::Requests(requests) => requests.cost(stand, running(Key::Ecdsa), "https"),
            How::Surcharge(requests) => {
                let front = running(Key::Ecdsa);
                let clear = requests.cost(stand, front, "http")?;
                Ok(requests.cost(stand, front, "https")? - clear)
            }
            How::Idle => idle::measure(stand, FRONTS[front]),
        };
        measured.with_context(|| format!("{} of {}", self.name, FRONTS[front]))
    }
}

impl Requests {
    /// Microseconds of CPU per request at this port.
    fn cost(&self, stand: &Stand, front: &Process, port: &str) -> anyhow::Result<f64> {
        let url = format!("{}{}", front.url(port), self.path);
        let of = |count| -> anyhow::Result<f64> {
            let before = cpu(front)?;
            load::requests(&stand.space, &url, self.options, count)?;
            Ok((cpu(front)? - before).as_secs_f64())
        };
        let few = of(self.few)?;
        Ok((of(self.many)? - few) / (self.many - self.few) as f64 * MICROS)
    }
}

const MICROS: f64 = 1e6;

const PAGE: Requests = Requests {
    options: "-c 100",
    path: "/",
    few: 2_000,
    many: 22_000,
};

const BULK: Requests = Requests {
    options: "-c 1",
    path: "/bytes/33554432",
    few: 1,
    many: 11,
};
