//! A page that shows a sweep and links the jobs' results; no script, nothing from elsewhere.

use std::fmt::Write as _;

use super::ledger::{JobResult, Ledger};

const STYLE: &str = "body{font:14px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}\
    td,th{text-align:left;vertical-align:top;padding:.3em .8em;border-bottom:1px solid #ccc}\
    .found{background:#fff3d6}.broken{background:#fde0e0}";

/// The page. What was found or broken comes first.
pub(super) fn page(ledger: &Ledger) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>mt-detector sweep</title>",
    );
    let found = ledger.jobs.iter().filter(|result| result.is_fault()).count();
    let broken = ledger.jobs.iter().filter(|result| result.status.is_broken()).count();
    let open = |time: &Option<String>| escaped(time.as_deref().unwrap_or("open"));
    // Writing to a string can't fail.
    let _ = write!(
        page,
        "<style>{STYLE}</style></head>\n<body><h1>{} jobs, {found} with a fault, {broken} not analysed</h1>\n\
         <p>{} from {} to {}, mt-detector {}</p>\n\
         ",
        ledger.jobs.len(),
        escaped(&ledger.source.join(", ")),
        open(&ledger.start),
        open(&ledger.end),
        escaped(&ledger.tool_version),
    );
    for file in &ledger.unread {
        let _ = writeln!(page, "<p class=\"broken\">not read: {}</p>", escaped(file));
    }
    page += "<table><tr><th>job</th><th>status</th><th>ranks</th><th>nodes</th><th>cause</th><th>findings</th></tr>\n";
    let class = |result: &JobResult| match (result.status.is_broken(), result.is_fault()) {
        (true, _) => "broken",
        (_, true) => "found",
        _ => "well",
    };
    for wanted in ["broken", "found", "well"] {
        for result in ledger.jobs.iter().filter(|result| class(result) == wanted) {
            row(&mut page, wanted, result);
        }
    }
    page += "</table></body></html>\n";
    page
}

fn row(page: &mut String, class: &str, result: &JobResult) {
    let job = escaped(&result.job);
    let link = match &result.folder {
        Some(folder) => format!("<a href=\"{}/summary.txt\">{job}</a>", escaped(folder)),
        None => job,
    };
    let ranks: Vec<String> = result.anomaly_ranks.iter().map(u32::to_string).collect();
    let words = match &result.error {
        Some(error) => escaped(error),
        None => result
            .findings
            .iter()
            .map(|finding| escaped(finding))
            .collect::<Vec<_>>()
            .join("<br>"),
    };
    let _ = writeln!(
        page,
        "<tr class=\"{class}\"><td>{link}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{words}</td></tr>",
        result.word(),
        ranks.join(", "),
        escaped(&result.anomaly_nodes.join(", ")),
        escaped(&result.cause),
    );
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::ledger::Status;
    use super::*;

    #[test]
    fn names_forge_no_markup_and_the_broken_come_first() {
        let ledger = Ledger {
            ledger_version: 1,
            tool_version: "0".to_owned(),
            source: Vec::new(),
            start: None,
            end: None,
            unread: Vec::new(),
            flags: Vec::new(),
            jobs: vec![
                JobResult::without("<script>", Status::NoRows, None, String::new()),
                JobResult::without("z", Status::Failed, Some("a & b".to_owned()), String::new()),
            ],
        };
        let page = page(&ledger);
        assert!(!page.contains("<script>") && page.contains("&lt;script&gt;"));
        assert!(page.find("a &amp; b").expect("the error") < page.find("&lt;script").expect("the job"));
    }
}
