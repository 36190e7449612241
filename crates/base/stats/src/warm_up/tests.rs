use super::*;
use crate::simulation::{Noise, Share, drift, stationary};

#[test]
fn a_flat_series_is_steady_as_soon_as_that_can_be_known() {
    let series = [100.0; 40];
    assert_eq!(warm_up(&series[..18], 30.0), WarmUp::Unclear(f64::INFINITY));
    assert_eq!(warm_up(&series[..19], 30.0), WarmUp::Steady);
    assert_eq!(warm_up(&series, 30.0), WarmUp::Steady);
}

#[test]
fn a_start_is_forgotten_once_the_level_is_there() {
    let climb = (1..=10).map(|second| f64::from(second) * 10.0);
    let level = (0..50).map(|second| [99.5, 100.5, 100.0][second % 3]);
    let series: Vec<f64> = climb.chain(level).collect();
    assert_ne!(warm_up(&series[..19], 30.0), WarmUp::Steady);
    assert_eq!(warm_up(&series, 30.0), WarmUp::Steady);
}

/// 1 % in five seconds looks alike from window to window, and is 6 % in half a minute.
#[test]
fn a_slow_drift_is_no_level_for_a_long_run() {
    let series: Vec<f64> = (0..60)
        .map(|second| 100.0 + 0.2 * f64::from(second))
        .collect();
    let WarmUp::Moving(movement) = warm_up(&series, 30.0) else {
        panic!("it moves");
    };
    assert!((0.05..0.06).contains(&movement), "{movement}");
    assert_eq!(warm_up(&series, 5.0), WarmUp::Steady);
}

#[test]
fn a_single_stall_is_no_trend() {
    let mut series: Vec<f64> = (0..40)
        .map(|second| [99.0, 101.0, 100.0][second % 3])
        .collect();
    series[35] = 5.0;
    assert_eq!(warm_up(&series, 20.0), WarmUp::Steady);
}

#[test]
fn nothing_done_at_all_is_never_steady() {
    assert_eq!(warm_up(&[0.0; 60], 1.0), WarmUp::Unclear(f64::INFINITY));
}

/// The first rows of the table of docs/lab/bench.md.
#[test]
fn correlated_noise_is_not_called_unsteady() {
    for (deviation, span, steady_min) in [(0.01, 30.0, 0.9), (0.03, 30.0, 0.0)] {
        let noise = Noise {
            deviation,
            correlation: 0.8,
        };
        let share = Share::of(|seed| stationary(noise, span, seed));
        assert!(share.moving <= 0.1, "{deviation} {share:?}");
        assert!(share.steady >= steady_min, "{deviation} {share:?}");
    }
}

/// The cases of the table in which a wrong verdict is most frequent.
#[test]
fn a_drift_that_matters_is_not_called_steady() {
    for (tau, deviation, span) in [(120.0, 0.03, 10.0), (300.0, 0.01, 30.0), (60.0, 0.03, 30.0)] {
        let noise = Noise {
            deviation,
            correlation: 0.8,
        };
        let share = Share::of(|seed| drift(tau, noise, span, seed));
        assert!(share.wrong <= 0.1, "{tau} {deviation} {span} {share:?}");
    }
}

#[test]
fn both_series_must_be_steady() {
    let (steady, moving, unclear) = (WarmUp::Steady, WarmUp::Moving(0.1), WarmUp::Unclear(0.2));
    for (one, other, expected) in [
        (steady, steady, steady),
        (steady, moving, moving),
        (unclear, steady, unclear),
        (unclear, moving, moving),
        (WarmUp::Unclear(0.3), unclear, WarmUp::Unclear(0.3)),
    ] {
        assert_eq!(one.and(other), expected);
        assert_eq!(other.and(one), expected);
    }
}
