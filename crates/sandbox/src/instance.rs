//! A module, and the calls of it.

use crate::limits::{self, FUEL_PER_BYTE, FUEL_PER_CALL, MEMORY_BYTES_MAX};
use policy::{Answers, FailedOperator, ModuleCompiler, RecordBatch, RecordOperator, batch_records};
use std::panic::{AssertUnwindSafe, catch_unwind};
use wasmi::{Engine, Error, Linker, Memory, Module, Store, StoreLimits, TrapCode, TypedFunc};

/// Bytes of a page of memory.
const PAGE_BYTES: usize = 1 << 16;

/// Bytes of the answer for a record.
const ANSWER_BYTES: usize = size_of::<i64>();

/// Largest number of characters of an error of the interpreter that users see.
const ERROR_CHARACTERS_MAX: usize = 300;

/// Offset of the records, their number, the bytes of one, and offset of the answers; 0 if all is
/// well.
type Select = TypedFunc<(i32, i32, i32, i32), i32>;

/// Compiler of modules.
pub struct Modules(Engine);

impl Default for Modules {
    fn default() -> Self {
        Self(limits::engine())
    }
}

impl ModuleCompiler for Modules {
    fn compile(
        &self,
        module: &[u8],
        record_bytes: u32,
    ) -> Result<Box<dyn RecordOperator>, FailedOperator> {
        let record_bytes = record_bytes as usize;
        let compiled = unless_it_panics(|| ModuleOperator::new(&self.0, module, record_bytes));
        compiled.map(|operator| Box::new(operator) as _)
    }
}

/// Instance of a module.
struct ModuleOperator {
    store: Store<StoreLimits>,
    memory: Memory,
    select: Select,
    /// Offset in the memory of the answers, after which there are the records.
    answers_at: usize,
    /// Largest number of records of a call.
    records_max: usize,
    failed: Option<FailedOperator>,
}

impl ModuleOperator {
    fn new(engine: &Engine, module: &[u8], record_bytes: usize) -> Result<Self, FailedOperator> {
        let module = Module::new(engine, module).map_err(|error| failed(&told(&error)))?;
        if let Some(import) = module.imports().next() {
            let name = format!("{}.{}", import.module(), import.name());
            let name: String = name.chars().take(ERROR_CHARACTERS_MAX).collect();
            return Err(failed(&format!("it imports {name:?}, and may import nothing")));
        }
        let mut store = Store::new(engine, limits::of_instance());
        store.limiter(|limits| limits);
        let instance = Linker::new(engine).instantiate_and_start(&mut store, &module);
        let instance = instance.map_err(|error| failed(&told(&error)))?;
        let memory = instance.get_memory(&store, "memory");
        let memory = memory.ok_or_else(|| failed("it exports no memory of the name \"memory\""))?;
        let select = instance.get_typed_func(&store, "select");
        let select = select.map_err(|_| {
            failed("it exports no function \"select\" of four i32, which returns one")
        })?;
        // The end of the memory, which nothing in the module knows, is for records and answers.
        let records_max = batch_records(record_bytes);
        let needed = records_max * (record_bytes + ANSWER_BYTES);
        let pages = needed.div_ceil(PAGE_BYTES) as u64;
        let before = memory.grow(&mut store, pages).map_err(|_| {
            failed(&format!(
                "its memory cannot grow by the {needed} bytes for records: it must have no maximum \
                 of its own, and at most {MEMORY_BYTES_MAX} bytes together with them"
            ))
        })?;
        let answers_at = before as usize * PAGE_BYTES;
        Ok(Self { store, memory, select, answers_at, records_max, failed: None })
    }

    fn select(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        let (count, bytes) = (records.count(), records.bytes());
        assert!(count <= self.records_max, "a batch has a bounded number of records");
        let records_at = self.answers_at + count * ANSWER_BYTES;
        let answers = self.answers_at..records_at;
        let gone = || failed("its memory has become smaller");
        {
            let memory = self.memory.data_mut(&mut self.store);
            memory.get_mut(answers.clone()).ok_or_else(gone)?.fill(0xFF);
            let room = memory.get_mut(records_at..records_at + bytes.len());
            room.ok_or_else(gone)?.copy_from_slice(bytes);
        }
        let fuel = FUEL_PER_CALL + FUEL_PER_BYTE * bytes.len() as u64;
        self.store.set_fuel(fuel).map_err(|error| failed(&told(&error)))?;
        let arguments = (
            records_at as i32,
            count as i32,
            records.record_bytes() as i32,
            self.answers_at as i32,
        );
        let returned = self.select.call(&mut self.store, arguments);
        match returned.map_err(|error| stopped(&error, fuel, count))? {
            0 => {}
            code => return Err(failed(&format!("it has returned the error {code}"))),
        }
        let answers = self.memory.data(&self.store).get(answers).ok_or_else(gone)?;
        Ok(Answers::of(answers.chunks_exact(ANSWER_BYTES).map(|answer| {
            let mut bytes = [0; ANSWER_BYTES];
            bytes.copy_from_slice(answer);
            Some(i64::from_le_bytes(bytes)).filter(|number| *number >= 0)
        })))
    }
}

impl RecordOperator for ModuleOperator {
    fn look_at(&mut self, records: RecordBatch<'_>) -> Result<Answers, FailedOperator> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        let selected = unless_it_panics(|| self.select(records));
        self.failed = selected.as_ref().err().cloned();
        selected
    }
}

/// Does a step of the interpreter. A panic of it, which some bytes may find, is a failure.
fn unless_it_panics<T>(
    step: impl FnOnce() -> Result<T, FailedOperator>,
) -> Result<T, FailedOperator> {
    catch_unwind(AssertUnwindSafe(step))
        .unwrap_or_else(|_| Err(failed("the interpreter cannot deal with it")))
}

fn failed(cause: &str) -> FailedOperator {
    FailedOperator { cause: format!("the module has failed: {cause}") }
}

/// Returns the failure of a call that the interpreter has stopped.
fn stopped(error: &Error, fuel: u64, records: usize) -> FailedOperator {
    match error.as_trap_code() {
        Some(TrapCode::OutOfFuel) => failed(&format!(
            "it has not ended after {fuel} instructions for {records} records, which is the limit"
        )),
        _ => failed(&told(error)),
    }
}

/// Returns an error of the interpreter as a short text of one line.
fn told(error: &Error) -> String {
    let text = error.to_string();
    text.lines().next().unwrap_or_default().chars().take(ERROR_CHARACTERS_MAX).collect()
}
