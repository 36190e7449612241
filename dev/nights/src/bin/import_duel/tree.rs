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

/// Appends nodes to the file with this index; adds the files that they include.
fn write(nodes: &[Node], depth: usize, file: usize, files: &mut Vec<(String, String)>) {
    let indent = "  ".repeat(depth);
    for node in nodes {
        match node {
            Node::Line(text) => files[file].1 += &format!("{indent}{text}\n"),
            Node::Section(open, inner, close) => {
                files[file].1 += &format!("{indent}{open}\n");
                write(inner, depth + 1, file, files);
                files[file].1 += &format!("{indent}{close}\n");
            }
            Node::File {
                name,
                included_by,
                inner,
            } => {
                if !included_by.is_empty() {
                    files[file].1 += &format!("{indent}{included_by}\n");
                }
                files.push((name.clone(), String::new()));
                write(inner, 0, files.len() - 1, files);
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
    // How many nodes are still to be passed.
    let mut left = index;
    for (position, node) in nodes.iter().enumerate() {
        let replaced_by = |new: &[Node]| [&nodes[..position], new, &nodes[position + 1..]].concat();
        let inner = match node {
            Node::Line(_) => None,
            Node::Section(_, inner, _) | Node::File { inner, .. } => Some(inner),
        };
        if left == 0 {
            return match how {
                Cut::Remove => Some(replaced_by(&[])),
                Cut::Unwrap => Some(replaced_by(inner?)),
            };
        }
        left -= 1;
        let inner_count = inner.map_or(0, |inner| count(inner));
        if left >= inner_count {
            left -= inner_count;
            continue;
        }
        let mut smaller = node.clone();
        if let Node::Section(_, own, _) | Node::File { inner: own, .. } = &mut smaller {
            *own = cut(own, left, how)?;
        }
        return Some(replaced_by(&[smaller]));
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
