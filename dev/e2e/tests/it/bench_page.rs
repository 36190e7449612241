//! The page of `bench report`, looked at in headless Chromium.

use std::fs;

use catamaran_e2e::{App, catamaran};
use catamaran_testkit::{Deadline, Process};

use crate::look::{Frame, looked_at};

/// Runs a command to its end, which has to be a good one.
fn done(mut process: Process) -> String {
    let status = process.wait(Deadline::default()).unwrap();
    assert!(status.success(), "{}{}", process.stdout(), process.stderr());
    process.stdout()
}

#[test]
fn nothing_overlaps_or_is_cut_at_any_width() {
    let app = App::start("epoll", &[]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    let (run, page) = (file("run.json"), file("run.html"));
    let requests = file("requests.jsonl");
    let long = "x".repeat(150);
    let lines = format!(
        "{{\"path\": \"/bytes/5?a-rather-long-query={long}\"}}\n\
         {{\"path\": \"/status/404\", \"name\": \"missing\"}}\n"
    );
    fs::write(&requests, lines).unwrap();
    let url = format!("http://{}/{long}", app.http());
    let json = format!("--json={run}");
    let load = [
        "bench",
        "-k",
        "-c",
        "4",
        "--rate",
        "800",
        "--duration",
        "3s",
        "--requests-file",
        &requests,
        &json,
        &url,
    ];
    let mut process = catamaran(&load).unwrap();
    // A busy machine may make it an invalid run, of which there is a page all the same.
    process.wait(Deadline::default()).unwrap();
    done(catamaran(&["bench", "report", &run]).unwrap());
    let page = fs::read_to_string(page).unwrap();
    // A4 without its margins is 688 pixels wide.
    let frame = |width, is_print| Frame {
        page: &page,
        width,
        is_print,
        is_plot: true,
    };
    let frames = [frame(1280, false), frame(360, false), frame(688, true)];
    assert_eq!(looked_at(&frames, directory.path()), ["5 pictures"; 3]);
    let pair = file("run-and-run.html");
    let with_itself = ["bench", "report", &run, &run];
    done(catamaran(&with_itself).unwrap());
    let pair = fs::read_to_string(pair).unwrap();
    let frame_of_pair = |width| Frame {
        page: &pair,
        width,
        is_print: false,
        is_plot: true,
    };
    let frames = [frame_of_pair(1280), frame_of_pair(360)];
    assert_eq!(looked_at(&frames, directory.path()), ["5 pictures"; 2]);
    let wide = page.replacen("<h1>", "<h1 style=\"white-space:nowrap\">", 1);
    let frame = Frame {
        page: &wide,
        width: 360,
        is_print: false,
        is_plot: true,
    };
    let found = looked_at(&[frame], directory.path()).remove(0);
    assert!(found.starts_with("5 pictures; wide: "), "{found}");
}

#[test]
fn what_is_no_report_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.json");
    fs::write(&file, "{\"schema\": \"catamaran-bench/9\"}").unwrap();
    let file = file.display().to_string();
    let mut process = catamaran(&["bench", "report", &file]).unwrap();
    assert_eq!(process.wait(Deadline::default()).unwrap().code(), Some(2));
    let expected = format!("error: {file}: this report is of the version \"catamaran-bench/9\"");
    assert!(
        process.stderr().starts_with(&expected),
        "{}",
        process.stderr()
    );
    let mut process = catamaran(&["bench", "report"]).unwrap();
    assert_eq!(process.wait(Deadline::default()).unwrap().code(), Some(2));
}
