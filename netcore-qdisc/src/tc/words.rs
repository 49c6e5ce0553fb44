//! Options word by word, with errors that name the option and what is allowed.

use alloc::string::{String, ToString};
use netcore::QdiscError;

/// Reads the words of a `tc` command line after the qdisc's name.
#[derive(Debug)]
pub struct Words<'a> {
    qdisc: &'static str,
    allowed: &'static str,
    rest: core::slice::Iter<'a, &'a str>,
    option: &'a str,
}

impl<'a> Words<'a> {
    /// The options of `qdisc`, of which `allowed` lists all there are.
    pub fn new(qdisc: &'static str, allowed: &'static str, words: &'a [&'a str]) -> Self {
        Self { qdisc, allowed, rest: words.iter(), option: "" }
    }

    /// The next option.
    pub fn option(&mut self) -> Option<&'a str> {
        self.option = self.rest.next()?;
        Some(self.option)
    }

    /// The value of the current option, as `parse` reads it.
    ///
    /// # Errors
    /// [`QdiscError::MissingValue`], or [`QdiscError::InvalidValue`] if `parse` gives `None`.
    pub fn value<T>(&mut self, allowed: &'static str, parse: impl FnOnce(&str) -> Option<T>) -> Result<T, QdiscError> {
        let Some(&value) = self.rest.next() else {
            return Err(QdiscError::MissingValue { qdisc: self.qdisc, option: self.option.to_string(), allowed });
        };
        parse(value).ok_or_else(|| self.invalid(value, allowed))
    }

    /// An error about the value of the current option.
    pub fn invalid(&self, value: &str, allowed: &'static str) -> QdiscError {
        QdiscError::InvalidValue {
            qdisc: self.qdisc,
            option: self.option.to_string(),
            value: String::from(value),
            allowed,
        }
    }

    /// That there is no such option.
    pub fn unknown(&self) -> QdiscError {
        QdiscError::UnknownOption { qdisc: self.qdisc, option: self.option.to_string(), allowed: self.allowed }
    }
}
