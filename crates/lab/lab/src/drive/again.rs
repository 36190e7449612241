//! Makes the published runs of a cell that each round repeats: on servers that have just been started, and once more on
//! warm ones.

use std::collections::BTreeMap;

use super::stage::Stage;
use super::{DriveFault, Scene, bench};
use crate::experiment::{Load, OriginalRun};
use crate::measure::AbFigures;
use crate::published::{PublishedText, parse};

/// The results of a cell's published runs.
#[derive(Debug, Default)]
pub(super) struct RepeatedRuns {
    /// The figures by name: `ab1` and `ab2` of the first runs, `ab` of the run on warm servers.
    pub(super) figures: BTreeMap<String, AbFigures>,
    /// The output of ab for each run, with the run's name.
    pub(super) printed: Vec<(String, String)>,
}

/// Makes the published runs of the cell in order, if its servers have just been started; otherwise the result is empty.
pub(super) fn on_new_servers(
    scene: Scene<'_>,
    stage: &Stage,
    load: &Load,
) -> Result<RepeatedRuns, DriveFault> {
    let mut repeated = RepeatedRuns::default();
    if stage.is_fresh {
        let runs = scene.experiment.every_round(scene.levels);
        for (index, run) in runs.enumerate() {
            let name = format!("ab{}", index + 1);
            repeated.make_run(scene, stage, load, run, &name)?;
        }
    }
    Ok(repeated)
}

impl RepeatedRuns {
    /// Makes the last published run once more, on servers that are warm.
    pub(super) fn run_warm(
        &mut self,
        scene: Scene<'_>,
        stage: &Stage,
        load: &Load,
    ) -> Result<(), DriveFault> {
        if let Some(run) = scene.experiment.every_round(scene.levels).last() {
            self.make_run(scene, stage, load, run, "ab")?;
            // The source has printed only the first runs.
            self.printed.pop();
        }
        Ok(())
    }

    /// Makes a published run, and keeps its figures as `name` and its output.
    fn make_run(
        &mut self,
        scene: Scene<'_>,
        stage: &Stage,
        load: &Load,
        run: &OriginalRun,
        name: &str,
    ) -> Result<(), DriveFault> {
        let text = bench::as_ab(scene.driver, stage, load, run, scene.stop)?;
        self.figures.insert(name.to_owned(), figures(&text));
        self.printed.push((run.name.clone(), text));
        Ok(())
    }
}

/// Reads the figures from ab's output.
fn figures(text: &str) -> AbFigures {
    let Ok(PublishedText::Run(figures)) = parse(text) else {
        return AbFigures::default();
    };
    AbFigures {
        throughput: figures.rate,
        longest_ms: figures.total_ms.map(|times| times.max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_ab_gives_throughput_and_longest_request() {
        let text = include_str!("../../published/002-nio-1.txt");
        let expected = AbFigures {
            throughput: Some(1098.36),
            longest_ms: Some(1552.0),
        };
        assert_eq!(figures(text), expected);
        assert_eq!(figures("no text of ab"), AbFigures::default());
    }
}
