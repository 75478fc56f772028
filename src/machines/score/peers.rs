//! What healthy machines differ by: the scale that a machine's level of minutes is held against.
//!
//! It is the spread of the peers' levels of the same length, over machines and time: between machines (what they are built
//! with) and within each (how its level wanders). So the noise's memory is in it, however long. In the very minutes of a
//! stretch it is at least what the peers show then: all machines may change together, each by a little more or less.

use super::median;
use super::stretches::{Row, Stretches};

/// Outliers among the peers count as so many scales at most.
const CLIP: f64 = 3.0;
const NORMAL_MAD: f64 = 1.4826;
/// Variance of a median beside that of a mean.
const MEDIAN_VARIANCE: f64 = std::f64::consts::FRAC_PI_2;
const MOST_FREEDOM: f64 = 200.0;
/// What overlapping stretches tell more than those that follow each other.
const OVERLAP_GAIN: f64 = 4.0 / 3.0;
/// Of few peers the spread in one stretch is doubtful: as if so many more lay on the centre.
const DOUBTED_PEERS: f64 = 3.0;
/// Of few independent stretches the memory is doubtful: as if so many more had none.
const DOUBTED_STRETCHES: f64 = 10.0;

/// A mean square with its degrees of freedom.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spread {
    /// Mean square.
    pub square: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Spread {
    /// With a constant without doubt added to the square.
    #[must_use]
    pub fn plus(self, constant: f64) -> Self {
        Self::sum([self, Self::default()], constant)
    }

    /// Sum of two independent spreads (Satterthwaite 1946), and of a constant without doubt.
    fn sum(parts: [Self; 2], constant: f64) -> Self {
        let square = constant + parts[0].square + parts[1].square;
        let doubt: f64 = parts
            .iter()
            .map(|part| part.square.powi(2) / part.freedom.max(1.0))
            .sum();
        let freedom = if doubt > 0.0 {
            square * square / doubt
        } else {
            MOST_FREEDOM
        };
        Self {
            square,
            freedom: freedom.min(MOST_FREEDOM),
        }
    }
}

/// What one machine shows of a metric, before any is held against the others.
#[derive(Debug)]
pub struct Shown {
    /// Its usual level.
    usual: f32,
    /// What its blocks lie off that by.
    blocks: Vec<f32>,
    /// By stretch: its level.
    pub levels: Vec<Option<f32>>,
    /// By length: its levels over as much time as a burst leaves of a stretch.
    rests: Vec<Vec<f32>>,
}

impl Shown {
    /// Of one machine.
    #[must_use]
    pub fn new(row: &Row<'_>, plan: &Stretches) -> Self {
        let mut present: Vec<f32> = row.values.iter().copied().filter(|value| !value.is_nan()).collect();
        let usual = median(&mut present);
        let usual = if usual.is_nan() { 0.0 } else { usual };
        let levels = plan.all.iter().map(|stretch| row.mean(stretch.start, stretch.end));
        let blocks = row.blocks.iter().filter(|block| !block.is_nan());
        let rests = plan.lengths.iter().map(|&long| {
            let rest = long - plan.burst;
            let starts = (0..=row.values.len() - rest).step_by(plan.step);
            starts.filter_map(|start| row.mean(start, start + rest)).collect()
        });
        Self {
            rests: rests.collect(),
            usual,
            blocks: blocks.map(|block| block - usual).collect(),
            levels: levels.collect(),
        }
    }
}

/// What a machine is held against.
#[derive(Debug)]
pub struct Peers {
    /// By stretch: the peers' centre.
    pub centres: Vec<f32>,
    /// By length: what a healthy machine's level lies off the centre by.
    apart: Vec<Spread>,
    /// By length: the same of what a burst leaves of a stretch.
    rest: Vec<Spread>,
    /// By stretch: the mean square that the peers show meanwhile.
    meanwhile: Vec<f64>,
    /// How much slower than chance levels wander: the variance of the shortest stretches beside what it would be if their
    /// blocks were independent; 1 at least.
    pub memory: f64,
    machines: f64,
}

impl Peers {
    /// Of some machines, over so many windows. Levels are held against the median of all machines: a single machine moves
    /// it little, and towards itself, which is the safe side. Two faulty machines of six move it far; `centred`, levels are
    /// held against these peers' own median.
    #[must_use]
    pub fn new(peers: &[&Shown], plan: &Stretches, windows: usize, floor: f64, centred: bool) -> Self {
        let count = peers.len().max(2) as f64;
        let mut column = Vec::new();
        let mut centre_of = |values: &mut dyn Iterator<Item = f32>| {
            column.clear();
            column.extend(values);
            let middle = median(&mut column);
            if centred && !middle.is_nan() { middle } else { 0.0 }
        };
        let usual_centre = centre_of(&mut peers.iter().map(|shown| shown.usual));
        let centres: Vec<f32> = (0..plan.all.len())
            .map(|place| centre_of(&mut peers.iter().filter_map(|shown| shown.levels[place])))
            .collect();
        // Spreads about a median that was taken from the same few machines are too small, and the median itself is off.
        let correction = if centred {
            count / (count - 1.0) * (1.0 + MEDIAN_VARIANCE / count)
        } else {
            1.0
        };
        let square = |levels: &[f32]| correction * clipped_square(levels, floor);
        let usual: Vec<f32> = peers.iter().map(|shown| shown.usual - usual_centre).collect();
        let between = Spread {
            square: square(&usual),
            freedom: count,
        };
        let off_centre = |place: usize| {
            let levels = peers.iter().filter_map(move |shown| shown.levels[place]);
            let centre = centres[place];
            levels.map(move |level| level - centre)
        };
        let blocks: Vec<f32> = peers.iter().flat_map(|shown| &shown.blocks).copied().collect();
        let block = clipped_square(&blocks, floor) + floor * floor;
        let mut memory = 1.0;
        let apart: Vec<Spread> = plan
            .lengths
            .iter()
            .enumerate()
            .map(|(length, &long)| {
                let stretches = plan.all.iter().enumerate();
                let of_length = stretches.filter(|(_, stretch)| stretch.length == length);
                let levels: Vec<f32> = of_length.flat_map(|(place, _)| off_centre(place)).collect();
                // Stretches overlap: so many of each machine are independent, beside its usual level.
                let independent = (OVERLAP_GAIN * (windows as f64 / long as f64 - 1.0)).max(0.5);
                let within = Spread {
                    square: (square(&levels) - between.square).max(0.0),
                    freedom: count * independent,
                };
                if length == 0 {
                    let seen = within.square / block * long as f64 / plan.block as f64;
                    memory += (seen - 1.0).max(0.0) * within.freedom / (within.freedom + DOUBTED_STRETCHES);
                }
                Spread::sum([between, within], floor * floor)
            })
            .collect();
        let rest = (plan.lengths.iter().enumerate()).map(|(length, &long)| {
            let levels = peers.iter().flat_map(|shown| &shown.rests[length]);
            let levels: Vec<f32> = levels.map(|level| level - usual_centre).collect();
            let independent = (OVERLAP_GAIN * (windows as f64 / (long - plan.burst) as f64 - 1.0)).max(0.5);
            let within = Spread {
                square: (square(&levels) - between.square).max(0.0),
                freedom: count * independent,
            };
            Spread::sum([between, within], floor * floor)
        });
        let rest = rest.collect();
        let meanwhile = (0..plan.all.len()).map(|place| {
            let levels: Vec<f32> = off_centre(place).collect();
            let present = levels.len() as f64;
            square(&levels) * present / (present + DOUBTED_PEERS) + floor * floor
        });
        Self {
            apart,
            rest,
            memory,
            meanwhile: meanwhile.collect(),
            machines: count,
            centres,
        }
    }

    /// What a healthy machine's level in a stretch lies off the peers' centre by.
    #[must_use]
    pub fn apart(&self, place: usize, length: usize) -> Spread {
        let Spread { square, freedom } = self.apart[length];
        Spread {
            square: square.max(self.meanwhile[place]),
            freedom: freedom.max(self.machines),
        }
    }
}

impl Peers {
    /// What a healthy machine's level lies off the peers' centre by in what a burst leaves of a stretch.
    #[must_use]
    pub fn rest(&self, place: usize, length: usize) -> Spread {
        let Spread { square, freedom } = self.rest[length];
        Spread {
            square: square.max(self.meanwhile[place]),
            freedom: freedom.max(self.machines),
        }
    }
}

/// Mean square with outliers clipped.
fn clipped_square(values: &[f32], floor: f64) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let mut sizes: Vec<f32> = values.iter().map(|value| value.abs()).collect();
    let most = CLIP * (NORMAL_MAD * f64::from(median(&mut sizes)) + floor);
    let sum: f64 = values
        .iter()
        .map(|&value| f64::from(value).abs().min(most).powi(2))
        .sum();
    sum / values.len() as f64
}
