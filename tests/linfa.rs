//! The linkages against linfa-hierarchical, which cuts a tree of its own.

use linfa::prelude::*;
use linfa_hierarchical::{HierarchicalCluster, Method as LinfaMethod};
use linfa_kernel::{Kernel, KernelBase, KernelInner, KernelMethod};
use mt_detector::algos::hierarchical::point_labels;
use mt_detector::algos::linkage::{Method, Metric};
use mt_detector::algos::{Row, Space};
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Two clouds with far outliers, in the shape of features: range = max - min.
fn rows(seed: u64) -> Vec<Row> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..80)
        .map(|rank| {
            let shift = if rank % 9 == 0 { 4.0 } else { 0.0 };
            let far = if random.gen_bool(0.05) { 8.0 } else { 1.0 };
            let (min, max) = (
                shift + random.gen_range(-1.0..1.0),
                shift + far * random.gen_range(1.0..3.0),
            );
            [min, max, max - min, shift + random.gen_range(0.0..1.0)]
        })
        .collect()
}

fn distance(a: &Row, b: &Row, metric: Metric) -> f64 {
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    match metric {
        Metric::Euclidean => differences
            .map(|difference| difference * difference)
            .sum::<f64>()
            .sqrt(),
        Metric::Manhattan => differences.sum(),
    }
}

/// linfa takes similarities and turns them into distances by -ln, cut off at 1e-6: exp(-13 d / largest d) stays above.
fn linfa_labels(rows: &[Row], method: LinfaMethod, metric: Metric) -> Vec<usize> {
    let all = Array2::from_shape_fn((rows.len(), rows.len()), |(a, b)| distance(&rows[a], &rows[b], metric));
    let largest = all.iter().copied().fold(0.0, f64::max);
    let similarities = all.mapv(|distance| (-13.0 * distance / largest).exp());
    let kernel: Kernel<f64> = KernelBase {
        inner: KernelInner::Dense(similarities),
        method: KernelMethod::Linear,
    };
    let cut = HierarchicalCluster::default()
        .with_method(method)
        .num_clusters(2)
        .check_unwrap();
    cut.transform(kernel).targets
}

fn same_partition<A: PartialEq, B: PartialEq>(a: &[A], b: &[B]) -> bool {
    (0..a.len()).all(|i| (0..i).all(|j| (a[i] == a[j]) == (b[i] == b[j])))
}

#[test]
fn linkages_cut_as_linfa_hierarchical() {
    for seed in 0..20 {
        let rows = rows(seed);
        let space = Space::new(rows.clone());
        for (ours, theirs, metric) in [
            (Method::Ward, LinfaMethod::Ward, Metric::Euclidean),
            (Method::Average, LinfaMethod::Average, Metric::Euclidean),
            (Method::Complete, LinfaMethod::Complete, Metric::Euclidean),
            (Method::Single, LinfaMethod::Single, Metric::Euclidean),
            (Method::Average, LinfaMethod::Average, Metric::Manhattan),
            (Method::Complete, LinfaMethod::Complete, Metric::Manhattan),
        ] {
            // Labels of the points in canonical order; `point_of` leads from ranks to them.
            let points = point_labels(&space, ours, metric);
            let labels: Vec<u32> = space.point_of().iter().map(|&point| points[point as usize]).collect();
            let expected = linfa_labels(&rows, theirs, metric);
            assert!(
                same_partition(&labels, &expected),
                "{} {} seed {seed}",
                ours.name(),
                metric.name()
            );
        }
    }
}
