//! Feeds the target `filter` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("filter").run(input));
