//! Arrow columns of a table, while they are filled.
//!
//! | type here | Arrow type |
//! |---|---|
//! | prices and quantities | `decimal128(19, 8)`, which takes every one of them |
//! | sums of quantities, averages; money | `decimal128(38, 8)`; `decimal128(38, 16)` |
//! | moments | `timestamp[ns, UTC]` |
//! | codes | text; null where a code is not known |
//! | instructions | boolean |
//! | ids, stamps, counts | unsigned integers, as wide as ours |

use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Decimal128Builder, GenericByteBuilder, PrimitiveBuilder, StringBuilder, TimestampNanosecondBuilder,
    UInt64Builder,
};
use arrow_array::types::ByteArrayType;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use tickpath_clock::Calibration;
use tickpath_oms_blotter::snake_case;
use zerocopy::TryFromBytes;

/// The columns of one kind of rows; `columns!` implements the trait for a struct.
pub trait ColumnSet: Default + Send + 'static {
    /// Takes out the columns with all their rows, and leaves them empty.
    fn take(&mut self) -> Vec<ArrowColumn>;
}

/// Builder of one column, or of two.
pub trait ColumnBuilder: Default {
    /// Moves the finished columns into `into`, and leaves the builder empty.
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>);
}

/// A finished column.
pub struct ArrowColumn {
    field: Field,
    values: ArrayRef,
}

impl ArrowColumn {
    fn new(name: &str, values: impl Array + 'static) -> Self {
        let field = Field::new(name, values.data_type().clone(), false);
        Self { field, values: Arc::new(values) }
    }
}

/// Defines a struct whose fields are [`ColumnBuilder`]s, each named like its column. With the parts of a row behind the
/// name, each field also has the call that appends its value, and `push` appends a row.
macro_rules! columns {
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($field:ident: $values:ty,)+ }) => {
        $(#[$meta])*
        #[derive(Default)]
        $vis struct $name {
            $($field: $values,)+
        }

        impl $crate::column::ColumnSet for $name {
            fn take(&mut self) -> Vec<$crate::column::ArrowColumn> {
                let mut all = Vec::new();
                $($crate::column::ColumnBuilder::take(&mut self.$field, stringify!($field), &mut all);)+
                all
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident($($given:ident: $type:ty),+) {
        $($field:ident: $values:ty = $append:ident($($value:tt)+),)+
    }) => {
        $crate::column::columns! { $(#[$meta])* $vis struct $name { $($field: $values,)+ } }

        impl $name {
            /// Appends a row.
            $vis fn push(&mut self, $($given: $type),+) {
                $(self.$field.$append($($value)+);)+
            }
        }
    };
}

pub(crate) use columns;

columns! {
    /// Leading columns of every row: sequence number in its log, stamp, and time.
    pub struct LeadingColumns(sequence: u64, stamp: u64, clock: &Calibration) {
        sequence: UInt64Builder = append_value(sequence),
        stamp: UInt64Builder = append_value(stamp),
        time: Times = push(clock.utc_ns_of(stamp)),
    }
}

/// Rows that were not handed over yet.
#[derive(Default)]
pub struct TableRows<C> {
    pub leading: LeadingColumns,
    /// The columns after the leading ones.
    pub columns: C,
}

impl<C: ColumnSet> TableRows<C> {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.leading.sequence.values_slice().len()
    }

    /// Returns the names and types of the columns.
    pub fn schema() -> SchemaRef {
        let columns = Self::default().take();
        Arc::new(Schema::new(columns.into_iter().map(|column| column.field).collect::<Vec<_>>()))
    }

    /// Takes the rows out as a batch.
    pub fn batch(&mut self, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
        let columns = self.take().into_iter().map(|column| column.values).collect();
        RecordBatch::try_new(Arc::clone(schema), columns)
    }

    fn take(&mut self) -> Vec<ArrowColumn> {
        let mut all = self.leading.take();
        all.append(&mut self.columns.take());
        all
    }
}

/// Takes the rows out of columns without the leading ones: no sequence number, no stamp.
pub fn batch_of(columns: &mut impl ColumnSet) -> Result<RecordBatch, ArrowError> {
    let (fields, values): (Vec<Field>, Vec<ArrayRef>) =
        columns.take().into_iter().map(|column| (column.field, column.values)).unzip();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), values)
}

impl<T: ArrowPrimitiveType> ColumnBuilder for PrimitiveBuilder<T> {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        into.push(ArrowColumn::new(name, self.finish()));
    }
}

impl<T: ByteArrayType> ColumnBuilder for GenericByteBuilder<T> {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        into.push(ArrowColumn::new(name, self.finish()));
    }
}

impl ColumnBuilder for BooleanBuilder {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        into.push(ArrowColumn::new(name, self.finish()));
    }
}

/// Builder of nullable values: a null is unknown or does not apply.
#[derive(Default)]
pub struct Nullable<V>(V);

impl<V> Deref for Nullable<V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.0
    }
}

impl<V> DerefMut for Nullable<V> {
    fn deref_mut(&mut self) -> &mut V {
        &mut self.0
    }
}

impl<V: ColumnBuilder> ColumnBuilder for Nullable<V> {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        let first = into.len();
        self.0.take(name, into);
        into[first..].iter_mut().for_each(|column| column.field.set_nullable(true));
    }
}

/// Numbers of up to `DIGITS` digits, `SCALE` of them decimals.
pub struct DecimalColumn<const DIGITS: u8, const SCALE: i8>(Decimal128Builder);

/// Prices or quantities.
pub type Decimals = DecimalColumn<19, 8>;

/// Numbers of as many digits as a 128-bit Arrow decimal has.
pub type WideDecimals<const SCALE: i8> = DecimalColumn<38, SCALE>;

impl<const DIGITS: u8, const SCALE: i8> Default for DecimalColumn<DIGITS, SCALE> {
    fn default() -> Self {
        Self(Decimal128Builder::new().with_data_type(DataType::Decimal128(DIGITS, SCALE)))
    }
}

impl Decimals {
    /// Appends a value in units of 10⁻⁸.
    pub fn push(&mut self, units: i64) {
        self.0.append_value(units.into());
    }

    /// Appends a value in units of 10⁻⁸, or null.
    pub fn push_known(&mut self, units: Option<i64>) {
        self.0.append_option(units.map(i128::from));
    }
}

impl<const SCALE: i8> WideDecimals<SCALE> {
    /// Appends a value in units of its last decimal; null if it is unknown or too long.
    pub fn push(&mut self, units: Option<i128>) {
        self.0.append_option(units.filter(|units| units.unsigned_abs() < 10_u128.pow(38)));
    }
}

impl<const DIGITS: u8, const SCALE: i8> ColumnBuilder for DecimalColumn<DIGITS, SCALE> {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        self.0.take(name, into);
    }
}

/// Timestamps in UTC.
pub struct Times(TimestampNanosecondBuilder);

impl Default for Times {
    fn default() -> Self {
        Self(TimestampNanosecondBuilder::new().with_timezone("UTC"))
    }
}

impl Times {
    /// Appends a time in nanoseconds since the Unix epoch; a time before the epoch has wrapped around, and becomes
    /// negative again.
    pub fn push(&mut self, utc_ns: u64) {
        self.0.append_value(utc_ns.cast_signed());
    }

    /// Appends a time, or null.
    pub fn push_known(&mut self, utc_ns: Option<u64>) {
        self.0.append_option(utc_ns.map(u64::cast_signed));
    }
}

impl ColumnBuilder for Times {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        self.0.take(name, into);
    }
}

/// Stamps that may be unknown, with their times: two columns.
#[derive(Default)]
pub struct StampColumn {
    ticks: Nullable<UInt64Builder>,
    times: Nullable<Times>,
}

impl StampColumn {
    /// Appends a stamp of this clock; null if the stamp is zero.
    pub fn push(&mut self, ticks: u64, clock: &Calibration) {
        let known = nonzero(ticks);
        self.ticks.append_option(known);
        self.times.push_known(known.map(|ticks| clock.utc_ns_of(ticks)));
    }
}

impl ColumnBuilder for StampColumn {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        self.ticks.take(name, into);
        self.times.take(&format!("{name}_time"), into);
    }
}

/// Names of one-byte codes, in snake case; null for a byte that is no value of `T`.
pub struct CodeColumn<T> {
    /// Names, indexed by code.
    names: Vec<Option<String>>,
    values: Nullable<StringBuilder>,
    of: PhantomData<fn() -> T>,
}

impl<T: TryFromBytes + Debug> Default for CodeColumn<T> {
    fn default() -> Self {
        let names = (0..=u8::MAX).map(|code| T::try_read_from_bytes(&[code]).ok().map(snake_case)).collect();
        Self { names, values: Nullable::default(), of: PhantomData }
    }
}

impl<T> CodeColumn<T> {
    /// Appends the name of a code, or null.
    pub fn push(&mut self, code: Option<u8>) {
        let Self { names, values, .. } = self;
        values.append_option(code.and_then(|code| names.get(usize::from(code))?.as_deref()));
    }
}

impl<T: TryFromBytes + Debug> ColumnBuilder for CodeColumn<T> {
    fn take(&mut self, name: &str, into: &mut Vec<ArrowColumn>) {
        self.values.take(name, into);
    }
}

/// Returns a value, or None for zero, which stands for an absent one.
pub fn nonzero(value: u64) -> Option<u64> {
    (value != 0).then_some(value)
}
