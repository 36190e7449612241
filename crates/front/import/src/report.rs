//! What became of a configuration, for people and for programs.

use std::fmt::Write as _;

use serde::Serialize;

use crate::ledger::{Directive, Remark, Sums};
use crate::{Import, Weight, emit};

/// The report as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Document<'a> {
    directives: usize,
    #[serde(flatten)]
    sums: Sums,
    routes: usize,
    routes_kept: usize,
    risks: usize,
    remarks: &'a [Remark],
    fates: &'a [Directive],
}

pub(crate) fn document(import: &Import) -> Document<'_> {
    Document {
        directives: import.sums.total(),
        sums: import.sums,
        routes: import.routes.0,
        routes_kept: import.routes.1,
        risks: import.risks(),
        remarks: &import.remarks,
        fates: &import.directives,
    }
}

pub(crate) fn text(import: &Import) -> String {
    let mut out = String::new();
    for weight in [Weight::Risk, Weight::Note] {
        let word = if weight == Weight::Risk {
            "RISK"
        } else {
            "NOTE"
        };
        for remark in import.remarks.iter().filter(|it| it.weight == weight) {
            let _ = write!(out, "{word} ");
            emit::say(remark, &mut out);
        }
    }
    let sums = import.sums;
    let _ = writeln!(
        out,
        "{} directives: {} mapped, {} dropped, {} need a decision, {} kept by the old server",
        sums.total(),
        sums.mapped,
        sums.dropped,
        sums.decided,
        sums.kept
    );
    let (routes, kept) = import.routes;
    let _ = writeln!(out, "{routes} routes, {kept} of them to the old server");
    out
}
