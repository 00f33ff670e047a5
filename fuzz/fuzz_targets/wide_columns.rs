//! Feeds the target `wide_columns` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("wide_columns").run(input));
