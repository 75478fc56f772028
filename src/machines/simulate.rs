//! Tasks with known faults.
//!
//! Types of faults, their shares and which metrics show them are those of the paper's Table 1; durations mostly lie between
//! four and seven minutes, some last to half an hour. Around them: a common rhythm of the job, machines that are built a
//! little differently, levels that wander, bursts of jitter, glitches, gaps and clocks that are off.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::samples::{Metric, Quality, Series, Task};

/// A metric that is simulated.
struct Shape {
    name: &'static str,
    /// Column of the paper's table that shows it.
    group: Group,
    level: f32,
    /// Amplitude of the job's rhythm, as a share of the level.
    rhythm: f32,
    /// Noise of a sample, as a share of the level.
    noise: f32,
    limits: (f32, f32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Cpu,
    Gpu,
    Pfc,
    Throughput,
    Disk,
    Memory,
}

const GROUPS: [Group; 6] = [
    Group::Cpu,
    Group::Gpu,
    Group::Pfc,
    Group::Throughput,
    Group::Disk,
    Group::Memory,
];

const SHAPES: [Shape; 10] = [
    shape("pfc_tx_packet_rate", Group::Pfc, 2.5, 0.35, 0.5, (0.0, 1e6)),
    shape("cpu_usage", Group::Cpu, 46.0, 0.08, 0.08, (0.0, 100.0)),
    shape("gpu_duty_cycle", Group::Gpu, 91.0, 0.04, 0.03, (0.0, 100.0)),
    shape("gpu_power_draw", Group::Gpu, 315.0, 0.07, 0.05, (0.0, 700.0)),
    shape("gpu_graphics_engine_activity", Group::Gpu, 0.8, 0.05, 0.05, (0.0, 1.0)),
    shape("gpu_tensor_core_activity", Group::Gpu, 0.46, 0.15, 0.08, (0.0, 1.0)),
    shape("nvlink_bandwidth", Group::Gpu, 190.0, 0.2, 0.1, (0.0, 900.0)),
    shape("nic_throughput", Group::Throughput, 6.1, 0.2, 0.1, (0.0, 25.0)),
    shape("memory_usage", Group::Memory, 60.0, 0.01, 0.01, (0.0, 100.0)),
    shape("disk_usage", Group::Disk, 43.0, 0.0, 0.01, (0.0, 100.0)),
];

const fn shape(name: &'static str, group: Group, level: f32, rhythm: f32, noise: f32, limits: (f32, f32)) -> Shape {
    Shape {
        name,
        group,
        level,
        rhythm,
        noise,
        limits,
    }
}

/// A type of fault: name, share in per cent, and how often each group of metrics shows it, in per cent.
struct FaultType(&'static str, f32, [f32; 6]);

const FAULT_TYPES: [FaultType; 10] = [
    FaultType("ecc-error", 38.9, [80.0, 65.7, 8.6, 45.7, 11.4, 57.1]),
    FaultType("pcie-downgrade", 6.6, [0.0, 8.3, 100.0, 33.3, 8.3, 0.0]),
    FaultType("nic-dropout", 5.7, [100.0, 100.0, 0.0, 100.0, 0.0, 100.0]),
    FaultType("gpu-card-drop", 2.0, [75.0, 70.0, 5.0, 50.0, 20.0, 55.0]),
    FaultType("nvlink-error", 1.7, [83.3, 50.0, 16.7, 50.0, 0.0, 66.7]),
    FaultType("aoc-error", 0.9, [25.0, 25.0, 0.0, 25.0, 25.0, 25.0]),
    FaultType("cuda-execution-error", 14.6, [61.9, 57.1, 19.0, 33.3, 14.3, 61.9]),
    FaultType("gpu-execution-error", 7.7, [50.0, 71.4, 14.3, 42.9, 21.4, 42.8]),
    FaultType("hdfs-error", 5.7, [57.1, 57.1, 0.0, 14.3, 0.0, 14.3]),
    FaultType("machine-unreachable", 6.0, [47.4, 63.2, 0.0, 53.6, 26.3, 15.8]),
];

/// Names of the fault types.
#[must_use]
pub fn fault_types() -> Vec<&'static str> {
    FAULT_TYPES.iter().map(|fault| fault.0).collect()
}

/// What a task is drawn from.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Seed of everything drawn.
    pub seed: u64,
    /// Machines; drawn between 4 and 256 when `None`.
    pub machines: Option<usize>,
    /// Seconds; drawn between 12 and 15 minutes when `None`.
    pub seconds: Option<u32>,
    /// Fault type, or `healthy`; drawn with the published shares, a quarter healthy, when `None`.
    pub fault: Option<String>,
    /// Number of metrics, the first ones of the list; all ten when `None`.
    pub metrics: Option<usize>,
}

/// What is true of a simulated task; the form of `labels.json`.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Label {
    /// Number of machines.
    pub machines: usize,
    /// Type of the fault; `none` without.
    pub fault: String,
    /// The faulty machine.
    pub faulty_node: Option<String>,
    /// The faulty machines where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faulty_nodes: Option<Vec<String>>,
    /// Start of the fault in seconds from the task's start.
    pub onset_s: Option<f64>,
    /// End of the fault.
    pub halt_s: Option<f64>,
    /// Metrics that show the fault.
    #[serde(default)]
    pub abnormal_metrics: Option<Vec<String>>,
    /// How strongly the metrics show it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub z_long: Option<f64>,
}

/// Standard normal draws, two at a time (Box and Muller).
struct Normals {
    random: Xoshiro256PlusPlus,
    kept: Option<f32>,
}

impl Normals {
    fn draw(&mut self) -> f32 {
        if let Some(kept) = self.kept.take() {
            return kept;
        }
        let radius = (-2.0 * self.random.gen_range(f32::MIN_POSITIVE..1.0).ln()).sqrt();
        let (sine, cosine) = self.random.gen_range(0.0..std::f32::consts::TAU).sin_cos();
        self.kept = Some(radius * sine);
        radius * cosine
    }

    fn between(&mut self, low: f32, high: f32) -> f32 {
        self.random.gen_range(low..high)
    }

    fn happens(&mut self, probability: f32) -> bool {
        self.random.r#gen::<f32>() < probability
    }
}

struct Fault {
    node: usize,
    onset: f32,
    halt: f32,
    shown: Vec<Group>,
    name: &'static str,
}

/// A stretch in which one machine's reading is off by a factor, and that passes.
struct Burst {
    node: usize,
    begin: f32,
    end: f32,
    factor: f32,
}

/// Draws a task.
#[must_use]
pub fn simulate(plan: &Plan) -> (Task, Label) {
    let mut draw = Normals {
        random: Xoshiro256PlusPlus::seed_from_u64(plan.seed),
        kept: None,
    };
    // Sizes by their logarithm: many small tasks, some large ones.
    let machines = plan
        .machines
        .unwrap_or_else(|| 2.0_f32.powf(draw.between(2.0, 8.0)).round() as usize);
    let seconds = plan.seconds.unwrap_or_else(|| draw.random.gen_range(720..=900));
    let fault = draw_fault(plan, machines, seconds as f32, &mut draw);
    let nodes: Vec<String> = (0..machines).map(|node| format!("node-{node:04}")).collect();
    let rhythm_s = draw.between(3.0, 20.0);
    let wander_s = draw.between(150.0, 600.0);
    let wander = draw.between(0.0, 0.05);
    // Of some tasks the phases move: for a while the whole job idles.
    let idle = draw.happens(0.3).then(|| {
        let begin = draw.between(0.0, seconds as f32);
        (begin, begin + draw.between(15.0, 60.0))
    });
    let clock_off: Vec<f32> = (0..machines).map(|_| draw.between(-1.0, 1.0)).collect();
    let lags: Vec<f32> = (0..machines).map(|_| draw.between(-0.3, 0.3)).collect();
    let count = plan.metrics.unwrap_or(SHAPES.len()).clamp(1, SHAPES.len());
    let mut metrics = Vec::with_capacity(count);
    for shape in &SHAPES[..count] {
        let bursts = draw_bursts(machines, seconds as f32, &mut draw);
        let strength = draw_strength(shape, fault.as_ref(), &mut draw);
        let peers_dip = if strength.is_some() {
            draw.between(0.0, 0.08)
        } else {
            0.0
        };
        let mut series = Vec::with_capacity(machines);
        for node in 0..machines {
            let built = 1.0 + 0.008 * draw.draw();
            let own_bursts: Vec<&Burst> = bursts.iter().filter(|burst| burst.node == node).collect();
            let gap_begin = if draw.happens(0.05) {
                draw.between(0.0, seconds as f32)
            } else {
                f32::INFINITY
            };
            let gap_end = gap_begin + draw.between(2.0, 20.0);
            let mut own = Series::default();
            let mut drift = 0.0_f32;
            for second in 0..seconds {
                let jitter = draw.between(-0.2, 0.2);
                // The noise is drawn for lost samples too, so that a lost sample changes nothing else.
                let noise = draw.draw();
                drift = 0.98 * drift + 0.2 * draw.draw();
                let lost = draw.happens(0.004);
                let glitch = draw.happens(0.001);
                let time = second as f32;
                if lost || (gap_begin..gap_end).contains(&time) {
                    continue;
                }
                let phase = std::f32::consts::TAU * (time + lags[node]) / rhythm_s;
                let slow = 1.0 + wander * (std::f32::consts::TAU * time / wander_s).sin();
                let mut value = shape.level * built * slow * (1.0 + shape.rhythm * phase.sin());
                if idle.is_some_and(|(begin, end)| (begin..end).contains(&(time + lags[node]))) && shape.rhythm > 0.02 {
                    value *= 0.4;
                }
                for burst in &own_bursts {
                    if (burst.begin..burst.end).contains(&time) {
                        value *= burst.factor;
                    }
                }
                if let (Some(fault), Some(factor)) = (&fault, strength)
                    && (fault.onset..fault.halt).contains(&time)
                {
                    value *= if fault.node == node { factor } else { 1.0 - peers_dip };
                }
                // The drift's own spread is 1; levels of minutes wander by about a tenth of the noise.
                value += shape.noise * shape.level * (noise + 0.3 * drift);
                if glitch {
                    value = if noise > 0.0 { 0.0 } else { value * 2.0 };
                }
                let at = ((time + clock_off[node] * 0.5 + jitter) * 1000.0).max(0.0) as i32;
                if own.times_ms.last().is_none_or(|&last| last < at) {
                    own.times_ms.push(at);
                    own.values.push(value.clamp(shape.limits.0, shape.limits.1));
                }
            }
            series.push(own);
        }
        metrics.push(Metric {
            name: shape.name.to_owned(),
            series,
        });
    }
    metrics.sort_by(|a, b| a.name.cmp(&b.name));
    let label = label_of(fault.as_ref(), machines, count, &nodes);
    let samples = metrics
        .iter()
        .flat_map(|metric| &metric.series)
        .map(|series| series.times_ms.len() as u64)
        .sum();
    let task = Task {
        job: format!("task-{:05}", plan.seed),
        start_ms: 1_775_034_000_000,
        length_ms: seconds as i32 * 1000,
        nodes,
        metrics,
        quality: Quality {
            samples,
            ..Quality::default()
        },
    };
    (task, label)
}

fn label_of(fault: Option<&Fault>, machines: usize, count: usize, nodes: &[String]) -> Label {
    let Some(fault) = fault else {
        return Label {
            machines,
            fault: "none".to_owned(),
            abnormal_metrics: Some(Vec::new()),
            ..Label::default()
        };
    };
    let shown = SHAPES[..count]
        .iter()
        .filter(|shape| fault.shown.contains(&shape.group));
    Label {
        machines,
        fault: fault.name.to_owned(),
        faulty_node: Some(nodes[fault.node].clone()),
        onset_s: Some(f64::from(fault.onset)),
        halt_s: Some(f64::from(fault.halt)),
        abnormal_metrics: Some(shown.map(|shape| shape.name.to_owned()).collect()),
        ..Label::default()
    }
}

fn draw_fault(plan: &Plan, machines: usize, seconds: f32, draw: &mut Normals) -> Option<Fault> {
    const HEALTHY_SHARE: f32 = 0.25;
    let healthy = draw.happens(HEALTHY_SHARE);
    let total: f32 = FAULT_TYPES.iter().map(|fault| fault.1).sum();
    let mut place = draw.between(0.0, total);
    let drawn = FAULT_TYPES.iter().find(|fault| {
        place -= fault.1;
        place <= 0.0
    });
    let chosen = match plan.fault.as_deref() {
        Some(name) => FAULT_TYPES.iter().find(|fault| fault.0 == name),
        None if healthy => None,
        None => drawn,
    };
    let node = draw.random.gen_range(0..machines);
    // A tenth ends within four minutes, most between four and seven, some last on.
    let length = match draw.between(0.0, 1.0) {
        share if share < 0.1 => draw.between(120.0, 240.0),
        share if share < 0.8 => draw.between(250.0, 420.0),
        _ => draw.between(420.0, 1800.0),
    };
    let onset = draw.between(30.0, (seconds - 270.0).max(31.0));
    let shown_draws: [f32; 6] = std::array::from_fn(|_| draw.between(0.0, 100.0));
    chosen.map(|fault| Fault {
        node,
        onset,
        halt: (onset + length).min(seconds),
        shown: GROUPS
            .into_iter()
            .zip(fault.2)
            .zip(shown_draws)
            .filter(|((_, share), draw)| draw < share)
            .map(|((group, _), _)| group)
            .collect(),
        name: fault.0,
    })
}

/// What the faulty machine's readings are multiplied by.
fn draw_strength(shape: &Shape, fault: Option<&Fault>, draw: &mut Normals) -> Option<f32> {
    let (size, up) = (draw.between(0.08, 0.6), draw.happens(0.2));
    let surge = draw.between(2.0, 5.0).exp();
    let memory = 1.0 + draw.between(0.05, 0.3) * if draw.happens(0.5) { 1.0 } else { -1.0 };
    let fault = fault?;
    fault.shown.contains(&shape.group).then_some(match shape.group {
        Group::Pfc => surge,
        Group::Memory | Group::Disk => memory,
        Group::Cpu if up => 1.0 + size,
        _ => 1.0 - size,
    })
}

/// Jitter: a machine is off for 20 to 150 seconds.
fn draw_bursts(machines: usize, seconds: f32, draw: &mut Normals) -> Vec<Burst> {
    let expected = 0.1 * machines as f32 * seconds / 900.0 + 0.3;
    let count = expected as usize + usize::from(draw.happens(expected.fract()));
    // One a machine: two that join would last like a fault, and the label would be untrue.
    let mut places: Vec<usize> = (0..machines).collect();
    places.shuffle(&mut draw.random);
    places
        .into_iter()
        .take(count)
        .map(|node| {
            let begin = draw.between(0.0, seconds);
            Burst {
                node,
                begin,
                end: begin + draw.between(20.0, 150.0),
                factor: 1.0 + draw.between(0.05, 0.3) * if draw.happens(0.5) { 1.0 } else { -1.0 },
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_draws_the_same_task_and_faults_have_their_shares() {
        let plan = Plan {
            seed: 5,
            machines: Some(4),
            ..Plan::default()
        };
        assert_eq!(simulate(&plan), simulate(&plan));
        let mut healthy = 0;
        for seed in 0..200 {
            let mut draw = Normals {
                random: Xoshiro256PlusPlus::seed_from_u64(seed),
                kept: None,
            };
            healthy += usize::from(draw_fault(&Plan::default(), 8, 900.0, &mut draw).is_none());
        }
        assert!((30..=70).contains(&healthy), "{healthy}");
    }
}
