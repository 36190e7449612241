//! A configuration as a tree of directives, which can be made and shrunk piece by piece and written as files.
//!
//! The text has placeholders: `{place}` for the directory of the files, `{a}` and `{b}` for the addresses of the
//! listeners, `{one}` and `{two}` for the backends.

/// A directive, or several that stand together.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// One line.
    Line(String),
    /// A section: its first line, what it contains, its last line.
    Section(String, Vec<Self>, &'static str),
    /// Another file, with the line that includes it; the line is empty if the server finds the file by itself.
    File {
        name: String,
        included_by: String,
        inner: Vec<Self>,
    },
}

/// The files of a configuration: names in its directory with their texts. The first is the main one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conf(pub(crate) Vec<(String, String)>);

/// How a tree is made smaller at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Removes the node.
    Remove,
    /// Replaces the node by its content.
    Unwrap,
}

impl Conf {
    /// The files that a tree becomes.
    pub(crate) fn of(tree: &[Node]) -> Self {
        let mut files = vec![(MAIN.to_owned(), String::new())];
        write(tree, 0, 0, &mut files);
        Self(files)
    }
}

fn write(nodes: &[Node], depth: usize, into: usize, files: &mut Vec<(String, String)>) {
    let indent = "  ".repeat(depth);
    for node in nodes {
        match node {
            Node::Line(text) => files[into].1 += &format!("{indent}{text}\n"),
            Node::Section(open, inner, close) => {
                files[into].1 += &format!("{indent}{open}\n");
                write(inner, depth + 1, into, files);
                files[into].1 += &format!("{indent}{close}\n");
            }
            Node::File {
                name,
                included_by,
                inner,
            } => {
                if !included_by.is_empty() {
                    files[into].1 += &format!("{indent}{included_by}\n");
                }
                files.push((name.clone(), String::new()));
                let other = files.len() - 1;
                write(inner, 0, other, files);
            }
        }
    }
}

/// How many nodes there are.
pub(crate) fn count(nodes: &[Node]) -> usize {
    let inner = nodes.iter().map(|node| match node {
        Node::Line(_) => 0,
        Node::Section(_, inner, _) | Node::File { inner, .. } => count(inner),
    });
    nodes.len() + inner.sum::<usize>()
}

/// The tree with a cut at the node with this index, counted from the top; `None` if the cut changes nothing.
pub(crate) fn cut(nodes: &[Node], index: usize, how: Cut) -> Option<Vec<Node>> {
    let mut left = index;
    cut_within(nodes, &mut left, how)
}

fn cut_within(nodes: &[Node], left: &mut usize, how: Cut) -> Option<Vec<Node>> {
    for (position, node) in nodes.iter().enumerate() {
        let with = |new: Vec<Node>| [&nodes[..position], &new, &nodes[position + 1..]].concat();
        if *left == 0 {
            return match (how, node) {
                (Cut::Remove, _) => Some(with(Vec::new())),
                (Cut::Unwrap, Node::Line(_)) => None,
                (Cut::Unwrap, Node::Section(_, inner, _)) => Some(with(inner.clone())),
                (Cut::Unwrap, Node::File { inner, .. }) => Some(with(inner.clone())),
            };
        }
        *left -= 1;
        let (Node::Section(_, inner, _) | Node::File { inner, .. }) = node else {
            continue;
        };
        if *left >= count(inner) {
            *left -= count(inner);
            continue;
        }
        let inner = cut_within(inner, left, how)?;
        let new = match node.clone() {
            Node::Section(open, _, close) => Node::Section(open, inner, close),
            Node::File {
                name, included_by, ..
            } => Node::File {
                name,
                included_by,
                inner,
            },
            line @ Node::Line(_) => line,
        };
        return Some(with(vec![new]));
    }
    None
}

/// The name of the main file.
pub(crate) const MAIN: &str = "source.conf";

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<Node> {
        let line = |text: &str| Node::Line(text.to_owned());
        let file = Node::File {
            name: "inc.conf".to_owned(),
            included_by: "include inc.conf;".to_owned(),
            inner: vec![line("c;")],
        };
        let section = Node::Section("s {".to_owned(), vec![line("b;"), file], "}");
        vec![line("a;"), section, line("d;")]
    }

    fn check(index: usize, how: Cut, expected: &[&str]) {
        let files = cut(&tree(), index, how).map(|it| Conf::of(&it).0);
        let texts = files.map(|it| {
            let each = it.into_iter().map(|(_, text)| text.replace('\n', ""));
            each.collect::<Vec<_>>()
        });
        assert_eq!(texts.unwrap_or_default(), expected, "{index} {how:?}");
    }

    #[test]
    fn each_node_can_be_cut() {
        assert_eq!(count(&tree()), 6);
        check(0, Cut::Remove, &["s {  b;  include inc.conf;}d;", "c;"]);
        check(1, Cut::Remove, &["a;d;"]);
        check(1, Cut::Unwrap, &["a;b;include inc.conf;d;", "c;"]);
        check(2, Cut::Remove, &["a;s {  include inc.conf;}d;", "c;"]);
        check(3, Cut::Unwrap, &["a;s {  b;  c;}d;"]);
        check(4, Cut::Remove, &["a;s {  b;  include inc.conf;}d;", ""]);
        check(5, Cut::Remove, &["a;s {  b;  include inc.conf;}", "c;"]);
        check(6, Cut::Remove, &[]);
        check(0, Cut::Unwrap, &[]);
    }
}
