//! Rows as text, and what happens to text: lines lost, repeated, torn, numbers that are none, foreign letters.

use crate::common;
use crate::random::{Place, Random, damage as damage_bytes};

/// What may stand where a number stood.
const NO_NUMBERS: [&str; 18] = [
    "NaN",
    "1e308",
    "-1",
    "",
    "null",
    "1e400",
    "0x10",
    "\u{661}",
    "99999999999999999999",
    "-0.0",
    "1e-320",
    "inf",
    "true",
    "\"\"",
    "[]",
    "{}",
    "2.5",
    "4294967296",
];
/// What may get in between.
const FOREIGN: [&[u8]; 14] = [
    b"\0",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\r\n\r\n",
    b"\"",
    b"\\",
    b",",
    b"\t",
    b"\xff",
    b"\xc3",
    "\u{2028}".as_bytes(),
    b"[",
    b"{",
];

pub fn ndjson() -> Vec<u8> {
    common::slow_rank_5("job").into_bytes()
}

pub fn csv(separator: char) -> Vec<u8> {
    let columns = [
        "timestamp",
        "job",
        "metric_name",
        "subname",
        "rank",
        "iteration",
        "metric_values",
        "node",
    ];
    let mut text = columns.join(&separator.to_string()) + "\n";
    for iteration in 1..=20_u32 {
        for rank in 0..16_u32 {
            let uneven = 1.0 + 0.001 * f64::from((rank * 7 + iteration * 3) % 11);
            let seconds = if rank == 5 { 1.5 * uneven } else { uneven };
            let cells = [
                (1_767_254_400 + 10 * iteration).to_string(),
                "job".to_owned(),
                "megatron_timers".to_owned(),
                "forward-compute".to_owned(),
                rank.to_string(),
                iteration.to_string(),
                format!("[{seconds}]"),
                format!("gpu-{:03}", rank / 8),
            ];
            text += &(cells.join(&separator.to_string()) + "\n");
        }
    }
    text.into_bytes()
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect()
}

/// Damages text; whether it left the line of names alone.
pub fn damage(bytes: &mut Vec<u8>, random: &mut Random) -> bool {
    if random.below(3) == 0 {
        let end = bytes.len();
        let places = [
            Place::of(0..end),
            Place::of(0..end.min(200)),
            Place::of(0..end.min(2_000)),
        ];
        let head = head_of(bytes);
        damage_bytes(bytes, &places, random);
        return head == head_of(bytes);
    }
    let mut lines = lines(bytes);
    let head = lines[0].clone();
    for _ in 0..1 + random.below(3) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(10) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => {
                let cut = random.below(lines[at].len());
                lines[at].truncate(cut);
            }
            4 | 5 => replace_a_number(&mut lines[at], random),
            6 | 7 => {
                let place = random.below(lines[at].len() + 1);
                let foreign = *random.pick(&FOREIGN);
                lines[at].splice(place..place, foreign.iter().copied());
            }
            8 => {
                let place = random.below(lines[at].len() + 1);
                let letter = *random.pick(b"[{\"\\x 1");
                let times = *random.pick(&[300, 3_000, 100_000]);
                lines[at].splice(place..place, std::iter::repeat_n(letter, times));
            }
            _ => {
                let copy = lines[at].clone();
                let times = *random.pick(&[2, 50, 400]);
                lines.splice(at..at, std::iter::repeat_n(copy, times));
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    let left_alone = lines.first() == Some(&head);
    *bytes = lines.concat();
    left_alone
}

fn head_of(bytes: &[u8]) -> Vec<u8> {
    bytes.split(|byte| *byte == b'\n').next().unwrap_or_default().to_vec()
}

fn replace_a_number(line: &mut Vec<u8>, random: &mut Random) {
    let is_part = |byte: &u8| byte.is_ascii_digit() || *byte == b'.';
    let begins: Vec<usize> = (0..line.len())
        .filter(|&at| is_part(&line[at]) && (at == 0 || !is_part(&line[at - 1])))
        .collect();
    if begins.is_empty() {
        return;
    }
    let begin = *random.pick(&begins);
    let length = line[begin..].iter().take_while(|byte| is_part(byte)).count();
    let text = *random.pick(&NO_NUMBERS);
    line.splice(begin..begin + length, text.bytes());
}
