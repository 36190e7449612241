//! The level of load as a function of time: requests per second, or clients.
//!
//! Stages that hold or ramp make the level a piecewise linear function of the time since measuring
//! began. The next request is due where the area under the level has grown by one; this has a
//! closed form, so ramps are exact.

use crate::plan::Stage;

/// The level of the load over time. Times are seconds since measuring began.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// The level if there are no stages: requests per second, or clients.
    base: f64,
    pieces: Vec<Piece>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start: f64,
    end: f64,
    from: f64,
    to: f64,
}

impl Level {
    /// The level of `stages`, one after the other from time zero; that of `base` if there are none.
    pub(crate) fn new(base: f64, stages: &[Stage]) -> Self {
        let mut pieces: Vec<Piece> = Vec::with_capacity(stages.len());
        for stage in stages {
            // A ramp at the beginning starts from zero.
            let (start, before) = match pieces.last() {
                Some(last) => (last.end, last.to),
                None => (0.0, 0.0),
            };
            pieces.push(Piece {
                start,
                end: start + stage.duration.as_secs_f64(),
                from: if stage.ramp { before } else { stage.level },
                to: stage.level,
            });
        }
        Self { base, pieces }
    }

    /// The level of the warm-up: the one that the first stage reaches, or the base.
    pub(crate) fn warm(&self) -> Self {
        Self {
            base: self.pieces.first().map_or(self.base, |piece| piece.to),
            pieces: Vec::new(),
        }
    }

    /// Whether the level changes during the run.
    pub(crate) fn changes(&self) -> bool {
        !self.pieces.is_empty()
    }

    /// The highest level of the run.
    pub(crate) fn highest(&self) -> f64 {
        let levels = self.pieces.iter().map(|piece| piece.from.max(piece.to));
        levels.reduce(f64::max).unwrap_or(self.base)
    }

    /// The level at `time`; after the end of the stages, the last one.
    pub(crate) fn at(&self, time: f64) -> f64 {
        let Some(last) = self.pieces.last() else {
            return self.base;
        };
        let piece = self.pieces.iter().find(|piece| time < piece.end);
        piece.map_or(last.to, |piece| piece.at(time))
    }

    /// The area under the level up to `time`: for a rate, the number of requests due by then.
    pub(crate) fn area(&self, time: f64) -> f64 {
        if self.pieces.is_empty() {
            return self.base * time;
        }
        let pieces = self.pieces.iter().filter(|piece| piece.start < time);
        let areas = pieces.map(|piece| {
            let end = piece.end.min(time);
            (piece.from + piece.at(end)) / 2.0 * (end - piece.start)
        });
        areas.sum()
    }

    /// The time at which the area under the level has grown by `area` since `time`; `None`: it never does.
    pub(crate) fn reach(&self, mut time: f64, mut area: f64) -> Option<f64> {
        if self.pieces.is_empty() {
            return (self.base > 0.0).then(|| time + area / self.base);
        }
        for piece in &self.pieces {
            if time >= piece.end {
                continue;
            }
            let level = piece.at(time);
            let area_of_piece = (level + piece.to) / 2.0 * (piece.end - time);
            if area <= area_of_piece {
                // The positive root of slope/2·x² + level·x = area, in the form that holds for a
                // slope of zero, too.
                let slope = (piece.to - piece.from) / (piece.end - piece.start);
                let root = (level * level + 2.0 * slope * area).max(0.0).sqrt();
                return Some(time + 2.0 * area / (level + root));
            }
            area -= area_of_piece;
            time = piece.end;
        }
        None
    }
}

impl Piece {
    fn at(&self, time: f64) -> f64 {
        let part = (time - self.start) / (self.end - self.start);
        self.from + (self.to - self.from) * part
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn stage(seconds: u64, level: f64, ramp: bool) -> Stage {
        Stage {
            duration: Duration::from_secs(seconds),
            level,
            ramp,
        }
    }

    #[test]
    fn stages_hold_and_ramp() {
        let level = Level::new(
            9.0,
            &[
                stage(10, 100.0, true),
                stage(5, 100.0, false),
                stage(5, 20.0, false),
            ],
        );
        for (time, expected) in [
            (0.0, 0.0),
            (5.0, 50.0),
            (10.0, 100.0),
            (14.9, 100.0),
            (15.0, 20.0),
            (99.0, 20.0),
        ] {
            assert!(
                (level.at(time) - expected).abs() < 1e-9,
                "{time} {}",
                level.at(time)
            );
        }
        assert_eq!(level.warm().at(3.0), 100.0);
        assert_eq!(Level::new(9.0, &[]).at(3.0), 9.0);
    }

    #[test]
    fn area_is_reached_across_stages() {
        let level = Level::new(0.0, &[stage(10, 100.0, true), stage(10, 50.0, false)]);
        // The ramp holds 500, the second stage another 500.
        for (from, area, expected) in [
            (0.0, 125.0, 5.0),
            (5.0, 375.0, 10.0),
            (0.0, 750.0, 15.0),
            (12.0, 50.0, 13.0),
        ] {
            let found = level.reach(from, area).unwrap();
            assert!((found - expected).abs() < 1e-6, "{from} {area} {found}");
        }
        assert_eq!(level.reach(0.0, 1000.1), None);
        assert_eq!(Level::new(0.0, &[]).reach(0.0, 1.0), None);
        assert_eq!(Level::new(4.0, &[]).reach(1.0, 1.0), Some(1.25));
    }

    #[test]
    fn the_area_is_what_is_due() {
        let level = Level::new(0.0, &[stage(10, 100.0, true), stage(10, 50.0, false)]);
        for (time, expected) in [
            (0.0, 0.0),
            (5.0, 125.0),
            (10.0, 500.0),
            (12.0, 600.0),
            (99.0, 1000.0),
        ] {
            let found = level.area(time);
            assert!((found - expected).abs() < 1e-6, "{time} {found}");
        }
        assert_eq!(Level::new(4.0, &[]).area(2.5), 10.0);
    }

    #[test]
    fn a_ramp_may_fall() {
        let level = Level::new(0.0, &[stage(10, 100.0, false), stage(10, 0.0, true)]);
        let found = level.reach(10.0, 500.0).unwrap();
        assert!((found - 20.0).abs() < 1e-3, "{found}");
        assert_eq!(level.reach(10.0, 500.1), None);
    }
}
