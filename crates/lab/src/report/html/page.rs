//! The frame of a page: its head, its style, its tables.

use std::fmt::Write as _;

use catamaran_chart::escaped;

use crate::report::svg;

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
            svg::STYLE,
            catamaran_chart::STYLE
        ));
        page
    }

    pub(super) fn put(&mut self, arguments: std::fmt::Arguments<'_>) {
        self.0.write_fmt(arguments).expect("a string takes all");
    }

    /// A table that scrolls by itself; `rows` are of finished `td` elements.
    pub(super) fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        self.rows("", heads, rows);
    }

    /// A table of texts: on a narrow page a row's parts stand below each other.
    pub(super) fn cards(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        self.rows(" class=\"cards\"", heads, rows);
    }

    fn rows(&mut self, class: &str, heads: &[&str], rows: &[Vec<String>]) {
        self.put(format_args!("<div class=\"scroll\"><table{class}>\n<tr>"));
        for head in heads {
            self.put(format_args!("<th>{}</th>", escaped(head)));
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
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 30em), 1fr)); gap: 1em }
.pair pre { overflow-x: auto; min-width: 0 }
:root { color-scheme: light dark }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 960px; margin: 0 auto; padding: 16px;
  color: light-dark(#1a1a1a, #e6e6e6); background: light-dark(#fff, #161616) }
h1 { font-size: 22px; line-height: 1.25 }
h2 { font-size: 17px; margin-top: 32px }
h3 { font-size: 14px }
.answer { font-size: 17px }
.setting, small { color: light-dark(#666, #a0a0a0) }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: 13px }
th, td { text-align: left; vertical-align: top; padding: 5px 12px 5px 0;
  border-bottom: 1px solid light-dark(#e4e4e4, #333) }
th { font-weight: 600; white-space: nowrap }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.says { min-width: 130px }
.sentence { min-width: 260px }
td ul { margin: 0; padding-left: 16px; min-width: 260px }
td b.differs { color: light-dark(#2e7d32, #7fc983) }
td b.no-claim, td b.too-few { color: light-dark(#b3261e, #f2a09a) }
pre { overflow-x: auto; font-size: 12px; background: light-dark(#f5f5f5, #202020); padding: 8px }
.panels { display: flex; flex-wrap: wrap; gap: 4px 8px }
.panels div { width: 172px; overflow-wrap: anywhere; line-height: 1.2 }
.keys { margin: 4px 0 }
.keys span { white-space: nowrap; margin-right: 12px; font-size: 13px }
.keys svg.chart { display: inline; margin-right: 4px }
.narrow { display: none }
@media (max-width: 959px) { .wide { display: none } .narrow { display: block } }
@media (max-width: 599px) {
  table.cards tr:first-child { display: none }
  table.cards tr { display: block; padding: 8px 0; border-bottom: 1px solid light-dark(#e4e4e4, #333) }
  table.cards td { display: block; border: 0; padding: 2px 0; text-align: left; white-space: normal }
  table.cards td[data-name]:not(:empty)::before { content: attr(data-name) \": \"; color: light-dark(#666, #a0a0a0) } }
@media print { :root { color-scheme: light } body { max-width: none } .scroll { overflow: visible }
  .wide { display: block } .narrow { display: none }
  details::details-content { content-visibility: visible; display: block } }
";
