//! CSV with a header line.

use anyhow::Context;
use std::collections::HashMap;

/// A table of unquoted cells.
pub(super) struct Table<'a> {
    columns: HashMap<&'a str, usize>,
    /// Line and cells.
    rows: Vec<(usize, Vec<&'a str>)>,
    /// What ended the table early.
    pub(super) damaged: Option<String>,
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    table: &'a Table<'a>,
    index: usize,
}

impl<'a> Table<'a> {
    /// A row with too few or too many cells ends the table.
    pub(super) fn parse(text: &'a str) -> anyhow::Result<Self> {
        let mut lines = text.lines().zip(1..);
        let (header, _) = lines.next().context("an empty file")?;
        let columns: HashMap<_, _> = header.split(',').enumerate().map(|(index, name)| (name.trim(), index)).collect();
        let mut table = Self { columns, rows: Vec::new(), damaged: None };
        for (line, number) in lines.filter(|(line, _)| !line.is_empty()) {
            let cells: Vec<_> = line.split(',').collect();
            if cells.len() != table.columns.len() {
                table.damaged =
                    Some(format!("line {number}: {} cells, the header has {}", cells.len(), table.columns.len()));
                break;
            }
            table.rows.push((number, cells));
        }
        Ok(table)
    }

    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.contains_key(column)
    }

    pub(super) fn rows(&'a self) -> impl Iterator<Item = Row<'a>> {
        (0..self.rows.len()).map(|index| Row { table: self, index })
    }
}

impl<'a> Row<'a> {
    /// Its line in the file, the header being line 1.
    pub(super) fn line(&self) -> usize {
        self.table.rows[self.index].0
    }

    pub(super) fn text(&self, column: &str) -> anyhow::Result<&'a str> {
        let index = self.table.columns.get(column).with_context(|| format!("no column {column}"))?;
        Ok(self.table.rows[self.index].1[*index])
    }

    pub(super) fn number(&self, column: &str) -> anyhow::Result<u64> {
        let text = self.text(column)?;
        text.parse().with_context(|| format!("line {}, column {column}: \"{text}\" is not a number", self.line()))
    }

    pub(super) fn u32(&self, column: &str) -> anyhow::Result<u32> {
        let number = self.number(column)?;
        u32::try_from(number).with_context(|| format!("line {}, column {column}: {number} is too large", self.line()))
    }

    /// A number that may be absent or negative.
    pub(super) fn optional(&self, column: &str) -> Option<u32> {
        self.text(column).ok()?.parse().ok()
    }

    /// A threshold; Linux writes "none" as 2147483647.
    pub(super) fn ssthresh(&self, column: &str) -> anyhow::Result<Option<u32>> {
        Ok(Some(self.u32(column)?).filter(|value| *value < 2_147_483_647))
    }
}
