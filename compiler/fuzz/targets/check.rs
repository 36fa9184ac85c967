//! See `gridlet_fuzz::check`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::check(data));
