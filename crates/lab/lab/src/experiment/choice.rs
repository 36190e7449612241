//! Chooses one cell by some of its levels.

use super::{Experiment, Level, Levels};

/// Why a text does not choose a cell. The last value of each variant lists what there is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceFault {
    /// A part of the text is not `FACTOR=LEVEL`.
    #[error("`{0}` is not FACTOR=LEVEL, such as {1}")]
    Form(String, String),
    /// The experiment has no such factor.
    #[error("there is no factor `{0}`; there are {1}")]
    Factor(String, String),
    /// The text gives two levels of this factor.
    #[error("`{0}` is there twice; a cell has one level of each factor")]
    Twice(String),
    /// The factor has no such level.
    #[error("{0} has no level `{1}`; there are {2}")]
    Level(String, String, String),
    /// The experiment has no cell with these levels.
    #[error("the experiment has no cell {0}; nearest to it are\n{1}")]
    Cell(String, String),
}

impl Experiment {
    /// The number of the cell with the levels in `given`, such as `front=nginx,clients=100`; factors that are not named
    /// have the control's levels.
    ///
    /// # Errors
    /// The text does not choose a cell; [`ChoiceFault`] says why.
    pub fn choose(&self, given: &str) -> Result<usize, ChoiceFault> {
        let control = &self.cells[self.control];
        let mut wanted = Levels::new();
        for part in given.split(',').map(str::trim) {
            if part.is_empty() {
                continue;
            }
            let Some((name, text)) = part.split_once('=') else {
                let example = super::label(control);
                return Err(ChoiceFault::Form(part.to_owned(), example));
            };
            let level = self.level(name, text)?;
            if wanted.insert(name.to_owned(), level.clone()).is_some() {
                return Err(ChoiceFault::Twice(name.to_owned()));
            }
        }
        for (name, level) in control {
            wanted.entry(name.clone()).or_insert_with(|| level.clone());
        }
        let number = self.cells.iter().position(|cell| *cell == wanted);
        number.ok_or_else(|| ChoiceFault::Cell(super::label(&wanted), self.nearest(&wanted)))
    }

    /// The level of the factor `name` that is written as `text`.
    fn level(&self, name: &str, text: &str) -> Result<&Level, ChoiceFault> {
        let Some(factor) = self.factors.iter().find(|factor| factor.name == name) else {
            let names: Vec<&str> = self.factors.iter().map(|it| it.name.as_str()).collect();
            return Err(ChoiceFault::Factor(name.to_owned(), names.join(", ")));
        };
        let level = factor.levels.iter().find(|level| level.to_string() == text);
        level.ok_or_else(|| {
            let levels: Vec<String> = factor.levels.iter().map(ToString::to_string).collect();
            ChoiceFault::Level(name.to_owned(), text.to_owned(), levels.join(", "))
        })
    }

    /// Some cells that have most of these levels, each in a line, for a message.
    fn nearest(&self, wanted: &Levels) -> String {
        let count_of_same = |cell: &Levels| {
            let mut levels = cell.clone();
            levels.retain(|name, level| wanted.get(name) == Some(level));
            levels.len()
        };
        let mut cells: Vec<&Levels> = self.cells.iter().collect();
        cells.sort_by_key(|cell| std::cmp::Reverse(count_of_same(cell)));
        let lines = cells
            .iter()
            .take(NEAREST)
            .map(|cell| format!("  {}", super::label(cell)));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The experiment with this cell alone, without claims and without published figures.
    #[must_use]
    pub fn only(&self, cell: usize) -> Self {
        let mut own = self.clone();
        own.cells = vec![self.cells[cell].clone()];
        own.control = 0;
        own.nest.clear();
        own.claims.clear();
        own.published.clear();
        own.as_published.clear();
        own
    }
}

/// The number of cells that a message suggests instead of one that does not exist.
const NEAREST: usize = 6;

#[cfg(test)]
mod tests {
    use crate::builtin;

    fn check(given: &str, expected: Result<&str, &str>) {
        let keepalive = builtin::experiment("keepalive", false).unwrap();
        match (keepalive.choose(given), expected) {
            (Ok(cell), Ok(expected)) => {
                assert_eq!(
                    super::super::label(&keepalive.cells[cell]),
                    expected,
                    "{given}"
                );
            }
            (Err(fault), Err(part)) => {
                let fault = fault.to_string();
                assert!(fault.contains(part), "{given}: {fault}");
            }
            other => panic!("{given}: {other:?}"),
        }
    }

    #[test]
    fn what_is_not_said_is_as_in_the_control() {
        let keepalive = builtin::experiment("keepalive", false).unwrap();
        let control = super::super::label(&keepalive.cells[keepalive.control]);
        check("", Ok(&control));
        let other = control.replace("server=prefork", "server=nginx");
        assert_ne!(other, control, "the control is of httpd");
        check("server=nginx", Ok(&other));
        check(" server=nginx, ", Ok(&other));
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        check("nginx", Err("`nginx` is not FACTOR=LEVEL, such as "));
        check("sever=nginx", Err("no factor `sever`; there are "));
        check(
            "server=iis",
            Err("server has no level `iis`; there are prefork, "),
        );
        check("server=nginx,server=nginx", Err("`server` is there twice"));
    }

    #[test]
    fn a_cell_that_is_left_out_names_its_neighbours() {
        let keepalive = builtin::experiment("keepalive", false).unwrap();
        let fault = keepalive
            .choose("keep=off,idle=200")
            .unwrap_err()
            .to_string();
        assert!(fault.starts_with("the experiment has no cell "), "{fault}");
        assert!(
            fault.lines().count() > 2 && fault.contains("\n  "),
            "{fault}"
        );
    }

    #[test]
    fn one_cell_alone_has_no_claims() {
        let keepalive = builtin::experiment("keepalive", false).unwrap();
        let cell = keepalive.choose("").unwrap();
        let own = keepalive.only(cell);
        assert_eq!(own.cells, [keepalive.cells[cell].clone()]);
        assert!(own.claims.is_empty() && own.control == 0);
    }
}
