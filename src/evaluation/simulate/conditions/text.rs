//! The text form of a condition: `NAME:KEY=VALUE,KEY=VALUE`; a list is written `A+B+C`.

use std::str::FromStr;

use serde_json::{Map, Number, Value};

use super::AnyCondition;

impl FromStr for AnyCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, values) = text.split_once(':').unwrap_or((text, ""));
        let Some(about) = Self::ALL.iter().find(|about| about.name == name) else {
            let names: Vec<&str> = Self::ALL.iter().map(|about| about.name).collect();
            return Err(format!("`{name}` is no condition; there are {}", names.join(", ")));
        };
        let form = |problem: &str| format!("{problem}; expected e.g. {}", about.example);
        let mut map = Map::new();
        for pair in values.split(',').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair
                .split_once('=')
                .ok_or_else(|| form(&format!("no `=` in `{pair}`")))?;
            if map.insert(key.trim().to_owned(), value_of(value.trim())).is_some() {
                return Err(form(&format!("`{key}` stands twice")));
            }
        }
        let tagged = Map::from_iter([(name.to_owned(), Value::Object(map))]);
        serde_json::from_value(Value::Object(tagged)).map_err(|error| form(&error.to_string()))
    }
}

fn value_of(text: &str) -> Value {
    if text.contains('+') && text.parse::<f64>().is_err() {
        return Value::Array(text.split('+').map(value_of).collect());
    }
    if let Ok(whole) = text.parse::<u64>() {
        return Value::from(whole);
    }
    let number = text.parse::<f64>().ok().and_then(Number::from_f64);
    number.map_or_else(|| Value::from(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::super::{Span, Spells, Wander};
    use super::*;

    #[test]
    fn values_and_lists_are_read() {
        let wander = AnyCondition::from(Wander { sd: 0.01, steps: 20.0 });
        assert_eq!("wander:sd=0.01,steps=20".parse(), Ok(wander));
        let spells = Spells {
            rank: 3,
            factor: 2.0,
            spells: vec![Span { from: 4, until: 9 }, Span { from: 20, until: 21 }],
        };
        let several = "spells:rank=3,factor=2,spells=4-9+20-21";
        assert_eq!(several.parse(), Ok(AnyCondition::from(spells.clone())));
        let one = Spells {
            spells: vec![Span { from: 4, until: 9 }],
            ..spells
        };
        assert_eq!("spells:rank=3,factor=2,spells=4-9".parse(), Ok(AnyCondition::from(one)));
    }

    #[test]
    fn wrong_text_names_what_is_wrong_and_the_form() {
        let why = |text: &str| text.parse::<AnyCondition>().expect_err("no condition");
        assert!(
            why("wnader:sd=1").contains("there are wander"),
            "{}",
            why("wnader:sd=1")
        );
        assert!(why("wander:sd=0.01").contains("`steps`"), "{}", why("wander:sd=0.01"));
        assert!(why("wander:sd").contains("wander:sd=0.015,steps=20"));
        assert!(why("wander:sd=1,steps=2,x=3").contains('x'));
        assert!(why("wander:sd=1,sd=2,steps=2").contains("twice"));
        assert!(why("spells:rank=3,factor=2,spells=9-4").contains("9-4"));
    }
}
