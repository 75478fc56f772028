//! The releases of megatron-core that `versions.txt` lists, fetched once for all checkouts.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{RECORDER, skip_without};
use crate::training::here;

/// A release, oldest first in a list.
pub struct Release {
    pub version: &'static str,
    /// The folder that holds its `megatron/core`.
    pub folder: PathBuf,
}

/// The releases, or nothing and a message where they can't be had; a panic where they are required.
pub fn releases() -> Option<&'static [Release]> {
    static RELEASES: OnceLock<Result<Vec<Release>, String>> = OnceLock::new();
    let releases = RELEASES.get_or_init(fetch).as_ref();
    releases
        .map_err(|reason| skip_without(RECORDER, reason))
        .ok()
        .map(Vec::as_slice)
}

fn fetch() -> Result<Vec<Release>, String> {
    let temporary = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let cache = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/mt-detector-tests"));
    let cache = cache
        .filter(|cache| std::fs::create_dir_all(cache).is_ok())
        .unwrap_or(temporary);
    let output = Command::new("python3")
        .arg(here().join("fetch.py"))
        .arg(&cache)
        .output()
        .map_err(|error| format!("python3: {error}"))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(words.lines().next_back().unwrap_or("fetch.py fails").to_owned());
    }
    let listed = include_str!("versions.txt")
        .lines()
        .filter(|line| !line.starts_with('#'));
    let versions = listed.filter_map(|line| line.split_whitespace().next());
    Ok(versions
        .map(|version| Release {
            version,
            folder: cache.join(format!("megatron-core-{version}")),
        })
        .collect())
}
