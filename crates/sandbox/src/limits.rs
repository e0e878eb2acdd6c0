//! Limits of a module.

use wasmi::{CompilationMode, Config, EnforcedLimits, Engine, StoreLimits, StoreLimitsBuilder};

/// Largest number of bytes of the memory of a module, in which the records of a batch have room.
pub const MEMORY_BYTES_MAX: usize = 16 << 20;

/// Largest number of elements of the table of a module.
pub const TABLE_ELEMENTS_MAX: usize = 10_000;

/// Units of fuel for one call of a module.
pub const FUEL_PER_CALL: u64 = 100_000;

/// Units of fuel for each byte of the records of a call.
pub const FUEL_PER_BYTE: u64 = 64;

/// Largest number of calls of functions inside one another.
pub const RECURSION_MAX: usize = 1_000;

/// Largest number of bytes of the stack of a module's values.
pub const STACK_BYTES_MAX: usize = 1 << 20;

/// Returns the engine of all modules.
pub(super) fn engine() -> Engine {
    let mut config = Config::default();
    config
        .consume_fuel(true)
        .allow_start_fn(false)
        .ignore_custom_sections(true)
        // All of it is checked and translated at once, so that no call pays for that.
        .compilation_mode(CompilationMode::Eager)
        .enforced_limits(EnforcedLimits::strict())
        .set_max_recursion_depth(RECURSION_MAX)
        .set_max_stack_height(STACK_BYTES_MAX)
        .wasm_multi_memory(false)
        .wasm_custom_page_sizes(false)
        .wasm_wide_arithmetic(false);
    Engine::new(&config)
}

/// Returns what an instance may take.
pub(super) fn of_instance() -> StoreLimits {
    StoreLimitsBuilder::new()
        .memory_size(MEMORY_BYTES_MAX)
        .table_elements(TABLE_ELEMENTS_MAX)
        .memories(1)
        .tables(1)
        .instances(1)
        .build()
}
