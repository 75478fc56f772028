//! Linkage against kodama, the definition, and itself over cells.

use super::*;
use crate::algos::hierarchical::{GRID, point_labels};
use crate::algos::tests::timer_rows;
use crate::algos::{Clustering, Space};
use proptest::prelude::*;

fn distance(a: &Row, b: &Row, metric: Metric) -> f64 {
    match metric {
        Metric::Euclidean => crate::algos::distance::squared_distance(a, b).sqrt(),
        Metric::Manhattan => a.iter().zip(b).map(|(x, y)| (x - y).abs()).sum(),
    }
}

/// kodama's dendrogram without its last merge.
fn kodama_cut(rows: &[Row], method: Method, metric: Metric) -> Vec<u32> {
    let n = rows.len();
    let mut condensed: Vec<f64> = (0..n)
        .flat_map(|i| (i + 1..n).map(move |j| (i, j)))
        .map(|(i, j)| distance(&rows[i], &rows[j], metric))
        .collect();
    let kind = match method {
        Method::Ward => kodama::Method::Ward,
        Method::Complete => kodama::Method::Complete,
        Method::Average => kodama::Method::Average,
        Method::Single => kodama::Method::Single,
    };
    let tree = kodama::linkage(&mut condensed, n, kind);
    let steps = tree.steps();
    let mut labels = vec![0; n];
    let mut stack = vec![steps[n - 2].cluster2];
    while let Some(cluster) = stack.pop() {
        match cluster.checked_sub(n) {
            Some(step) => stack.extend([steps[step].cluster1, steps[step].cluster2]),
            None => labels[cluster] = 1,
        }
    }
    labels
}

fn same(a: &[u32], b: &[u32]) -> bool {
    Clustering::new(a, String::new()).labels == Clustering::new(b, String::new()).labels
}

#[test]
fn cuts_equal_kodamas() {
    for (n, seed) in [(3, 1), (10, 2), (50, 3), (200, 4), (333, 5)] {
        let rows = timer_rows(n, seed, None);
        let space = Space::new(rows.clone());
        for (method, metric) in GRID {
            let ours = space.clustering(&point_labels(&space, method, metric), String::new());
            assert!(
                same(&ours.labels, &kodama_cut(&rows, method, metric)),
                "{n} {method:?} {metric:?}"
            );
        }
    }
}

#[test]
fn weights_stand_for_equal_rows() {
    let mut rows = timer_rows(60, 6, None);
    for i in 0..60 {
        rows.extend(vec![rows[i]; i % 4]);
    }
    let space = Space::new(rows.clone());
    for (method, metric) in GRID {
        let ours = space.clustering(&point_labels(&space, method, metric), String::new());
        assert!(
            same(&ours.labels, &kodama_cut(&rows, method, metric)),
            "{method:?} {metric:?}"
        );
    }
}

proptest! {
    /// Single linkage: the two parts are the components of the graph below the longest edge of the tree.
    #[test]
    fn single_parts_lie_far_apart(points in prop::collection::vec(prop::array::uniform4(-5.0f64..5.0), 2..40)) {
        for metric in [Metric::Euclidean, Metric::Manhattan] {
            let labels = last_two(&points, &vec![1.0; points.len()], Method::Single, metric, &mut Scratch::default());
            let pairs = || (0..points.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
            let gap = pairs()
                .filter(|&(i, j)| labels[i] != labels[j])
                .map(|(i, j)| distance(&points[i], &points[j], metric))
                .fold(f64::INFINITY, f64::min);
            // Below the gap each part hangs together: grow it from its first member.
            for part in 0..2 {
                let members: Vec<usize> = (0..points.len()).filter(|&i| labels[i] == part).collect();
                let mut reached = vec![members[0]];
                let mut next = 0;
                while next < reached.len() {
                    for &i in &members {
                        if !reached.contains(&i) && distance(&points[i], &points[reached[next]], metric) <= gap {
                            reached.push(i);
                        }
                    }
                    next += 1;
                }
                prop_assert_eq!(reached.len(), members.len());
            }
        }
    }
}

/// Above the exact limit: the linkages over cells against the exact ones, at n = 4,096.
#[test]
fn cells_come_near_the_exact_cuts() {
    let rows = timer_rows(4_096, 8, None);
    let space = Space::new(rows);
    for (method, metric) in GRID {
        let exact = last_two(space.points(), space.weights(), method, metric, &mut Scratch::default());
        let near = point_labels(&space, method, metric);
        let differ = exact.iter().zip(&near).filter(|(a, b)| a != b).count();
        println!("{} {}: {differ} of 4096 labels differ", method.name(), metric.name());
    }
}
