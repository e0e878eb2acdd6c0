//! Records of a file that match a condition.

use crate::arguments::{Array, Bytes, Options, Out, OutArray, Text, extensible};
use crate::border::{Failure, exported};
use crate::condition::Condition;
use crate::handles::{ConditionHandle, FileHandle, GroupHandle, RecordsHandle, make};
use client::{Constant, Expression, Group, HISTOGRAM_EDGES_MAX, Reduced, Reduction, Share};
use interface::{TypedRecords, field_of, key_of, module_operator, number_of, predicate_of};
use policy::{Comparison, MODULE_BYTES_MAX, Operator, SET_VALUES_MAX};
use std::ffi::c_int;
use std::fmt::Write;

extensible! {
    /// `unisono_records_options_t`.
    struct RecordsView {
        size: usize,
        offset: u64,
        count: u64,
        share: u64,
    }
}

/// Numbers that `unisono_reduce_records` computes, by their number in the header.
const MINIMUM: u32 = 0;
const MAXIMUM: u32 = 1;
const SUM: u32 = 2;

/// Returns the sign of a comparison of its number in the header.
fn sign(how: u32) -> Result<Comparison, Failure> {
    let known = Comparison::ALL.get(how as usize).copied();
    known.ok_or_else(|| Failure::argument("comparison", format!("is {how}, which is none")))
}

fn float(value: f64) -> String {
    match value {
        value if value.is_nan() => "nan".to_owned(),
        value => format!("{value:?}"),
    }
}

exported! {
    /// A condition as a text.
    fn unisono_condition_text(text: Text, condition_out: Out<ConditionHandle>) -> c_int {
        make(&condition_out, "condition", || {
            Condition::new(text.required("text")?.to_owned())
        })
    }

    /// Compares a value with a float.
    fn unisono_condition_compare(
        value: Text,
        comparison: u32,
        with: f64,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            let (value, sign) = (value.required("value")?, sign(comparison)?);
            Condition::new(format!("({value}) {sign} {}", float(with)))
        })
    }

    /// Compares a value with an integer.
    fn unisono_condition_compare_integer(
        value: Text,
        comparison: u32,
        with: i64,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            Condition::new(format!("({}) {} {with}", value.required("value")?, sign(comparison)?))
        })
    }

    /// A value that is one of some integers.
    fn unisono_condition_in(
        value: Text,
        set: Array<i64>,
        count: usize,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            let mut text = format!("({}) in {{", value.required("value")?);
            for number in set.values(count, SET_VALUES_MAX, "set")? {
                // Writing to a text does not fail.
                let _ = write!(text, "{number}, ");
            }
            Condition::new(text + "}")
        })
    }

    /// Both of two conditions.
    fn unisono_condition_and(
        left: ConditionHandle,
        right: ConditionHandle,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            let (left, right) = (left.anywhere("left")?, right.anywhere("right")?);
            left.and(right)
        })
    }

    /// One of two conditions, or both.
    fn unisono_condition_or(
        left: ConditionHandle,
        right: ConditionHandle,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            let (left, right) = (left.anywhere("left")?, right.anywhere("right")?);
            let (left, right) = (left.plain_text("left")?, right.plain_text("right")?);
            Condition::new(format!("({left}) or ({right})"))
        })
    }

    /// The contrary of a condition.
    fn unisono_condition_not(
        of: ConditionHandle,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            Condition::new(format!("not ({})", of.anywhere("of")?.plain_text("of")?))
        })
    }

    /// A module of WebAssembly that selects records.
    fn unisono_condition_module(
        module: Array<u8>,
        module_bytes: usize,
        condition_out: Out<ConditionHandle>,
    ) -> c_int {
        make(&condition_out, "condition", || {
            let module = module.values(module_bytes, MODULE_BYTES_MAX, "module")?;
            Ok(Condition::of_operator(module_operator(module.to_vec())?))
        })
    }

    /// An operator of the program of the servers that selects records.
    fn unisono_condition_operator(name: Text, condition_out: Out<ConditionHandle>) -> c_int {
        make(&condition_out, "condition", || {
            Ok(Condition::of_operator(Operator::Own(name.required("name")?.to_owned())))
        })
    }

    /// Frees a condition.
    fn unisono_condition_free(condition: ConditionHandle) -> c_int {
        condition.take_anywhere("condition").map(drop)
    }
}

/// Resolved arguments that the functions on records have in common.
struct Wanted<'a> {
    group: Option<&'a Group>,
    records: TypedRecords,
    condition: policy::Condition,
    options: RecordsView,
}

/// Resolves the arguments that the functions on records have in common.
fn resolved<'a>(
    (file, group): (&FileHandle, &'a GroupHandle),
    record_type: &Text,
    condition: &ConditionHandle,
    options: &Options<RecordsView>,
) -> Result<Wanted<'a>, Failure> {
    let options = options.read("options")?;
    let given = |value: u64| (value > 0).then_some(value);
    let (offset, count) = (given(options.offset), given(options.count));
    let record_type = record_type.optional("type")?;
    let records = file.get("file")?.typed_records(record_type, offset, count)?;
    let group = match group.is_none() {
        true => None,
        false => Some(group.get("group")?),
    };
    let condition = match condition.is_none() {
        true => Expression::always().into(),
        false => {
            let given = condition.anywhere("condition")?;
            let predicate = predicate_of(&records.records, given.text())?;
            policy::Condition { predicate, operator: given.operator().cloned() }
        }
    };
    Ok(Wanted { group, records, condition, options })
}

exported! {
    /// Finds records that match.
    fn unisono_find_records(
        file: FileHandle,
        group: GroupHandle,
        record_type: Text,
        condition: ConditionHandle,
        key: Text,
        options: Options<RecordsView>,
        records: Out<RecordsHandle>,
    ) -> c_int {
        make(&records, "records", || {
            let wanted = resolved((&file, &group), &record_type, &condition, &options)?;
            let share = match (key.optional("key")?, wanted.options.share) {
                (Some(key), _) => Share::Key(key_of(&wanted.records.records, key)?),
                (None, 0) => Share::Even,
                (None, 1) => Share::Part,
                (None, other) => {
                    let cause = format!("has share {other}, which is not possible");
                    return Err(Failure::argument("options", cause));
                }
            };
            let (grid, file) = (wanted.records.grid(), file.get("file")?);
            Ok(file.find_records(wanted.group, grid, wanted.condition, share)?)
        })
    }

    /// Number of records that were found.
    fn unisono_records_count(records: RecordsHandle, count: Out<u64>) -> c_int {
        let slot = count.slot("count")?;
        slot.set(records.get("records")?.count());
        Ok(())
    }

    /// Reads the records that were found.
    fn unisono_records_read(records: RecordsHandle, memory: Bytes, memory_bytes: u64) -> i64 {
        let records = records.get("records")?;
        let memory = memory.memory(memory_bytes, "memory")?;
        Ok(records.start_read_memory(memory).wait()?)
    }

    /// Frees the records that were found.
    fn unisono_records_free(records: RecordsHandle) -> c_int {
        records.take("records").map(drop)
    }

    /// Computes bounds of fields for each block.
    fn unisono_summarise_records(
        file: FileHandle,
        group: GroupHandle,
        record_type: Text,
        options: Options<RecordsView>,
        fields: Text,
    ) -> c_int {
        let all = ConditionHandle::NONE;
        let Wanted { group, records, .. } =
            resolved((&file, &group), &record_type, &all, &options)?;
        let fields = fields.required("fields")?.split(';');
        let fields = fields.map(|field| field_of(&records.records, field));
        let fields = fields.collect::<Result<Vec<_>, _>>()?;
        Ok(file.get("file")?.summarise_records(group, records.grid(), fields)?)
    }

    /// Number of records that match, of all processes.
    fn unisono_count_records(
        file: FileHandle,
        group: GroupHandle,
        record_type: Text,
        condition: ConditionHandle,
        options: Options<RecordsView>,
    ) -> i64 {
        let Wanted { group, records, condition, .. } =
            resolved((&file, &group), &record_type, &condition, &options)?;
        let file = file.get("file")?;
        match file.reduce_records(group, records.grid(), condition, Reduction::Count)?.0 {
            Reduced::Count(count) => Ok(count),
            _ => Ok(0),
        }
    }

    /// Computes an extreme or a sum.
    fn unisono_reduce_records(
        file: FileHandle,
        group: GroupHandle,
        record_type: Text,
        condition: ConditionHandle,
        options: Options<RecordsView>,
        what: u32,
        value: Text,
        result: Out<f64>,
        integer: Out<i64>,
    ) -> c_int {
        let (result, integer) = (result.optional("result")?, integer.optional("integer")?);
        let Wanted { group, records, condition, .. } =
            resolved((&file, &group), &record_type, &condition, &options)?;
        let value = number_of(&records.records, value.required("value")?)?;
        let reduction = match what {
            MINIMUM => Reduction::Minimum(value),
            MAXIMUM => Reduction::Maximum(value),
            SUM => Reduction::Sum(value),
            other => return Err(Failure::argument("what", format!("is {other}, which is none"))),
        };
        let file = file.get("file")?;
        let (float, exact) =
            numbers(&file.reduce_records(group, records.grid(), condition, reduction)?.0);
        if let Some(result) = result {
            result.set(float);
        }
        if let Some(integer) = integer {
            let exact = exact.and_then(|exact| i64::try_from(exact).ok());
            integer.set(exact.ok_or_else(|| {
                Failure::argument("integer", "must be NULL: the result is no integer of 64 bits")
            })?);
        }
        Ok(())
    }

    /// Counts values between edges.
    fn unisono_histogram_records(
        file: FileHandle,
        group: GroupHandle,
        record_type: Text,
        condition: ConditionHandle,
        options: Options<RecordsView>,
        value: Text,
        edges: Array<f64>,
        edge_count: usize,
        counts: OutArray<u64>,
    ) -> c_int {
        let slot = counts.slot(edge_count.saturating_sub(1), "counts")?;
        let edges = edges.values(edge_count, HISTOGRAM_EDGES_MAX, "edges")?.to_vec();
        let Wanted { group, records, condition, .. } =
            resolved((&file, &group), &record_type, &condition, &options)?;
        let of = number_of(&records.records, value.required("value")?)?;
        let (file, reduction) = (file.get("file")?, Reduction::Histogram { of, edges });
        if let Reduced::Histogram(found) =
            file.reduce_records(group, records.grid(), condition, reduction)?.0
        {
            slot.set(&found);
        }
        Ok(())
    }
}

/// The result as a float, and exactly if it is an integer. NaN of no records.
fn numbers(reduced: &Reduced) -> (f64, Option<i128>) {
    match reduced {
        Reduced::Minimum(Some(value)) | Reduced::Maximum(Some(value)) => match *value {
            Constant::Signed(value) => (value as f64, Some(value.into())),
            Constant::Unsigned(value) => (value as f64, Some(value.into())),
            Constant::Float(value) => (value, None),
        },
        Reduced::IntegerSum(sum) => (*sum as f64, Some(*sum)),
        Reduced::FloatSum(sum, _) => (*sum, None),
        Reduced::Minimum(None)
        | Reduced::Maximum(None)
        | Reduced::Count(_)
        | Reduced::Histogram(_) => (f64::NAN, None),
    }
}
