//! Damaged lines: whatever they are, no panic, and no value that the whole log does not hold.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use super::prepare::{PreparedChunk, Said};
use super::reading::Reading;
use crate::source::columns::Columns;

/// Lines that a run of the test damages; MT_DETECTOR_FUZZ_LINES asks for more.
const LINES: usize = 60_000;

/// A line of each form.
const FORMS: [&str; 24] = [
    " [2026-03-01 08:00:21.123456] iteration       10/  100000 | consumed samples:          320 | elapsed time per iteration (ms): 2109.3 | lm loss: 1.0E+01 |",
    "[default7]: iteration    31214/  115311 | consumed tokens: 9 | elapsed time per iteration (s): 106.46 | learning rate: 5.279E-05 |",
    "[2026-01-01 08:00:00,1] [INFO] iteration=      20/  10000 | elapsed_time_per_iteration_ms=1234.5 |",
    "times across ranks (ms):",
    "INFO:megatron.core.timers:times across ranks (ms):",
    "(min, max) time across ranks (ms):",
    "max time across ranks (ms):",
    "  forward-compute:",
    "gpu-007:   backward-compute:",
    "     rank  0: 3818.02",
    "[1,15]<stdout>:     rank 15: 3,818.02",
    "     rank  1: nan",
    "    forward-compute ................................: (2584.92, 2735.66)  <---",
    "    optimizer ......................................: 1,140.68",
    "  log_interval .................................... 10",
    "using world size: 16, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 2, pipeline-model-parallel size: 4",
    "time (ms) | forward-compute: 247.63 | forward-recv: 10007.14 | batch generator: 0.00",
    " 51%|███| 507/1000 [15:32<16:42,  2.03s/it][2026-01-08 20:18:46,393] [INFO] [logging.py:68:log_dist] [Rank 0] rank=0 time (ms) | fwd: 1.00 | step: 663.62",
    "[Rank 0] step=2, skipped=0, lr=[0.0003]",
    "INFO:x:[2026] | MnRtt/Rnk: 3453.08ms/8 | MxPwr/Rnk: 683801W/18 | MnDRtt/Rnk: 14270us/23 |",
    "^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 296.02/0, 296.17/2,",
    "  Rank=76 Node=n012 Score=0.94",
    "=== Straggler Report at Step 10 ===",
    "    Rank 5 (gpu-1): 9.58ms",
];

/// What damage puts in: bytes that mean something to a reader.
const BYTES: &[u8] = b"0129.,:|/[]()=- \t\x1b^\0\xff\xf0rank";

fn damage(line: &mut Vec<u8>, random: &mut SmallRng) {
    for _ in 0..random.gen_range(0..4) {
        let at = random.gen_range(0..=line.len());
        match random.gen_range(0..7) {
            0 => line.truncate(at),
            1 => line.insert(at, BYTES[random.gen_range(0..BYTES.len())]),
            2 if at < line.len() => line[at] = BYTES[random.gen_range(0..BYTES.len())],
            3 if at < line.len() => {
                line.remove(at);
            }
            4 => {
                let other = FORMS[random.gen_range(0..FORMS.len())].as_bytes();
                line.splice(at..at, other.iter().copied());
            }
            5 => {
                let digits = b"9".repeat(random.gen_range(1..40));
                line.splice(at..at, digits);
            }
            _ => {
                let rest = line.split_off(at);
                line.extend_from_slice(&rest);
                line.extend_from_slice(&rest);
            }
        }
    }
}

#[test]
fn damaged_lines_are_no_panic_and_no_endless_memory() {
    let asked = std::env::var("MT_DETECTOR_FUZZ_LINES").ok();
    let lines = asked.and_then(|lines| lines.parse().ok()).unwrap_or(LINES);
    let mut random = SmallRng::seed_from_u64(15);
    let mut reading = Reading::new("fuzz", None, Columns::Stored);
    // The same lines, each of them read in full.
    let mut in_full = Reading::new("fuzz", None, Columns::Stored);
    let mut rows = 0;
    for number in 0..lines {
        let mut line = FORMS[random.gen_range(0..FORMS.len())].as_bytes().to_vec();
        damage(&mut line, &mut random);
        let mut chunk = PreparedChunk::of(line);
        chunk.lines.iter().for_each(|line| reading.line(&chunk, line));
        chunk.lines.iter_mut().for_each(|line| line.said = Said::Any);
        chunk.lines.iter().for_each(|line| in_full.line(&chunk, line));
        if number % 1_000 == 999 {
            if random.gen_bool(0.2) {
                reading.end_of_file();
                in_full.end_of_file();
            }
            let batch = reading.take_rows();
            batch.check_even().expect("columns of one length");
            assert_eq!(
                format!("{batch:?}"),
                format!("{:?}", in_full.take_rows()),
                "before line {number}"
            );
            rows += batch.len();
        }
    }
    reading.end_of_file();
    reading.end();
    rows += reading.take_rows().len();
    assert!(rows > 0 && !reading.saw_nothing());
    assert!(reading.notes().len() < 20);
}
