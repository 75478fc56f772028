use super::samples::{TRANSFER, job, with_sums_only, with_timer};
use super::{Communication, SlowComputing, look};
use crate::job::{CallTable, Job};
use crate::verdict::Persistence;
use crate::verdict::{Finding, FindingKind};

fn said(job: &Job) -> Communication {
    look(job, &Persistence::default(), &SlowComputing::default())
}

fn findings(job: &Job) -> Vec<(FindingKind, Vec<u32>)> {
    said(job)
        .findings
        .iter()
        .map(|one| (one.kind, one.ranks.clone()))
        .collect()
}

fn only(job: &Job) -> Finding {
    let mut found = said(job).findings;
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn even_transfers_are_nobodys_fault_however_long_the_waits() {
    for shape in [[2, 8, 8], [4, 4, 8], [8, 2, 1], [2, 1, 1]] {
        assert_eq!(findings(&job(shape, 20, |_, _, _| 1.0)), [], "{shape:?}");
    }
    // What slows all alike is no link's.
    assert_eq!(
        findings(&job([4, 4, 8], 20, |_, _, step| if step > 9 { 8.0 } else { 1.0 })),
        []
    );
}

#[test]
fn a_rank_that_sends_slowly_is_told_from_its_neighbours() {
    let found = only(&job([4, 4, 1], 20, |sender, _, _| if sender == 5 { 3.0 } else { 1.0 }));
    assert_eq!((found.kind, found.ranks), (FindingKind::SlowNetwork, vec![5]));
    assert_eq!(
        (found.nodes, found.named, found.names_nodes),
        (vec!["n5".to_owned()], false, true)
    );
    assert!(found.says.contains("sends slowly") && found.decided_by.is_some());
    assert_eq!(found.links.len(), 2);
    assert!((found.links[0].usual_seconds / TRANSFER - 1.0).abs() < 0.1 && found.links[0].slow_iterations == 20);
}

#[test]
fn a_rank_that_receives_slowly_and_one_that_does_both() {
    let receives = only(&job(
        [4, 4, 1],
        20,
        |_, receiver, _| if receiver == 6 { 10.0 } else { 1.0 },
    ));
    assert_eq!(
        (receives.ranks.as_slice(), receives.says.contains("receives slowly")),
        (&[6][..], true)
    );
    let both = only(&job([4, 4, 1], 20, |sender, receiver, _| {
        if sender == 6 || receiver == 6 { 10.0 } else { 1.0 }
    }));
    assert_eq!((both.ranks.as_slice(), both.links.len()), (&[6][..], 4));
}

/// The link between ranks 5 and 9 is slow both ways.
fn job_with_slow_link() -> Job {
    let slow = |sender: usize, receiver: usize, _| {
        if [(5, 9), (9, 5)].contains(&(sender, receiver)) {
            6.0
        } else {
            1.0
        }
    };
    job([4, 4, 1], 20, slow)
}

#[test]
fn a_link_names_both_its_ends() {
    let found = only(&job_with_slow_link());
    assert_eq!((found.kind, found.ranks), (FindingKind::SlowLink, vec![5, 9]));
}

#[test]
fn a_node_whose_every_link_is_slow_is_named_itself() {
    // Ranks 4 to 7 are on node 1, their links leave it.
    let found = only(&job(
        [4, 4, 4],
        20,
        |sender, _, _| if sender / 4 == 1 { 5.0 } else { 1.0 },
    ));
    assert_eq!(
        (found.kind, found.nodes.as_slice()),
        (FindingKind::SlowNetwork, &["n1".to_owned()][..])
    );
    assert!(found.says.contains("the network of node n1"), "{}", found.says);
}

#[test]
fn of_two_stages_the_collective_tells_the_end() {
    let two = || job([2, 8, 4], 20, |sender, _, _| if sender == 3 { 8.0 } else { 1.0 });
    let untold = only(&two());
    assert_eq!((untold.kind, untold.ranks), (FindingKind::SlowLink, vec![3, 11]));
    for (stage, rank) in [(0, 3), (1, 11)] {
        let with = with_timer(
            two(),
            "all-grads-sync",
            |member, _| {
                if member / 8 == stage { 0.8 } else { 0.1 }
            },
        );
        assert_eq!(only(&with).ranks, [rank]);
    }
    let alike = with_timer(two(), "all-grads-sync", |_, _| 0.1);
    assert_eq!(only(&alike).ranks, [3, 11]);
}

#[test]
fn an_end_of_the_pipeline_with_its_only_link_is_told_by_its_collective() {
    // Rank 1 has no other link than that to rank 5, and both directions of it are slow.
    let both_ways = || {
        job(
            [4, 4, 1],
            20,
            |sender, receiver, _| if [sender, receiver].contains(&1) { 8.0 } else { 1.0 },
        )
    };
    let untold = only(&both_ways());
    assert_eq!((untold.kind, untold.ranks), (FindingKind::SlowLink, vec![1, 5]));
    let told = with_timer(
        both_ways(),
        "all-grads-sync",
        |rank, _| if rank < 4 { 0.8 } else { 0.1 },
    );
    assert_eq!(only(&told).ranks, [1]);
}

#[test]
fn a_slow_card_explains_its_links_and_no_others() {
    let job = job([4, 4, 1], 20, |sender, _, _| if sender == 5 { 3.0 } else { 1.0 });
    let found = |rank| {
        look(&job, &Persistence::default(), &SlowComputing::of_ranks([rank]))
            .findings
            .len()
    };
    assert_eq!((found(5), found(9)), (0, 1));
    // Not those that may be the other end's.
    let link = job_with_slow_link();
    let found = |ranks| {
        look(&link, &Persistence::default(), &SlowComputing::of_ranks(ranks))
            .findings
            .len()
    };
    assert_eq!((found([5, 4]), found([5, 9])), (1, 0));
}

#[test]
fn beginnings_and_ends_are_told_and_spells_are_not() {
    let since = |first: usize, last: usize| {
        job([4, 4, 1], 40, move |sender, _, step| {
            if sender == 5 && (first..=last).contains(&step) {
                8.0
            } else {
                1.0
            }
        })
    };
    let begun = only(&since(25, 39));
    assert_eq!(
        (begun.onset, begun.until, begun.slow_iterations),
        (Some(25), None, Some(15))
    );
    let over = only(&since(0, 19));
    assert_eq!((over.onset, over.until), (None, Some(19)));
    assert_eq!(findings(&since(10, 13)), []);
}

#[test]
fn fused_calls_that_are_usual_acquit() {
    let mut tables = job([4, 4, 1], 20, |sender, _, _| if sender == 5 { 8.0 } else { 1.0 });
    let even = job([4, 4, 1], 20, |_, _, _| 1.0);
    for table in &mut tables.calls {
        if table.name.len() > "backward-send".len() {
            let usual = even
                .calls
                .iter()
                .find(|other| other.name == table.name)
                .expect("the same timers");
            *table = usual.clone();
        }
    }
    assert_eq!(findings(&tables), []);
}

#[test]
fn sums_tell_only_the_links_with_one_call() {
    let slow = |rank: usize| {
        with_sums_only(job(
            [4, 4, 1],
            20,
            move |sender, _, _| if sender == rank { 8.0 } else { 1.0 },
        ))
    };
    let found = said(&slow(9));
    assert!(
        found.summary.contains("no megatron_timers_trace rows"),
        "{}",
        found.summary
    );
    // Stage 2 sends to the last stage once.
    assert_eq!(found.findings.len(), 1);
    assert!(found.findings[0].ranks.contains(&9));
    assert_eq!(findings(&slow(1)), []);
}

#[test]
fn sums_of_all_calls_tell_no_transfer() {
    // Recorders that fuse nothing put all calls of a step into the plain timers.
    let mut sums = with_sums_only(job([4, 4, 1], 20, |sender, _, _| if sender == 9 { 8.0 } else { 1.0 }));
    sums.timers.retain(|timer| timer.name.len() <= "backward-send".len());
    let found = said(&sums);
    assert_eq!(found.findings, []);
    assert!(found.summary.starts_with("0 of "), "{}", found.summary);
}

#[test]
fn ranks_wait_for_whoever_comes_last() {
    let job = job([2, 2, 1], 4, |_, _, _| 1.0);
    let cells = |seconds: f64| vec![vec![seconds]; 16];
    // The upper ranks send as soon as they can and the lower ones come late.
    let table = |name: &str, seconds| CallTable::new(name, 4, cells(seconds).iter().map(Vec::as_slice));
    let job = Job {
        calls: vec![table("forward-recv", 0.01), table("forward-send", 0.5)],
        ..job
    };
    let waits = said(&job).waits;
    assert_eq!((waits[0].waits_for, waits[2].waits_for), (Some(2), None));
    assert!((waits[0].waiting - 0.49).abs() < 1e-9 && (waits[2].transfer - 0.01).abs() < 1e-9);
}

#[test]
fn one_stage_compares_data_parallel_groups_where_there_are_several() {
    let mut job = job([1, 32, 8], 20, |_, _, _| 1.0);
    for (rank, place) in job.topology.places.iter_mut().enumerate() {
        (place.pipeline, place.member) = (rank as u32 / 8, rank as u32 % 8);
    }
    job.topology.sizes = [("pp", 1), ("dp", 4), ("tp", 8)]
        .map(|(axis, size)| (axis.to_owned(), size))
        .into();
    // The members of group 3 take four times as long; somebody waits in every group.
    let sync = |rank: usize, step: usize| {
        let own = if rank % 8 == 3 { 0.4 } else { 0.1 };
        own * (1.0 + 0.02 * ((rank + step) % 3) as f64) + if (rank / 8 + step).is_multiple_of(4) { 0.0 } else { 0.3 }
    };
    let slow = with_timer(job, "all-grads-sync", sync);
    let found = only(&slow);
    assert_eq!((found.ranks, found.names_nodes), (vec![3, 11, 19, 27], false));
    let told = said(&slow).summary;
    assert!(
        told.starts_with("skipped") && told.contains("8 data-parallel groups"),
        "{told}"
    );
}

/// Interleaved calls only: the usual call of each rank, seconds.
fn interleaved(shape: [usize; 3], seconds: impl Fn(usize) -> f64) -> Job {
    let job = job(shape, 10, |_, _, _| 1.0);
    let cells: Vec<Vec<f64>> = (0..job.ranks.len() * 10)
        .map(|cell| {
            (0..8)
                .map(|call| seconds(cell / 10) * (1.0 + 0.01 * ((cell + call) % 5) as f64))
                .collect()
        })
        .collect();
    Job {
        calls: vec![CallTable::new(
            "forward-send-forward-recv",
            10,
            cells.iter().map(Vec::as_slice),
        )],
        ..job
    }
}

#[test]
fn interleaved_pipelines_are_compared_by_whoever_waits_least() {
    // Rank 5 computes slowly: all others of pipeline 1 wait, it does not.
    let computes = interleaved([4, 4, 1], |rank| if rank % 4 == 1 && rank != 5 { 0.2 } else { 0.01 });
    assert_eq!(findings(&computes), []);
    let all_wait = || interleaved([4, 4, 1], |rank| if rank % 4 == 1 { 0.2 } else { 0.01 });
    let untold = only(&all_wait());
    assert_eq!(
        (untold.kind, untold.ranks, untold.names_nodes),
        (FindingKind::SlowLink, vec![1, 5, 9, 13], false)
    );
    let told = only(&with_timer(all_wait(), "all-grads-sync", |rank, _| {
        if rank / 4 == 1 { 0.9 } else { 0.1 }
    }));
    assert_eq!(
        (told.kind, told.ranks, told.names_nodes),
        (FindingKind::SlowNetwork, vec![5], true)
    );
    let alone = interleaved([4, 1, 1], |_| 0.2);
    assert!(said(&alone).findings.is_empty() && said(&alone).summary.contains("no transfer could be compared"));
}
