//! Which rank runs on which node, from a list of hosts: one a line, a hostfile with slots, or Slurm's short form.

use thiserror::Error;

/// More hosts than any job has.
const MOST_HOSTS: usize = 1 << 20;

/// Why a list of hosts can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeListError {
    /// No host in it.
    #[error("it names no host")]
    Empty,
    /// A bracket or range of the short form that makes no sense.
    #[error("`{0}` is no list like gpu-[001-004,007]")]
    Range(String),
    /// More hosts than any job has.
    #[error("it names more than {MOST_HOSTS} hosts")]
    TooMany,
}

/// The nodes of a job's ranks, in the order of the ranks.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct NodeMap {
    hosts: Vec<(String, Option<u32>)>,
    per_node: Option<u32>,
}

impl NodeMap {
    /// Nodes of so many ranks each, of which no name is known: `node-0`, `node-1`, ...
    #[must_use]
    pub fn of_size(per_node: u32) -> Self {
        Self {
            hosts: Vec::new(),
            per_node: Some(per_node.max(1)),
        }
    }

    /// Reads a list: a host a line, with `slots=8` or `:8` behind it where it says so; a host that stands on several lines has
    /// as many ranks; or Slurm's `gpu-[001-004,007]`. `per_node` holds where the list names no slots.
    ///
    /// # Errors
    /// A list that names nobody, or a range that makes no sense.
    pub fn parse(text: &str, per_node: Option<u32>) -> Result<Self, NodeListError> {
        let mut hosts: Vec<(String, Option<u32>)> = Vec::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or_default().trim();
            let (line, slots) = slots(line);
            for host in expand(line)? {
                if hosts.len() >= MOST_HOSTS {
                    return Err(NodeListError::TooMany);
                }
                hosts.push((host, slots));
            }
        }
        if hosts.is_empty() {
            return Err(NodeListError::Empty);
        }
        // A host on several lines: a line a rank.
        if per_node.is_none() && hosts.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            let mut folded: Vec<(String, Option<u32>)> = Vec::new();
            for (host, slots) in hosts {
                match folded.last_mut() {
                    Some((last, ranks)) if *last == host => *ranks = ranks.map(|ranks| ranks + slots.unwrap_or(1)),
                    _ => folded.push((host, Some(slots.unwrap_or(1)))),
                }
            }
            hosts = folded;
        }
        Ok(Self { hosts, per_node })
    }

    /// The node of a rank of a job with so many; `None` where the list does not reach that far or does not say how many ranks
    /// a node has.
    #[must_use]
    pub fn node(&self, rank: u32, world: Option<usize>) -> Option<String> {
        if self.hosts.is_empty() {
            return Some(format!("node-{}", rank / self.per_node?));
        }
        if self.hosts.iter().all(|(_, slots)| slots.is_some()) && self.per_node.is_none() {
            let mut left = rank;
            for (host, slots) in &self.hosts {
                let slots = slots.unwrap_or(1);
                match left.checked_sub(slots) {
                    None => return Some(host.clone()),
                    Some(rest) => left = rest,
                }
            }
            return None;
        }
        let even = world.filter(|world| world.is_multiple_of(self.hosts.len()));
        let per_node = self.per_node.or_else(|| u32::try_from(even? / self.hosts.len()).ok())?;
        let host = self.hosts.get((rank / per_node.max(1)) as usize)?;
        Some(host.0.clone())
    }
}

/// A line without its number of slots, and that number.
fn slots(line: &str) -> (&str, Option<u32>) {
    if let Some((host, rest)) = line.split_once(char::is_whitespace) {
        let count = rest.split_whitespace().find_map(|word| word.strip_prefix("slots="));
        return (
            host,
            count.and_then(|count| count.parse().ok()).filter(|&count| count > 0),
        );
    }
    match line.rsplit_once(':') {
        Some((host, count)) if !host.contains('[') => (host, count.parse().ok().filter(|&count| count > 0)),
        _ => (line, None),
    }
}

/// `gpu-[001-003,007],login` as its hosts.
fn expand(list: &str) -> Result<Vec<String>, NodeListError> {
    let wrong = || NodeListError::Range(list.to_owned());
    let mut hosts = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth == 0 => {
                let word = list[begin..at].trim();
                if !word.is_empty() {
                    expand_word(word, &mut hosts)?;
                }
                begin = at + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return Err(wrong());
        }
    }
    if depth == 0 { Ok(hosts) } else { Err(wrong()) }
}

fn expand_word(word: &str, hosts: &mut Vec<String>) -> Result<(), NodeListError> {
    let wrong = || NodeListError::Range(word.to_owned());
    let Some(open) = word.find('[') else {
        hosts.push(word.to_owned());
        return Ok(());
    };
    let close = word.find(']').filter(|&close| close > open).ok_or_else(wrong)?;
    let (head, tail) = (&word[..open], &word[close + 1..]);
    for part in word[open + 1..close].split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err(wrong());
        }
        if to - from >= MOST_HOSTS {
            return Err(NodeListError::TooMany);
        }
        let width = first.trim().len();
        for number in from..=to {
            if hosts.len() >= MOST_HOSTS {
                return Err(NodeListError::TooMany);
            }
            expand_word(&format!("{head}{number:0width$}{tail}"), hosts)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes(text: &str, per_node: Option<u32>, world: Option<usize>, ranks: &[u32]) -> Vec<Option<String>> {
        let map = NodeMap::parse(text, per_node).expect("a list");
        ranks.iter().map(|&rank| map.node(rank, world)).collect()
    }

    #[test]
    fn every_form_of_a_list_is_read() {
        let some = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
        let ranks = [0, 1, 2, 3];
        assert_eq!(nodes("a\nb\n", None, Some(4), &ranks), some(&["a", "a", "b", "b"]));
        assert_eq!(
            nodes("a slots=1 # x\nb slots=3\n", None, None, &ranks),
            some(&["a", "b", "b", "b"])
        );
        assert_eq!(nodes("a:2\nb:2", None, None, &ranks), some(&["a", "a", "b", "b"]));
        assert_eq!(nodes("a\na\nb\nb", None, None, &ranks), some(&["a", "a", "b", "b"]));
        assert_eq!(
            nodes("g-[08-10,12]x", Some(1), None, &ranks),
            some(&["g-08x", "g-09x", "g-10x", "g-12x"])
        );
        assert_eq!(
            nodes("r[1-2]n[1-2]", Some(1), None, &ranks),
            some(&["r1n1", "r1n2", "r2n1", "r2n2"])
        );
        assert_eq!(nodes("a,b", None, None, &[0]), [None]);
        assert_eq!(nodes("a", Some(2), None, &[2]), [None]);
        assert_eq!(NodeMap::of_size(8).node(17, None).as_deref(), Some("node-2"));
    }

    #[test]
    fn what_is_no_list_is_refused() {
        assert_eq!(NodeMap::parse("\n# none\n", None), Err(NodeListError::Empty));
        for text in ["g-[1-", "g-[5-1]", "g-[a]", "g-]1["] {
            assert!(
                matches!(NodeMap::parse(text, None), Err(NodeListError::Range(_))),
                "{text}"
            );
        }
        assert_eq!(NodeMap::parse("g[0-99999999]", None), Err(NodeListError::TooMany));
    }
}
