//! One column at a time of a Parquet file's row groups, so that little is held at once; text whose cells are codes of a
//! dictionary stays codes, and each of its words is looked at once.

use polars::prelude::{ArrowField, ArrowSchema, Series};
use polars_arrow::array::{Array, DictionaryArray, Utf8ViewArray};
use polars_arrow::datatypes::{ArrowDataType, DTYPE_CATEGORICAL_NEW, Field, IntegerType};
use polars_buffer::Buffer;
use polars_parquet::parquet::metadata::RowGroupMetadata;
use polars_parquet::read::{BasicDecompressor, Filter, PageReader, column_iter_to_arrays};

use super::frame::Decoded;
use super::guard::guarded;
use super::pages;
use super::plain::{plain, plain_type};
use super::rows::TextColumn;

/// The code of a dictionary's word that no cell had so far.
const UNUSED: u32 = TextColumn::MISSING;

/// Why a column can't be decoded, and in which row group, counted from the first that is read.
#[derive(Debug)]
pub(super) struct Damage {
    pub group: usize,
    pub reason: String,
}

/// Rows in a row of a file.
pub(super) struct Decoder<'a> {
    /// All of the file.
    pub file: Buffer<u8>,
    pub schema: &'a ArrowSchema,
    pub groups: &'a [RowGroupMetadata],
    /// The first of the rows in the first row group.
    pub first_row: usize,
    pub rows: usize,
}

impl Decoder<'_> {
    /// Decodes a column that the schema has.
    ///
    /// # Errors
    /// Pages that can't be decoded, or that hold more or fewer rows than the file says.
    pub fn column(&self, name: &str) -> Result<Option<Decoded>, Damage> {
        let Some(field) = self.schema.get(name) else {
            return Ok(None);
        };
        if let Some(text) = self.text_of_dictionaries(field) {
            return Ok(Some(Decoded::Text(text)));
        }
        let mut arrays = Vec::new();
        for group in 0..self.groups.len() {
            let damage = |reason| Damage { group, reason };
            let decoded = self.arrays(group, field.clone()).map_err(damage)?;
            let decoded = decoded.into_iter().map(plain).collect::<Result<Vec<_>, _>>();
            arrays.extend(decoded.map_err(|reason| damage(format!("column `{name}`: {reason}")))?);
        }
        let mut field = field.clone();
        field.dtype = match arrays.first() {
            Some(array) => array.dtype().clone(),
            None => plain_type(&field.dtype),
        };
        let series = guarded(|| Series::try_from((&field, arrays)));
        let series = series.map_err(|reason| format!("column `{name}`: {reason}"));
        series
            .map(|series| Some(Decoded::Series(series)))
            .map_err(|reason| Damage { group: 0, reason })
    }

    /// A text column of which every cell is a code of a dictionary; `None` of another one, which is decoded as it is.
    fn text_of_dictionaries(&self, field: &ArrowField) -> Option<TextColumn> {
        let has_dictionary = |group: &RowGroupMetadata| {
            let mut chunks = group.columns_under_root_iter(&field.name).into_iter().flatten();
            chunks.all(|chunk| chunk.dictionary_page_offset().is_some())
        };
        if field.dtype != ArrowDataType::Utf8View || !self.groups.iter().all(has_dictionary) {
            return None;
        }
        // So marked the decoder leaves the codes as they are. It refuses pages without.
        let codes = ArrowDataType::Dictionary(IntegerType::UInt32, Box::new(ArrowDataType::Utf8View), false);
        let mark = (DTYPE_CATEGORICAL_NEW.into(), "".into());
        let field = Field::new(field.name.clone(), codes, field.is_nullable).with_metadata([mark].into());
        let mut column = TextColumn::default();
        for group in 0..self.groups.len() {
            for array in self.arrays(group, field.clone()).ok()? {
                code_dictionary(array.as_any().downcast_ref()?, &mut column)?;
            }
        }
        Some(column)
    }

    /// The cells of a column in a row group.
    fn arrays(&self, group: usize, field: ArrowField) -> Result<Vec<Box<dyn Array>>, String> {
        let number = group;
        let group = &self.groups[number];
        let rows = if self.groups.len() == 1 {
            self.first_row..self.first_row + self.rows
        } else {
            0..group.num_rows()
        };
        let (mut pages, mut types) = (Vec::new(), Vec::new());
        for chunk in group.columns_under_root_iter(&field.name).into_iter().flatten() {
            let bytes = chunk.byte_range();
            let (begin, end) = (bytes.start as usize, bytes.end as usize);
            if begin > end || end > self.file.len() {
                return Err(format!("column `{}` lies beyond the end of the file", field.name));
            }
            let bytes = self.file.clone().sliced(begin..end);
            guarded(|| pages::check(&bytes, chunk, group.num_rows()))
                .map_err(|reason| format!("column `{}`: {reason}", field.name))?;
            let most = bytes.len();
            let bytes = std::io::Cursor::new(bytes);
            pages.push(BasicDecompressor::new(
                PageReader::new(bytes, chunk, Vec::new(), most),
                Vec::new(),
            ));
            types.push(&chunk.descriptor().descriptor.primitive_type);
        }
        let (name, expected) = (field.name.clone(), rows.len());
        let filter = Filter::new_ranged(rows.start, rows.end);
        let (arrays, _) = guarded(|| column_iter_to_arrays(pages, types, field, Some(filter)))?;
        let found: usize = arrays.iter().map(|array| array.len()).sum();
        if found != expected {
            return Err(format!(
                "column `{name}` has {found} rows where there should be {expected}"
            ));
        }
        Ok(arrays)
    }
}

/// Appends cells that are codes of a dictionary; `None` where one is of none of its words.
fn code_dictionary(cells: &DictionaryArray<u32>, column: &mut TextColumn) -> Option<()> {
    let words = cells.values().as_any().downcast_ref::<Utf8ViewArray>()?;
    let mut codes = vec![UNUSED; words.len()];
    let (keys, validity) = (cells.keys().values(), cells.keys().validity());
    column.codes.reserve(keys.len());
    for (row, &key) in keys.iter().enumerate() {
        if validity.is_some_and(|valid| !valid.get_bit(row)) {
            column.codes.push(TextColumn::MISSING);
            continue;
        }
        let code = codes.get_mut(key as usize)?;
        if *code == UNUSED {
            *code = column.code(words.value(key as usize));
        }
        column.codes.push(*code);
    }
    Some(())
}
