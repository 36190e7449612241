//! Conditions of nginx on values of a request, as tests of routes (`match_regex`).
//!
//! A variable of a `map` or of `valid_referers` has one of a few values. Each value has a test by which the variable
//! has it.

use std::collections::BTreeMap;

use catamaran_config::is_ruled_field;

use crate::directive::Directive;
use crate::expression::{Expression, translated};
use crate::nginx::maps;
use crate::nginx::referers;
use crate::nginx::variables::{
    braced, expand, fill, is_given_later, is_variable_name, passed, placeholder,
};

/// A variable that has one of a few values: that of the first test that holds, or else the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Tests of one value of the request. Each is paired with the value that the variable has if the test holds.
    pub(super) entries: Vec<(String, String)>,
    pub(super) otherwise: String,
}

/// The variables that have one of a few values, by their names.
pub(super) type Choices = BTreeMap<String, Choice>;

/// The condition of an `if`.
pub(super) struct Condition<'d> {
    variable: &'d str,
    is_negated: bool,
    comparison: Comparison<'d>,
}

enum Comparison<'d> {
    /// The value is neither empty nor `0`.
    Holds,
    Is(&'d str),
    Matches {
        pcre: &'d str,
        ignores_case: bool,
    },
}

impl<'d> Condition<'d> {
    /// Reads the words of an `if`; `None` if it compares anything else.
    pub(super) fn read(words: &'d [String]) -> Option<Self> {
        let mut inner: Vec<&str> = words.iter().map(String::as_str).collect();
        let first = inner.first_mut()?;
        *first = first.strip_prefix('(')?;
        let last = inner.last_mut()?;
        *last = last.strip_suffix(')')?;
        if inner.first().is_some_and(|it| it.is_empty()) {
            inner.remove(0);
        }
        if inner.len() > 1 && inner.last().is_some_and(|it| it.is_empty()) && inner.len() != 3 {
            inner.pop();
        }
        let (variable, operator, value) = match inner[..] {
            [variable] => (variable, "", ""),
            [variable, operator, value] => (variable, operator, value),
            _ => return None,
        };
        let plain = operator.strip_prefix('!');
        let comparison = match plain.unwrap_or(operator) {
            "" if plain.is_none() => Comparison::Holds,
            "=" if !value.contains('$') => Comparison::Is(value),
            "~" => Comparison::Matches {
                pcre: value,
                ignores_case: false,
            },
            "~*" => Comparison::Matches {
                pcre: value,
                ignores_case: true,
            },
            _ => return None,
        };
        Some(Self {
            variable: variable.strip_prefix('$')?,
            is_negated: plain.is_some(),
            comparison,
        })
    }

    /// The variable, if the condition is that it is empty.
    pub(super) fn empty_variable(&self) -> Option<&'d str> {
        let is_empty = matches!(self.comparison, Comparison::Is("")) && !self.is_negated;
        is_empty.then_some(self.variable)
    }

    /// Lists of tests: the condition holds if all tests of one list hold. `None` if tests of routes cannot express
    /// it.
    pub(super) fn tests(&self, choices: &Choices) -> Option<Vec<Vec<String>>> {
        if let Some(choice) = choices.get(self.variable) {
            return self.tests_of(choice);
        }
        let sign = if self.is_negated { "!~" } else { "~" };
        let value = tested_value(self.variable)?;
        let expression = self.expression()?;
        Some(vec![vec![format!("{value} {sign} {expression}")]])
    }

    fn expression(&self) -> Option<String> {
        Some(match self.comparison {
            Comparison::Holds => "^(?:[^0]|0.)".to_owned(),
            Comparison::Is(value) => format!("^{}$", escaped(value)?),
            Comparison::Matches { pcre, ignores_case } => exact(&translated(pcre, ignores_case))?,
        })
    }

    /// The tests by which a variable has a value for which the condition holds.
    fn tests_of(&self, choice: &Choice) -> Option<Vec<Vec<String>>> {
        let mut found = Vec::new();
        let mut before: Vec<String> = Vec::new();
        for (test, value) in &choice.entries {
            if self.holds(value)? {
                found.push([&before[..], std::slice::from_ref(test)].concat());
            } else {
                before.push(negated(test));
            }
        }
        if self.holds(&choice.otherwise)? {
            let none = choice.entries.iter().map(|(test, _)| negated(test));
            found.push(none.collect());
        }
        // A list without tests would hold for every request.
        found.iter().all(|it| !it.is_empty()).then_some(found)
    }

    /// Whether the condition holds for a value; `None`: the importer cannot tell.
    fn holds(&self, value: &str) -> Option<bool> {
        if value.contains('$') {
            return None;
        }
        let holds = match self.comparison {
            Comparison::Holds => !matches!(value, "" | "0"),
            Comparison::Is(other) => value == other,
            Comparison::Matches { pcre, ignores_case } => {
                let expression = translated(pcre, ignores_case);
                expression.is_exact.then(|| expression.has(value))?
            }
        };
        Some(holds != self.is_negated)
    }
}

/// The variables that have one of a few values in a location: by directives of the location, its server and the outer
/// block.
pub(super) fn choices(inner: &[Directive], server: &[Directive], outer: &[Directive]) -> Choices {
    let mut found = Choices::new();
    for map in outer.iter().filter(|it| it.name == "map") {
        if let (Some(name), Some(choice)) = (variable(map.word(1)), maps::choice(map)) {
            found.insert(name.to_owned(), choice);
        }
    }
    for set in inner.iter().filter(|it| it.name == "set") {
        let Some(name) = variable(set.word(0)) else {
            continue;
        };
        let is_changed = [server, outer]
            .into_iter()
            .any(|block| is_given_later(block, set.word(0)));
        // If a `map` also gives the variable a value, its value is not known.
        if found.remove(name).is_none() && is_constant(set, inner) && !is_changed {
            let choice = Choice {
                entries: Vec::new(),
                otherwise: braced(set.word(1)),
            };
            found.insert(name.to_owned(), choice);
        }
    }
    for (block, other) in [(server, inner), (inner, server)] {
        for name in set_by_conditions(block) {
            let is_given = given(other, name) > 0 || is_given_later(outer, name);
            if is_given || found.contains_key(&name[1..]) {
                continue;
            }
            if let Some(choice) = variable(name).and_then(|it| set_choice(it, block, &found)) {
                found.insert(name[1..].to_owned(), choice);
            }
        }
    }
    let named = server.iter().filter(|it| it.name == "server_name");
    let names: Vec<&str> = named
        .flat_map(|it| it.words.iter().map(String::as_str))
        .collect();
    let mut levels = [inner, server, outer].into_iter().map(|block| {
        let own = block.iter().filter(|it| it.name == "valid_referers");
        own.collect::<Vec<_>>()
    });
    let level = levels.find(|it| !it.is_empty()).unwrap_or_default();
    if let Some(choice) = referers::choice(&level, &names) {
        found.insert("invalid_referer".to_owned(), choice);
    }
    found
}

/// The name of a variable, if the word is a plain one. [`crate::nginx::variables::without_redefined`] has made sure
/// that no other directive gives a value to the variable of a `map`.
fn variable(word: &str) -> Option<&str> {
    word.strip_prefix('$').filter(is_variable_name)
}

/// Whether a directive of a location may change which values variables have there.
pub(super) fn changes_choices(directive: &Directive) -> bool {
    let name = directive.name.as_str();
    matches!(name, "valid_referers" | "set") || name.ends_with("_set") || only_sets(directive)
}

/// Whether a directive is an `if` that does nothing but give variables values.
pub(super) fn only_sets(directive: &Directive) -> bool {
    let inner = directive.inside();
    directive.name == "if" && !inner.is_empty() && inner.iter().all(|it| it.name == "set")
}

/// Whether a `set`, or such an `if`, only gives values to variables of which all values are known.
pub(super) fn sets_known(directive: &Directive, choices: &Choices) -> bool {
    let is_known = |it: &Directive| variable(it.word(0)).is_some_and(|it| choices.contains_key(it));
    if only_sets(directive) {
        return directive.inside().iter().all(is_known);
    }
    directive.name == "set" && is_known(directive)
}

/// The variables that an `if` in a block sets, with their signs, in the order of the file.
fn set_by_conditions(block: &[Directive]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for set in block
        .iter()
        .filter(|it| only_sets(it))
        .flat_map(Directive::inside)
    {
        if set.word(0).starts_with('$') && !names.contains(&set.word(0)) {
            names.push(set.word(0));
        }
    }
    names
}

/// The values of a variable that only this block sets: that of the last `if` whose condition holds. `None` if they are
/// not known, or if something asks for the variable before it has its last value.
fn set_choice(name: &str, block: &[Directive], known: &Choices) -> Option<Choice> {
    let is_own = |it: &&Directive| it.name == "set" && variable(it.word(0)) == Some(name);
    let may_change = block.iter().any(|it| it.name == "rewrite");
    let mut choice = Choice {
        entries: Vec::new(),
        otherwise: String::new(),
    };
    let (mut count, mut is_asked) = (0, false);
    for directive in block {
        let own: Vec<&Directive> = [directive].into_iter().filter(is_own).collect();
        let inner: Vec<&Directive> = directive.inside().iter().filter(is_own).collect();
        let set = match (&own[..], &inner[..]) {
            ([set], _) => set,
            (_, [set]) if only_sets(directive) => set,
            _ => {
                let is_executed =
                    matches!(directive.name.as_str(), "if" | "return" | "rewrite" | "set");
                is_asked |= is_executed && names_in(directive, name);
                continue;
            }
        };
        let is_plain = !set.word(1).contains('$');
        let is_of_request = expand(set.word(1), placeholder).is_some() && !may_change;
        if is_asked || !(is_plain || is_of_request) {
            return None;
        }
        count += 1;
        let value = braced(set.word(1));
        if inner.is_empty() {
            choice.entries.clear();
            choice.otherwise = value;
            continue;
        }
        let condition = Condition::read(&directive.words)?;
        for tests in condition.tests(known)? {
            let [test] = <[String; 1]>::try_from(tests).ok()?;
            choice.entries.insert(0, (test, value.clone()));
        }
    }
    (count == given(block, &format!("${name}"))).then_some(choice)
}

/// The directive once for each value of the variables that it uses, with that value filled in and with the tests by
/// which they have it. The first whose tests hold applies; the last has no tests.
pub(super) fn versions(directive: &Directive, choices: &Choices) -> Vec<(Vec<String>, Directive)> {
    let used = choices.iter().find(|(name, choice)| {
        uses(std::slice::from_ref(directive), name) && choice.entries.len() <= VERSIONS_MAX
    });
    let Some((name, choice)) = used else {
        return vec![(Vec::new(), directive.clone())];
    };
    let with = |value: &str| with_value(std::slice::from_ref(directive), name, value).remove(0);
    let mut others = choices.clone();
    others.remove(name);
    let mut found = Vec::new();
    for (test, value) in &choice.entries {
        for (mut tests, version) in versions(&with(value), &others) {
            tests.push(test.clone());
            found.push((tests, version));
        }
    }
    found.extend(versions(&with(&choice.otherwise), &others));
    found
}

/// Whether directives use a variable, apart from tests of `if` and from directives on which no answer depends.
pub(super) fn uses(directives: &[Directive], variable: &str) -> bool {
    directives.iter().any(|it| {
        let has = |word: &String| fill(word, |name| (name == variable).then_some("")) != *word;
        !is_left(it) && it.words.iter().any(has) || uses(it.inside(), variable)
    })
}

/// The directives, with a value in place of the variable.
pub(super) fn with_value(directives: &[Directive], variable: &str, value: &str) -> Vec<Directive> {
    let replace = |word: &String| fill(word, |name| (name == variable).then_some(value));
    let with = |it: &Directive| Directive {
        words: match it.name.as_str() {
            _ if is_left(it) => it.words.clone(),
            "proxy_pass" => passed(it, replace),
            _ => it.words.iter().map(replace).collect(),
        },
        inner: it.inner.as_ref().map(|it| with_value(it, variable, value)),
        ..it.clone()
    };
    directives.iter().map(with).collect()
}

/// Whether a directive's words are not filled in.
fn is_left(directive: &Directive) -> bool {
    LEFT.contains(&directive.name.as_str())
}

/// Whether a `set` of a location gives its variable the only value that it has there. No directive that is executed
/// before it in the location may name the variable.
fn is_constant(set: &Directive, inner: &[Directive]) -> bool {
    let name = set.word(0);
    let before = inner.iter().take_while(|it| it.id != set.id);
    let mut executed =
        before.filter(|it| matches!(it.name.as_str(), "if" | "return" | "rewrite" | "set"));
    let is_named = executed.any(|it| names_in(it, &name[1..]));
    let is_plain = !set.word(1).contains('$');
    let is_of_request = expand(set.word(1), placeholder).is_some();
    let is_rewritten = inner.iter().any(|it| it.name == "rewrite");
    (is_plain || is_of_request && !is_rewritten) && !is_named && given(inner, name) == 1
}

/// Whether a directive, or one in it, may name a variable.
fn names_in(directive: &Directive, name: &str) -> bool {
    let mut words = directive.words.iter();
    words.any(|it| it.contains(name)) || directive.inside().iter().any(|it| names_in(it, name))
}

/// How many directives give a variable a value.
fn given(directives: &[Directive], name: &str) -> usize {
    let of_one = |it: &Directive| {
        let sets = it.name.starts_with("set") || it.name.ends_with("_set");
        usize::from(sets && it.words.iter().any(|it| it.eq_ignore_ascii_case(name)))
            + given(it.inside(), name)
    };
    directives.iter().map(of_one).sum()
}

/// How tests name the value of a variable of nginx; `None`: they cannot.
pub(super) fn tested_value(name: &str) -> Option<String> {
    match name {
        "args" | "query_string" => return Some("query".to_owned()),
        "request_uri" => return Some("target".to_owned()),
        "content_type" => return Some("header:Content-Type".to_owned()),
        _ => {}
    }
    if let Some(field) = name.strip_prefix("http_").filter(is_variable_name) {
        let field = field.replace('_', "-");
        return (!is_ruled_field(&field, true)).then(|| format!("header:{field}"));
    }
    let kinds = [("arg_", "query"), ("cookie_", "cookie")];
    kinds.iter().find_map(|(start, kind)| {
        let value = name.strip_prefix(start).filter(is_variable_name)?;
        Some(format!("{kind}:{value}"))
    })
}

/// The text of an expression of the source, if the front has one that matches the same.
pub(super) fn exact(expression: &Expression) -> Option<String> {
    expression.is_exact.then(|| expression.text().to_owned())
}

/// An expression that matches only this text; `None` if the text has characters of several bytes.
pub(super) fn escaped(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if !(sign.is_ascii_graphic() || sign == ' ') {
            return None;
        }
        if "\\.+*?()|[]{}^$".contains(sign) {
            out.push('\\');
        }
        out.push(sign);
    }
    Some(out)
}

/// The test that holds if the given one does not.
fn negated(test: &str) -> String {
    match test.split_once(" !~ ") {
        Some((value, expression)) if !value.contains(' ') => format!("{value} ~ {expression}"),
        _ => test.replacen(" ~ ", " !~ ", 1),
    }
}

/// The most values of a variable for each of which a place is converted.
pub(super) const VERSIONS_MAX: usize = 12;

/// Directives that define a variable, test it, or write it into a log.
const LEFT: [&str; 10] = [
    "if",
    "location",
    "map",
    "set",
    "geo",
    "split_clients",
    "valid_referers",
    "log_format",
    "access_log",
    "server",
];
