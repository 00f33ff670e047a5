//! Feeds the target `damaged_table` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("damaged_table").run(input));
