//! Files that did harm once, or that resemble those that did, as small as they get.

use std::path::Path;

use crate::verdict::{Answer, answer};

#[test]
fn files_that_did_harm_do_no_more() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/corpus");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the corpus")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let found = answer(&path);
        // What a file is called says what becomes of it.
        match name.split_once('-') {
            Some(("refused", _)) => assert!(matches!(found, Answer::Refused(_)), "{name}: {found:?}"),
            Some(("told", _)) => assert!(found.names_rank_5() && found.doubts_a_node(), "{name}: {found:?}"),
            Some(("same", _)) => assert!(found.names_rank_5(), "{name}: {found:?}"),
            _ => panic!("{name} begins with none of `refused-`, `told-` and `same-`"),
        }
    }
}
