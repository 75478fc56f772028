//! A sequence that depends on its seed alone, and what may happen to bytes.

use std::ops::Range;

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

/// A part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub bytes: Range<usize>,
    /// Whether the file says there how it is read. What stands elsewhere are values: another one may be as good.
    pub tells: bool,
    /// Whether numbers of seven bits a byte stand there.
    pub numbers: bool,
}

impl Place {
    pub fn of(bytes: Range<usize>) -> Self {
        Self {
            bytes,
            tells: true,
            numbers: false,
        }
    }
}

/// Numbers that lengths and counts should never be.
const ODD: [i64; 12] = [
    0,
    1,
    2,
    -1,
    i64::MAX,
    i64::MIN,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 40,
    65_535,
    1_000_000,
    -2,
];

/// Damages some bytes, mostly in one of the places; whether all of it lies where the file says how it is read.
pub fn damage(bytes: &mut Vec<u8>, places: &[Place], random: &mut Random) -> bool {
    let mut tells = true;
    for _ in 0..1 + random.below(3) {
        let anywhere = Place {
            bytes: 0..bytes.len(),
            tells: false,
            numbers: false,
        };
        let place = if places.is_empty() || random.below(6) == 0 {
            anywhere
        } else {
            random.pick(places).clone()
        };
        let end = place.bytes.end.min(bytes.len());
        if place.bytes.start >= end {
            continue;
        }
        let at = place.bytes.start + random.below(end - place.bytes.start);
        tells &= place.tells && one(bytes, at, end, place.numbers, random);
    }
    tells
}

/// Damages what stands at a place; whether it stays within.
fn one(bytes: &mut Vec<u8>, at: usize, end: usize, numbers: bool, random: &mut Random) -> bool {
    if numbers && random.below(3) == 0 {
        return another_number(bytes, at, end, random);
    }
    match random.below(9) {
        0..=3 => bytes[at] ^= 1 << random.below(8),
        4 => bytes[at] = *random.pick(&[0, 0x7f, 0x80, 0xff, 1, 0xfe]),
        5 => {
            let number = random.pick(&ODD).to_le_bytes();
            let length = *random.pick(&[2, 4, 8]);
            for (slot, byte) in bytes[at..end].iter_mut().zip(&number[..length]) {
                *slot = *byte;
            }
        }
        6 => {
            // A number of seven bits a byte that is very large.
            for slot in bytes[at..end].iter_mut().take(1 + random.below(4)) {
                *slot |= 0x80;
            }
        }
        7 => {
            let length = (1 + random.below(16)).min(end - at);
            let from = random.below(bytes.len() - length);
            bytes.copy_within(from..from + length, at);
        }
        _ => {
            match random.below(3) {
                0 => bytes.truncate(at.max(1)),
                1 => drop(bytes.drain(at..(at + 1 + random.below(8)).min(bytes.len()))),
                _ => {
                    let some = bytes[at..(at + 1 + random.below(8)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, some);
                }
            }
            // What stands behind has moved.
            return false;
        }
    }
    true
}

/// Another number of as many bytes, of seven bits each.
fn another_number(bytes: &mut [u8], at: usize, end: usize, random: &mut Random) -> bool {
    let length = bytes[at..end].iter().take_while(|byte| **byte >= 0x80).count() + 1;
    let last = (at + length).min(end);
    let mut number = random.pick(&ODD).wrapping_add(random.below(3) as i64 - 1) as u64;
    for slot in &mut bytes[at..last] {
        *slot = (number & 0x7f) as u8 | 0x80;
        number >>= 7;
    }
    bytes[last - 1] &= 0x7f;
    true
}
