//! Published runs that each round makes: on servers that have just been started, and once more when they are warm.

use std::collections::BTreeMap;

use super::stage::Stage;
use super::{DriveFault, Scene, bench};
use crate::experiment::{AsPublished, Load};
use crate::measure::{LONGEST, RATE};
use crate::published::{Published, parse};

/// What published runs of a cell have come to.
#[derive(Debug, Default)]
pub(super) struct MadeAgain {
    /// `ab1.throughput`, `ab1.longest` in ms and so on.
    pub(super) measures: BTreeMap<String, f64>,
    /// What ab prints, by the names of the runs.
    pub(super) printed: Vec<(String, String)>,
}

/// Makes the runs of the cell in their order, if its servers have just been started.
pub(super) fn first(scene: Scene<'_>, stage: &Stage, load: &Load) -> Result<MadeAgain, DriveFault> {
    let mut made = MadeAgain::default();
    let runs = scene.experiment.every_round(scene.levels);
    for (place, run) in runs.enumerate().filter(|_| stage.is_fresh) {
        let name = format!("ab{}", place + 1);
        made.make(scene, stage, (load, run), &name)?;
    }
    Ok(made)
}

impl MadeAgain {
    /// Makes the last of them again, on servers that are warm.
    pub(super) fn settle(
        &mut self,
        scene: Scene<'_>,
        stage: &Stage,
        load: &Load,
    ) -> Result<(), DriveFault> {
        match scene.experiment.every_round(scene.levels).last() {
            Some(run) => {
                self.make(scene, stage, (load, run), "ab")?;
                self.printed.pop(); // The first two are what the source has.
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn make(
        &mut self,
        scene: Scene<'_>,
        stage: &Stage,
        (load, run): (&Load, &AsPublished),
        name: &str,
    ) -> Result<(), DriveFault> {
        let text = bench::as_ab(scene.driver, stage, (load, run), scene.stop)?;
        self.measures.extend(measures(&text, name));
        self.printed.push((run.name.clone(), text));
        Ok(())
    }
}

/// What ab's text says of a run.
fn measures(text: &str, name: &str) -> Vec<(String, f64)> {
    let Ok(Published::Run(figures)) = parse(text) else {
        return Vec::new();
    };
    let rate = figures.rate.map(|rate| (format!("{name}.{RATE}"), rate));
    let times = figures.total_ms;
    let longest = times.map(|times| (format!("{name}.{LONGEST}"), times.max));
    rate.into_iter().chain(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_ab_gives_throughput_and_longest_request() {
        let text = include_str!("../../published/002-nio-1.txt");
        let expected = [
            ("ab1.throughput".to_owned(), 1098.36),
            ("ab1.longest".to_owned(), 1552.0),
        ];
        assert_eq!(measures(text, "ab1"), expected);
        assert!(measures("no text of ab", "ab1").is_empty());
    }
}
