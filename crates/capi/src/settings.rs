//! Setters and getters in bulk: of what the engine has, of what it can do without, and of what it must refuse.
//!
//! ```text
//! engine_settings!   a field of the engine's options behind both functions
//! kept_settings!     accepted: the value is kept for the getter and changes nothing, for the reason given
//!                    checked:  the same, but any value except the default makes the next open (or read, or write)
//!                              fail with an error that names the option
//! ```
//! Invariant: a setting that would change results or durability is never dropped: it is in `Settings::refused`.
//! The reasons are [`Note`]s, from which `docs/capi.md` is made.

use libc::{c_int, c_uchar};
use outcrop::options::{CompactionPri, CompressionType, Prepopulate, WalRecoveryMode};
use outcrop::options::{DataBlockIndexType, IndexShortening, IndexType};
use outcrop::{Error, IoPriority, ReadTier, Result};
use std::collections::BTreeMap;

/// A function that does less than RocksDB's.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// Its name.
    pub function: &'static str,
    /// The fate of a call.
    pub fate: Fate,
    /// Why, and why that is harmless where it is accepted.
    pub why: &'static str,
}

/// The fate of a call that the engine has no counterpart for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It changes nothing that a caller could rely on.
    Accepted,
    /// Any value but the default makes what uses the object fail.
    Checked,
    /// It always fails, or is about an object that can only come from a function that fails.
    Refused,
    /// The argument is kept and given back, or the object made and destroyed, without effect. A caller could take it
    /// for one.
    Kept,
    /// The engine acts on it, and finds it among the kept texts. It is no difference to RocksDB.
    Acts,
}

/// The settings of one object that the engine has no field for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    kept: BTreeMap<&'static str, u64>,
    /// The same as texts.
    texts: BTreeMap<&'static str, String>,
    refused: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Keeps `value` for the getter; a checked one that is not the default is refused later.
    pub(crate) fn keep<T: Plain>(&mut self, fate: Fate, name: &'static str, default: T, value: T) {
        self.kept.insert(name, value.to_bits());
        self.texts.insert(name, value.to_string());
        if fate == Fate::Checked && value != default {
            self.refuse(name, value);
        } else {
            self.refused.remove(name);
        }
    }

    /// As if `name` had never been set.
    pub(crate) fn forget(&mut self, name: &str) {
        self.kept.remove(name);
        self.texts.remove(name);
        self.refused.remove(name);
    }

    /// Everything that was set, as texts.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.texts.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// The value kept under `name`.
    pub(crate) fn kept<T: Plain>(&self, name: &'static str, default: T) -> T {
        self.kept.get(name).map_or(default, |&bits| T::from_bits(bits))
    }

    /// Notes that `name` was set to what the engine cannot do.
    pub(crate) fn refuse(&mut self, name: &'static str, value: impl std::fmt::Display) {
        self.refused.insert(name, value.to_string());
    }

    /// Undoes [`Settings::refuse`].
    pub(crate) fn allow(&mut self, name: &'static str) {
        self.refused.remove(name);
    }

    /// Takes the refusals of `other` over, in place of those under the same names.
    pub(crate) fn adopt(&mut self, other: &Settings) {
        for name in other.kept.keys() {
            self.refused.remove(name);
        }
        self.refused.extend(other.refused.iter().map(|(name, value)| (*name, value.clone())));
    }

    /// Fails if something was set that the engine cannot do.
    ///
    /// # Errors
    /// NotSupported naming the option and its value.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.refused.is_empty() { Ok(()) } else { Err(self.refusal()) }
    }

    #[cold]
    fn refusal(&self) -> Error {
        let pairs: Vec<String> = self.refused.iter().map(|(name, value)| format!("{name}={value}")).collect();
        Error::not_supported(format!("option {}", pairs.join(", ")))
    }
}

/// C's `unsigned char` as a truth value: every number but 0 is 1.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Flag(pub c_uchar);

impl Flag {
    /// True if set.
    pub fn is_set(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(value: bool) -> Flag {
        Flag(value.into())
    }
}

impl PartialEq for Flag {
    fn eq(&self, other: &Flag) -> bool {
        self.is_set() == other.is_set()
    }
}

impl std::fmt::Display for Flag {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.is_set().fmt(f)
    }
}

/// A C number.
pub(crate) trait Plain: Copy + PartialEq + std::fmt::Display {
    /// Its value, widened.
    fn to_bits(self) -> u64;
    /// From the widened value, which was made from a type that holds the same numbers.
    fn from_bits(bits: u64) -> Self;
    /// From its text in a string of options.
    fn parse(text: &str) -> Option<Self>;
}

/// Settings that the engine has no field for, by the names that they have in strings of options.
pub(crate) trait KeptTexts {
    /// Does what the setter of `name` does; `None` if there is none, false if `text` is no value of it.
    fn keep_text(&mut self, name: &str, text: &str) -> Option<bool>;
}

macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Plain for $type {
            fn to_bits(self) -> u64 {
                self as u64
            }

            fn from_bits(bits: u64) -> $type {
                bits as $type
            }

            fn parse(text: &str) -> Option<$type> {
                text.parse().ok()
            }
        }
    )*};
}
plain!(u8, i32, u32, i64, u64, usize);

impl Plain for f64 {
    fn to_bits(self) -> u64 {
        f64::to_bits(self)
    }

    fn from_bits(bits: u64) -> f64 {
        f64::from_bits(bits)
    }

    fn parse(text: &str) -> Option<f64> {
        text.parse().ok()
    }
}

impl Plain for Flag {
    fn to_bits(self) -> u64 {
        u64::from(self.is_set())
    }

    fn from_bits(bits: u64) -> Flag {
        Flag::from(bits != 0)
    }

    fn parse(text: &str) -> Option<Flag> {
        match text {
            "true" | "1" => Some(Flag(1)),
            "false" | "0" => Some(Flag(0)),
            _ => None,
        }
    }
}

/// How a field of the engine's options goes over the boundary.
pub(crate) trait Field<C>: Sized {
    /// As C sees it.
    fn to_c(&self) -> C;
    /// From C; `None` for what the engine cannot do.
    fn from_c(value: C) -> Option<Self>;
}

macro_rules! same_fields {
    ($($type:ty),*) => {$(
        impl Field<$type> for $type {
            fn to_c(&self) -> $type {
                *self
            }

            fn from_c(value: $type) -> Option<$type> {
                Some(value)
            }
        }
    )*};
}
same_fields!(u32, i32, u64, i64, usize, f64);

macro_rules! number_fields {
    ($($c:ty => $field:ty),*) => {$(
        impl Field<$c> for $field {
            fn to_c(&self) -> $c {
                <$c>::try_from(*self).unwrap_or(<$c>::MAX)
            }

            fn from_c(value: $c) -> Option<$field> {
                value.try_into().ok()
            }
        }
    )*};
}
number_fields!(usize => u64, i32 => u32);

impl Field<Flag> for bool {
    fn to_c(&self) -> Flag {
        Flag::from(*self)
    }

    fn from_c(value: Flag) -> Option<bool> {
        Some(value.is_set())
    }
}

impl Field<c_int> for bool {
    fn to_c(&self) -> c_int {
        c_int::from(*self)
    }

    fn from_c(value: c_int) -> Option<bool> {
        Some(value != 0)
    }
}

/// RocksDB's number for "not limited", `Env::IO_TOTAL`.
const NOT_LIMITED: c_int = 4;

impl Field<c_int> for Option<IoPriority> {
    fn to_c(&self) -> c_int {
        self.map_or(NOT_LIMITED, |priority| priority as c_int)
    }

    fn from_c(value: c_int) -> Option<Option<IoPriority>> {
        match value {
            0 => Some(Some(IoPriority::Low)),
            1 => Some(Some(IoPriority::Mid)),
            2 => Some(Some(IoPriority::High)),
            3 => Some(Some(IoPriority::User)),
            NOT_LIMITED => Some(None),
            _ => None,
        }
    }
}

/// RocksDB's number for "as the level's codec".
const DISABLED_COMPRESSION: c_int = 255;

impl Field<c_int> for Option<CompressionType> {
    fn to_c(&self) -> c_int {
        self.as_ref().map_or(DISABLED_COMPRESSION, Field::to_c)
    }

    fn from_c(value: c_int) -> Option<Option<CompressionType>> {
        if value == DISABLED_COMPRESSION { Some(None) } else { CompressionType::from_c(value).map(Some) }
    }
}

impl Field<c_int> for CompressionType {
    fn to_c(&self) -> c_int {
        *self as c_int
    }

    fn from_c(value: c_int) -> Option<CompressionType> {
        CompressionType::from_byte(u8::try_from(value).ok()?).ok()
    }
}

/// Enumerations by RocksDB's numbers.
macro_rules! enum_fields {
    ($($c:ty => $type:ident { $($number:literal => $variant:ident),* })*) => {$(
        impl Field<$c> for $type {
            fn to_c(&self) -> $c {
                match self {
                    $($type::$variant => $number,)*
                }
            }

            fn from_c(value: $c) -> Option<$type> {
                match value {
                    $($number => Some($type::$variant),)*
                    _ => None,
                }
            }
        }
    )*};
}

enum_fields! {
    c_int => CompactionPri {
        0 => ByCompensatedSize, 1 => OldestLargestSeqFirst, 2 => OldestSmallestSeqFirst, 3 => MinOverlappingRatio,
        4 => RoundRobin
    }
    c_int => WalRecoveryMode {
        0 => TolerateCorruptedTailRecords, 1 => AbsoluteConsistency, 2 => PointInTimeRecovery,
        3 => SkipAnyCorruptedRecords
    }
    c_int => ReadTier { 0 => All, 1 => Cached, 2 => Persisted, 3 => MemTables }
    c_int => Prepopulate { 0 => Disable, 1 => FlushOnly, 2 => FlushAndCompaction }
    c_int => IndexType { 0 => BinarySearch, 1 => HashSearch, 2 => TwoLevel, 3 => BinarySearchWithFirstKey }
    c_int => IndexShortening { 0 => None, 1 => Separators, 2 => SeparatorsAndSuccessor }
    c_int => DataBlockIndexType { 0 => BinarySearch, 1 => BinaryAndHash }
}

/// Setters and getters over fields of the engine's options.
macro_rules! engine_settings {
    (@place $object:ident [$($field:tt)+]) => { $object.$($field)+ };
    ($object:ident: $(
        $name:literal $place:tt
        $(set $set:ident($set_type:ty))? $(get $get:ident -> $get_type:ty)?;
    )*) => {$(
        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $set(object: *mut $object, value: $set_type) {
            boundary!({
                let object = &mut *object;
                match $crate::settings::Field::from_c(value) {
                    Some(value) => {
                        *(&mut engine_settings!(@place object $place)) = value;
                        object.settings.allow($name);
                    }
                    None => object.settings.refuse($name, value),
                }
            })
        })?

        $(#[unsafe(no_mangle)]
        pub unsafe extern "C" fn $get(object: *mut $object) -> $get_type {
            boundary!({
                let object = &*object;
                $crate::settings::Field::to_c(&engine_settings!(@place object $place))
            })
        })?
    )*};
}

/// Setters and getters of what the engine has no field for; see the module.
macro_rules! kept_settings {
    ($object:ident, $notes:ident: $($fate:ident $why:literal { $(
        $name:literal $type:ty = $default:expr;
        $(set $set:ident)? $(get $get:ident -> $get_type:ty)?;
    )* })*) => {
        pub(crate) const $notes: &[$crate::settings::Note] = &[$($(
            $($crate::settings::Note {
                function: stringify!($set), fate: $crate::settings::Fate::$fate, why: $why,
            },)?
            $($crate::settings::Note {
                function: stringify!($get), fate: $crate::settings::Fate::$fate, why: $why,
            },)?
        )*)*];

        impl $crate::settings::KeptTexts for $object {
            fn keep_text(&mut self, name: &str, text: &str) -> Option<bool> {
                match name {
                    $($($name => {
                        let value = <$type as $crate::settings::Plain>::parse(text);
                        let keep = |value| {
                            self.settings.keep($crate::settings::Fate::$fate, $name, $default, value);
                        };
                        Some(value.map(keep).is_some())
                    })*)*
                    _ => None,
                }
            }
        }

        $($(
            $(#[unsafe(no_mangle)]
            pub unsafe extern "C" fn $set(object: *mut $object, value: $type) {
                boundary!({
                    let object = &mut *object;
                    object.settings.keep($crate::settings::Fate::$fate, $name, $default, value);
                })
            })?

            $(#[unsafe(no_mangle)]
            pub unsafe extern "C" fn $get(object: *mut $object) -> $get_type {
                boundary!({
                    let object = &*object;
                    let kept: $type = object.settings.kept($name, $default);
                    <$get_type as $crate::settings::Plain>::from_bits($crate::settings::Plain::to_bits(kept))
                })
            })?
        )*)*
    };
}

/// Options of something that is refused: an object that keeps its settings for its getters.
macro_rules! kept_object {
    ($object:ident, $notes:ident: $create:ident, $destroy:ident, $why:literal) => {
        #[derive(Default)]
        pub struct $object {
            settings: $crate::settings::Settings,
        }

        pub(crate) const $notes: &[$crate::settings::Note] = &[
            $crate::settings::Note {
                function: stringify!($create),
                fate: $crate::settings::Fate::Accepted,
                why: $why,
            },
            $crate::settings::Note {
                function: stringify!($destroy),
                fate: $crate::settings::Fate::Accepted,
                why: $why,
            },
        ];

        #[unsafe(no_mangle)]
        pub extern "C" fn $create() -> *mut $object {
            boundary!($crate::memory::hand_out($object::default()))
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $destroy(options: *mut $object) {
            boundary!($crate::memory::give_back(options))
        }
    };
}

/// Functions that always fail: they report NotSupported in `errptr`, or once per process on standard error where there is none,
/// and give null or 0. Objects are not looked at: null, which a refused create function gave, is as good as any.
macro_rules! refused {
    ($notes:ident: $($why:literal { $(
        $name:ident($($arg:ty),*) $(@ $errptr:ident)? $(-> $ret:ty)?;
    )* })*) => {
        pub(crate) const $notes: &[$crate::settings::Note] = &[$($($crate::settings::Note {
            function: stringify!($name),
            fate: $crate::settings::Fate::Refused,
            why: $why,
        },)*)*];

        $($(refused!(@function $why, $name($($arg),*) $(@ $errptr)? $(-> $ret)?);)*)*
    };
    (@function $why:literal, $name:ident($($arg:ty),*) @ $errptr:ident $(-> $ret:ty)?) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($(_: $arg,)* $errptr: $crate::memory::Errptr) $(-> $ret)? {
            boundary!($errptr, {
                let error = $crate::settings::refusal(stringify!($name), $why);
                $crate::memory::set_error($errptr, &error);
                $(<$ret as $crate::settings::Nothing>::NOTHING)?
            })
        }
    };
    (@function $why:literal, $name:ident($($arg:ty),*) $(-> $ret:ty)?) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $arg,)*) $(-> $ret)? {
            boundary!({
                static TOLD: std::sync::Once = std::sync::Once::new();
                $crate::settings::tell_refusal(&TOLD, stringify!($name), $why);
                $(<$ret as $crate::settings::Nothing>::NOTHING)?
            })
        }
    };
}

/// The error of a function that always fails.
pub(crate) fn refusal(function: &str, why: &str) -> Error {
    Error::not_supported(format!("{function}: {why}"))
}

/// Says on standard error that `function`, which has no errptr, did nothing; the first time. One that only ends an object
/// has nothing to say.
pub(crate) fn tell_refusal(told: &std::sync::Once, function: &str, why: &str) {
    if !["_destroy", "_close", "_close_base_db", "_release_snapshot"]
        .iter()
        .any(|end| function.ends_with(end))
    {
        told.call_once(|| crate::boundary::warn(refusal(function, why)));
    }
}

/// The result of a function that has none to give.
pub(crate) trait Nothing {
    /// Null or 0.
    const NOTHING: Self;
}

impl<T> Nothing for *mut T {
    const NOTHING: *mut T = std::ptr::null_mut();
}

impl<T> Nothing for *const T {
    const NOTHING: *const T = std::ptr::null();
}

impl Nothing for crate::reads::rocksdb_slice_t {
    const NOTHING: crate::reads::rocksdb_slice_t =
        crate::reads::rocksdb_slice_t { data: std::ptr::null(), size: 0 };
}

macro_rules! nothing {
    ($($type:ty = $value:expr),*) => {$(
        impl Nothing for $type {
            const NOTHING: $type = $value;
        }
    )*};
}
nothing!(
    () = (),
    Flag = Flag(0),
    u8 = 0,
    i32 = 0,
    u32 = 0,
    i64 = 0,
    u64 = 0,
    usize = 0,
    f64 = 0.0,
    bool = false
);
