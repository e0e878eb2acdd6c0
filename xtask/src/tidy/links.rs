//! Rule: links of Markdown pages to files of the repository have a target.

use super::tree::{File, Finding, Tree};

/// Checks every Markdown page.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let pages = tree.files.iter().filter(|file| file.path.ends_with(".md"));
    pages.flat_map(|page| check_page(tree, page)).collect()
}

fn check_page(tree: &Tree, page: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut in_fence = false;
    for (number, line) in page.lines() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        for target in targets(line).into_iter().filter(|_| !in_fence) {
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let is_outside = path.contains("://") || path.starts_with("mailto:");
            if is_outside || path.is_empty() {
                continue;
            }
            if !leads_somewhere(tree, &page.path, path) {
                let help = "link to a file of the repository, relative to this page";
                findings.push(page.finding(
                    number,
                    format!(
                        "the target of the link `{target}` does \
                                                            not exist"
                    ),
                    help,
                ));
            } else if is_line(fragment) {
                let help = "line numbers change: link the file and name the function";
                findings.push(page.finding(
                    number,
                    format!("the link `{target}` names a line"),
                    help,
                ));
            }
        }
    }
    findings
}

/// Returns the targets of `[text](target)` and `[label]: target` in a line, without code spans.
pub(super) fn targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    let is_definition = line.starts_with('[') && !line.starts_with("[^");
    if let Some((_, target)) = line.split_once("]: ").filter(|_| is_definition) {
        targets.extend(target.split_whitespace().next());
    }
    let mut rest = line;
    let mut at = 0;
    while let Some(start) = rest.find("](") {
        let opening = at + start;
        let after = &rest[start + 2..];
        let Some(end) = after.find(')') else { break };
        let is_code = line[..opening].matches('`').count() % 2 == 1;
        if !is_code {
            targets.extend(after[..end].split_whitespace().next());
        }
        at = opening + 2 + end;
        rest = &after[end..];
    }
    targets
}

fn is_line(fragment: &str) -> bool {
    fragment.strip_prefix('L').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// True when `target`, as written on `page`, is a file or a folder of the tree.
fn leads_somewhere(tree: &Tree, page: &str, target: &str) -> bool {
    let Some(path) = resolve(page, target) else { return false };
    let folder = format!("{path}/");
    path.is_empty()
        || tree.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
}

/// Returns the path from the root of the repository of `target`, as written on `page`; nothing
/// when it is outside.
pub(super) fn resolve(page: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    //! Proves: a broken link is found, in either form; good, external and quoted links are not.
    use super::*;

    fn wrongs(text: &str) -> Vec<String> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/sub/b.md", ""), ("README.md", "")]);
        check(&tree).into_iter().map(|finding| finding.wrong).collect()
    }

    #[test]
    fn only_broken_links_are_found() {
        let good = "[b](sub/b.md) [top](../README.md#words) [folder](sub) [here](#words)
            [web](https://example.org/x) `[code](nowhere)`\n[b]: sub/b.md\n
```\n[fenced](nowhere)\n```\n";
        assert_eq!(wrongs(good), [] as [&str; 0]);
        assert_eq!(wrongs("[x](b.md)"), ["the target of the link `b.md` does not exist"]);
        assert_eq!(
            wrongs("[b](sub/b.md), [x](../../up.md)"),
            ["the target of the link `../../up.md` does not exist"]
        );
        assert_eq!(wrongs("[x]: c.md"), ["the target of the link `c.md` does not exist"]);
        assert_eq!(wrongs("`a` and [x](c.md)"), ["the target of the link `c.md` does not exist"]);
        assert_eq!(wrongs("[b](sub/b.md#L12)"), ["the link `sub/b.md#L12` names a line"]);
    }
}
