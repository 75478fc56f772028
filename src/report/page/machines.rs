//! Machines whose hardware metrics differ: the sentence, and the machine's curve beside the others'.

use maud::{Markup, html};

use crate::machines::page::PlottedCurve;
use crate::page::section;
use crate::report::summary::Summary;

/// Machines with a curve; the others are listed.
const CURVES: usize = 16;

/// The section; `None` without metrics.
pub(super) fn machines(summary: &Summary) -> Option<Markup> {
    let metrics = summary.machines.as_ref()?;
    let about = "Hardware metrics of the job's machines over the same time: each machine is held against the others. What the timers say \
                 decides; a machine that differs while no rank on it is slow is told, not blamed.";
    Some(section(
        "machines",
        "Machines",
        about,
        &html! {
            p { (metrics.compared()) "." }
            @for (at, machine) in metrics.different.iter().enumerate() {
                article class=(if machine.confirmed { "finding fault" } else { "finding" }) {
                    h3 { (machine.says) }
                    p.about { (format!("Score {:.1}, more than {:.1} is needed; healthy machines differ by about {:.3}.", machine.score, machine.threshold, machine.usual_difference)) }
                    @if at < CURVES { div data-at=(at) data-plot="curves" class="plot" style="height:260px" role="img" aria-label={ (machine.node) ", " (machine.metric) } {} }
                }
            }
            @for missing in &metrics.missing { p.about { (missing.node) " sends no samples at the end." } }
            @for note in &metrics.notes { p.about { (note) } }
        },
    ))
}

/// The curves of the section, in its order.
pub(super) fn curves(summary: &Summary) -> Vec<PlottedCurve> {
    let machines = summary.machines.iter().flat_map(|metrics| &metrics.different);
    machines
        .take(CURVES)
        .map(|machine| PlottedCurve::new(&machine.node, &machine.curve_start, &machine.curve))
        .collect()
}
