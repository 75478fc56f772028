//! The types of the columns that record batches hold, and of the values of dictionaries.

use std::collections::BTreeMap;

use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field};
use polars_arrow::io::ipc::{IpcField, IpcSchema};

/// What record batches and dictionaries hold, by the schema.
#[derive(Debug, Default)]
pub(super) struct Types {
    columns: Vec<ArrowDataType>,
    /// The type of its values for each dictionary.
    dictionaries: BTreeMap<i64, ArrowDataType>,
}

impl Types {
    pub(super) fn of(schema: &ArrowSchema, ipc: &IpcSchema) -> Self {
        let mut types = Self::default();
        for (field, ipc) in schema.iter_values().zip(&ipc.fields) {
            types.add_dictionaries(&field.dtype, ipc);
            types.columns.push(field.dtype.clone());
        }
        types
    }

    fn add_dictionaries(&mut self, dtype: &ArrowDataType, ipc: &IpcField) {
        let storage = dtype.to_storage();
        if let (ArrowDataType::Dictionary(_, values, _), Some(id)) = (storage, ipc.dictionary_id) {
            self.dictionaries.insert(id, values.as_ref().clone());
            // What the values are made of lies under the same field.
            return self.add_dictionaries(
                values,
                &IpcField {
                    dictionary_id: None,
                    ..ipc.clone()
                },
            );
        }
        for (child, ipc) in children(storage).iter().zip(&ipc.fields) {
            self.add_dictionaries(&child.dtype, ipc);
        }
    }

    pub(super) fn columns(&self) -> &[ArrowDataType] {
        &self.columns
    }

    pub(super) fn of_dictionary(&self, id: i64) -> Option<&[ArrowDataType]> {
        self.dictionaries.get(&id).map(std::slice::from_ref)
    }
}

/// The columns that a column consists of.
pub(super) fn children(storage: &ArrowDataType) -> &[Field] {
    match storage {
        ArrowDataType::List(field)
        | ArrowDataType::LargeList(field)
        | ArrowDataType::FixedSizeList(field, _)
        | ArrowDataType::Map(field, _) => std::slice::from_ref(field),
        ArrowDataType::Struct(fields) => fields,
        ArrowDataType::Union(union) => &union.fields,
        _ => &[],
    }
}
