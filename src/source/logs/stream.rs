//! Files one after the other as chunks whose lines were looked at.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::lines::Chunks;
use super::prepare::PreparedChunk;
use crate::source::compressed;
use crate::source::discover::SourceFile;
use crate::source::error::SourceError;

/// Chunks that a thread looks at between two meetings with the others.
const FOR_A_THREAD: usize = 4;

/// The chunks of some logs.
pub(super) struct Stream {
    /// Those that are still to be read, the next one last.
    files: Vec<SourceFile>,
    current: Option<(PathBuf, Chunks)>,
}

/// A chunk as it was read, or the end of a file with the number of lines that were passed over.
enum Piece {
    Chunk(Vec<u8>),
    End(u64),
}

impl Stream {
    pub fn new(files: &[&SourceFile]) -> Self {
        Self {
            files: files.iter().rev().map(|&file| file.clone()).collect(),
            current: None,
        }
    }

    /// The next chunks, some for each thread; none at the end of the last file.
    ///
    /// # Errors
    /// A file that can't be read.
    pub fn next(&mut self) -> Result<Vec<PreparedChunk>, SourceError> {
        let mut pieces = Vec::new();
        while pieces.len() < FOR_A_THREAD * rayon::current_num_threads().max(1) {
            let Some((path, chunks)) = &mut self.current else {
                let Some(file) = self.files.pop() else { break };
                let chunks = Chunks::new(compressed::open(&file)?).map_err(broken(&file.path))?;
                self.current = Some((file.path, chunks));
                continue;
            };
            match chunks.next().map_err(broken(path))? {
                Some(chunk) => pieces.push(Piece::Chunk(chunk)),
                None => {
                    pieces.push(Piece::End(chunks.take_too_long()));
                    self.current = None;
                }
            }
        }
        let prepared = pieces.into_par_iter().map(|piece| match piece {
            Piece::Chunk(bytes) => PreparedChunk::of(bytes),
            Piece::End(too_long) => PreparedChunk {
                too_long,
                ends_file: true,
                ..PreparedChunk::default()
            },
        });
        Ok(prepared.collect())
    }
}

fn broken(path: &Path) -> impl FnOnce(std::io::Error) -> SourceError {
    let path = path.to_owned();
    move |error| match error.kind() {
        ErrorKind::InvalidData | ErrorKind::InvalidInput | ErrorKind::Other => {
            SourceError::corrupt(path, "the compressed data", error)
        }
        _ => SourceError::io(path)(error),
    }
}
