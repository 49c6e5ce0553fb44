//! Results for people: text tables, a page with plots; curves of scenarios as CSV and pictures.

mod csv;
mod html;
mod intervals;
mod plot;
mod table;

pub use csv::csv;
pub use html::html;
pub use intervals::{intervals, summary};
pub use plot::plot;
pub use table::text;
