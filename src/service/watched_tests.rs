use super::*;

const SECOND: Micros = 1_000_000;
const START: Micros = 1_767_254_400 * SECOND;

/// Step `iteration` of a run that takes `seconds`, ten seconds after the one before.
fn step(run: &str, iteration: i64, seconds: f64) -> LiveStep {
    LiveStep {
        name: "j".to_owned(),
        run_id: run.to_owned(),
        iteration_number: iteration,
        seconds,
        first_time: START + iteration * 10 * SECOND,
        last_time: START + iteration * 10 * SECOND + SECOND,
        ranks: 8,
        answer_rows: 1,
    }
}

/// A job that is polled after each step; what became due, by iteration of the poll.
struct Story {
    job: Watched,
    steps: Vec<LiveStep>,
    due: Vec<(i64, (i64, i64))>,
    settings: WatchSettings,
}

impl Story {
    fn new() -> Self {
        Self {
            job: Watched::new("j", START),
            steps: Vec::new(),
            due: Vec::new(),
            settings: WatchSettings::default(),
        }
    }

    fn run(&mut self, run: &str, iterations: std::ops::Range<i64>, seconds: f64) -> &mut Self {
        for iteration in iterations {
            self.steps.push(step(run, iteration, seconds));
            let now = START + iteration * 10 * SECOND + 2 * SECOND;
            let since = self.job.since(30 * SECOND);
            let rows: Vec<LiveStep> = self
                .steps
                .iter()
                .filter(|step| step.last_time >= since)
                .cloned()
                .collect();
            if let Some(due) = self.job.take(&rows, now, &self.settings) {
                self.due.push((iteration, due.iterations));
            }
            self.job.look_at_clock(now, &self.settings);
        }
        self
    }
}

fn detection(ranks: &[u32]) -> Detection {
    Detection {
        first_iteration: 0,
        last_iteration: 0,
        asked: START,
        ended: START,
        status: Some("fault".to_owned()),
        cause: "compute".to_owned(),
        ranks: ranks.to_vec(),
        nodes: Vec::new(),
        findings: Vec::new(),
        cost: None,
        folder: None,
        error: None,
    }
}

#[test]
fn five_slow_steps_in_a_row_are_analysed_once_and_again_after_five() {
    let mut story = Story::new();
    story.run("a", 100..120, 2.0).run("a", 120..126, 3.0);
    // The fifth slow step is looked at when the sixth has begun.
    assert_eq!(story.due, [(125, (120, 124))]);
    assert_eq!(story.job.state, State::Predicting);
    story.job.detected(detection(&[5]));
    assert_eq!(story.job.state, State::Detected);
    story.run("a", 126..131, 3.0);
    assert_eq!(story.due, [(125, (120, 124)), (130, (120, 129))]);
}

#[test]
fn what_one_poll_brings_of_a_slow_window_is_analysed_together() {
    let mut job = Watched::new("j", START);
    let settings = WatchSettings::default();
    let slow = |iteration| (120..132).contains(&iteration) || (160..170).contains(&iteration);
    let steps: Vec<LiveStep> = (100..171)
        .map(|iteration| step("a", iteration, if slow(iteration) { 3.0 } else { 2.0 }))
        .collect();
    let due = job.take(&steps, START, &settings).expect("a slow window");
    // The second window is another one.
    assert_eq!(due.iterations, (120, 131));
}

#[test]
fn a_verdict_that_names_nobody_is_asked_again_with_each_slow_step() {
    let mut story = Story::new();
    story.run("a", 100..120, 2.0).run("a", 120..126, 3.0);
    story.job.detected(detection(&[]));
    story.run("a", 126..127, 3.0);
    assert_eq!(story.due.last(), Some(&(126, (120, 125))));
}

#[test]
fn four_slow_steps_are_a_slowdown_that_passes() {
    let mut story = Story::new();
    story
        .run("a", 100..120, 2.0)
        .run("a", 120..124, 3.0)
        .run("a", 124..125, 2.0);
    assert_eq!(story.job.state, State::Slowdown);
    story.run("a", 125..127, 2.0);
    assert_eq!((story.job.state, story.due.len()), (State::Active, 0));
    assert!((story.job.baseline().unwrap() - 2.0).abs() < 1e-9);
}

#[test]
fn a_job_that_recovers_is_active_and_keeps_its_history() {
    let mut story = Story::new();
    story.run("a", 100..120, 2.0).run("a", 120..126, 3.0);
    story.job.detected(detection(&[5]));
    story.run("a", 126..134, 2.0);
    assert_eq!(story.job.state, State::Active);
    assert_eq!((story.job.detection.as_ref(), story.job.history.len()), (None, 1));
}

#[test]
fn the_start_of_a_run_is_no_slow_window() {
    let mut story = Story::new();
    story.run("a", 0..10, 9.0).run("a", 10..40, 2.0);
    assert_eq!(story.job.count, 29);
    // A restart repeats iterations, later in time.
    let repeated: Vec<LiveStep> = (0..12)
        .map(|at| LiveStep {
            first_time: START + (40 + at) * 10 * SECOND,
            last_time: START + (40 + at) * 10 * SECOND + SECOND,
            ..step("b", 30 + at, 9.0)
        })
        .collect();
    let now = START + 600 * SECOND;
    assert_eq!(story.job.take(&repeated, now, &story.settings), None);
    assert_eq!(story.job.run_began, Some(30));
    assert_eq!(story.job.last.as_ref().map(|last| last.iteration), Some(40));
}

#[test]
fn a_job_that_stops_hangs_then_is_over_and_resumes() {
    let mut story = Story::new();
    story.run("a", 100..110, 2.0);
    let last = START + 109 * 10 * SECOND + 2 * SECOND;
    assert!(!story.job.look_at_clock(last + 59 * SECOND, &story.settings));
    assert!(story.job.look_at_clock(last + 60 * SECOND, &story.settings));
    assert_eq!(story.job.state, State::Hanging);
    assert!(
        !story.job.look_at_clock(last + 61 * SECOND, &story.settings),
        "told once"
    );
    story.run("a", 130..132, 2.0);
    assert_eq!(story.job.state, State::Active);
    story.job.look_at_clock(START + 10_000 * SECOND, &story.settings);
    assert_eq!(story.job.state, State::Finished);
}

#[test]
fn a_job_that_never_began_does_not_hang() {
    let mut job = Watched::new("j", START);
    assert!(!job.look_at_clock(START + 300 * SECOND, &WatchSettings::default()));
    assert_eq!(job.state, State::Active);
}

#[test]
fn the_same_rows_again_change_nothing() {
    let mut story = Story::new();
    story.run("a", 100..120, 2.0);
    let before = story.job.clone();
    let rows = story.steps.clone();
    story.job.take(&rows, before.progressed, &story.settings.clone());
    assert_eq!(story.job, before);
}

#[test]
fn a_day_of_polls_does_not_grow() {
    let mut story = Story::new();
    let size = |job: &Watched| serde_json::to_string(job).unwrap().len();
    let mut after_an_hour = 0;
    for hour in 0..24 {
        let at = |minute: i64| hour * 360 + minute * 6;
        story.run("a", at(0)..at(50), 2.0).run("a", at(50)..at(60), 3.0);
        if story.job.state == State::Predicting {
            story.job.detected(detection(&[5]));
        }
        story.steps.clear();
        if hour == 2 {
            after_an_hour = size(&story.job);
        }
    }
    assert!(
        size(&story.job) < 2 * after_an_hour + HISTORY * size(&Watched::new("j", 0)),
        "{}",
        size(&story.job)
    );
    assert!(story.job.slow.len() <= MOST_SLOW_STEPS && story.job.history.len() <= HISTORY);
}
