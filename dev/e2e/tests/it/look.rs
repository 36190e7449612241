//! Pages of ours, looked at in headless Chromium: what a reader would see to be wrong.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use catamaran_testkit::{Deadline, Process};
use serde_json::json;

/// A page in a window.
pub(crate) struct Frame<'a> {
    pub(crate) page: &'a str,
    /// Of the window, in pixels.
    pub(crate) width: u32,
    /// With its rules for print.
    pub(crate) is_print: bool,
    /// Whether each picture is a plot that takes most of the width and has units at both axes.
    pub(crate) is_plot: bool,
}

/// Of each frame how many pictures are seen, and after `; ` each fault: text of a picture that overlaps or is
/// cut, figures of a table that may wrap, a page wider than its window, a table that cannot be scrolled to its end.
pub(crate) fn looked_at(frames: &[Frame<'_>], directory: &Path) -> Vec<String> {
    let frame = |frame: &Frame<'_>| {
        json!({
            "page": frame.page, "width": frame.width, "is_print": frame.is_print,
            "is_plot": frame.is_plot,
        })
    };
    let frames: Vec<_> = frames.iter().map(frame).collect();
    // A string of JSON is one of JavaScript; an end tag in it would end the script.
    let frames = json!(frames).to_string().replace("</", "<\\/");
    let file = directory.join("look.html");
    fs::write(&file, CHECK.replace("FRAMES", &frames)).unwrap();
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
            "--virtual-time-budget=20000",
            "--dump-dom",
        ])
        .arg(format!("file://{}", file.display()));
    let mut process = Process::spawn(&mut chromium).unwrap();
    // Large pages on a busy machine.
    let status = process
        .wait(Deadline::after(Duration::from_secs(120)))
        .unwrap();
    let dom = process.stdout();
    assert!(status.success(), "{dom}{}", process.stderr());
    let found = dom.split("<pre class=\"found\">").skip(1);
    let found = found.map(|text| text.split("</pre>").next().unwrap_or_default().to_owned());
    let found: Vec<String> = found.collect();
    assert!(!found.is_empty(), "{dom}");
    found
}

/// Puts each page into a frame of its width, and what is wrong with it into a `pre`.
const CHECK: &str = r#"<!doctype html><body><script>
function faults(page, {is_print, is_plot}) {
  const found = [], root = page.documentElement;
  const visible = it => it.getBoundingClientRect().width > 0;
  if (is_print)
    for (const sheet of page.styleSheets)
      for (const rule of sheet.cssRules)
        if (rule.media?.mediaText == 'print') rule.media.mediaText = 'all';
  for (const it of page.querySelectorAll('details')) it.open = true;
  for (const use of page.querySelectorAll('use')) {
    // What is used has no elements of its own that could be looked at.
    const used = page.querySelector(use.getAttribute('href'));
    const copy = page.createElementNS('http://www.w3.org/2000/svg', 'g');
    if (used.localName == 'symbol') continue;
    copy.setAttribute('transform', use.getAttribute('transform') ?? '');
    copy.append(used.cloneNode(true));
    use.replaceWith(copy);
  }
  if (root.scrollWidth > root.clientWidth) found.push(`wide: ${root.scrollWidth}`);
  for (const table of page.querySelectorAll('.table'))
    if (table.scrollWidth > table.clientWidth) found.push(`a table is cut: ${table.scrollWidth}`);
  if (is_print)
    for (const table of page.querySelectorAll('.scroll'))
      if (table.scrollWidth > table.clientWidth) found.push(`a table is cut: ${table.scrollWidth}`);
  for (const cell of page.querySelectorAll('table.figures td.n'))
    if (getComputedStyle(cell).whiteSpace != 'nowrap') found.push(`${cell.textContent} may wrap`);
  const pictures = [...page.querySelectorAll('svg')].filter(visible);
  for (const picture of pictures) {
    const name = picture.querySelector('title')?.textContent ?? 'a picture';
    const frame = picture.getBoundingClientRect();
    if (is_plot && frame.width < root.clientWidth * 0.6) found.push(`${name} is narrow`);
    const texts = [...picture.querySelectorAll('text')].filter(visible)
      .map(it => [it.textContent, it.getBoundingClientRect()]);
    for (const [text, at] of texts)
      if (at.left < frame.left - 1 || at.right > frame.right + 1 || at.top < frame.top - 1 || at.bottom > frame.bottom + 1)
        found.push(`${name}: ${text} is cut`);
    texts.sort(([, a], [, b]) => a.top - b.top);
    texts.forEach(([one, a], i) => {
      for (const [other, b] of texts.slice(i + 1)) {
        if (b.top >= a.bottom - 1) break;
        if (a.left < b.right && b.left < a.right) found.push(`${name}: ${one} overlaps ${other}`);
      }
    });
    const units = [...picture.querySelectorAll('.unit')].filter(it => /\(.+\)|\/s/.test(it.textContent));
    if (is_plot && units.length != 2) found.push(`${name}: an axis has no unit`);
  }
  return [`${pictures.length} pictures`, ...found].join('; ');
}
const frames = FRAMES;
const looks = frames.map(wanted => new Promise(done => {
  const frame = document.createElement('iframe');
  frame.style = `width:${wanted.width}px;height:800px;border:0`;
  frame.onload = () => done(faults(frame.contentDocument, wanted));
  frame.srcdoc = wanted.page;
  document.body.append(frame);
}));
Promise.all(looks).then(all => {
  document.body.replaceChildren(...all.map(found => {
    const pre = document.createElement('pre');
    pre.className = 'found';
    pre.textContent = found;
    return pre;
  }));
});
</script></body>"#;
