//! Pages: blocks of a file that are pinned, and seen without a copy.

use crate::arguments::Out;
use crate::border::exported;
use crate::handles::{FileHandle, PageHandle, make};
use std::ffi::{c_int, c_void};

exported! {
    /// Bytes of a page.
    fn unisono_page_bytes(file: FileHandle, bytes: Out<u64>) -> c_int {
        let slot = bytes.slot("bytes")?;
        slot.set(file.get("file")?.page_bytes());
        Ok(())
    }

    /// Pins a page.
    fn unisono_page_pin(file: FileHandle, number: u64, page: Out<PageHandle>) -> c_int {
        make(&page, "page", || Ok(file.get("file")?.page(number)?))
    }

    /// Address and length of a page.
    fn unisono_page_data(page: PageHandle, data: Out<*const c_void>, bytes: Out<u64>) -> c_int {
        let (data, bytes) = (data.slot("data")?, bytes.slot("bytes")?);
        let page = page.get("page")?;
        data.set(page.as_ptr().cast());
        bytes.set(page.len() as u64);
        Ok(())
    }

    /// Releases a page.
    fn unisono_page_release(page: PageHandle) {
        page.take("page").map(drop)
    }
}
