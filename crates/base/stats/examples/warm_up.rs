//! How often the detection of a warm-up is wrong, in simulated runs: the table of docs/lab/bench.md.
//!
//! `cargo run --release -p catamaran-stats --example warm_up`
use std::io::Write as _;

#[path = "../src/simulation.rs"]
mod simulation;

use simulation::{Noise, Share, drift, stationary};

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "series                              noise  span  steady moving unclear"
    )?;
    for span in [10.0, 30.0, 60.0] {
        for deviation in [0.01, 0.02, 0.03, 0.05] {
            for correlation in [0.0, 0.8] {
                let noise = Noise {
                    deviation,
                    correlation,
                };
                let share = Share::of(|seed| stationary(noise, span, seed));
                row(
                    &mut out,
                    &format!("level, correlation {correlation}"),
                    noise,
                    span,
                    share,
                )?;
            }
        }
    }
    for span in [10.0, 30.0, 60.0] {
        for tau in [5.0, 10.0, 20.0, 60.0, 120.0, 300.0] {
            for (deviation, correlation) in [
                (0.01, 0.0),
                (0.01, 0.8),
                (0.03, 0.0),
                (0.03, 0.8),
                (0.1, 0.8),
            ] {
                let noise = Noise {
                    deviation,
                    correlation,
                };
                let share = Share::of(|seed| drift(tau, noise, span, seed));
                row(
                    &mut out,
                    &format!("approach, tau {tau} s, correlation {correlation}"),
                    noise,
                    span,
                    share,
                )?;
            }
        }
    }
    Ok(())
}

fn row(
    out: &mut impl std::io::Write,
    name: &str,
    noise: Noise,
    span: f64,
    share: Share,
) -> std::io::Result<()> {
    writeln!(
        out,
        "{name:36}{:5.1}% {span:4}s {:6.1}%{:6.1}%{:7.1}%  wrong {:.1}%",
        noise.deviation * 100.0,
        share.steady * 100.0,
        share.moving * 100.0,
        share.unclear * 100.0,
        share.wrong * 100.0
    )
}
