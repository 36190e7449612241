//! The page of `bench report`, looked at in headless Chromium.

use std::fs;
use std::path::Path;
use std::process::Command;

use catamaran_e2e::{App, catamaran};
use catamaran_testkit::{Deadline, Process};

/// Runs a command to its end, which has to be a good one.
fn done(mut process: Process) -> String {
    let status = process.wait(Deadline::default()).unwrap();
    assert!(status.success(), "{}{}", process.stdout(), process.stderr());
    process.stdout()
}

fn looked_at(page: &str, width: u32, is_print: bool, directory: &Path) -> String {
    // A string of JSON is one of JavaScript; an end tag in it would end the script.
    let page = serde_json::to_string(page).unwrap().replace("</", "<\\/");
    let check = CHECK
        .replace("WIDTH", &width.to_string())
        .replace("IS_PRINT", &is_print.to_string())
        .replace("PAGE", &page);
    let file = directory.join(format!("check-{width}.html"));
    fs::write(&file, check).unwrap();
    let mut chromium = Command::new("chromium");
    chromium
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .arg(format!(
            "--user-data-dir={}",
            directory.join("profile").display()
        ))
        .args([
            "--window-size=1400,1000",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("file://{}", file.display()));
    let dom = done(Process::spawn(&mut chromium).unwrap());
    let (_, found) = dom
        .split_once("<pre id=\"found\">")
        .unwrap_or_else(|| panic!("{dom}"));
    found.split("</pre>").next().unwrap_or_default().to_owned()
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
    for (width, is_print) in [(1280, false), (360, false), (688, true)] {
        assert_eq!(
            looked_at(&page, width, is_print, directory.path()),
            "4 charts; ",
            "{width} {is_print}"
        );
    }
    let wide = page.replacen("<h1>", "<h1 style=\"white-space:nowrap\">", 1);
    assert!(looked_at(&wide, 360, false, directory.path()).starts_with("4 charts; wide: "));
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

/// Puts the page into a frame of `width` pixels and says what is wrong with it: text that overlaps
/// or is cut, a page wider than its window, axes without units, charts that take less
/// than 60 % of the width. `IS_PRINT`: with its rules for print.
const CHECK: &str = r#"<!doctype html><body><iframe style="width:WIDTHpx;height:800px;border:0"></iframe>
<pre id="found">not loaded</pre><script>
const frame = document.querySelector('iframe');
frame.onload = () => {
  const page = frame.contentDocument, found = [];
  const root = page.documentElement;
  if (IS_PRINT)
    for (const sheet of page.styleSheets)
      for (const rule of sheet.cssRules)
        if (rule.media?.mediaText == 'print') rule.media.mediaText = 'all';
  if (root.scrollWidth > root.clientWidth) found.push(`wide: ${root.scrollWidth}`);
  for (const table of page.querySelectorAll('.table'))
    if (table.scrollWidth > table.clientWidth) found.push(`a table is cut: ${table.scrollWidth}`);
  const charts = [...page.querySelectorAll('svg')].filter(it => it.getBoundingClientRect().width > 0);
  for (const chart of charts) {
    const name = chart.querySelector('title').textContent, frame = chart.getBoundingClientRect();
    if (frame.width < root.clientWidth * 0.6) found.push(`${name} is narrow`);
    const texts = [...chart.querySelectorAll('text')].map(it => [it.textContent, it.getBoundingClientRect()]);
    for (const [text, at] of texts)
      if (at.left < frame.left - 1 || at.right > frame.right + 1 || at.top < frame.top - 1 || at.bottom > frame.bottom + 1)
        found.push(`${name}: ${text} is cut`);
    texts.forEach(([one, a], i) => texts.slice(i + 1).forEach(([other, b]) => {
      if (a.left < b.right && b.left < a.right && a.top < b.bottom - 1 && b.top < a.bottom - 1)
        found.push(`${name}: ${one} overlaps ${other}`);
    }));
    const units = [...chart.querySelectorAll('.unit')].filter(it => /\(.+\)|\/s/.test(it.textContent));
    if (units.length != 2) found.push(`${name}: an axis has no unit`);
  }
  document.getElementById('found').textContent = `${charts.length} charts; ` + found.join('; ');
};
frame.srcdoc = PAGE;
</script></body>"#;
