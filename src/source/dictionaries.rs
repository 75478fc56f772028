//! Dictionaries of an Arrow IPC input. Writers that see new words on their way append them by delta dictionaries (pyarrow with
//! `emit_dictionary_deltas`, ClickHouse's LowCardinality), which Polars refuses.

use std::io::{Read, Seek};

use polars_arrow::array::Array;
use polars_arrow::compute::concatenate::concatenate;
use polars_arrow::datatypes::{ArrowDataType, ArrowSchema, Field};
use polars_arrow::io::ipc::IpcSchema;
use polars_arrow::io::ipc::read::Dictionaries;
use polars_arrow::io::ipc::read::common::read_record_batch;
use polars_arrow_format::ipc::{DictionaryBatchRef, MetadataVersion};

/// Reads a dictionary, or what is appended to one.
///
/// # Errors
/// A dictionary of no column, or one that can't be read.
pub(super) fn read_dictionary<R: Read + Seek>(
    dictionary: DictionaryBatchRef<'_>,
    fields: &ArrowSchema,
    schema: &IpcSchema,
    dictionaries: &mut Dictionaries,
    body: &mut R,
    offset: u64,
) -> Result<(), String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("a dictionary's description can't be read ({error})");
    let id = dictionary.id().map_err(|error| unreadable(&error))?;
    let is_delta = dictionary.is_delta().map_err(|error| unreadable(&error))?;
    let data = dictionary.data().map_err(|error| unreadable(&error))?;
    let data = data.ok_or("a dictionary has no words")?;
    let column = fields.iter_values().zip(&schema.fields);
    let mut of_it = column.filter(|(_, described)| described.dictionary_id == Some(id));
    let Some((field, described)) = of_it.next() else {
        // Inside of a list or a struct: no column that is read.
        return Ok(());
    };
    let ArrowDataType::Dictionary(_, words, _) = field.dtype.to_storage() else {
        return Err(format!(
            "column `{}` has a dictionary and is of another type",
            field.name
        ));
    };
    let name = polars::prelude::PlSmallStr::EMPTY;
    let alone: ArrowSchema = std::iter::once((name.clone(), Field::new(name, (**words).clone(), false))).collect();
    let schema = IpcSchema {
        fields: vec![described.clone()],
        is_little_endian: schema.is_little_endian,
    };
    let batch = read_record_batch(
        data,
        &alone,
        &schema,
        None,
        None,
        dictionaries,
        MetadataVersion::V5,
        body,
        offset,
        &mut Vec::new(),
        Default::default(),
    );
    let batch = batch.map_err(|error| error.to_string())?;
    let mut new: Box<dyn Array> = batch.into_arrays().pop().ok_or("a dictionary has no words")?;
    if is_delta && let Some(known) = dictionaries.get(&id) {
        new = concatenate(&[&**known, &*new]).map_err(|error| error.to_string())?;
    }
    dictionaries.insert(id, new);
    Ok(())
}
