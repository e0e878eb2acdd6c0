//! Subjects of commits have the form `area: imperative`, at most 72 characters, and one change.
//!
//! - The check covers the commits since the merge base with `origin/main`, or else the last 20.
//! - Merges are exempt, and commits that do not descend from the one that added this file.
//! - Without git or the whole history the check says so and passes.

use std::path::Path;
use std::process::Command;

/// This file, as git knows it.
const OWN_PATH: &str = "xtask/src/subjects.rs";
const CHARACTERS_MAX: usize = 72;

/// Imperatives that end as participles or the third person do.
const IMPERATIVES: [&str; 11] = [
    "bias", "bring", "embed", "exceed", "feed", "focus", "need", "ping", "proceed", "seed", "speed",
];

/// Checks the subjects of the last commits; prints what it finds and returns false if anything.
pub(crate) fn run(root: &Path) -> bool {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        output.status.success().then_some(text)
    };
    let commits = match commits(git) {
        Ok(commits) => commits,
        Err(cause) => {
            println!("subjects: nothing checked: {cause}");
            return true;
        }
    };
    let mut wrong = 0;
    for (commit, subject) in &commits {
        if let Some((cause, help)) = complaint(subject) {
            println!("commit {commit}: {cause}: {help}\n    {subject}");
            wrong += 1;
        }
    }
    println!("subjects: {} commits, {wrong} findings", commits.len());
    wrong == 0
}

/// Returns the commits to check, as hash and subject; `Err` says why there are none.
fn commits(git: impl Fn(&[&str]) -> Option<String>) -> Result<Vec<(String, String)>, &'static str> {
    let shallow = git(&["rev-parse", "--is-shallow-repository"]).ok_or("git cannot be run")?;
    if shallow.trim() == "true" {
        return Err("the history is shallow");
    }
    let added = git(&["log", "--diff-filter=A", "--format=%H", "--", OWN_PATH]);
    let added = added.as_deref().and_then(|added| added.lines().last());
    let Some(added) = added else { return Err("the rule is not committed yet") };
    let path = format!("{added}..HEAD");
    let descendants = git(&["rev-list", "--ancestry-path", &path]).unwrap_or_default();
    let base = git(&["merge-base", "origin/main", "HEAD"]);
    let last = base.map_or("-20".to_owned(), |base| format!("{}..HEAD", base.trim()));
    let log = git(&["log", "--no-merges", "--format=%H %s", &last]).ok_or("git log failed")?;
    let is_checked = |hash: &str| hash == added || descendants.lines().any(|line| line == hash);
    let commits = log.lines().filter_map(|line| line.split_once(' '));
    // A merge whose second parent was an ancestor has one parent, and the subject of a merge.
    let is_merge = |subject: &str| subject.starts_with("Merge branch ");
    let checked = commits.filter(|(hash, subject)| is_checked(hash) && !is_merge(subject));
    Ok(checked.map(|(hash, subject)| (hash[..9].to_owned(), subject.to_owned())).collect())
}

/// Returns what is wrong with a subject, and what to do.
fn complaint(subject: &str) -> Option<(&'static str, &'static str)> {
    let Some((area, change)) = subject.split_once(": ") else {
        return Some(("no area", "write `area: imperative`"));
    };
    let is_area = |letter: char| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || " /-,".contains(letter)
    };
    let begins_lowercase =
        |text: &str| text.starts_with(|letter: char| letter.is_ascii_lowercase());
    let first = change.split(' ').next().unwrap_or_default();
    if subject.chars().count() > CHARACTERS_MAX {
        Some((
            "over 72 characters",
            "describe the change in fewer words, and give the reason in \
                                     the body",
        ))
    } else if !begins_lowercase(area) || !area.chars().all(is_area) {
        Some(("the area is not in lowercase words", "write `area: imperative`"))
    } else if !begins_lowercase(first) || !is_imperative(first) {
        Some(("no imperative after the area", "write `fix …`, not `fixed …` or `fixes …`"))
    } else if change.contains(';') {
        Some(("several changes", "make one commit for each change"))
    } else if change.ends_with('.') {
        Some(("a final full stop", "leave it out"))
    } else {
        None
    }
}

fn is_imperative(word: &str) -> bool {
    let is_other = ["ed", "ing", "s"].iter().any(|ending| word.ends_with(ending));
    !is_other || word.ends_with("ss") || IMPERATIVES.contains(&word)
}

#[cfg(test)]
mod tests {
    //! Proves: each fault of a subject is found, and the right commits are checked.
    use super::*;

    #[test]
    fn only_an_area_and_an_imperative_pass() {
        for subject in [
            "server: fix busy flag cleared by a failed begin_work",
            "c-api, docs/decisions: pass errors on",
            "policy: process and address 2 blocks at once (`Access::chunks`)",
            "world: seed the generator",
            &format!("a: {}", "b".repeat(CHARACTERS_MAX - 3)),
        ] {
            assert_eq!(complaint(subject), None, "{subject}");
        }
        for subject in [
            "Who cannot begin work does not end that of another",
            "Server: fix it",
            ": fix it",
            "/: fix it",
            "server:fix it",
            "server: ",
            "server: Fix it",
            "server: `fix` it",
            "server: fixed it",
            "server: fixing it",
            "server: fixes it",
            "server: fix it.",
            "server: fix it; mend that",
            &format!("a: {}", "b".repeat(CHARACTERS_MAX - 2)),
        ] {
            assert!(complaint(subject).is_some(), "{subject}");
        }
    }

    /// Subjects that are checked with a git that knows each command by its first words.
    fn checked(answers: &[(&str, &str)]) -> Result<Vec<String>, &'static str> {
        let git = |arguments: &[&str]| {
            let command = arguments.join(" ");
            let answer = answers.iter().find(|(start, _)| command.starts_with(start));
            answer.map(|(_, answer)| (*answer).to_owned())
        };
        Ok(commits(git)?.into_iter().map(|(_, subject)| subject).collect())
    }

    const WHOLE: (&str, &str) = ("rev-parse --is-shallow-repository", "false\n");
    const ADDED: (&str, &str) = ("log --diff-filter=A", "2222222222\n1111111111\n");
    const AFTER: (&str, &str) = ("rev-list --ancestry-path 1111111111..HEAD", "3333333333\n");
    const LOG: &str = "3333333333 c\n1111111111 b\n0000000000 a\n";

    #[test]
    fn commits_without_the_rule_are_exempt() {
        let log = ("log --no-merges --format=%H %s -20", LOG);
        assert_eq!(checked(&[WHOLE, ADDED, AFTER, log]).unwrap(), ["c", "b"]);
    }

    #[test]
    fn a_branch_is_checked_from_its_merge_base() {
        let base = ("merge-base origin/main HEAD", "1111111111\n");
        let log = ("log --no-merges --format=%H %s 1111111111..HEAD", "3333333333 c\n");
        assert_eq!(checked(&[WHOLE, ADDED, AFTER, base, log]).unwrap(), ["c"]);
    }

    #[test]
    fn without_history_the_check_passes() {
        assert!(checked(&[]).is_err(), "no git");
        assert!(checked(&[("rev-parse --is-shallow-repository", "true\n")]).is_err());
        assert!(checked(&[WHOLE, ("log --diff-filter=A", "")]).is_err());
        assert!(checked(&[WHOLE]).is_err());
    }
}
