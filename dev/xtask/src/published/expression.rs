//! Products and quotients of published numbers: `004-on:Total transferred / 004-off:Total transferred`.
//!
//! A name is `TEXT:NUMBER`, or `#ID` for a number of the source's file. Operators are applied from left to right. The
//! same expression with the numbers of our own texts gives our figure.

use anyhow::Context;

/// The value of an expression, from left to right; `value_of` gives the number of a name.
///
/// # Errors
///
/// `value_of` does not know a name.
pub(super) fn value(
    expression: &str,
    value_of: impl Fn(&str) -> Option<f64>,
) -> anyhow::Result<f64> {
    let number = |name: &str| {
        value_of(name.trim()).with_context(|| format!("{expression:?}: there is no {name:?}"))
    };
    let mut result = 1.0;
    // The first name is multiplied with 1.
    let mut operator = MULTIPLY;
    let mut rest = expression;
    loop {
        let next = rest.find([MULTIPLY, DIVIDE].as_slice());
        let name = &rest[..next.unwrap_or(rest.len())];
        match operator {
            DIVIDE => result /= number(name)?,
            _ => result *= number(name)?,
        }
        let Some(next) = next else {
            return Ok(result);
        };
        operator = rest[next..].chars().next().unwrap_or(MULTIPLY);
        rest = &rest[next + 1..];
    }
}

const MULTIPLY: char = '*';
const DIVIDE: char = '/';

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_worked_out_from_left_to_right() {
        let value_of = |name: &str| match name {
            "a:Total, max" => Some(12.0),
            "#b" => Some(4.0),
            "c" => Some(2.0),
            _ => None,
        };
        let check = |text, expected: f64| {
            assert!(
                (value(text, value_of).unwrap() - expected).abs() < 1e-12,
                "{text}"
            );
        };
        check("#b", 4.0);
        check("a:Total, max / #b", 3.0);
        check("a:Total, max / #b / c * #b", 6.0);
        assert!(value("a:Total, max / d", value_of).is_err());
    }
}
