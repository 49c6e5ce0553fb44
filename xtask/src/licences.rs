//! Every dependency may be used under a licence of the list below, and comes from the registry.

use crate::run::{Outcome, cargo, root};
use serde_json::Value;

/// Licences of dependencies: permissive ones, and MPL-2.0, which stays within its own files.
const ALLOWED: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MPL-2.0",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// True if what an SPDX expression asks for is all allowed, by one of its alternatives. Old manifests separate alternatives with
/// a slash.
fn is_allowed(expression: &str) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words: Vec<&str> = spaced.split_whitespace().rev().collect();
    alternatives(&mut words) && words.is_empty()
}

/// `a OR b …`; the words are in reverse, the next one last.
fn alternatives(words: &mut Vec<&str>) -> bool {
    let mut allowed = conjunction(words);
    while words.last() == Some(&"OR") {
        words.pop();
        allowed |= conjunction(words);
    }
    allowed
}

/// `a AND b …`
fn conjunction(words: &mut Vec<&str>) -> bool {
    let mut allowed = licence(words);
    while words.last() == Some(&"AND") {
        words.pop();
        allowed &= licence(words);
    }
    allowed
}

/// A name, a name with an exception, or something in parentheses.
fn licence(words: &mut Vec<&str>) -> bool {
    match words.pop() {
        Some("(") => {
            let allowed = alternatives(words);
            words.pop() == Some(")") && allowed
        }
        Some(name) if words.last() == Some(&"WITH") => {
            words.pop();
            words.pop().is_some_and(|exception| ALLOWED.contains(&format!("{name} WITH {exception}").as_str()))
        }
        Some(name) => ALLOWED.contains(&name),
        None => false,
    }
}

/// The dependencies of both workspaces.
pub(crate) fn check() -> Outcome {
    let mut wrong = Vec::new();
    let mut count = 0;
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let path = root().join(manifest).display().to_string();
        let mut command = cargo(&["metadata", "--locked", "--format-version", "1", "--manifest-path", &path]);
        let output = match command.output() {
            Ok(output) if output.status.success() => output.stdout,
            Ok(output) => return Outcome::Failed(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => return Outcome::Failed(format!("cargo metadata: {error}")),
        };
        let Ok(metadata) = serde_json::from_slice::<Value>(&output) else {
            return Outcome::Failed("cargo metadata gives no JSON".into());
        };
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let name = package["name"].as_str().unwrap_or_default();
            // What has no source is ours.
            let Some(source) = package["source"].as_str() else { continue };
            count += 1;
            if !source.starts_with("registry+") {
                wrong.push(format!("{name} comes from {source}"));
            }
            match package["license"].as_str() {
                Some(expression) if is_allowed(expression) => {}
                Some(expression) => wrong.push(format!("{name}: {expression}")),
                None => wrong.push(format!("{name} states no licence")),
            }
        }
    }
    wrong.sort();
    wrong.dedup();
    if wrong.is_empty() {
        Outcome::Passed(format!("{count} dependencies, all under licences of the list"))
    } else {
        Outcome::Failed(wrong.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn an_expression_is_allowed_by_one_of_its_alternatives() {
        for good in [
            "MIT",
            "MIT/Apache-2.0",
            "GPL-3.0-only OR MIT",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-2.0-only",
        ] {
            assert!(is_allowed(good), "{good}");
        }
        for bad in ["GPL-3.0-only", "MIT AND GPL-2.0-only", "", "(MIT", "MIT MIT", "MIT WITH Bison-exception-2.2"] {
            assert!(!is_allowed(bad), "{bad}");
        }
    }
}
