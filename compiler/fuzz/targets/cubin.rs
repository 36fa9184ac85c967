//! See `gridlet_fuzz::cubin`.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| gridlet_fuzz::cubin(data));
