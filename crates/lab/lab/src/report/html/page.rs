//! The frame of an HTML page: its head, style, tables and folded parts.

use std::fmt::Write as _;

use catamaran_chart::{STRIP_STYLE, escaped};

/// An HTML page to which parts are added.
pub(super) struct Page(String);

impl Page {
    /// Begins a page: its head, and everything up to the headline `title`.
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

    /// Adds a table of figures that scrolls by itself; `rows` contain finished `td` elements.
    pub(super) fn table(&mut self, heads: &[&str], rows: &[Vec<String>]) {
        // The unit gets a line of its own.
        let head = |head: &&str| escaped(head).replacen(" (", "<br>(", 1);
        let heads: Vec<String> = heads.iter().map(head).collect();
        self.rows(" class=\"figures\"", &heads, rows);
    }

    /// Adds a table of texts, whose heads are markup. On a narrow page the cells of a row are stacked.
    pub(super) fn cards(&mut self, heads: &[String], rows: &[Vec<String>]) {
        self.rows(" class=\"cards\"", heads, rows);
    }

    /// Begins a part that is folded away, on paper too; its heading is `summary`.
    pub(super) fn fold(&mut self, summary: &str) {
        let summary = escaped(summary);
        self.put(format_args!(
            "<details class=\"part\"><summary>{summary}</summary>\n"
        ));
    }

    /// Ends the part that [`Self::fold`] began.
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

    /// Ends the page and returns it.
    pub(super) fn end(mut self) -> String {
        self.0.push_str("</body>\n</html>\n");
        self.0
    }
}

const STYLE: &str = include_str!("page.css");
