use super::*;

fn rows(rows: &[(&str, u32, u32)]) -> Positions {
    Positions::new(
        rows.iter()
            .map(|&(group, rank, position)| (group.to_owned(), rank, position)),
    )
}

/// Rows of a whole job: `at(rank)` gives (tp, dp, pp).
fn rows_of(ranks: &[u32], at: impl Fn(u32) -> (u32, u32, u32)) -> Positions {
    let all = ranks.iter().flat_map(|&rank| {
        let (tp, dp, pp) = at(rank);
        [("tp", tp), ("dp", dp), ("pp", pp)].map(|(group, position)| (group.to_owned(), rank, position))
    });
    Positions::new(all)
}

fn flags(tp: u32, pp: u32, order: Option<&str>) -> TopologyFlags {
    TopologyFlags {
        tp: Some(tp),
        pp: Some(pp),
        order: order.map(str::to_owned),
        ..TopologyFlags::default()
    }
}

fn places(topology: &Topology) -> Vec<(u32, u32, u32)> {
    let tuple = |place: &Place| (place.stage, place.pipeline, place.member);
    topology.places.iter().map(tuple).collect()
}

fn ranks(world: u32) -> Vec<u32> {
    (0..world).collect()
}

#[test]
fn flags_place_every_rank() {
    let topology = resolve(&ranks(8), Positions::default(), &flags(2, 2, None))
        .expect("sizes that fit")
        .topology;
    assert_eq!(topology.origin, TopologyOrigin::Flags);
    assert_eq!(
        topology.sizes,
        [("dp", 2), ("pp", 2), ("tp", 2)].map(|(g, n)| (g.to_owned(), n)).into()
    );
    let expected = [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (0, 1, 1),
        (1, 0, 0),
        (1, 0, 1),
        (1, 1, 0),
        (1, 1, 1),
    ];
    assert_eq!(places(&topology), expected);
    for order in ["tp-pp-dp", "tp-cp-ep-pp-dp", "tp-cp-pp-dp"] {
        let topology = resolve(&ranks(8), Positions::default(), &flags(2, 2, Some(order)))
            .expect(order)
            .topology;
        assert_eq!(places(&topology)[2..5], [(1, 0, 0), (1, 0, 1), (0, 1, 0)], "{order}");
    }
}

#[test]
fn missing_sizes_follow_from_the_world() {
    let of = |sizes: Known, world| complete(sizes, world, true).map(as_array);
    assert_eq!(of([Some(2), None, None, Some(4)], 32), Ok([2, 1, 4, 4]));
    assert_eq!(of([None, None, Some(4), Some(4)], 32), Ok([2, 1, 4, 4]));
    assert_eq!(of([Some(2), Some(2), Some(4), None], 32), Ok([2, 2, 4, 2]));
    assert_eq!(of([None, None, None, Some(4)], 32), Ok([1, 1, 8, 4]));
    assert_eq!(of([None, None, Some(32), None], 32), Ok([1, 1, 32, 1]));
    assert!(matches!(
        of([None, None, Some(4), None], 32),
        Err(TopologyError::Open { rest: 8, .. })
    ));
    let error = of([Some(2), None, None, Some(3)], 32).expect_err("6 does not divide 32");
    assert_eq!(
        error.to_string(),
        "tp 2 x cp 1 x pp 3 = 6 does not fit the job's 32 ranks (0 to the last that wrote rows)"
    );
    assert!(of([Some(2), Some(1), Some(2), Some(2)], 32).is_err(), "too few");
    assert!(of([Some(u32::MAX), Some(u32::MAX), Some(u32::MAX), Some(u32::MAX)], 32).is_err());
}

#[test]
fn rows_and_flags_must_agree() {
    let of = |flags: &TopologyFlags| {
        resolve(
            &ranks(8),
            rows_of(&ranks(8), |rank| (rank % 2, rank / 2 % 2, rank / 4)),
            flags,
        )
    };
    assert_eq!(
        of(&flags(2, 2, None)).expect("the same sizes").topology.origin,
        TopologyOrigin::Rows
    );
    assert!(of(&flags(2, 2, Some("tp-cp-ep-dp-pp"))).is_ok());
    let error = of(&flags(2, 4, None)).expect_err("two stages");
    assert_eq!(
        error.to_string(),
        "pp 4 was asked for, but the job's megatron_parallel_group_rank rows say pp 2"
    );
    let error = of(&flags(2, 2, Some("tp-pp-dp"))).expect_err("another order");
    assert_eq!(
        error.to_string(),
        "the order tp-pp-dp puts rank 2 at dp 0 but the job's megatron_parallel_group_rank rows say dp 1"
    );
    assert!(matches!(of(&flags(2, 2, Some("tp-dp"))), Err(TopologyError::Order(_))));
}

#[test]
fn an_order_alone_needs_sizes_from_somewhere() {
    let order = TopologyFlags {
        order: Some("tp-pp-dp".to_owned()),
        ..TopologyFlags::default()
    };
    let without = resolve(&ranks(8), Positions::default(), &order);
    assert_eq!(without.expect_err("no size"), TopologyError::NoSizes);
    let with = rows_of(&ranks(8), |rank| (rank % 2, rank / 4, rank / 2 % 2));
    assert!(resolve(&ranks(8), with, &order).is_ok());
}

#[test]
fn experts_must_fit_a_stage_and_move_nobody() {
    let with_ep = |ep| TopologyFlags {
        ep: Some(ep),
        ..flags(2, 2, None)
    };
    let topology = resolve(&ranks(8), Positions::default(), &with_ep(4))
        .expect("4 ranks a stage")
        .topology;
    assert_eq!(topology.sizes["ep"], 4);
    assert_eq!(topology.places[2].pipeline, 1);
    assert!(resolve(&ranks(8), Positions::default(), &with_ep(3)).is_err());
}

#[test]
fn rows_without_dp_are_numbered_in_rank_order() {
    // No order of the axes explains stages that are dealt in this way.
    let odd = [0, 1, 1, 0, 1, 0, 0, 1];
    let positions: Vec<_> = (0..8).map(|rank| ("pp", rank, odd[rank as usize])).collect();
    let topology = resolve(&ranks(8), rows(&positions), &TopologyFlags::default())
        .expect("rows")
        .topology;
    let expected = [0, 1, 1, 0, 1, 0, 0, 1].into_iter().zip([0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(places(&topology), expected.map(|(s, p)| (s, p, 0)).collect::<Vec<_>>());
}

#[test]
fn a_rank_without_rows_is_placed_by_the_order_of_the_others() {
    let at = |rank: u32| (rank % 2, rank / 4 % 2, rank / 2 % 2);
    let some: Vec<u32> = ranks(8).into_iter().filter(|rank| *rank != 5).collect();
    let resolved = resolve(&ranks(8), rows_of(&some, at), &TopologyFlags::default()).expect("rows");
    assert_eq!((places(&resolved.topology)[5], resolved.not_placed), ((0, 1, 1), 0));

    // Scrambled rows: the rank gets a pipeline of its own and is counted.
    let scrambled = |rank: u32| at([3, 0, 2, 7, 1, 5, 4, 6][rank as usize]);
    let resolved = resolve(&ranks(8), rows_of(&some, scrambled), &TopologyFlags::default()).expect("rows");
    assert_eq!((places(&resolved.topology)[5], resolved.not_placed), ((0, 2, 0), 1));
}

#[test]
fn twice_the_same_place_becomes_two_members() {
    let topology = resolve(
        &ranks(2),
        rows(&[("dp", 0, 0), ("dp", 1, 0)]),
        &TopologyFlags::default(),
    )
    .expect("rows")
    .topology;
    assert_eq!(places(&topology), [(0, 0, 0), (0, 0, 1)]);
    let largest = rows(&[
        ("dp", 0, u32::MAX),
        ("tp", 0, u32::MAX),
        ("cp", 0, u32::MAX),
        ("pp", 1, u32::MAX),
    ]);
    assert!(resolve(&ranks(2), largest, &TopologyFlags::default()).is_ok());
}

#[test]
fn one_rank_of_each_group_is_enough_for_flags() {
    let every_fourth: Vec<u32> = (0..16).map(|group| 4 * group).collect();
    let topology = resolve(&every_fourth, Positions::default(), &flags(4, 4, None))
        .expect("64 ranks")
        .topology;
    assert_eq!(topology.sizes["dp"], 4);
    assert_eq!(places(&topology)[5], (1, 1, 0));
}
