//! The name of a job's own result folder.

use std::hash::{Hash as _, Hasher as _};

use rustc_hash::FxHasher;

/// Letters of a job's id that its folder's name shows.
const SHOWN: usize = 100;

/// A folder's name for a job id, which may hold any character: the id itself where it is a plain name, else what can be
/// shown of it and a hash, so that two ids never share a folder.
#[must_use]
pub fn job_folder(job: &str) -> String {
    let shown = shown(job);
    if shown == job && !job.starts_with('.') && !job.is_empty() {
        shown
    } else {
        job_folder_with_hash(job)
    }
}

/// The same with a hash in any case, for an id that differs from another only in capitals, which some file systems ignore.
#[must_use]
pub fn job_folder_with_hash(job: &str) -> String {
    let mut hasher = FxHasher::default();
    job.hash(&mut hasher);
    format!("{}-{:016x}", shown(job).trim_start_matches('.'), hasher.finish())
}

fn shown(job: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    job.chars()
        .take(SHOWN)
        .map(|letter| if plain(letter) { letter } else { '_' })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_id_has_a_folder_of_its_own() {
        assert_eq!(job_folder("jo-abc_1.2"), "jo-abc_1.2");
        for hostile in ["../a b", "", "..", ".hidden", "a/b", "it's"] {
            let name = job_folder(hostile);
            assert!(
                !name.contains(['/', '\\', ' ']) && !name.starts_with('.') && !name.is_empty(),
                "{name}"
            );
        }
        let long = |end: &str| job_folder(&("x".repeat(200) + end));
        assert!(long("a") != long("b") && long("a").len() < 120);
        assert_ne!(job_folder("a/b"), job_folder("a_b"));
    }
}
