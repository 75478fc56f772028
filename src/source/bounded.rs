//! Input of which one record can't take everything: a quote that is left open would.

use std::io::{Error, Read, Result};

/// A longer line or record is no row, and would be held whole.
pub(super) const LONGEST: u64 = 64 << 20;

/// Gives no more than so many bytes between two calls of [`Bounded::renew`].
#[derive(Debug)]
pub(super) struct Bounded<R> {
    input: R,
    limit: u64,
    left: u64,
}

impl<R> Bounded<R> {
    pub fn new(input: R, limit: u64) -> Self {
        let left = limit;
        Self { input, limit, left }
    }

    /// To be called at the end of a record.
    pub fn renew(&mut self) {
        self.left = self.limit;
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.left == 0 {
            let size = self.limit >> 20;
            return Err(Error::other(format!(
                "the record does not end within {size} MB; is a quote left open?"
            )));
        }
        let read = self.input.read(buffer)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_may_be_many_but_none_may_be_long() {
        let text = "a,b\n".repeat(100_000) + "\"" + &"c,d\n".repeat(100_000);
        let mut reader = csv::ReaderBuilder::new()
            .buffer_capacity(1 << 10)
            .from_reader(Bounded::new(text.as_bytes(), 1 << 16));
        let mut record = csv::StringRecord::new();
        let mut records = 0;
        let error = loop {
            match reader.read_record(&mut record) {
                Ok(more) => assert!(more),
                Err(error) => break error.to_string(),
            }
            reader.get_mut().renew();
            records += 1;
        };
        assert_eq!(records, 99_999);
        assert!(error.contains("a quote left open"), "{error}");
    }
}
