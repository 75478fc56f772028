//! The suite's kinds stay what they are: new randomness belongs to streams of its own.

use mt_detector::evaluation::simulate::{Label, simulate};
use mt_detector::evaluation::suite::{Group, KINDS, NoiseLevel};

/// Fowler-Noll-Vo hash (FNV-1a, 64 bits).
fn digest(bytes: impl IntoIterator<Item = u8>, mut hash: u64) -> u64 {
    for byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

/// Every row of the jobs of seed 700, at both levels of noise.
#[test]
fn kinds_of_the_first_suite_keep_their_rows() {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let kinds = KINDS.iter().filter(|kind| kind.group == Group::Ranks);
    for kind in kinds {
        for level in [NoiseLevel::Soft, NoiseLevel::Hard] {
            let scenario = kind.scenario(700, level);
            let job = simulate(&scenario).expect("a job");
            for name in ["node", "subname", "rank", "iteration", "rerun_uuid"] {
                let column = job.frame.column(name).expect("a column");
                hash = digest(format!("{:?}", column.n_unique()).bytes(), hash);
                hash = digest(format!("{:?}", column.get(column.len() / 3)).bytes(), hash);
            }
            let lists = job
                .frame
                .column("metric_values")
                .expect("values")
                .list()
                .expect("lists");
            for value in lists.get_inner().f64().expect("numbers").iter().flatten() {
                hash = digest(value.to_bits().to_le_bytes(), hash);
            }
            let Label {
                slow_ranks,
                same_as,
                slow_nodes,
                cause,
                ..
            } = job.label;
            hash = digest(format!("{slow_ranks:?}{same_as:?}{slow_nodes:?}{cause}").bytes(), hash);
        }
    }
    assert_eq!(format!("{hash:016x}"), "0f5499170008d63b");
}
