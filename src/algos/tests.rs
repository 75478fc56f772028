//! What holds for all algorithms: no panic, canonical labels, equivariance, independence of the thread count.

use super::*;
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Rows like those of a timer: a cloud, a slower minority, some far values; with `steps` a second, quantised.
pub(super) fn timer_rows(n: usize, seed: u64, steps: Option<f64>) -> Vec<Row> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..n)
        .map(|i| {
            let shift = if i % 19 == 3 { 6.0 } else { 0.0 };
            let mut noise = || {
                let even: f64 = (0..6).map(|_| rng.gen_range(-1.0..1.0)).sum();
                even * if rng.gen_bool(0.02) { 5.0 } else { 1.0 }
            };
            let (a, b, mean) = (noise() + shift, noise() + shift, shift + noise() / 4.0);
            let row = [a.min(b), a.max(b), (a - b).abs(), mean];
            row.map(|value| steps.map_or(value, |steps| (value * steps).round() / steps))
        })
        .collect()
}

fn tuned(rows: &[Row]) -> Vec<Option<(Clustering, Vec<bool>)>> {
    let space = Space::new(rows.to_vec());
    let raw_means: Vec<f64> = rows.iter().map(|row| 10.0 + row[3] / 8.0).collect();
    registry()
        .iter()
        .map(|algorithm| {
            let best = tune(*algorithm, &space)?;
            let slow = slow_ranks(&space, &raw_means, &best);
            Some((best, slow))
        })
        .collect()
}

fn check(rows: &[Row]) {
    for (result, algorithm) in tuned(rows).iter().zip(registry()) {
        let Some((best, slow)) = result else { continue };
        assert_eq!(best.labels.len(), rows.len(), "{}", algorithm.name());
        assert_eq!(slow.len(), rows.len());
        assert!(best.clusters >= 2);
        let mut seen = 0;
        for &label in &best.labels {
            assert!(
                label <= seen && (label as usize) < best.clusters,
                "{}",
                algorithm.name()
            );
            seen = seen.max(label + 1);
        }
        assert_eq!(seen as usize, best.clusters);
        if let Some(scores) = best.scores {
            let all = [scores.silhouette, scores.calinski_harabasz, scores.davies_bouldin];
            assert!(
                all.iter().all(|score| !score.is_nan()),
                "{}: {scores:?}",
                algorithm.name()
            );
            assert!((-1.0..=1.0).contains(&scores.silhouette));
        }
    }
}

#[test]
fn names_are_in_the_order_of_the_reports() {
    let names: Vec<&str> = registry().iter().map(|algorithm| algorithm.name()).collect();
    assert_eq!(
        names,
        ["kmeans", "dbscan", "gmm", "hierarchical", "mean_shift", "fuzzy"]
    );
}

#[test]
fn tiny_and_degenerate_inputs() {
    for n in 0..6 {
        check(&vec![[0.0; 4]; n]);
        check(&vec![[7.5; 4]; n]);
        check(&timer_rows(n, 1, None));
    }
    let column = |value: f64| [value; 4];
    check(&[column(0.0), column(1e300)]);
    check(&[column(0.0), column(1.0), column(1e300)]);
    check(&[column(-1e300), column(1e-300), column(1e300), column(0.0), column(1.0)]);
    for factor in [1e300, 1e150, 1e100, 1e50, 1e20, 1e-50, 1e-150, 1e-300, 5e-324] {
        check(
            &timer_rows(40, 2, Some(1.0))
                .iter()
                .map(|row| row.map(|v| v * factor))
                .collect::<Vec<_>>(),
        );
        let mut rows = timer_rows(40, 3, None);
        rows[17] = [factor, factor, 0.0, factor];
        check(&rows);
    }
    check(&(0..30).map(|i| [0.0, 0.0, 0.0, f64::from(i)]).collect::<Vec<_>>());
    check(&(0..30).map(|i| [f64::from(i % 2), 0.0, 0.0, 0.0]).collect::<Vec<_>>());
}

#[test]
fn a_clear_minority_is_slow_for_every_algorithm() {
    let mut rows = timer_rows(64, 4, None);
    for row in &mut rows {
        *row = row.map(|value| value.rem_euclid(1.0));
    }
    for rank in [5, 40] {
        rows[rank] = rows[rank].map(|value| value + 30.0);
    }
    for (result, algorithm) in tuned(&rows).into_iter().zip(registry()) {
        let (_, slow) = result.expect("two groups are found");
        let ranks: Vec<usize> = (0..64).filter(|&rank| slow[rank]).collect();
        assert_eq!(ranks, [5, 40], "{}", algorithm.name());
    }
}

#[test]
fn permuted_rows_permute_the_answer() {
    for (n, seed, steps) in [
        (9, 5, None),
        (40, 6, None),
        (64, 7, Some(2.0)),
        (300, 8, None),
        (2_500, 9, None),
    ] {
        let rows = timer_rows(n, seed, steps);
        let before = tuned(&rows);
        let mut order: Vec<usize> = (0..n).collect();
        order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        let shuffled: Vec<Row> = order.iter().map(|&i| rows[i]).collect();
        for ((before, after), algorithm) in before.iter().zip(tuned(&shuffled)).zip(registry()) {
            let (before, slow_before) = before.as_ref().expect("clusters are found");
            let (after, slow_after) = after.expect("clusters are found");
            let moved: Vec<u32> = order.iter().map(|&i| before.labels[i]).collect();
            let expected = Clustering::new(&moved, before.parameters.clone());
            assert_eq!(after.labels, expected.labels, "{} n={n}", algorithm.name());
            assert_eq!(after.parameters, before.parameters);
            assert_eq!(
                after.scores,
                before.scores,
                "{} n={n}: not bit for bit",
                algorithm.name()
            );
            assert_eq!(slow_after, order.iter().map(|&i| slow_before[i]).collect::<Vec<_>>());
        }
    }
}

#[test]
fn threads_change_nothing() {
    let rows = timer_rows(400, 10, None);
    let run = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        pool.expect("threads can be started").install(|| tuned(&rows))
    };
    assert_eq!(run(1), run(4));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_finite_rows_are_handled(
        rows in prop::collection::vec(prop::array::uniform4(prop_oneof![
            (-3i32..3).prop_map(f64::from),
            -1e3f64..1e3,
            any::<f64>().prop_filter("finite", |v| v.is_finite()),
        ]), 0..30)
    ) {
        check(&rows);
    }
}
