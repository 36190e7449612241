//! The report of the lab, looked at in headless Chromium.

use std::fs;
use std::path::Path;

use catamaran_e2e::catamaran;
use catamaran_testkit::Deadline;

use crate::look::{Frame, looked_at};

#[test]
fn a_committed_result_is_legible_at_any_width_and_on_paper() {
    let directory = tempfile::tempdir().unwrap();
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab/keepalive");
    for name in ["result.json", "note.md"] {
        fs::copy(committed.join(name), directory.path().join(name)).unwrap();
    }
    let place = directory.path().display().to_string();
    let mut process = catamaran(&["lab", "report", &place]).unwrap();
    assert!(process.wait(Deadline::default()).unwrap().success());
    let page = fs::read_to_string(directory.path().join("report.html")).unwrap();
    // A4 in landscape without its margins is 1031 pixels wide.
    let frames = [(390, false), (1280, false), (1031, true)].map(|(width, is_print)| Frame {
        page: &page,
        width,
        is_print,
        is_plot: false,
    });
    let found = looked_at(&frames, directory.path());
    assert_eq!(found.len(), 3);
    for found in found {
        assert!(
            found.ends_with(" pictures") && !found.starts_with("0 "),
            "{found}"
        );
    }
}
