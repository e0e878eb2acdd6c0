//! The module above.wat in Rust, without a standard library:
//!
//! ```sh
//! rustc --target wasm32-unknown-unknown --crate-type cdylib -O -C panic=abort above.rs
//! ```
#![no_std]

/// Selects records of 12 bytes, a u4 and an f8, whose second number is above 7.5.
///
/// # Safety
/// `records` has `count` times `record_bytes` bytes, and `answers` has room for `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn select(
    records: *const u8,
    count: usize,
    record_bytes: usize,
    answers: *mut i64,
) -> i32 {
    if record_bytes != 12 {
        return 1;
    }
    for at in 0..count {
        // SAFETY: the server has put the records and the room for answers there.
        let (id, energy) = unsafe {
            let record = records.add(at * record_bytes);
            (record.cast::<u32>().read_unaligned(), record.add(4).cast::<f64>().read_unaligned())
        };
        if energy > 7.5 {
            // SAFETY: as above. All other answers are -1.
            unsafe { answers.add(at).write_unaligned(i64::from(id)) };
        }
    }
    0
}

#[cfg(target_arch = "wasm32")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    core::arch::wasm32::unreachable()
}
