//! See `gridlet_fuzz::format`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::format(data));
