//! A comparison of two builds, laid out: one file for each form.
//!
//! All forms but JSON are made from one table: the sentence, the rows judged, the checks that changed, the rows told,
//! the notes. To add a form: one file, and two lines here (`mod x;` and an entry of [`ALL`]).

use std::fmt;
use std::io;

mod html;
mod json;
mod markdown;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod words;

use self::table::{Kind, Line, Table};
use super::Style;
use crate::diff::Comparison;

/// Every form of a comparison, sorted.
pub const ALL: &[Form] = &[html::FORM, json::FORM, markdown::FORM, text::FORM];

/// An entry of [`ALL`].
pub struct Form {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line for `tenfold list`.
    pub about: &'static str,
    /// Writes the comparison in this form.
    pub render: fn(&Comparison, &Style, &mut dyn io::Write) -> io::Result<()>,
}

impl fmt::Debug for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Form").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The form with this name.
pub fn find(name: &str) -> Option<&'static Form> {
    ALL.iter().find(|form| form.name == name)
}
