//! The version of the library.

use crate::border::exported;
use std::ffi::{CStr, c_char};

const VERSION: &CStr = {
    let text = concat!(env!("CARGO_PKG_VERSION"), "\0");
    match CStr::from_bytes_with_nul(text.as_bytes()) {
        Ok(text) => text,
        Err(_) => panic!("a version has no zero byte"),
    }
};

/// A number of the version, which cargo has as text.
const fn number(text: &str) -> u32 {
    match u32::from_str_radix(text, 10) {
        Ok(number) => number,
        Err(_) => panic!("a version has three numbers"),
    }
}

const NUMBER: u32 = number(env!("CARGO_PKG_VERSION_MAJOR")) << 16
    | number(env!("CARGO_PKG_VERSION_MINOR")) << 8
    | number(env!("CARGO_PKG_VERSION_PATCH"));

exported! {
    /// Version as text.
    fn unisono_version() -> *const c_char {
        Ok(VERSION.as_ptr())
    }

    /// Version as a number that can be compared.
    fn unisono_version_number() -> u32 {
        Ok(NUMBER)
    }
}
