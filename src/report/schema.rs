use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{Report, SCHEMA};

/// The JSON Schema (draft 2020-12) of `report.json`, made from its types. A key that is not in it is allowed: a later
/// version may add some without another [`SCHEMA`].
pub fn schema() -> Value {
    let mut schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Report>().to_value();
    schema["title"] = format!("A report of tenfold ({SCHEMA})").into();
    schema["properties"]["schema"]["const"] = SCHEMA.into();
    schema
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_schema_that_is_shipped_is_that_of_the_types() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/schema/report.schema.json");
        let text = format!("{:#}\n", schema());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == text,
            "the report's types have changed; UPDATE_GOLDEN=1 writes {} anew",
            path.display()
        );
    }
}
