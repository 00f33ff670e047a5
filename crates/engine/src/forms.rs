//! The forms of a read, write or scan: the longest is written, the others follow from it.

/// Defines the shorter forms of `NAME_cf_with`: `NAME` in the default column family and `NAME_cf`, both under default options, and
/// `NAME_with` in the default column family. The comment is that of `NAME`; the others refer to it.
///
/// The type has a method `default_family`, the options have `by_default`. The rule of the forms is in docs/design/0013.
macro_rules! shorter_forms {
    ($(#[$meta:meta])* $type:ident: $name:ident, $cf:ident, $with:ident => $full:ident(&self $($rest:tt)*) -> $returned:ty) => {
        shorter_forms! { @ [] [] [$(#[$meta])*] $type: $name, $cf, $with => $full($($rest)*) -> $returned }
    };
    // The method changes its object, from which no handle can be borrowed meanwhile.
    ($(#[$meta:meta])* $type:ident: $name:ident, $cf:ident, $with:ident => $full:ident(&mut self $($rest:tt)*) -> $returned:ty) => {
        shorter_forms! { @ [mut] [.clone()] [$(#[$meta])*] $type: $name, $cf, $with => $full($($rest)*) -> $returned }
    };
    (@ [$($mut:ident)?] [$($clone:tt)*] [$(#[$meta:meta])*] $type:ident: $name:ident, $cf:ident, $with:ident
        => $full:ident($(, $arg:ident: $arg_type:ty)*; $options:ident) -> $returned:ty
    ) => {
        $(#[$meta])*
        #[inline]
        pub fn $name(&$($mut)? self $(, $arg: $arg_type)*) -> $returned {
            self.$full(&self.default_family()$($clone)* $(, $arg)*, $options::by_default())
        }

        #[doc = concat!("[`", stringify!($type), "::", stringify!($name), "`] in column family `cf`, with the same errors.")]
        #[inline]
        pub fn $cf(&$($mut)? self, cf: &ColumnFamilyHandle $(, $arg: $arg_type)*) -> $returned {
            self.$full(cf $(, $arg)*, $options::by_default())
        }

        #[doc = concat!("[`", stringify!($type), "::", stringify!($name), "`] under `options`, with the same errors.")]
        #[inline]
        pub fn $with(&$($mut)? self $(, $arg: $arg_type)*, options: &$options) -> $returned {
            self.$full(&self.default_family()$($clone)* $(, $arg)*, options)
        }
    };
}

pub(crate) use shorter_forms;
