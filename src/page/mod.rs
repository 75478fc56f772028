//! HTML pages of one file each, which need nothing from elsewhere: a frame, its style, plots.
//!
//! In: markup, and data for plots as JSON. Out: the text of a page. May use: `contract`.
//!
//! Plots are drawn by Apache ECharts 6.1.0, whose full build stands in `assets/` with its licence: the smallest of its
//! builds that holds heat maps. A page carries a policy that forbids it to load anything.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::contract::printable::json_printable;

const STYLE: &str = include_str!("assets/page.css");
const ECHARTS: &str = include_str!("assets/echarts.min.js");
const PLOTS: &str = include_str!("assets/plots.js");
const TABLE: &str = include_str!("assets/table.js");
/// Nothing is loaded, sent or framed; scripts and styles are those inside.
const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'";

/// What a page brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scripts<'a> {
    /// Plots of this data, as JSON.
    Plots(&'a str),
    /// Tables that can be filtered and sorted.
    Tables,
}

/// The text of a page.
#[must_use]
pub fn page(title: &str, body: &Markup, scripts: Scripts<'_>) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                footer { "mt-detector " (env!("CARGO_PKG_VERSION")) ". This page is one file and loads nothing." }
                @match scripts {
                    Scripts::Plots(data) => {
                        script type="application/json" id="data" { (PreEscaped(in_script(data))) }
                        script { (PreEscaped(ECHARTS)) }
                        script { (PreEscaped(PLOTS)) }
                    }
                    Scripts::Tables => script { (PreEscaped(TABLE)) },
                }
            }
        }
    };
    markup.into_string() + "\n"
}

/// JSON that ends no script, whatever texts it holds.
fn in_script(json: &str) -> String {
    json_printable(json).replace('<', "\\u003c")
}

/// A place for a plot of the page's data: its key there, its title, what it shows in words, and its height.
#[must_use]
pub fn plot(key: &str, height: usize) -> Markup {
    html! {
        div.plot data-plot=(key) style=(format!("height:{height}px")) role="img" {
            p.wait { "drawn by a script when it comes into view" }
        }
    }
}

/// A section with an anchor.
#[must_use]
pub fn section(id: &str, title: &str, about: &str, body: &Markup) -> Markup {
    html! {
        section id=(id) {
            h2 { (title) }
            @if !about.is_empty() { p.about { (about) } }
            (body)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_ends_no_script_and_titles_forge_no_markup() {
        let page = page(
            "<b>\"x\"</b>",
            &html! { p { "</p><script>" } },
            Scripts::Plots(r#"{"a":"</script><script>alert(1)"}"#),
        );
        assert!(page.contains("&lt;b&gt;") && page.contains("&lt;/p&gt;&lt;script&gt;"));
        assert_eq!(page.matches("<script").count(), 3, "data, library, plots");
        assert!(page.contains(r#"{"a":"\u003c/script>\u003cscript>alert(1)"}"#));
    }

    #[test]
    fn the_library_is_the_one_that_the_licence_is_of() {
        assert!(ECHARTS.contains("Apache Software Foundation") || ECHARTS.contains("Licensed to the Apache"));
        assert!(ECHARTS.contains("6.1.0"), "the version that the docs name");
        assert!(!ECHARTS.contains("</script"), "it can stand inside of a page");
    }
}
