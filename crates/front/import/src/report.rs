//! The report on a conversion, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::emit::{self, SideFile};
use crate::ledger::{Directive, Remark, Sums, Weight};

/// A converted configuration, and the report on it.
#[derive(Debug)]
pub struct Import {
    /// The text of the written file.
    pub text: String,
    /// Files that must be written beside the converted file, such as those with secrets.
    pub files: Vec<SideFile>,
    /// Every directive that was read, with its fate.
    pub directives: Vec<Directive>,
    /// Remarks for the operator: risks and notes.
    pub remarks: Vec<Remark>,
    /// The number of directives for each fate.
    pub sums: Sums,
    /// The number of routes written, and how many of them lead to the old server.
    pub routes: (usize, usize),
}

/// The report, as serialised to JSON.
#[derive(Debug, Serialize)]
struct Document<'a> {
    directives: usize,
    #[serde(flatten)]
    sums: Sums,
    routes: usize,
    routes_kept: usize,
    risks: usize,
    remarks: &'a [Remark],
    fates: &'a [Directive],
}

impl Import {
    /// The number of risks, each of which needs a decision.
    #[must_use]
    pub fn risks(&self) -> usize {
        self.remarks
            .iter()
            .filter(|it| it.weight == Weight::Risk)
            .count()
    }

    /// The report on the conversion, for people.
    #[must_use]
    pub fn report(&self) -> String {
        let mut out = String::new();
        for weight in [Weight::Risk, Weight::Note] {
            let word = if weight == Weight::Risk {
                "RISK"
            } else {
                "NOTE"
            };
            for remark in self.remarks.iter().filter(|it| it.weight == weight) {
                let _ = write!(out, "{word} ");
                emit::say(remark, &mut out);
            }
        }
        let sums = self.sums;
        let _ = writeln!(
            out,
            "{} directives: {} mapped, {} dropped, {} need a decision, {} kept by the old server",
            sums.total(),
            sums.mapped,
            sums.dropped,
            sums.decided,
            sums.kept
        );
        let is_whole = |it: &&Remark| it.weight == Weight::Risk && it.place.is_none();
        let whole = self.remarks.iter().filter(is_whole).count();
        if whole > 0 {
            let _ = writeln!(out, "{whole} to decide about the whole configuration");
        }
        let (routes, kept) = self.routes;
        let _ = writeln!(out, "{routes} routes, {kept} of them to the old server");
        out
    }

    /// The report on the conversion, as a JSON document's value.
    #[must_use]
    pub fn document(&self) -> impl Serialize + '_ {
        Document {
            directives: self.sums.total(),
            sums: self.sums,
            routes: self.routes.0,
            routes_kept: self.routes.1,
            risks: self.risks(),
            remarks: &self.remarks,
            fates: &self.directives,
        }
    }
}
