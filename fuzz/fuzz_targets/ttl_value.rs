//! Feeds the target `ttl_value` under libFuzzer.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| outcrop_fuzz_targets::target("ttl_value").run(input));
