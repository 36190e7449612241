//! The frame of a page: its head, its style, its tables.

use std::fmt::Write as _;

use catamaran_chart::{STRIP_STYLE, escaped};

/// A page that is being written.
pub(super) struct Page(String);

impl Page {
    /// Everything up to the headline.
    pub(super) fn begin(title: &str) -> Self {
        let mut page = Self(String::new());
        let title = escaped(title);
        page.put(format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
             name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}{}{}</style>\n</head>\n<body>\n<h1>{title}</h1>\n",
            STRIP_STYLE,
            catamaran_chart::STYLE
        ));
        page
    }

    pub(super) fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.0.write_fmt(arguments).expect("a string takes all");
    }

    /// A table that scrolls by itself; `rows` are of finished `td` elements.
    pub(super) fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        // The unit has a line of its own.
        let head = |head: &&str| escaped(head).replacen(" (", "<br>(", 1);
        let heads: Vec<String> = heads.iter().map(head).collect();
        self.rows(" class=\"figures\"", &heads, rows);
    }

    /// A table of texts, its heads markup: on a narrow page a row's parts stand below each other.
    pub(super) fn cards(&mut self, heads: &[String], rows: &[Vec<String>]) {
        self.rows(" class=\"cards\"", heads, rows);
    }

    /// Begins a part that is folded away, on paper too.
    pub(super) fn fold(&mut self, summary: &str) {
        let summary = escaped(summary);
        self.put(format_args!(
            "<details class=\"part\"><summary>{summary}</summary>\n"
        ));
    }

    /// Ends it.
    pub(super) fn end_fold(&mut self) {
        self.0.push_str("</details>\n");
    }

    fn rows(&mut self, class: &str, heads: &[String], rows: &[Vec<String>]) {
        self.put(format_args!("<div class=\"scroll\"><table{class}>\n<tr>"));
        for head in heads {
            self.put(format_args!("<th>{head}</th>"));
        }
        self.0.push_str("</tr>\n");
        for row in rows {
            self.put(format_args!("<tr>{}</tr>\n", row.concat()));
        }
        self.0.push_str("</table></div>\n");
    }

    /// The whole page.
    pub(super) fn end(mut self) -> String {
        self.0.push_str("</body>\n</html>\n");
        self.0
    }
}

const STYLE: &str = "\
:root { color-scheme: light dark; --back: light-dark(#fff, #161616); --line: light-dark(#e4e4e4, #333);
  --faint: light-dark(#5f5f5f, #a6a6a6); --pale: light-dark(#f5f5f5, #202020) }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 960px; margin: 0 auto; padding: 16px;
  color: light-dark(#1a1a1a, #e6e6e6); background: var(--back); overflow-wrap: break-word }
h1 { font-size: 24px; line-height: 1.25; margin: 8px 0 16px }
h2 { font-size: 18px; margin: 40px 0 8px; padding-top: 12px; border-top: 1px solid var(--line) }
h3 { font-size: 14px; margin: 24px 0 6px }
p { margin: 8px 0; max-width: 46em }
.answer { font-size: 17px; padding: 10px 14px; background: var(--pale);
  border-left: 4px solid light-dark(#1f6fb4, #6cb4ee); max-width: none }
.first { display: flex; flex-wrap: wrap; align-items: center; gap: 8px 32px; margin: 0 0 12px }
.first p { margin: 0 0 4px }
.word { font-size: 26px; font-weight: 700 }
.word.reproduced { color: light-dark(#2e7d32, #7fc983) }
.word.refuted-here { color: light-dark(#b3261e, #f2a09a) }
.word.open { color: light-dark(#9a5b00, #e8b04c) }
.setting, .case, small, figcaption { color: var(--faint) }
.note { font-style: italic }
.scroll { overflow-x: auto }
table { border-collapse: separate; border-spacing: 0; font-size: 13px }
th, td { text-align: left; vertical-align: top; padding: 6px 14px 6px 0; border-bottom: 1px solid var(--line) }
th { font-weight: 600; vertical-align: bottom; color: var(--faint) }
td small { font-size: 11px }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
table.figures th { text-align: right; white-space: nowrap }
table.figures th:first-child { text-align: left }
table.figures td:first-child, table.figures th:first-child { position: sticky; left: 0; background: var(--back) }
.says { min-width: 130px }
.sentence { min-width: 300px }
.verdict { white-space: nowrap }
td.bar div { font-variant-numeric: tabular-nums; text-align: center; width: 190px }
td.bar.off { opacity: .5 }
.scale.below { display: none }
td ul { margin: 0; padding-left: 16px; min-width: 260px }
td b.differs, td b.same { color: light-dark(#2e7d32, #7fc983) }
td b.suggests { color: light-dark(#9a5b00, #e8b04c) }
td b.no-claim, td b.too-few { color: light-dark(#b3261e, #f2a09a) }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28em), 1fr)); gap: 16px }
figure { margin: 0; min-width: 0 }
figcaption { font-size: 13px }
pre { overflow-x: auto; font-size: 12px; background: var(--pale); padding: 8px; margin: 4px 0 }
summary { cursor: pointer; margin-top: 24px }
details.part > summary { font-size: 18px; font-weight: 700; padding-top: 12px; border-top: 1px solid var(--line) }
.panels { display: flex; flex-wrap: wrap; gap: 4px 8px }
.panels div { width: 172px; overflow-wrap: anywhere; line-height: 1.2 }
.keys { margin: 4px 0 }
.keys span { white-space: nowrap; margin-right: 12px; font-size: 13px }
.keys svg.chart { display: inline; margin-right: 4px }
.narrow { display: none }
@media (max-width: 959px) { .wide { display: none } .narrow { display: block } }
@media (max-width: 599px) {
  pre { font-size: 10px }
  .says { min-width: 96px; max-width: 120px }
  .scale.below { display: block }
  table.cards, table.cards tbody { display: block }
  table.cards tr:first-child { display: none }
  table.cards tr { display: block; padding: 10px 0; border-bottom: 1px solid var(--line) }
  table.cards td { display: block; border: 0; padding: 2px 0; min-width: 0; text-align: left; white-space: normal }
  table.cards td:empty { display: none }
  table.cards td.brief { display: inline-block; padding-right: 14px }
  table.cards td ul { min-width: 0 }
  table.cards td.verdict br { display: none }
  table.cards td[data-name]:not(:empty)::before { content: attr(data-name) \": \"; color: var(--faint) } }
@page { size: A4 landscape; margin: 12mm }
@media print { :root { color-scheme: light } body { max-width: none; padding: 0; font-size: 13px } .scroll { overflow: visible }
  .wide { display: block } .narrow { display: none } table { font-size: 11px } th, td { padding-right: 8px }
  table.figures { font-size: 9px } table.figures :is(th, td) { padding-right: 5px } td small { font-size: 8px }
  tr, svg, figure { break-inside: avoid } h2, h3 { break-after: avoid } pre { white-space: pre-wrap }
  table.figures td:first-child, table.figures th:first-child { position: static } }
";
