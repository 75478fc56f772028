//! Damaged files by the thousand: an error, or all rows; never a crash, a hang, or memory without bounds.
//!
//! Each reader gets files that a seeded mutator damages where it hurts: page headers, footers, descriptions of record
//! batches, lengths, or anywhere. `MT_DETECTOR_FUZZ=N` damages N files for each reader; without it there are few, for a
//! test that takes seconds. A file that brings the process down is left in the folder that the test names at its start.

mod common;

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mt_detector::job::{Selection, load};
use mt_detector::source::discover;
use polars::prelude::*;

/// Files for each reader where nothing else is asked for.
const FEW: u64 = 400;
/// Bytes from the beginning of a column in which its first header lies.
const HEADER: usize = 48;

fn count() -> u64 {
    std::env::var("MT_DETECTOR_FUZZ")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(FEW)
}

/// SplitMix64: a sequence that depends on its seed alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Damages some bytes, mostly within one of the places.
fn damage(bytes: &mut Vec<u8>, places: &[Range<usize>], random: &mut Random) {
    for _ in 0..1 + random.below(3) {
        let place = match random.below(4) {
            0 => 0..bytes.len(),
            _ => places
                .get(random.below(places.len()))
                .cloned()
                .unwrap_or(0..bytes.len()),
        };
        let end = place.end.min(bytes.len());
        if place.start >= end {
            continue;
        }
        let at = place.start + random.below(end - place.start);
        match random.below(8) {
            0..=2 => bytes[at] ^= 1 << random.below(8),
            3 => bytes[at] = [0, 0x7f, 0x80, 0xff, 1, 0xfe][random.below(6)],
            4 => {
                let numbers = [
                    i64::MAX,
                    i64::MIN,
                    -1,
                    i64::from(i32::MAX),
                    i64::from(i32::MIN),
                    1 << 40,
                ];
                let number = numbers[random.below(numbers.len())].to_le_bytes();
                let length = if random.below(2) == 0 { 4 } else { 8 };
                for (slot, byte) in bytes[at..].iter_mut().zip(&number[..length]) {
                    *slot = *byte;
                }
            }
            5 => {
                // A number of seven bits a byte that is very large.
                for slot in bytes[at..].iter_mut().take(1 + random.below(4)) {
                    *slot |= 0x80;
                }
            }
            6 => {
                let length = (1 + random.below(16)).min(bytes.len() - at);
                let from = random.below(bytes.len() - length);
                bytes.copy_within(from..from + length, at);
            }
            _ => match random.below(3) {
                0 => bytes.truncate(at.max(1)),
                1 => drop(bytes.drain(at..(at + 1 + random.below(8)).min(bytes.len()))),
                _ => {
                    let some = bytes[at..(at + 1 + random.below(8)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, some);
                }
            },
        }
    }
}

/// The rows that were read, or nothing after an error; a crash ends the test.
fn rows_of(path: &Path) -> Option<u64> {
    let found = discover(&[path.to_owned()]).ok()?;
    let job = load(&found.files, &Selection::default(), &|_| ()).ok()?;
    Some(job.quality.rows_read + job.quality.rows_not_read)
}

/// Most memory that this process had so far, where the system tells.
fn peak_megabytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? >> 10)
}

/// Damages a file again and again. Where `told`, a file that is read after all has all of its rows.
fn fuzz(name: &str, whole: &[u8], places: &[Range<usize>], told: bool) {
    let folder = std::env::temp_dir().join(format!("mt-detector-fuzz-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let path: PathBuf = folder.join(name);
    fs::write(&path, whole).expect("a file");
    let clean = rows_of(&path).expect("the whole file");
    let before = peak_megabytes();
    let (mut refused, mut read) = (0, 0);
    for seed in 0..count() {
        let mut bytes = whole.to_vec();
        damage(&mut bytes, places, &mut Random(seed));
        fs::write(&path, &bytes).expect("a file");
        let began = Instant::now();
        let rows = rows_of(&path);
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{name}, seed {seed}: it hangs"
        );
        match rows {
            None => refused += 1,
            Some(rows) => {
                read += 1;
                assert!(
                    !told || rows == clean,
                    "{name}, seed {seed}: {rows} of {clean} rows and no error"
                );
            }
        }
    }
    if let (Some(before), Some(after)) = (before, peak_megabytes()) {
        assert!(after < before + 1_024, "{name}: {after} MB");
    }
    println!("{name}: {} damaged files, {refused} refused, {read} read", count());
    let _ = fs::remove_file(&path);
    let _ = fs::remove_dir(&folder);
}

fn frame() -> DataFrame {
    let file = fs::File::open(common::fixture("slow-rank.parquet")).expect("the fixture");
    ParquetReader::new(file).finish().expect("a frame")
}

/// A Parquet file of a codec, with the places of its headers and its footer.
fn parquet(codec: ParquetCompression) -> (Vec<u8>, Vec<Range<usize>>) {
    let mut bytes = Vec::new();
    let writer = ParquetWriter::new(&mut bytes)
        .with_compression(codec)
        .with_row_group_size(Some(2_000));
    writer.finish(&mut frame()).expect("written");
    let metadata = ParquetReader::new(std::io::Cursor::new(&bytes))
        .get_metadata()
        .cloned()
        .expect("a footer");
    let mut places = Vec::new();
    for chunk in metadata.row_groups.iter().flat_map(|group| group.parquet_columns()) {
        let begin = chunk.byte_range().start as usize;
        places.push(begin..begin + HEADER);
    }
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().expect("four bytes"));
    let begin = bytes.len() - 8 - footer as usize;
    places.extend(std::iter::repeat_n(begin..bytes.len(), 4));
    (bytes, places)
}

#[test]
fn damaged_parquet() {
    for (name, codec) in [
        ("snappy.parquet", ParquetCompression::Snappy),
        ("zstd.parquet", ParquetCompression::Zstd(None)),
        ("plain.parquet", ParquetCompression::Uncompressed),
    ] {
        let (whole, places) = parquet(codec);
        fuzz(name, &whole, &places, true);
    }
}

#[test]
fn damaged_arrow() {
    for (name, codec) in [("plain.arrow", None), ("lz4.arrow", Some(IpcCompression::LZ4))] {
        let mut whole = Vec::new();
        IpcWriter::new(&mut whole)
            .with_compression(codec)
            .finish(&mut frame())
            .expect("written");
        let end = whole.len();
        let places = [
            8..1_000.min(end),
            end.saturating_sub(1_500)..end,
            end.saturating_sub(400)..end,
        ];
        fuzz(name, &whole, &places, false);
    }
}

#[test]
fn damaged_text() {
    let rows = common::slow_rank_5("job");
    fuzz("rows.ndjson", rows.as_bytes(), std::slice::from_ref(&(0..2_000)), false);
    let mut csv = "timestamp,job,metric_name,subname,rank,iteration,metric_values,node\n".to_owned();
    for rank in 0..16 {
        for iteration in 1..20 {
            csv += &format!(
                "{},\"j\",megatron_timers,t,{rank},{iteration},[1.{rank}],n\n",
                1_767_254_400 + iteration
            );
        }
    }
    fuzz("rows.csv", csv.as_bytes(), &[0..200, 0..2_000], false);
    fuzz(
        "rows.tsv",
        csv.replace(',', "\t").as_bytes(),
        &[0..200, 0..2_000],
        false,
    );
}
