//! The vote over algorithms: each counts once, the ranks with the highest count are the anomaly ranks.

/// How many algorithms call each rank slow, and who is elected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Election {
    /// Votes of each rank, 0 to the number of algorithms.
    pub votes: Vec<u32>,
    /// Positions of the ranks with the highest count, ascending; empty when nobody got a vote.
    pub elected: Vec<usize>,
}

/// Counts the algorithms' verdicts; each is one flag a rank.
#[must_use]
pub fn elect<'a>(ranks: usize, verdicts: impl IntoIterator<Item = &'a [bool]>) -> Election {
    let mut votes = vec![0; ranks];
    for verdict in verdicts {
        for (votes, &slow) in votes.iter_mut().zip(verdict) {
            *votes += u32::from(slow);
        }
    }
    let most = votes.iter().copied().max().unwrap_or(0);
    let elected = if most == 0 {
        Vec::new()
    } else {
        (0..ranks).filter(|&rank| votes[rank] == most).collect()
    };
    Election { votes, elected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_count_wins_with_its_ties() {
        let verdicts: [&[bool]; 3] = [&[true, true, false], &[true, true, true], &[true, true, false]];
        let election = elect(3, verdicts);
        assert_eq!(election.votes, [3, 3, 1]);
        assert_eq!(election.elected, [0, 1]);
    }

    #[test]
    fn without_a_vote_nobody_is_elected() {
        assert!(elect(2, [&[false, false][..]]).elected.is_empty());
        assert!(elect(0, []).elected.is_empty());
    }
}
