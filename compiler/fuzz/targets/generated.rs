//! See `gridlet_fuzz::generated`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::generated(data));
