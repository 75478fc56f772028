//! The file beside an op trace that tells the sizes of its parallel groups.

use std::path::Path;

use crate::whatif::error::WhatIfError;

/// Sizes of the parallel groups; 0 where the file does not tell, so that the trace does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meta {
    /// Replicas.
    pub dp: usize,
    /// Factor of the replicas over which gradients are reduced besides.
    pub dsp: usize,
    /// Pipeline stages.
    pub pp: usize,
    /// Tensor-parallel ranks, which are one worker in the trace.
    pub tp: usize,
    /// Model chunks a stage.
    pub vpp: usize,
    /// All ranks of the job.
    pub world: usize,
}

impl Meta {
    /// Reads `key: value` lines, as YAML writes them; keys that are not sizes are passed over.
    ///
    /// # Errors
    /// A file that can't be read, a line without a key, a size that is no number.
    pub fn read(path: &Path) -> Result<Self, WhatIfError> {
        let text = std::fs::read_to_string(path).map_err(|error| WhatIfError::Read {
            path: path.to_owned(),
            reason: error.to_string(),
        })?;
        Self::parse(&text).map_err(|(line, reason)| WhatIfError::Meta {
            path: path.to_owned(),
            line,
            reason,
        })
    }

    fn parse(text: &str) -> Result<Self, (usize, String)> {
        let mut meta = Self::default();
        for (number, line) in text.lines().enumerate() {
            let content = line.split('#').next().unwrap_or_default().trim();
            if content.is_empty() || content == "---" {
                continue;
            }
            let Some((key, value)) = content.split_once(':') else {
                return Err((number + 1, format!("`{content}` is no `key: value`")));
            };
            let size = match key.trim() {
                "dp_size" => &mut meta.dp,
                "dsp_size" => &mut meta.dsp,
                "pp_size" => &mut meta.pp,
                "tp_size" => &mut meta.tp,
                "vpp_size" => &mut meta.vpp,
                "world_size" => &mut meta.world,
                _ => continue,
            };
            *size = match value.trim().parse() {
                Ok(number @ 1..) => number,
                _ => {
                    let reason = format!("`{}` is no size; write a whole number from 1", value.trim());
                    return Err((number + 1, reason));
                }
            };
        }
        Ok(meta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_the_rest_passed_over() {
        let meta = Meta::parse("trial_name: AR\ndp_size: 4 # replicas\n\npp_size: 2\nworld_size: 64\n").unwrap();
        let expected = Meta {
            dp: 4,
            pp: 2,
            world: 64,
            ..Meta::default()
        };
        assert_eq!(meta, expected);
    }

    #[test]
    fn what_is_no_size_is_told_with_its_line() {
        assert_eq!(Meta::parse("a: b\ndp_size: four").unwrap_err().0, 2);
        assert_eq!(Meta::parse("dp_size").unwrap_err().0, 1);
        assert!(Meta::parse("dp_size: 0").unwrap_err().1.contains("from 1"));
    }
}
