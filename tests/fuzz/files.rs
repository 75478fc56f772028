//! Files of columns with the places where they say how they are read.

use std::io::Cursor;
use std::ops::Range;

use polars::prelude::*;
use polars_parquet::parquet::page::CompressedPage;
use polars_parquet::read::PageReader;

use crate::random::Place;

/// A Parquet file with checksums and the second kind of data pages; `make.py` beside made it.
const CHECKED: &[u8] = include_bytes!("checked.parquet");
/// Bytes of a dictionary's header at least.
const DICTIONARY_HEADER: usize = 12;
/// Bytes in which the levels of a small page lie.
const LEVELS: usize = 48;

/// A file and its places.
pub type File = (Vec<u8>, Vec<Place>);

/// The rows of [`crate::common::slow_rank_5`] as a frame.
fn frame() -> DataFrame {
    let rows: Vec<(i64, u32)> = (1..=20)
        .flat_map(|iteration| (0..16).map(move |rank| (iteration, rank)))
        .collect();
    let texts = |name: &str, of: &dyn Fn(u32) -> String| {
        let texts: Vec<String> = rows.iter().map(|(_, rank)| of(*rank)).collect();
        Column::new(name.into(), texts)
    };
    let seconds = rows.iter().map(|&(iteration, rank)| {
        let uneven = 1.0 + 0.001 * f64::from((rank * 7 + iteration as u32 * 3) % 11);
        Series::new("".into(), [if rank == 5 { 1.5 * uneven } else { uneven }])
    });
    let times: Vec<i64> = rows
        .iter()
        .map(|(iteration, _)| 1_767_254_400 + 10 * iteration)
        .collect();
    let columns = vec![
        Column::new("timestamp".into(), times),
        texts("job", &|_| "job".to_owned()),
        texts("metric_name", &|_| "megatron_timers".to_owned()),
        texts("subname", &|_| "forward-compute".to_owned()),
        Column::new(
            "rank".into(),
            rows.iter().map(|(_, rank)| *rank as i32).collect::<Vec<_>>(),
        ),
        Column::new(
            "iteration".into(),
            rows.iter().map(|(iteration, _)| *iteration).collect::<Vec<_>>(),
        ),
        texts("node", &|rank| format!("gpu-{:03}", rank / 8)),
        Column::new("metric_values".into(), seconds.collect::<Vec<Series>>()),
        texts("attributes", &|_| "{}".to_owned()),
        texts("rerun_uuid", &|_| "r0".to_owned()),
    ];
    DataFrame::new(rows.len(), columns).expect("a frame")
}

/// A file of each codec, in three row groups.
pub fn parquets() -> Vec<(&'static str, File)> {
    let codecs = [
        ("plain.parquet", ParquetCompression::Uncompressed),
        ("snappy.parquet", ParquetCompression::Snappy),
        ("zstd.parquet", ParquetCompression::Zstd(None)),
    ];
    let file = |codec| {
        let mut bytes = Vec::new();
        ParquetWriter::new(&mut bytes)
            .with_compression(codec)
            .with_row_group_size(Some(120))
            .finish(&mut frame())
            .expect("written");
        let places = places_of_parquet(&bytes);
        (bytes, places)
    };
    codecs.into_iter().map(|(name, codec)| (name, file(codec))).collect()
}

pub fn checked_parquet() -> File {
    (CHECKED.to_vec(), places_of_parquet(CHECKED))
}

/// Headers of pages, levels, dictionaries and values, and the footer.
fn places_of_parquet(bytes: &[u8]) -> Vec<Place> {
    let metadata = ParquetReader::new(Cursor::new(bytes))
        .get_metadata()
        .cloned()
        .expect("a footer");
    let mut places = Vec::new();
    for chunk in metadata.row_groups.iter().flat_map(|group| group.parquet_columns()) {
        let (begin, end) = (chunk.byte_range().start as usize, chunk.byte_range().end as usize);
        let column = bytes[begin..end].to_vec();
        let pages = PageReader::new(Cursor::new(column.into()), chunk, Vec::new(), end - begin);
        // In files as small as these the last page is the only one of data.
        let last = pages.last().expect("a page").expect("a page");
        let CompressedPage::Data(page) = last else {
            panic!("the last page holds data")
        };
        let (header, body) = (chunk.data_page_offset() as usize, end - page.compressed_size());
        let place = |bytes: Range<usize>, tells: bool| Place {
            tells,
            numbers: tells,
            ..Place::of(bytes)
        };
        if header > begin {
            places.push(place(begin..begin + DICTIONARY_HEADER, true));
            places.push(place(begin + DICTIONARY_HEADER..header, false));
        }
        places.push(place(header..body, true));
        places.push(place(body..end, false));
        if chunk.descriptor().descriptor.max_rep_level > 0 {
            // The levels of rows and values are in front.
            places.push(place(body..(body + LEVELS).min(end), false));
        }
    }
    let footer = u32::from_le_bytes(bytes[bytes.len() - 8..bytes.len() - 4].try_into().expect("four bytes"));
    let begin = bytes.len() - 8 - footer as usize;
    let footer = Place {
        numbers: true,
        ..Place::of(begin..bytes.len())
    };
    let times = places.len() / 2;
    places.extend(std::iter::repeat_n(footer, times));
    places
}

/// Arrow files, as such and as streams, with their descriptions of batches.
pub fn arrows() -> Vec<(&'static str, File)> {
    let mut files = Vec::new();
    for (name, codec) in [
        ("plain.arrow", None),
        ("lz4.arrow", Some(IpcCompression::LZ4)),
        ("zstd.arrow", Some(IpcCompression::ZSTD(Default::default()))),
    ] {
        let mut whole = Vec::new();
        IpcWriter::new(&mut whole)
            .with_compression(codec)
            .finish(&mut frame())
            .expect("written");
        let end = whole.len();
        let places = vec![
            Place::of(8..1_000.min(end)),
            Place::of(end.saturating_sub(1_500)..end),
            Place::of(end.saturating_sub(400)..end),
            Place {
                tells: false,
                ..Place::of(0..end)
            },
        ];
        files.push((name, (whole, places)));
    }
    // A file is a stream between a mark and a footer.
    let (_, (file, _)) = &files[0];
    let footer = i32::from_le_bytes(file[file.len() - 10..file.len() - 6].try_into().expect("four bytes"));
    let stream = file[8..file.len() - 10 - footer as usize].to_vec();
    let end = stream.len();
    let places = vec![
        Place::of(0..1_500.min(end)),
        Place {
            tells: false,
            ..Place::of(0..end)
        },
    ];
    files.push(("stream.arrows", (stream, places)));
    files
}
