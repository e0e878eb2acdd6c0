//! Slurm's short form for lists of hosts: `n[01-03,7],gpu[1-2]-ib` are six.
//!
//! It is expanded here and not by `scontrol show hostnames`, which is often missing where programs
//! run in containers. A host that came out wrong would be refused by `srun`, which knows them all.

use super::names::{HOSTS_MAX, is_host_name};

/// Expands a list to its hosts, in its order.
///
/// # Errors
/// Description of the error in the list.
pub(super) fn expand(list: &str) -> Result<Vec<String>, String> {
    let mut hosts = Vec::new();
    for item in split(list)? {
        hosts.extend(expand_item(item)?);
        if hosts.len() > HOSTS_MAX {
            return Err(format!("there are more than {HOSTS_MAX} hosts"));
        }
    }
    match hosts.iter().find(|host| !is_host_name(host)) {
        Some(host) => Err(format!("{host:?} is not a host name")),
        None => Ok(hosts),
    }
}

/// Splits a list at the commas outside brackets.
fn split(list: &str) -> Result<Vec<&str>, String> {
    let (mut items, mut begin, mut is_inside) = (Vec::new(), 0, false);
    for (at, letter) in list.char_indices() {
        match letter {
            '[' if is_inside => return Err("a bracket is inside another bracket".to_owned()),
            '[' => is_inside = true,
            ']' if !is_inside => return Err("a closing bracket has no opening bracket".to_owned()),
            ']' => is_inside = false,
            ',' if !is_inside => {
                items.push(&list[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
    }
    match is_inside {
        true => Err("a bracket is not closed".to_owned()),
        false => {
            items.push(&list[begin..]);
            Ok(items)
        }
    }
}

/// Expands an item: each prefix with each number of the next brackets.
fn expand_item(item: &str) -> Result<Vec<String>, String> {
    let mut hosts = vec![String::new()];
    let mut rest = item;
    while let Some((before, after)) = rest.split_once('[') {
        let Some((ranges, behind)) = after.split_once(']') else {
            return Err("a bracket is not closed".to_owned());
        };
        let numbers = numbers(ranges)?;
        if hosts.len() * numbers.len() > HOSTS_MAX {
            return Err(format!("{item:?} has more than {HOSTS_MAX} hosts"));
        }
        let with_number = |host: &String| {
            let begin = format!("{host}{before}");
            numbers.iter().map(move |number| format!("{begin}{number}")).collect::<Vec<_>>()
        };
        hosts = hosts.iter().flat_map(with_number).collect();
        rest = behind;
    }
    Ok(hosts.into_iter().map(|host| host + rest).collect())
}

/// Expands ranges: `01-03,7` is 01, 02, 03 and 7. Numbers of a range are as wide as its beginning.
fn numbers(ranges: &str) -> Result<Vec<String>, String> {
    let mut numbers = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |word: &str| {
            let is_number = !word.is_empty() && word.bytes().all(|one| one.is_ascii_digit());
            word.parse::<u32>().ok().filter(|_| is_number)
        };
        let (Some(low), Some(high)) = (number(first), number(last)) else {
            return Err(format!("{range:?} is not a range of numbers"));
        };
        if high < low || (high - low) as usize >= HOSTS_MAX - numbers.len() {
            return Err(format!("{range:?} descends, or has more than {HOSTS_MAX} hosts"));
        }
        let width = first.len();
        numbers.extend((low..=high).map(|number| format!("{number:0width$}")));
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    //! Proves: lists come out as `scontrol show hostnames` has them, and what is none is refused.
    use super::*;

    #[test]
    fn lists_are_expanded() {
        for (list, hosts) in [
            ("n1", "n1"),
            ("a,b", "a b"),
            ("n[1-3]", "n1 n2 n3"),
            ("n[08-10,7]", "n08 n09 n10 n7"),
            ("n[001-002],login,gpu[1-2]-ib", "n001 n002 login gpu1-ib gpu2-ib"),
            ("r[1-2]n[1,3]", "r1n1 r1n3 r2n1 r2n3"),
            ("127.0.0.[2-3]", "127.0.0.2 127.0.0.3"),
            ("n[9-11]", "n9 n10 n11"),
        ] {
            assert_eq!(expand(list).as_deref().map(|it| it.join(" ")), Ok(hosts.to_owned()));
        }
        assert_eq!(expand("n[0-4095]").map(|hosts| hosts.len()), Ok(HOSTS_MAX));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        let long = ["n[0-4096]", "n[0-99]m[0-99]", "n[0-4095],m"];
        let odd =
            ["", "a,", "n[1", "n1]", "n[1[2]]", "n[]", "n[a]", "n[3-1]", "n[1-]", "a b", "-x"];
        for list in long.into_iter().chain(odd).chain(["n[99999999999]", "n[+1]"]) {
            assert!(expand(list).is_err(), "{list:?}");
        }
    }
}
