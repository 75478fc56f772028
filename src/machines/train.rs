//! Models from tasks without faults.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::align::{grid, period_ms};
use super::detect::limits;
use super::model::filled_window;
use super::model::network::WINDOW;
use super::model::store::{ANY, Models, Stored, VERSION};
use super::model::train::{Training, train as train_network};
use super::names::Names;
use super::samples::Task;

/// How models are trained.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Seed, passes, patience.
    pub training: Training,
    /// Most windows a metric; they are taken evenly from all tasks.
    pub windows: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            training: Training::default(),
            windows: 100_000,
        }
    }
}

/// Every so many windows one is moved to another level. The networks see usual levels only, and a faulty machine's must
/// be reconstructed as faithfully.
const MOVED: usize = 2;
const LEVELS: (f32, f32) = (-0.3, 1.3);

/// Trains a network a metric on mostly healthy tasks, and one on all metrics for those without their own.
///
/// `tell` is given the metric, the epoch and the error.
#[must_use]
pub fn train(
    tasks: &[Task],
    names: &Names,
    settings: Settings,
    order: Vec<String>,
    made: String,
    tell: &dyn Fn(&str, usize, f64),
) -> Models {
    let mut by_metric: BTreeMap<String, Vec<[f32; WINDOW]>> = BTreeMap::new();
    for task in tasks {
        for metric in &task.metrics {
            let Some(period) = period_ms(metric) else { continue };
            let grid = grid(metric, task.length_ms, period);
            let (low, high) = limits(names, &metric.name, &grid);
            let windows = by_metric.entry(metric.name.clone()).or_default();
            let share = (settings.windows / tasks.len().max(1)).max(1);
            let each = (grid.moments * grid.values.len()).div_ceil(share).max(1);
            let mut window = [0.0; WINDOW];
            let rows = grid.values.iter().enumerate();
            let places = rows.flat_map(|(row, values)| {
                let last = values.len().saturating_sub(WINDOW - 1);
                (row % each..last).step_by(each).map(move |place| (values, place))
            });
            for (values, place) in places {
                if filled_window(&values[place..place + WINDOW], &mut window) {
                    windows.push(window.map(|value| (value - low) / (high - low)));
                }
            }
        }
    }
    let mut all = Vec::new();
    for windows in by_metric.values() {
        let each = (by_metric.len() * windows.len())
            .div_ceil(settings.windows.max(1))
            .max(1);
        all.extend(windows.iter().step_by(each).copied());
    }
    by_metric.insert(ANY.to_owned(), all);
    let mut networks = BTreeMap::new();
    for (name, mut windows) in by_metric {
        if windows.len() < 2 * WINDOW {
            continue;
        }
        move_some(&mut windows, settings.training.seed);
        let trained = train_network(&windows, settings.training, &|epoch, error| tell(&name, epoch, error));
        let stored = Stored {
            error: trained.error,
            epochs: trained.epochs,
            parameters: trained.network.parameters,
        };
        networks.insert(name, stored);
    }
    Models {
        version: VERSION,
        sizes: Models::SIZES,
        made,
        order,
        networks,
    }
}

fn move_some(windows: &mut [[f32; WINDOW]], seed: u64) {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed ^ 0x6d6f_7665);
    for window in windows.iter_mut().step_by(MOVED) {
        let mean = window.iter().sum::<f32>() / WINDOW as f32;
        let level = random.gen_range(LEVELS.0..LEVELS.1);
        *window = window.map(|value| (value - mean + level).clamp(-0.5, 1.5));
    }
}
