//! Results for people: a text table, and a page with plots.

mod html;
mod table;

pub use html::html;
pub use table::text;
