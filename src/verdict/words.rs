//! Lists of ranks and nodes as people write them.

/// Most items that a list names; the rest is counted.
const NAMED: usize = 8;

/// `rank 5`, `ranks 5 and 9`, `ranks 8-15`; `nobody` for none. The ranks are ascending.
#[must_use]
pub fn ranks(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let words = runs.iter().flat_map(|&(first, last)| match last - first {
        0 => vec![first.to_string()],
        1 => vec![first.to_string(), last.to_string()],
        _ => vec![format!("{first}-{last}")],
    });
    counted("rank", ranks.len(), &words.collect::<Vec<_>>())
}

/// `node a`, `nodes a and b`.
#[must_use]
pub fn nodes(nodes: &[String]) -> String {
    counted("node", nodes.len(), nodes)
}

/// `1 iteration`, `5 iterations`.
#[must_use]
pub fn number(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// `in 5 of 30 iterations`.
#[must_use]
pub fn in_how_many(count: usize, of: usize) -> String {
    format!("in {count} of {}", number(of, "iteration"))
}

/// `0.81 s`: three digits; of less than a millisecond none.
#[must_use]
pub fn seconds(seconds: f64) -> String {
    let digits = if seconds >= 100.0 {
        0
    } else if seconds >= 10.0 {
        1
    } else if seconds >= 1.0 {
        2
    } else {
        3
    };
    format!("{seconds:.digits$} s")
}

fn counted(noun: &str, count: usize, items: &[String]) -> String {
    match items {
        [] => "nobody".to_owned(),
        items => format!("{noun}{} {}", if count == 1 { "" } else { "s" }, listed(items)),
    }
}

fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        items if items.len() > NAMED => {
            format!("{} and {} more", items[..NAMED].join(", "), items.len() - NAMED)
        }
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_read_well() {
        assert_eq!(ranks(&[]), "nobody");
        assert_eq!(ranks(&[5]), "rank 5");
        assert_eq!(ranks(&[5, 6]), "ranks 5 and 6");
        assert_eq!(ranks(&[1, 8, 9, 10, 11, 40]), "ranks 1, 8-11 and 40");
        let every_other: Vec<u32> = (0..20).map(|rank| 2 * rank).collect();
        assert_eq!(ranks(&every_other), "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 12 more");
        assert_eq!(nodes(&["a".into(), "b".into()]), "nodes a and b");
        assert_eq!(
            (number(1, "vote"), number(0, "vote")),
            ("1 vote".into(), "0 votes".into())
        );
    }
}
