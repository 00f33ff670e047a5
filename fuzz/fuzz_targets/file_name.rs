//! Feeds the target `file_name` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("file_name").run(input));
