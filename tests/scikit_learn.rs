//! Agreement with scikit-learn on the matrices of `golden/scikit_learn.json` (made by `golden/make_scikit_learn.py`).

use mt_detector::algos::gmm::Covariance;
use mt_detector::algos::linkage::{Method, Metric};
use mt_detector::algos::{Clustering, Row, Space, dbscan, fuzzy, gmm, hierarchical, kmeans_fits, mean_shift, scores};
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    name: String,
    rows: Vec<Row>,
    kmeans: Vec<Labelled>,
    dbscan: Vec<Labelled>,
    linkage: Vec<Labelled>,
    mean_shift: Vec<Modes>,
    gmm: BTreeMap<String, f64>,
}

#[derive(Deserialize)]
struct Labelled {
    labels: Vec<i32>,
    scores: Option<[f64; 3]>,
    k: Option<usize>,
    inertia: Option<f64>,
    eps: Option<f64>,
    min_samples: Option<usize>,
    linkage: Option<String>,
    metric: Option<String>,
}

#[derive(Deserialize)]
struct Modes {
    quantile: f64,
    bandwidth: f64,
    labels: Vec<i32>,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(include_str!("golden/scikit_learn.json")).expect("the file is ours");
    assert!(cases.len() >= 24);
    cases
}

/// Labels numbered by first appearance.
fn canonical(labels: &[i32]) -> Clustering {
    let shifted: Vec<u32> = labels.iter().map(|label| (label + 1) as u32).collect();
    Clustering::new(&shifted, String::new())
}

fn adjusted_rand_index(a: &[u32], b: &[u32]) -> f64 {
    let pairs = |count: f64| count * (count - 1.0) / 2.0;
    let mut table: BTreeMap<(u32, u32), f64> = BTreeMap::new();
    let (mut rows, mut columns): (BTreeMap<u32, f64>, BTreeMap<u32, f64>) = Default::default();
    for (&a, &b) in a.iter().zip(b) {
        *table.entry((a, b)).or_default() += 1.0;
        *rows.entry(a).or_default() += 1.0;
        *columns.entry(b).or_default() += 1.0;
    }
    let both: f64 = table.values().map(|&count| pairs(count)).sum();
    let left: f64 = rows.values().map(|&count| pairs(count)).sum();
    let right: f64 = columns.values().map(|&count| pairs(count)).sum();
    let expected = left * right / pairs(a.len() as f64);
    let most = (left + right) / 2.0;
    if most == expected {
        1.0
    } else {
        (both - expected) / (most - expected)
    }
}

fn close(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0)
}

#[test]
fn scores_of_the_same_labels() {
    let mut compared = 0;
    for case in cases() {
        let space = Space::new(case.rows);
        for labelled in case.kmeans.iter().chain(&case.dbscan).chain(&case.linkage) {
            let ours = scores::score(&space, &[canonical(&labelled.labels)])[0];
            let Some(theirs) = labelled.scores else {
                assert_eq!(ours, None, "{}", case.name);
                continue;
            };
            let ours = ours.expect("scikit-learn scored it");
            let ours = [ours.silhouette, ours.calinski_harabasz, ours.davies_bouldin];
            assert!(close(ours[0], theirs[0]), "{}: {ours:?} against {theirs:?}", case.name);
            assert!(close(ours[1], theirs[1]), "{}: {ours:?} against {theirs:?}", case.name);
            // scikit-learn takes its distances from x^2 - 2xy + y^2, which leaves about eight digits.
            assert!(
                (ours[2] - theirs[2]).abs() <= 1e-7 * theirs[2].max(1.0),
                "{}: {ours:?} against {theirs:?}",
                case.name
            );
            compared += 1;
        }
    }
    assert!(compared > 150);
}

#[test]
fn kmeans_inertia_is_as_low() {
    for case in cases() {
        let space = Space::new(case.rows);
        for theirs in &case.kmeans {
            let (k, inertia) = (theirs.k.expect("given"), theirs.inertia.expect("given"));
            let ours = kmeans_fits::fit(space.points(), space.weights(), k).inertia;
            assert!(
                ours <= inertia * 1.0001,
                "{} k={k}: {ours} against {inertia}",
                case.name
            );
        }
    }
}

#[test]
fn dbscan_labels_are_the_same() {
    for case in cases() {
        let space = Space::new(case.rows);
        for theirs in &case.dbscan {
            let ours = dbscan::labels(&space, theirs.eps.expect("given"), theirs.min_samples.expect("given"));
            assert_eq!(
                canonical(&ours),
                canonical(&theirs.labels),
                "{} eps={:?}",
                case.name,
                theirs.eps
            );
            let noise = |labels: &[i32]| labels.iter().map(|&label| label == dbscan::NOISE).collect::<Vec<_>>();
            assert_eq!(noise(&ours), noise(&theirs.labels), "{}", case.name);
        }
    }
}

#[test]
fn linkages_cut_the_same() {
    let mut compared = 0;
    for case in cases() {
        let space = Space::new(case.rows);
        for theirs in &case.linkage {
            let method = [Method::Ward, Method::Complete, Method::Average, Method::Single]
                .into_iter()
                .find(|method| Some(method.name()) == theirs.linkage.as_deref())
                .expect("a known linkage");
            let metric = [Metric::Euclidean, Metric::Manhattan]
                .into_iter()
                .find(|metric| Some(metric.name()) == theirs.metric.as_deref())
                .expect("a known metric");
            let labels = hierarchical::point_labels(&space, method, metric);
            let ours = space.clustering(&labels, String::new());
            assert_eq!(
                ours.labels,
                canonical(&theirs.labels).labels,
                "{} {method:?} {metric:?}",
                case.name
            );
            compared += 1;
        }
    }
    assert!(compared > 140, "{compared}");
}

#[test]
fn mean_shift_finds_the_same_modes() {
    let mut compared = 0;
    for case in cases() {
        let space = Space::new(case.rows);
        for theirs in &case.mean_shift {
            if space.len() <= 500 {
                let ours = mean_shift::bandwidths(&space, &[theirs.quantile])[0];
                assert!(
                    close(ours, theirs.bandwidth),
                    "{}: {ours} against {}",
                    case.name,
                    theirs.bandwidth
                );
            }
            let ours = mean_shift::labels(&space, theirs.bandwidth);
            let agreement = adjusted_rand_index(&ours, &canonical(&theirs.labels).labels);
            // On quantised rows modes of equal weight can mirror each other; which is kept then hangs on the last digit.
            let least = if case.name.starts_with("quantised") { 0.9 } else { 0.99 };
            assert!(
                agreement >= least,
                "{} quantile {}: {agreement}",
                case.name,
                theirs.quantile
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}

#[test]
fn mixtures_are_as_likely() {
    for case in cases() {
        let space = Space::new(case.rows);
        for covariance in Covariance::ALL {
            let theirs = case.gmm[covariance.name()];
            let ours = gmm::fit(&space, covariance).map_or(f64::NEG_INFINITY, |mixture| mixture.log_likelihood);
            assert!(
                ours >= theirs - 1e-3,
                "{} {covariance:?}: {ours} against {theirs}",
                case.name
            );
        }
    }
}

#[test]
fn fuzzy_memberships_are_a_fixed_point() {
    for case in cases() {
        let space = Space::new(case.rows);
        for m in fuzzy::FUZZIFIERS {
            for start in 0..fuzzy::STARTS {
                let mut share = fuzzy::fit(&space, m, start, 1e-9, 20_000);
                let change = fuzzy::update(&space, m, &mut share);
                assert!(change < 1e-6, "{} m={m}: {change}", case.name);
                assert!(share.iter().all(|share| (0.0..=1.0).contains(share)));
            }
        }
    }
}
