//! `key=value` settings over a scenario file.

use super::error::ScenarioError;
use toml::{Table, Value};

/// The text with settings applied.
pub(super) fn apply(text: &str, settings: &[impl AsRef<str>]) -> Result<String, ScenarioError> {
    let mut table: Table = toml::from_str(text).map_err(|error| ScenarioError::Toml(Box::new(error)))?;
    for setting in settings {
        let setting = setting.as_ref();
        let wrong = |reason: String| ScenarioError::Key { setting: setting.into(), reason };
        let (key, value) = setting.split_once('=').ok_or_else(|| wrong("it is not key=value".into()))?;
        let value = value.trim();
        // What is no TOML value is text: units need no quotes.
        let value = toml::from_str::<Table>(&format!("value = {value}"))
            .ok()
            .and_then(|mut parsed| parsed.remove("value"))
            .unwrap_or_else(|| Value::String(value.into()));
        let path: Vec<&str> = key.trim().split('.').collect();
        set_in_table(&mut table, &path, &value).map_err(wrong)?;
    }
    toml::to_string(&table).map_err(|error| ScenarioError::Key { setting: String::new(), reason: error.to_string() })
}

fn set_in_table(table: &mut Table, path: &[&str], value: &Value) -> Result<(), String> {
    match path {
        [] => Err("the key is empty".into()),
        [last] => {
            table.insert((*last).into(), value.clone());
            Ok(())
        }
        [first, rest @ ..] => {
            if *first == "*" {
                return table.iter_mut().try_for_each(|(_, entry)| set(entry, rest, value));
            }
            // A table that a file leaves out, such as the cost of a host, may be begun by a setting.
            let entry = table.entry((*first).to_string()).or_insert_with(|| Value::Table(Table::new()));
            set(entry, rest, value).map_err(|reason| format!("below \"{first}\": {reason}"))
        }
    }
}

fn set(entry: &mut Value, path: &[&str], value: &Value) -> Result<(), String> {
    match entry {
        Value::Table(table) => set_in_table(table, path, value),
        Value::Array(array) => {
            let [first, rest @ ..] = path else { return Err("the key is empty".into()) };
            let named = |entry: &Value| {
                let name = entry.get("name").and_then(Value::as_str);
                let between = entry.get("between").and_then(Value::as_array).and_then(|ends| {
                    let ends: Option<Vec<_>> = ends.iter().map(Value::as_str).collect();
                    Some(ends?.join("-"))
                });
                let flow = entry.get("from").and_then(Value::as_str).zip(entry.get("to").and_then(Value::as_str));
                let flow = flow.map(|(from, to)| format!("{from}-{to}"));
                name.or(between.as_deref()).or(flow.as_deref()) == Some(*first)
            };
            let count = array.len();
            let index = first.parse::<usize>().ok();
            let mut found = 0;
            for (position, entry) in array.iter_mut().enumerate() {
                if *first == "*" || index == Some(position) || named(entry) {
                    found += 1;
                    if rest.is_empty() {
                        *entry = value.clone();
                    } else {
                        set(entry, rest, value)?;
                    }
                }
            }
            if found == 0 {
                return Err(format!("there is no \"{first}\"; allowed are a name, * or an index below {count}"));
            }
            Ok(())
        }
        _ => Err(format!("\"{}\" is inside a value", path.join("."))),
    }
}
