//! Megatron-LM's pipeline schedules, each as one list of operations a stage: what is replayed, and what is simulated.

mod flow;
mod interleaved;
mod one_f_one_b;

pub use flow::{Flow, Part};
pub use interleaved::Interleaved;
pub use one_f_one_b::{Direction, Half, Op, one_f_one_b};
