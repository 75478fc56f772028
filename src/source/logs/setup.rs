//! What a job prints of itself at its start: its sizes, its log interval, where it resumes.

use super::grammar::argument;
use super::measures::{after, integer, skip_blanks};
use crate::contract::rank_order::{DEFAULT_ORDER, Layout, Sizes};

/// More ranks than any job has; a larger number is damage.
const MOST_RANKS: usize = 1 << 20;
/// A longer interval is damage.
pub(super) const LONGEST_INTERVAL: i64 = 100_000;
/// The order of the axes with `--use-tp-pp-dp-mapping`.
pub(super) const PIPELINE_BEFORE_DATA: &str = "tp-cp-ep-pp-dp";

/// Sizes and settings of a job, as far as they were printed.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Setup {
    pub world: Option<usize>,
    pub tp: Option<usize>,
    pub pp: Option<usize>,
    pub cp: Option<usize>,
    pub ep: Option<usize>,
    pub pipeline_before_data: bool,
    /// `--log-interval`.
    pub log_interval: Option<i64>,
    /// The iteration of the checkpoint that was loaded.
    pub loaded: Option<i64>,
}

impl Setup {
    /// Takes what a line says of the job; whether it said something.
    pub fn take(&mut self, line: &[u8]) -> bool {
        if let Some((name, value)) = argument(line) {
            return self.take_argument(name, value);
        }
        if let Some(at) = after(line, "loaded checkpoint").and_then(|rest| after(rest, "at iteration")) {
            self.loaded = integer(skip_blanks(at)).map(|(iteration, _)| iteration);
            return self.loaded.is_some();
        }
        false
    }

    fn take_argument(&mut self, name: &str, value: &str) -> bool {
        let size = value.parse().ok().filter(|size| (1..=MOST_RANKS).contains(size));
        let interval = value
            .parse()
            .ok()
            .filter(|length| (1..=LONGEST_INTERVAL).contains(length));
        match name {
            "world_size" => self.world = size,
            "tensor_model_parallel_size" | "model_parallel_size" => self.tp = size,
            "pipeline_model_parallel_size" => self.pp = size,
            "context_parallel_size" => self.cp = size,
            "expert_model_parallel_size" => self.ep = size,
            "use_tp_pp_dp_mapping" => self.pipeline_before_data = value == "True",
            "log_interval" => self.log_interval = interval,
            _ => return false,
        }
        true
    }

    /// The sizes of the line that a job begins with: `using world size: 8, data-parallel size: 8, ...`.
    pub fn of_world_line(line: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(after(line, WORLD)?).replace(" and ", ", ");
        let mut parts = text.split(',');
        let size = |text: &str| integer(text.trim().as_bytes()).map(|(size, _)| size as usize);
        let known = |size: &usize| (1..=MOST_RANKS).contains(size);
        let mut setup = Self {
            world: parts.next().and_then(size).filter(known),
            ..Self::default()
        };
        for part in parts {
            let Some((name, value)) = part.rsplit_once(':') else {
                continue;
            };
            let value = size(value).filter(known);
            let name = name.trim().replace('-', " ");
            match name.trim_end_matches(" size") {
                "tensor model parallel" | "model parallel" => setup.tp = value,
                "pipeline model parallel" => setup.pp = value,
                "context parallel" => setup.cp = value,
                "expert model parallel" => setup.ep = value,
                _ => {}
            }
        }
        setup.world.is_some().then_some(setup)
    }

    /// The last rank, which prints since December 2020.
    pub fn last_rank(&self) -> Option<u32> {
        self.world.map(|world| (world - 1) as u32)
    }

    /// Each group with each rank's position in it; nothing where the sizes are not told or don't fit.
    pub fn positions(&self) -> Vec<(&'static str, Vec<usize>)> {
        let (Some(world), Some(tp)) = (self.world, self.tp) else {
            return Vec::new();
        };
        let (pp, cp) = (self.pp.unwrap_or(1), self.cp.unwrap_or(1));
        let replica = tp.saturating_mul(pp).saturating_mul(cp);
        if world % replica != 0 {
            return Vec::new();
        }
        let sizes = Sizes {
            tp,
            cp,
            ep: 1,
            dp: world / replica,
            pp,
        };
        let order = if self.pipeline_before_data {
            PIPELINE_BEFORE_DATA
        } else {
            DEFAULT_ORDER
        };
        let Ok(layout) = Layout::new(order, sizes) else {
            return Vec::new();
        };
        let places: Vec<_> = (0..world).map(|rank| layout.coordinates(rank)).collect();
        let mut groups = vec![
            ("tp", places.iter().map(|place| place.tp).collect()),
            ("pp", places.iter().map(|place| place.pp).collect()),
            ("dp", places.iter().map(|place| place.dp).collect::<Vec<_>>()),
        ];
        if cp > 1 {
            groups.push(("cp", places.iter().map(|place| place.cp).collect()));
        }
        // Experts lie across the ranks of a stage, those of a tensor group apart.
        if let Some(ep) = self.ep.filter(|&ep| ep > 1 && (world / pp).is_multiple_of(ep)) {
            let expert = |place: &crate::contract::rank_order::Coordinates| (place.dp * cp + place.cp) % ep;
            groups.push(("ep", places.iter().map(expert).collect()));
        }
        groups
    }

    /// Whether two setups are of different jobs.
    pub fn differs(&self, other: &Self) -> bool {
        let differ = |a: Option<usize>, b: Option<usize>| a.zip(b).is_some_and(|(a, b)| a != b);
        differ(self.world, other.world)
            || differ(self.tp, other.tp)
            || differ(self.pp, other.pp)
            || differ(self.cp, other.cp)
    }
}

const WORLD: &str = "using world size:";

/// Whether a line with the sizes breaks off at a terminal's width: it ends with a number.
pub(super) fn is_open_world_line(line: &[u8]) -> bool {
    after(line, WORLD).is_some() && !line.last().is_some_and(u8::is_ascii_digit) && line.len() >= 40
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_in_every_wording() {
        for line in [
            "using world size: 16, data-parallel size: 2, context-parallel size: 1, hierarchical context-parallel sizes: \
             None, tensor-model-parallel size: 2, pipeline-model-parallel size: 4",
            "using world size: 16, data-parallel-size: 2, tensor-model-parallel size: 2, pipeline-model-parallel size: 4 ",
        ] {
            let setup = Setup::of_world_line(line.as_bytes()).expect("sizes");
            assert_eq!((setup.world, setup.tp, setup.pp), (Some(16), Some(2), Some(4)));
            let groups = setup.positions();
            let of = |name: &str| groups.iter().find(|group| group.0 == name).map(|group| group.1[5]);
            // Rank 5: stage 1 begins with rank 4.
            assert_eq!((of("tp"), of("pp"), of("dp")), (Some(1), Some(1), Some(0)));
        }
        let old = Setup::of_world_line(b"using world size: 8 and model-parallel size: 2 ").expect("sizes");
        assert_eq!((old.world, old.tp, old.last_rank()), (Some(8), Some(2), Some(7)));
    }

    #[test]
    fn what_does_not_fit_places_nobody() {
        let setup = Setup::of_world_line(b"using world size: 10, tensor-model-parallel size: 4").expect("sizes");
        assert!(setup.positions().is_empty());
        assert_eq!(Setup::of_world_line(b"using world size: many"), None);
        let huge = Setup::of_world_line(b"using world size: 999999999999, tensor-model-parallel size: 1");
        assert_eq!(huge, None);
    }

    #[test]
    fn arguments_and_checkpoints_are_noticed() {
        let mut setup = Setup::default();
        assert!(setup.take(b"  log_interval .................................... 10"));
        assert!(setup.take(b"  successfully loaded checkpoint from /ckpt at iteration 5003"));
        assert!(!setup.take(b"  lr .............................................. 0.1"));
        assert_eq!((setup.log_interval, setup.loaded), (Some(10), Some(5003)));
    }
}
