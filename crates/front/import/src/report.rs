//! What became of a configuration, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::emit::{self, SideFile};
use crate::ledger::{Directive, Remark, Sums, Weight};

/// A converted configuration.
#[derive(Debug)]
pub struct Import {
    /// The file.
    pub text: String,
    /// Files that belong beside it.
    pub files: Vec<SideFile>,
    /// Every directive that was read, with its fate.
    pub directives: Vec<Directive>,
    /// What has to be said: risks and notes.
    pub remarks: Vec<Remark>,
    /// How many directives had each fate.
    pub sums: Sums,
    /// Routes that were written, and how many of them go to the old server.
    pub routes: (usize, usize),
}

/// The report as JSON.
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
    /// How many decisions are left.
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
