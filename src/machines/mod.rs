//! The faulty machine of a training job, from hardware metrics (Minder: Deng et al., NSDI 2025).
//!
//! In a balanced job all machines' metrics move alike; the faulty one is the one that looks different, lastingly. Data
//! flows through the modules in this order: [`input`] (files -> [`samples`]), [`align`] (a common grid), [`model`]
//! (denoised windows), [`score`] (how different each machine is), [`silent`] (sensors that stand still, machines that
//! send nothing), [`detect`] (the [`verdict`]), [`text`]. [`simulate`] draws tasks with known faults, [`train`] makes
//! models of healthy ones, [`order`] learns which metrics to ask first, [`evaluate`] holds verdicts against the truth.
//!
//! In: samples of hardware metrics. Out: a verdict on machines. May use: `stats`, `contract`, `building`; nothing that knows timers.

pub mod align;
pub mod detect;
mod error;
pub mod evaluate;
pub mod files;
mod finding;
pub mod input;
pub mod method;
pub mod model;
pub mod names;
pub mod order;
pub mod page;
pub mod samples;
pub mod score;
pub mod silent;
pub mod simulate;
pub mod span;
pub mod text;
pub mod train;
pub mod verdict;
pub mod write;

pub use error::MachinesError;
