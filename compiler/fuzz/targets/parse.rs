//! See `gridlet_fuzz::parse`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::parse(data));
