use super::*;

const SECOND: Micros = 1_000_000;

/// A script of steps, each there from its time on.
struct Script {
    steps: Vec<LiveStep>,
    asked: Mutex<Vec<usize>>,
    fails: bool,
}

impl Feed for Script {
    fn steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError> {
        self.asked.lock().expect("no panic").push(jobs.len());
        if self.fails {
            return Err(SourceError::NoRows("down".to_owned()));
        }
        let asked = |step: &&LiveStep| {
            jobs.iter()
                .any(|since| since.job == step.name && since.time <= step.last_time)
        };
        Ok(self.steps.iter().filter(asked).cloned().collect())
    }

    fn last_seen(&self, _: &Since) -> Result<Vec<LastSeen>, SourceError> {
        let rank = |rank_number, iteration_number, timer: &str| LastSeen {
            rank_number,
            node_name: "n1".to_owned(),
            iteration_number,
            last_time: 0,
            timer: timer.to_owned(),
            answer_rows: 2,
        };
        Ok(vec![rank(0, 9, "interval-time"), rank(1, 8, "forward-recv")])
    }

    fn jobs(&self, _: Micros) -> Result<Vec<String>, SourceError> {
        Ok(vec!["a".to_owned(), "b".to_owned(), "other".to_owned()])
    }
}

fn step(job: &str, iteration: i64) -> LiveStep {
    LiveStep {
        name: job.to_owned(),
        run_id: String::new(),
        iteration_number: iteration,
        seconds: 2.0,
        first_time: iteration * 2 * SECOND,
        last_time: iteration * 2 * SECOND,
        ranks: 2,
        answer_rows: 1,
    }
}

fn watcher(patterns: &[&str]) -> Watcher {
    let patterns = patterns.iter().map(|text| glob::Pattern::new(text).expect("a pattern"));
    let discovery = Discovery {
        patterns: patterns.collect(),
    };
    Watcher::new(WatchSettings::default(), discovery, BTreeMap::new())
}

fn script(jobs: &[&str]) -> Script {
    Script {
        steps: jobs
            .iter()
            .flat_map(|job| (0..10).map(|iteration| step(job, iteration)))
            .collect(),
        asked: Mutex::default(),
        fails: false,
    }
}

#[test]
fn all_jobs_are_asked_for_at_once() {
    let (watcher, feed) = (watcher(&[]), script(&["a", "b"]));
    assert!(watcher.register("a", 0) && watcher.register("b", 0) && !watcher.register("a", 5));
    watcher.poll(&feed, 20 * SECOND).expect("a poll");
    assert_eq!(*feed.asked.lock().expect("no panic"), [2]);
    let jobs = watcher.jobs(BTreeMap::clone);
    assert!(jobs.values().all(|job| job.newest == Some(9)), "{jobs:?}");
    assert!(watcher.changed_jobs(|_| ()).is_some() && watcher.changed_jobs(|_| ()).is_none());
}

#[test]
fn a_hang_tells_who_is_behind() {
    let (watcher, feed) = (watcher(&[]), script(&["a"]));
    watcher.register("a", 0);
    watcher.poll(&feed, 20 * SECOND).expect("a poll");
    let polled = watcher.poll(&feed, 90 * SECOND).expect("a poll");
    assert_eq!((polled.news.len(), polled.news[0].now), (1, State::Hanging));
    let hang = watcher.job("a", |job| job.hang.clone()).flatten().expect("a hang");
    assert_eq!((hang.ranks_behind, hang.behind[0].rank), (1, 1));
    assert_eq!(hang.behind[0].last_timer, "forward-recv");
}

#[test]
fn a_failed_poll_loses_nothing_and_is_told() {
    let (watcher, mut feed) = (watcher(&[]), script(&["a"]));
    watcher.register("a", 0);
    feed.fails = true;
    watcher.poll(&feed, 20 * SECOND).expect_err("down");
    watcher.poll(&feed, 21 * SECOND).expect_err("down");
    let health = watcher.health();
    assert_eq!((health.failures_in_a_row, health.error.is_some()), (2, true));
    feed.fails = false;
    watcher.poll(&feed, 22 * SECOND).expect("a poll");
    assert_eq!(
        (watcher.health().failures_in_a_row, watcher.jobs(BTreeMap::len)),
        (0, 1)
    );
}

#[test]
fn jobs_that_match_register_themselves_until_they_are_taken_out() {
    let (watcher, feed) = (watcher(&["[ab]"]), script(&["a"]));
    watcher.poll(&feed, 200 * SECOND).expect("a poll");
    assert_eq!(
        watcher.jobs(|jobs| jobs.keys().cloned().collect::<Vec<_>>()),
        ["a", "b"]
    );
    assert!(watcher.unregister("b") && !watcher.unregister("b"));
    watcher.poll(&feed, 201 * SECOND).expect("a poll");
    assert_eq!(watcher.jobs(|jobs| jobs.keys().cloned().collect::<Vec<_>>()), ["a"]);
}

/// Steps of two seconds for an hour of every two, of three seconds in the last five minutes of it, then nothing for a while.
struct Days {
    now: Mutex<Micros>,
}

impl Feed for Days {
    fn steps(&self, jobs: &[Since]) -> Result<Vec<LiveStep>, SourceError> {
        let now = *self.now.lock().expect("no panic");
        let mut steps = Vec::new();
        for since in jobs {
            let running = |at: Micros| at.rem_euclid(7_200 * SECOND) < 3_600 * SECOND;
            let first = (since.time / (10 * SECOND)).max(0);
            for iteration in (first..=now / (10 * SECOND)).filter(|iteration| running(iteration * 10 * SECOND)) {
                let slow = (iteration * 10 * SECOND).rem_euclid(7_200 * SECOND) > 3_300 * SECOND;
                steps.push(LiveStep {
                    seconds: if slow { 3.0 } else { 2.0 },
                    first_time: iteration * 10 * SECOND,
                    last_time: iteration * 10 * SECOND,
                    ..step(&since.job, iteration)
                });
            }
        }
        Ok(steps)
    }

    fn last_seen(&self, _: &Since) -> Result<Vec<LastSeen>, SourceError> {
        let rank = |rank_number| LastSeen {
            rank_number,
            node_name: format!("node-{rank_number}"),
            iteration_number: i64::from(rank_number == 0),
            last_time: 0,
            timer: "forward-recv".to_owned(),
            answer_rows: 1024,
        };
        Ok((0..1024).map(rank).collect())
    }

    fn jobs(&self, _: Micros) -> Result<Vec<String>, SourceError> {
        Ok(Vec::new())
    }
}

#[test]
fn two_days_of_polls_take_no_more_room_than_one() {
    let (watcher, feed) = (watcher(&[]), Days { now: Mutex::new(0) });
    for job in ["a", "b", "c"] {
        watcher.register(job, 0);
    }
    let size = || watcher.jobs(|jobs| serde_json::to_string(jobs).expect("JSON").len());
    let mut after_days = Vec::new();
    let (mut detections, mut hangs) = (0, 0);
    for poll in 1..=2 * 2_880 {
        let now = poll * 30 * SECOND;
        *feed.now.lock().expect("no panic") = now;
        let polled = watcher.poll(&feed, now).expect("a poll");
        hangs += polled.news.iter().filter(|news| news.now == State::Hanging).count();
        for due in polled.due {
            detections += 1;
            watcher.detected(&due.job, detection(&due));
        }
        if poll % 2_880 == 0 {
            after_days.push(size());
        }
    }
    assert_eq!(hangs, 3 * 24, "each pause is one hang");
    assert!(detections >= 3 * 24, "{detections}");
    assert_eq!(watcher.health().polls, 2 * 2_880);
    // Twelve slow windows a day and job, each with more than four verdicts: the history is full after the first day.
    assert!(after_days[1] < after_days[0] + after_days[0] / 10, "{after_days:?}");
}

fn detection(due: &Due) -> Detection {
    Detection {
        first_iteration: due.iterations.0,
        last_iteration: due.iterations.1,
        asked: due.asked,
        ended: due.asked + SECOND,
        status: Some("fault".to_owned()),
        cause: "compute".to_owned(),
        ranks: vec![5],
        nodes: vec!["gpu-000".to_owned()],
        findings: vec!["rank 5 is slow".to_owned()],
        cost: Some(0.5),
        folder: Some("results/a/1".to_owned()),
        error: None,
    }
}
