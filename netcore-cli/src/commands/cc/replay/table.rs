//! CSV with a header line.

use anyhow::Context;
use std::collections::HashMap;

/// A table of unquoted cells.
pub(super) struct Table<'a> {
    columns: HashMap<&'a str, usize>,
    rows: Vec<Vec<&'a str>>,
}

/// One row.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    table: &'a Table<'a>,
    index: usize,
}

impl<'a> Table<'a> {
    pub(super) fn parse(text: &'a str) -> anyhow::Result<Self> {
        let mut lines = text.lines();
        let header = lines.next().context("an empty file")?;
        let columns: HashMap<_, _> =
            header.split(',').enumerate().map(|(index, name)| (name.trim_end_matches('\r'), index)).collect();
        let mut rows = Vec::new();
        for (index, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
            let cells: Vec<_> = line.trim_end_matches('\r').split(',').collect();
            anyhow::ensure!(
                cells.len() == columns.len(),
                "line {}: {} cells, the header has {}",
                index + 2,
                cells.len(),
                columns.len()
            );
            rows.push(cells);
        }
        Ok(Self { columns, rows })
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
        self.index + 2
    }

    pub(super) fn text(&self, column: &str) -> anyhow::Result<&'a str> {
        let index = self.table.columns.get(column).with_context(|| format!("no column {column}"))?;
        Ok(self.table.rows[self.index][*index])
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
