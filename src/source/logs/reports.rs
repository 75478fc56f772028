//! What programs that look for slow ranks print: StragglerDetector, NVRx, FlagScale. They name extremes, which are
//! candidates and no proof.

use memchr::memmem;

use super::clean::launcher_prefix;
use super::measures::{after, integer, number, number_over, skip_blanks};

/// A rank with what a report says of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reported {
    /// Program and measure: `StragglerDetector/MxRtt`, `NVRx/relative`, `FlagScale/optimizer`.
    pub measure: String,
    pub rank: u32,
    /// Seconds, watts, degrees, per cent, MHz, TFLOP/s, or a score.
    pub value: f64,
    pub node: Option<String>,
    /// The step that the report names.
    pub step: Option<i64>,
}

/// The report that is being read.
#[derive(Debug, Default)]
pub(super) struct Reports {
    title: Option<&'static str>,
    section: Option<String>,
    step: Option<i64>,
    /// Reports seen so far.
    pub count: u64,
}

impl Reports {
    /// What a line reports; `None` for a line of something else.
    pub fn take(&mut self, line: &[u8]) -> Option<Vec<Reported>> {
        if let Some(extremes) = extremes(line) {
            self.count += 1;
            return Some(extremes);
        }
        if let Some(ranked) = ranked(line) {
            return Some(ranked);
        }
        self.nvrx(line).or_else(|| self.flagscale(line))
    }

    fn nvrx(&mut self, line: &[u8]) -> Option<Vec<Reported>> {
        for (mark, measure) in [
            ("GPU relative performance:", "NVRx/relative"),
            ("GPU individual performance:", "NVRx/individual"),
        ] {
            if memmem::find(line, mark.as_bytes()).is_some() {
                self.title = Some(measure);
                self.count += 1;
                return Some(Vec::new());
            }
        }
        if let Some(rest) = after(line, "STRAGGLER DETECTION WARNING").and_then(|rest| after(rest, "Affected ranks:")) {
            let of = |rank| reported("NVRx/warning", rank, 1.0);
            return Some(ranks_in(rest).into_iter().map(of).collect());
        }
        let rest = after(line, "Rank=")?;
        let (rank, rest) = integer(rest)?;
        let node = skip_blanks(after(rest, "Node=")?);
        let end = node.iter().position(|&byte| byte == b' ')?;
        let (score, rest) = number(after(&node[end..], "Score=")?, None)?;
        let whole = skip_blanks(rest).is_empty() && score.is_finite();
        let row = Reported {
            node: Some(String::from_utf8_lossy(&node[..end]).into_owned()),
            ..reported(self.title?, u32::try_from(rank).ok()?, score)
        };
        Some(if whole { vec![row] } else { Vec::new() })
    }

    fn flagscale(&mut self, line: &[u8]) -> Option<Vec<Reported>> {
        let lower = line.to_ascii_lowercase();
        if let Some(step) = after(&lower, "straggler report at step") {
            self.step = integer(skip_blanks(step)).map(|(step, _)| step);
            self.section = None;
            self.count += 1;
            return Some(Vec::new());
        }
        self.step?;
        let with_step = |row: Reported| Reported { step: self.step, ..row };
        if let Some(ranks) = after(&lower, "detected stragglers:") {
            let of = |rank| with_step(reported("FlagScale/detected", rank, 1.0));
            return Some(ranks_in(ranks).into_iter().map(of).collect());
        }
        let own = &line[launcher_prefix(line)..];
        let indent = own.iter().take_while(|&&byte| byte == b' ').count();
        let inside = &own[indent..];
        if let (2, Some(name)) = (indent, inside.strip_suffix(b":").and_then(super::grammar::plain_name)) {
            self.section = Some(name.to_owned());
            return Some(Vec::new());
        }
        let rest = inside.strip_prefix(b"Rank ").filter(|_| indent == 4)?;
        let (rank, rest) = integer(rest)?;
        let text = skip_blanks(after(rest, ":")?);
        let (value, rest) = number(text, None)?;
        let node = rank_node(inside);
        let value = match rest {
            b"ms" => number_over(text, None, 1e3)?.0,
            b"" => value,
            _ => return Some(Vec::new()),
        };
        let measure = format!("FlagScale/{}", self.section.as_deref()?);
        let row = Reported {
            node,
            ..with_step(reported(&measure, u32::try_from(rank).ok()?, value))
        };
        Some(vec![row])
    }

    /// Ends the report: what follows is of something else.
    pub fn close(&mut self) {
        (self.title, self.section, self.step) = (None, None, None);
    }

    /// Whether the lines of a report may follow.
    pub fn is_open(&self) -> bool {
        self.title.is_some() || self.step.is_some()
    }
}

fn reported(measure: &str, rank: u32, value: f64) -> Reported {
    Reported {
        measure: measure.to_owned(),
        rank,
        value,
        node: None,
        step: None,
    }
}

/// `Rank 3 (gpu-007): ...`
fn rank_node(text: &[u8]) -> Option<String> {
    let open = memchr::memchr(b'(', text)?;
    let close = memchr::memchr(b')', text).filter(|&close| close > open)?;
    Some(String::from_utf8_lossy(&text[open + 1..close]).into_owned())
}

/// `[3, 17]`
fn ranks_in(text: &[u8]) -> Vec<u32> {
    let Some(open) = memchr::memchr(b'[', text) else {
        return Vec::new();
    };
    // A list without its end was cut, and its last number with it.
    let Some(close) = memchr::memchr(b']', text).filter(|&close| close > open) else {
        return Vec::new();
    };
    let inside = String::from_utf8_lossy(&text[open + 1..close]).into_owned();
    inside.split(',').filter_map(|rank| rank.trim().parse().ok()).collect()
}

/// `MnRtt/Rnk: 3453.08ms/8 | MxRtt/Rnk: ...` of Megatron-LM's `--log-straggler`.
fn extremes(line: &[u8]) -> Option<Vec<Reported>> {
    memmem::find(line, b"Rtt/Rnk:")?;
    let fields = line.split(|&byte| byte == b'|').filter_map(|field| {
        let colon = memmem::find(field, b"/Rnk:")?;
        let name = std::str::from_utf8(field[..colon].trim_ascii()).ok()?;
        let text = skip_blanks(&field[colon + 5..]);
        let (_, rest) = number(text, None)?;
        let slash = memchr::memchr(b'/', rest)?;
        let (rank, end) = integer(&rest[slash + 1..])?;
        let unit = match &rest[..slash] {
            b"ms" => 1e3,
            b"us" => 1e6,
            // The program prints milliwatts behind a W.
            b"W" => 1e3,
            b"C" | b"%" | b"MHz" | b"TF" => 1.0,
            _ => return None,
        };
        let (value, _) = number_over(text, None, unit)?;
        let is_measure = name.starts_with("Mn") || name.starts_with("Mx");
        let whole = is_measure && value.is_finite() && skip_blanks(end).is_empty();
        let rank = u32::try_from(rank).ok()?;
        whole.then(|| reported(&format!("StragglerDetector/{name}"), rank, value))
    });
    Some(fields.collect())
}

/// `^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 296.02/0, 296.17/2,`: the slowest first.
fn ranked(line: &[u8]) -> Option<Vec<Reported>> {
    let rest = after(line, "^^^^ ")?;
    let measure = match rest {
        [b'B', b'o', b't', b't', b'o', b'm', ..] => "StragglerDetector/bottom",
        [b'T', b'o', b'p', ..] => "StragglerDetector/top",
        _ => return None,
    };
    let listed = after(rest, "Etpt(TF):")?;
    let entries = listed.split(|&byte| byte == b',').filter_map(|entry| {
        let (value, rest) = number(entry.trim_ascii(), None)?;
        let (rank, rest) = integer(rest.strip_prefix(b"/")?)?;
        let whole = rest.is_empty() && value.is_finite();
        whole.then(|| Some(reported(measure, u32::try_from(rank).ok()?, value)))?
    });
    Some(entries.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(lines: &str) -> Vec<(String, u32, f64)> {
        let mut reports = Reports::default();
        let rows = lines.lines().filter_map(|line| reports.take(line.as_bytes()));
        rows.flatten().map(|row| (row.measure, row.rank, row.value)).collect()
    }

    #[test]
    fn extremes_of_the_straggler_detector_have_their_units() {
        let line = "INFO:megatron.core.utils:[2026-01-14 23:07:56] | MnRtt/Rnk: 3453.08ms/8 | MxPwr/Rnk: 683801.00W/18 | \
                    MxTmp/Rnk: 65C/21 | MnDRtt/Rnk: 14270us/23 | MxEtpt/Rnk: 297.32TF/8";
        let of = |name: &str| format!("StragglerDetector/{name}");
        assert_eq!(
            all(line),
            [
                (of("MnRtt"), 8, 3.45308),
                (of("MxPwr"), 18, 683.801),
                (of("MxTmp"), 21, 65.0),
                (of("MnDRtt"), 23, 0.01427),
                (of("MxEtpt"), 8, 297.32)
            ]
        );
        let bottom = "^^^^ Bottom 4 Ranks with lowest  Etpt(TF): 343.94/21, 396.10/23,";
        assert_eq!(all(bottom), [(of("bottom"), 21, 343.94), (of("bottom"), 23, 396.1)]);
    }

    #[test]
    fn scores_belong_to_the_report_above_them() {
        let text = "INFO:x:GPU relative performance:\n Worst performing 1/8 ranks:\n  Rank=5 Node=n1 Score=0.61\n\
                    \nGPU individual performance:\n  Rank=6 Node=n2 Score=0.98\nSTRAGGLER DETECTION WARNING: x. Affected ranks: [5, 7]";
        assert_eq!(
            all(text),
            [
                ("NVRx/relative".to_owned(), 5, 0.61),
                ("NVRx/individual".to_owned(), 6, 0.98),
                ("NVRx/warning".to_owned(), 5, 1.0),
                ("NVRx/warning".to_owned(), 7, 1.0)
            ]
        );
        assert!(all("  Rank=5 Node=n1 Score=0.61").is_empty());
    }

    #[test]
    fn sections_of_flagscale_are_read_in_both_versions() {
        let text = "[default0]:=== Straggler Report at Step 10 ===\n[default0]:⚠️  Detected Stragglers: [3]\n\
                    [default0]:  optimizer:\n[default0]:    Min: 9.17ms, Max: 10.12ms\n[default0]:    Rank 1 (gpu-1): 10.12ms";
        assert_eq!(
            all(text),
            [
                ("FlagScale/detected".to_owned(), 3, 1.0),
                ("FlagScale/optimizer".to_owned(), 1, 0.01012)
            ]
        );
        let first =
            "=== straggler report at step 5 ===\nSection Scores:\n  forward:\n    Rank 2: 0.9876\n    Rank 3: 0.98ms5";
        assert_eq!(all(first), [("FlagScale/forward".to_owned(), 2, 0.9876)]);
    }
}
