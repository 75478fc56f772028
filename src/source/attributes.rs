//! `attributes` of an NDJSON line as the text that a table stores.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

/// Deeper values are refused, as the decoder of the lines refuses them.
const DEEPEST: usize = 128;

/// A text as it is; any other value as JSON without spaces and with sorted keys, so that equal attributes are equal text
/// whoever wrote the line.
///
/// # Errors
/// A value that is nested too deep.
pub(super) fn text_of(json: &RawValue) -> Result<String, String> {
    let json = json.get();
    if json.starts_with('"') {
        return serde_json::from_str(json).map_err(|error| error.to_string());
    }
    let mut text = String::with_capacity(json.len());
    write(json, DEEPEST, &mut text)?;
    Ok(text)
}

fn write(json: &str, deeper: usize, text: &mut String) -> Result<(), String> {
    let broken = |error: serde_json::Error| error.to_string();
    let deeper = deeper
        .checked_sub(1)
        .ok_or_else(|| format!("it is nested more than {DEEPEST} deep"))?;
    match json.as_bytes().first() {
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> = serde_json::from_str(json).map_err(broken)?;
            text.push('{');
            for (place, (key, value)) in members.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                text.push_str(&serde_json::to_string(key).map_err(broken)?);
                text.push(':');
                write(value.get(), deeper, text)?;
            }
            text.push('}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(json).map_err(broken)?;
            text.push('[');
            for (place, value) in elements.iter().enumerate() {
                text.push_str(if place > 0 { "," } else { "" });
                write(value.get(), deeper, text)?;
            }
            text.push(']');
        }
        // The same letter can be escaped in several ways.
        Some(b'"') => {
            let string: String = serde_json::from_str(json).map_err(broken)?;
            text.push_str(&serde_json::to_string(&string).map_err(broken)?);
        }
        // A number stays as it is written: to read it and write it anew could cost digits.
        _ => text.push_str(json),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> Result<String, String> {
        text_of(serde_json::from_str(json).expect("JSON"))
    }

    #[test]
    fn equal_attributes_are_equal_text() {
        let canonical = r#"{"a":[1,{"x":null,"y":"é\n"}],"b":0.10000000000000000001,"c":{}}"#;
        for json in [
            canonical,
            " { \"c\" : {}, \"b\":0.10000000000000000001, \"a\": [ 1, {\"y\":\"\\u00e9\\u000a\",\"x\":null} ] } ",
        ] {
            assert_eq!(text(json).as_deref(), Ok(canonical));
        }
        assert_eq!((text("[ ]").as_deref(), text("7").as_deref()), (Ok("[]"), Ok("7")));
    }

    #[test]
    fn text_stays_as_it_is() {
        assert_eq!(
            text(r#""{ \"b\": 1, \"a\": 2 }""#).as_deref(),
            Ok(r#"{ "b": 1, "a": 2 }"#)
        );
        assert_eq!(text(r#""""#).as_deref(), Ok(""));
    }

    #[test]
    fn what_is_nested_too_deep_is_refused() {
        let nested = |depth| "[".repeat(depth) + &"]".repeat(depth);
        assert!(text(&nested(DEEPEST)).is_ok());
        assert!(text(&nested(100_000)).is_err_and(|reason| reason.contains("128 deep")));
    }
}
