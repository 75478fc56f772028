//! One question: what would the steps take if this were mended?

use std::fmt;
use std::str::FromStr;

/// What is asked for, written `rank:5`, `link:4-8`, `stages` or `data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// A rank takes as long as its peers.
    Rank(u32),
    /// Transfers between two ranks take as long as elsewhere.
    Link(u32, u32),
    /// No stage has more work than the others.
    Stages,
    /// Every worker has the same load in all steps.
    Data,
}

impl FromStr for Question {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("`{text}` is nothing to mend; write rank:5, link:4-8, stages or data");
        let rank = |text: &str| text.parse::<u32>().map_err(|_| unknown());
        match text.split_once(':') {
            None if text == "stages" => Ok(Self::Stages),
            None if text == "data" => Ok(Self::Data),
            Some(("rank", number)) => Ok(Self::Rank(rank(number)?)),
            Some(("link", ends)) => {
                let (one, other) = ends.split_once('-').ok_or_else(unknown)?;
                Ok(Self::Link(rank(one)?, rank(other)?))
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rank(rank) => write!(out, "rank:{rank}"),
            Self::Link(one, other) => write!(out, "link:{one}-{other}"),
            Self::Stages => out.write_str("stages"),
            Self::Data => out.write_str("data"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read_and_written_back() {
        for text in ["rank:5", "link:4-8", "stages", "data"] {
            assert_eq!(text.parse::<Question>().unwrap().to_string(), text);
        }
        for text in ["", "rank", "rank:x", "rank:-1", "link:4", "stage", "stages:1"] {
            assert!(text.parse::<Question>().unwrap_err().contains("rank:5"), "{text}");
        }
    }
}
