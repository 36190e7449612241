//! The tests that docs/security.md names must exist: the page says that they show what it claims.

use super::Problem;
use super::source::Source;

/// `page` is the text of docs/security.md.
pub(super) fn check(page: &str, sources: &[Source]) -> Vec<Problem> {
    let named: Vec<&str> = rows(page).flat_map(names).collect();
    if named.is_empty() {
        let what = "has no table with a last column `Tests`, so nothing shows what it claims";
        return vec![Problem::new(PAGE, what)];
    }
    let missing = named.into_iter().filter(|name| !exists(name, sources));
    missing
        .map(|name| {
            Problem::new(
                PAGE,
                format!("names the test `{name}`, which does not exist"),
            )
        })
        .collect()
}

/// The last cells of the table whose head ends in `Tests`.
fn rows(page: &str) -> impl Iterator<Item = &str> {
    let lines = page.lines().map(str::trim);
    let lines = lines.skip_while(|line| !line.ends_with("| Tests |"));
    let rows = lines.take_while(|line| line.starts_with('|')).skip(2);
    rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next())
}

/// What stands in backticks.
fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// `MODULE`, or `MODULE::TEST`, of the end-to-end tests or of the front's.
fn exists(name: &str, sources: &[Source]) -> bool {
    let (module, test) = name.split_once("::").unwrap_or((name, ""));
    let file = format!("/tests/it/{module}.rs");
    let mut files = sources.iter().filter(|source| source.path.ends_with(&file));
    let has_test = |source: &Source| {
        let pairs = source.tokens.windows(2);
        let mut tests = pairs.filter(|pair| pair[0].text == "fn");
        tests.any(|pair| pair[1].text == test)
    };
    files.any(|source| test.is_empty() || has_test(source))
}

const PAGE: &str = "docs/security.md";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_does_not_exist_is_told() {
        let source = Source::parse("dev/e2e/tests/it/unread.rs", "fn a_pipe() {}").unwrap();
        let page =
            |tests: &str| format!("| Who | Tests |\n|---|---|\n| a client | {tests} |\n\n`x`");
        let check = |tests: &str| check(&page(tests), std::slice::from_ref(&source)).len();
        assert_eq!(check("`unread`, `unread::a_pipe`"), 0);
        assert_eq!(check("`unread::a_tube`, `read`"), 2);
        assert_eq!(super::check("no table", &[source]).len(), 1);
    }
}
