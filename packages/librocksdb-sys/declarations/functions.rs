// Made by `REWRITE=1 cargo xtask declarations`; not to be changed by hand.
include!("functions_1.rs");
include!("functions_2.rs");
include!("functions_3.rs");
