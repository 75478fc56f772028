//! One algorithm's vote on each rank, over the timers.

/// One timer's labels with the weight that they carry.
#[derive(Debug, Clone)]
pub struct TimerVote<'a> {
    /// Weight of the timer.
    pub weight: f64,
    /// Whether each rank is slow in this timer.
    pub slow: &'a [bool],
}

/// The vote on one rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankBallot {
    /// Weight of the timers that call the rank slow.
    pub slow_votes: f64,
    /// Weight of all timers that voted.
    pub total: f64,
    /// The outcome, before the gate.
    pub slow: bool,
}

/// The vote on every rank.
pub type Ballot = Vec<RankBallot>;

/// Counts the timers' labels, rank by rank.
///
/// A rank is slow when at least half of the weight calls it slow, and when that is also at least half of
/// `weight_before_filters`: the weight of all timers that the rank had before the coverage and spread filters, so
/// that a rank seen in few timers is not condemned by them. Without a timer nobody is slow.
#[must_use]
pub fn ballot(votes: &[TimerVote<'_>], weight_before_filters: &[f64]) -> Ballot {
    let total: f64 = votes.iter().map(|vote| vote.weight).sum();
    let on_rank = |rank: usize, before: f64| {
        // From 0: the sum of no floats is -0, which would show.
        let slow_votes = votes
            .iter()
            .filter(|vote| vote.slow[rank])
            .fold(0.0, |sum, vote| sum + vote.weight);
        let slow = total > 0.0 && 2.0 * slow_votes >= total && 2.0 * slow_votes >= before;
        RankBallot {
            slow_votes,
            total,
            slow,
        }
    };
    weight_before_filters
        .iter()
        .enumerate()
        .map(|(rank, &before)| on_rank(rank, before))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slow(votes: &[TimerVote<'_>], before: &[f64]) -> Vec<bool> {
        ballot(votes, before).iter().map(|rank| rank.slow).collect()
    }

    #[test]
    fn half_of_the_weight_is_enough() {
        let heavy = TimerVote {
            weight: 3.0,
            slow: &[true, false, false],
        };
        let light = TimerVote {
            weight: 1.0,
            slow: &[false, true, false],
        };
        let votes = [heavy, light.clone(), light.clone(), light];
        assert_eq!(slow(&votes, &[6.0, 6.0, 6.0]), [true, true, false]);
    }

    #[test]
    fn few_timers_of_many_condemn_nobody() {
        let votes = [TimerVote {
            weight: 1.0,
            slow: &[true, true],
        }];
        assert_eq!(slow(&votes, &[2.0, 3.0]), [true, false]);
    }

    #[test]
    fn no_timer_no_culprit() {
        assert_eq!(slow(&[], &[0.0, 0.0]), [false, false]);
    }
}
