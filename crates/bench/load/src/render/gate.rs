//! Renders the result of a gate as text.

use super::page::Page;
use crate::document::{Condition, Gate};

/// The text of a gate: an empty line, the verdict, and a line for each condition.
pub fn gate(gate: &Gate) -> String {
    let mut page = Page::default();
    page.gap();
    page.line(format_args!("Gate: {}", gate.verdict));
    for condition in &gate.conditions {
        page.line(
            format!(
                "  {:<10} {:<16} {}",
                condition.verdict,
                condition.condition,
                figures(condition)
            )
            .trim_end(),
        );
        if let Some(reason) = &condition.reason {
            page.line(format_args!("{:13}{reason}", ""));
        }
    }
    page.into_text()
}

/// A condition's value with its interval; empty if the run has no such value.
fn figures(condition: &Condition) -> String {
    let (Some(value), Some(unit)) = (condition.value, condition.unit.as_deref()) else {
        return String::new();
    };
    let number = |value: f64| match unit {
        "ms" => format!("{value:.3} ms"),
        "share" => format!("{:.4} %", value * 100.0),
        "requests/s" => format!("{value:.2}/s"),
        "ratio" => format!("{value:.3}x"),
        _ => format!("{value}"),
    };
    match (condition.low, condition.high) {
        // An interval of one point, or of a count, says no more than the value.
        (Some(low), Some(high)) if unit == "requests" || low == high => {
            debug_assert!(low <= high, "an interval has two ends");
            number(value)
        }
        (Some(low), Some(high)) => {
            format!("{} [{} .. {}]", number(value), number(low), number(high))
        }
        (Some(low), None) => format!("{} [{} or more]", number(value), number(low)),
        (None, _) => number(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_has_its_figures() {
        let condition = |text: &str, unit: &str, low, high| Condition {
            condition: text.to_owned(),
            verdict: "undecided".to_owned(),
            unit: Some(unit.to_owned()),
            value: Some(0.5),
            low,
            high,
            reason: None,
        };
        let mut conditions = vec![
            condition("p99>20ms", "ms", Some(0.25), None),
            condition("errors>1%", "share", Some(0.25), Some(0.75)),
            condition("rate<1", "requests/s", None, None),
        ];
        conditions[2].reason = Some("too short".to_owned());
        let text = gate(&Gate {
            verdict: "undecided".to_owned(),
            conditions,
        });
        let expected = "
Gate: undecided
  undecided  p99>20ms         0.500 ms [0.250 ms or more]
  undecided  errors>1%        50.0000 % [25.0000 % .. 75.0000 %]
  undecided  rate<1           0.50/s
             too short
";
        assert_eq!(text, expected);
    }
}
