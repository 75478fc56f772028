//! linfa's clustering beside ours, on the sizes where the product asks: the same labels, and at what time? What
//! ARCHITECTURE.md says of it comes from here. Run with `cargo bench --bench linfa`.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use linfa::DatasetBase;
use linfa::prelude::*;
use linfa_clustering::{Dbscan, GaussianMixtureModel, KMeans};
use linfa_hierarchical::{HierarchicalCluster, Method as LinfaMethod};
use linfa_kernel::{Kernel, KernelBase, KernelInner, KernelMethod};
use mt_detector::algos::linkage::{Method, Metric};
use mt_detector::algos::{Row, Space, dbscan, gmm, hierarchical, kmeans_fits};
use ndarray::Array2;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Sets of rows of each size.
const SETS: u64 = 8;
/// Centres that are folded into two, and ranks.
const SIZES: [usize; 6] = [4, 12, 64, 256, 1_024, 2_048];
/// What the product clusters into, when it folds and otherwise.
const CLUSTERS: usize = 2;
const MIN_POINTS: usize = 4;

/// Rows like those of a timer after scaling: a cloud, a slower minority, some far values; sorted, no two equal.
fn rows(n: usize, seed: u64) -> Vec<Row> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut rows: Vec<Row> = (0..n)
        .map(|i| {
            let shift = if i % 19 == 3 { 6.0 } else { 0.0 };
            let mut noise = || {
                let even: f64 = (0..6).map(|_| random.gen_range(-1.0..1.0)).sum();
                even * if random.gen_bool(0.02) { 5.0 } else { 1.0 }
            };
            let (a, b, mean) = (noise() + shift, noise() + shift, shift + noise() / 4.0);
            [a.min(b), a.max(b), (a - b).abs(), mean]
        })
        .collect();
    rows.sort_by(|a, b| a.partial_cmp(b).expect("finite rows"));
    rows
}

fn records(rows: &[Row]) -> Array2<f64> {
    Array2::from_shape_vec((rows.len(), 4), rows.iter().flatten().copied().collect()).expect("n rows of 4")
}

fn main() {
    println!("linfa-clustering and linfa-hierarchical 0.8.1; medians of {SETS} sets, one call each");
    println!("| method | rows | same partition | ours ms | linfa ms | linfa / ours |");
    println!("|---|---|---|---|---|---|");
    for n in SIZES {
        compare("k-means, k = 2", n, ours_kmeans, linfa_kmeans);
    }
    for n in SIZES.into_iter().filter(|&n| n > MIN_POINTS) {
        compare("DBSCAN, knee", n, ours_dbscan, linfa_dbscan);
    }
    for n in SIZES.into_iter().filter(|&n| n >= 64) {
        compare("mixture, 2 full", n, ours_mixture, linfa_mixture);
    }
    for (name, ours, theirs, metric) in [
        ("ward", Method::Ward, LinfaMethod::Ward, Metric::Euclidean),
        ("average", Method::Average, LinfaMethod::Average, Metric::Euclidean),
        ("complete", Method::Complete, LinfaMethod::Complete, Metric::Euclidean),
        ("single", Method::Single, LinfaMethod::Single, Metric::Euclidean),
        (
            "average, Manhattan",
            Method::Average,
            LinfaMethod::Average,
            Metric::Manhattan,
        ),
    ] {
        for n in SIZES.into_iter().filter(|&n| n > MIN_POINTS) {
            compare(
                name,
                n,
                |rows| point_labels(&hierarchical::point_labels(&Space::new(rows.to_vec()), ours, metric)),
                |rows| linfa_linkage(rows, theirs, metric),
            );
        }
    }
}

/// Runs both on every set and prints how often they agree, and how long they take.
fn compare(
    name: &str,
    n: usize,
    ours: impl Fn(&[Row]) -> Option<Vec<i64>>,
    theirs: impl Fn(&[Row]) -> Option<Vec<i64>>,
) {
    let (mut same, mut ours_ms, mut theirs_ms) = (0, Vec::new(), Vec::new());
    for seed in 0..SETS {
        let rows = rows(n, 1_000 * n as u64 + seed);
        let timed = |labels: &dyn Fn(&[Row]) -> Option<Vec<i64>>, times: &mut Vec<f64>| {
            let begin = Instant::now();
            let found = black_box(labels(black_box(&rows)));
            times.push(1e3 * begin.elapsed().as_secs_f64());
            found
        };
        let a = timed(&ours, &mut ours_ms);
        let b = timed(&theirs, &mut theirs_ms);
        same += usize::from(matches!((a, b), (Some(a), Some(b)) if same_partition(&a, &b)));
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (ours, theirs) = (median(&mut ours_ms), median(&mut theirs_ms));
    println!(
        "| {name} | {n} | {same} of {SETS} | {ours:.3} | {theirs:.3} | {:.1} |",
        theirs / ours
    );
}

/// Whether two labellings part the rows in the same way.
fn same_partition(a: &[i64], b: &[i64]) -> bool {
    let pairs: BTreeSet<(i64, i64)> = a.iter().copied().zip(b.iter().copied()).collect();
    let distinct = |labels: &[i64]| labels.iter().collect::<BTreeSet<_>>().len();
    pairs.len() == distinct(a) && pairs.len() == distinct(b)
}

fn point_labels(labels: &[u32]) -> Option<Vec<i64>> {
    Some(labels.iter().copied().map(i64::from).collect())
}

fn ours_kmeans(rows: &[Row]) -> Option<Vec<i64>> {
    let space = Space::new(rows.to_vec());
    point_labels(&kmeans_fits::fit(space.points(), space.weights(), CLUSTERS).labels)
}

fn linfa_kmeans(rows: &[Row]) -> Option<Vec<i64>> {
    let records = records(rows);
    let model = KMeans::params(CLUSTERS)
        .tolerance(1e-9)
        .fit(&DatasetBase::from(records.clone()))
        .ok()?;
    // `cluster_count` is of the last run, `predict` of the best.
    Some(model.predict(&records).iter().map(|&label| label as i64).collect())
}

/// The eps at the knee of the k-distances, which both take.
fn eps(rows: &[Row]) -> f64 {
    dbscan::knee(&dbscan::k_distances(
        &Space::new(rows.to_vec()),
        MIN_POINTS.min(rows.len() - 1),
    ))
}

fn ours_dbscan(rows: &[Row]) -> Option<Vec<i64>> {
    let labels = dbscan::labels(&Space::new(rows.to_vec()), eps(rows), MIN_POINTS);
    Some(labels.into_iter().map(i64::from).collect())
}

fn linfa_dbscan(rows: &[Row]) -> Option<Vec<i64>> {
    let labels = Dbscan::params(MIN_POINTS)
        .tolerance(eps(rows))
        .transform(&records(rows))
        .ok()?;
    Some(
        labels
            .iter()
            .map(|label| label.map_or(-1, |label| label as i64))
            .collect(),
    )
}

fn ours_mixture(rows: &[Row]) -> Option<Vec<i64>> {
    point_labels(&gmm::fit(&Space::new(rows.to_vec()), gmm::Covariance::Full)?.labels)
}

/// Three columns: the range is the difference of two others, which leaves no covariance to invert.
fn three_columns(rows: &[Row]) -> Array2<f64> {
    Array2::from_shape_fn((rows.len(), 3), |(row, column)| rows[row][[0, 1, 3][column]])
}

fn linfa_mixture(rows: &[Row]) -> Option<Vec<i64>> {
    let records = three_columns(rows);
    let model = GaussianMixtureModel::params(CLUSTERS)
        .n_runs(10)
        .fit(&DatasetBase::from(records.clone()))
        .ok()?;
    Some(model.predict(&records).iter().map(|&label| label as i64).collect())
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
fn linfa_linkage(rows: &[Row], method: LinfaMethod, metric: Metric) -> Option<Vec<i64>> {
    let all = Array2::from_shape_fn((rows.len(), rows.len()), |(a, b)| distance(&rows[a], &rows[b], metric));
    let largest = all.iter().copied().fold(0.0, f64::max);
    let kernel: Kernel<f64> = KernelBase {
        inner: KernelInner::Dense(all.mapv(|distance| (-13.0 * distance / largest).exp())),
        method: KernelMethod::Linear,
    };
    let cut = HierarchicalCluster::default()
        .with_method(method)
        .num_clusters(CLUSTERS)
        .check()
        .ok()?;
    Some(
        cut.transform(kernel)
            .targets
            .iter()
            .map(|&label| label as i64)
            .collect(),
    )
}
