//! The numbers of a printed text, each with a name: ab's lines, its table of times, strace's table.

/// A number in a printed text, with its name.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Figure {
    /// The name of the figure, such as `Requests per second`, `Total, max` or `50 %`; for strace `read`, `read,
    /// errors` or `total`.
    pub(super) name: String,
    /// The figure as it was printed.
    pub(super) printed: String,
    pub(super) value: f64,
}

/// All figures of a text, in order.
pub(super) fn figures(text: &str) -> Vec<Figure> {
    let is_table = text.contains("% time");
    let mut figures: Vec<Figure> = Vec::new();
    for line in text.lines().map(str::trim) {
        let line_figures = if is_table { of_call(line) } else { of_ab(line) };
        for mut figure in line_figures {
            if figures.iter().any(|earlier| earlier.name == figure.name) {
                figure.name += ", across all";
            }
            figures.push(figure);
        }
    }
    figures
}

/// The figures in a line of ab's output.
fn of_ab(line: &str) -> Vec<Figure> {
    if let Some((name, values)) = line.split_once(':') {
        let words: Vec<&str> = values.split_whitespace().collect();
        if TIMES.contains(&name) {
            let columns = COLUMNS.iter().zip(&words);
            let figures =
                columns.filter_map(|(column, word)| figure(format!("{name}, {column}"), word));
            return figures.collect();
        }
        // The lines about the server have its name and port, which are no figures.
        let is_number = !name.starts_with("Server");
        return match words.first() {
            Some(word) if is_number => figure(name.to_owned(), word).into_iter().collect(),
            _ => Vec::new(),
        };
    }
    // A percentile, such as `50%   12`.
    let mut words = line.split_whitespace();
    let (Some(first), Some(word)) = (words.next(), words.next()) else {
        return Vec::new();
    };
    match first.strip_suffix('%') {
        Some(share) if share.parse::<u8>().is_ok() => {
            figure(format!("{share} %"), word).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The figures in a row of strace's table: percent, seconds, µs per call (not in the row of the total), calls,
/// errors if any, name.
fn of_call(line: &str) -> Vec<Figure> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((name, numbers)) = words.split_last() else {
        return Vec::new();
    };
    if numbers.len() < 4 || !numbers.iter().all(|word| word.parse::<f64>().is_ok()) {
        return Vec::new();
    }
    let columns: &[&str] = if *name == TOTAL {
        &["% of time", "seconds", CALLS, "errors"]
    } else {
        &["% of time", "seconds", "µs a call", CALLS, "errors"]
    };
    let figures = columns.iter().zip(numbers).filter_map(|(column, word)| {
        let full_name = match *column {
            CALLS => (*name).to_owned(),
            column => format!("{name}, {column}"),
        };
        figure(full_name, word)
    });
    figures.collect()
}

/// The figure that `word` is; `None` if it is no number.
fn figure(name: String, word: &str) -> Option<Figure> {
    let value = word.parse().ok()?;
    let printed = word.to_owned();
    Some(Figure {
        name,
        printed,
        value,
    })
}

/// The row of all calls.
pub(super) const TOTAL: &str = "total";

const CALLS: &str = "calls";

const TIMES: [&str; 4] = ["Connect", "Processing", "Waiting", "Total"];

const COLUMNS: [&str; 5] = ["min", "mean", "sd", "median", "max"];

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str, name: &str) -> Option<f64> {
        let figures = figures(text);
        figures.iter().find(|it| it.name == name).map(|it| it.value)
    }

    #[test]
    fn a_text_of_ab_gives_all_of_its_numbers() {
        let text = "Server Port: 80\nDocument Length: 347 bytes\nTime per request: 50.270 [ms] (mean)\n\
                    Time per request: 0.503 [ms] (mean, across all concurrent requests)\n\
                    min mean[+/-sd] median max\nTotal: 9 50 25.3 44 747\n50% 44\n100% 747 (longest request)\n";
        let names: Vec<String> = figures(text).into_iter().map(|it| it.name).collect();
        assert_eq!(names.len(), 10, "{names:?}");
        for (name, expected) in [
            ("Document Length", 347.0),
            ("Time per request", 50.27),
            ("Time per request, across all", 0.503),
            ("Total, sd", 25.3),
            ("Total, max", 747.0),
            ("100 %", 747.0),
        ] {
            assert_eq!(value(text, name), Some(expected), "{name}");
        }
    }

    #[test]
    fn a_table_of_strace_gives_calls_and_errors() {
        let text = "% time seconds usecs/call calls errors syscall\n------ --- --- --- --- ---\n\
                    2.58 0.010976 0 67716 17737 read\n1.25 0.005312 0 29988 close\n100.00 0.424835 375310 37725 total\n";
        assert_eq!(value(text, "read"), Some(67716.0));
        assert_eq!(value(text, "read, errors"), Some(17737.0));
        assert_eq!(value(text, "close, errors"), None);
        assert_eq!(value(text, "total"), Some(375_310.0));
        assert_eq!(value(text, "total, errors"), Some(37725.0));
    }
}
