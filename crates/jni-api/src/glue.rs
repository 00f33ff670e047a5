//! The boundary to the JVM: arguments and answers, exceptions, and the one reason for all that is unsafe here.
//!
//! ```text
//! Java --> Java_org_rocksdb_Class_method (made by build.rs) --> enter(env, |env| expression of calls.txt)
//!          Take: jlong to a handle or number, jboolean to a flag               Give: the way back
//!          Thrown: becomes the exception that RocksJava throws                  a panic: Status Aborted
//! ```
//! Contract, upheld by the jar's classes as they hold it for RocksDB's own library: a handle is alive, of the type that the
//! native method is about, and came from the matching native; nobody disposes an object while another thread is in a call
//! with it. References are those of the running call. Everything unsafe in this crate relies on that and on nothing else.

use crate::env::{Env, jni};
use crate::status::Status;
use jni_sys::{JNIEnv, jboolean, jbyte, jdouble, jint, jlong, jobject, jsize};
use outcrop_capi::settings::Flag;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Ends a native with an exception.
pub(crate) enum Thrown {
    /// `RocksDBException` with this status.
    Status(Status),
    /// The exception of this class, named as in class files, with this message.
    Java(&'static str, String),
    /// The JVM has one already.
    Pending,
}

pub(crate) type Answer<T> = Result<T, Thrown>;

impl From<outcrop::Error> for Thrown {
    fn from(error: outcrop::Error) -> Thrown {
        Thrown::Status(Status::parse(&error.to_string()))
    }
}

/// `IllegalArgumentException`.
pub(crate) fn illegal(message: impl Into<String>) -> Thrown {
    Thrown::Java("java/lang/IllegalArgumentException", message.into())
}

/// `RocksDBException` for what this library lacks.
pub(crate) fn not_implemented<T>(what: &str) -> Answer<T> {
    Err(Thrown::Status(Status::parse(&format!("Not implemented: {what}"))))
}

/// Calls a C function whose last argument is the place for its error.
pub(crate) fn checked<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Answer<T> {
    let mut error = std::ptr::null_mut();
    let given = call(&mut error);
    if error.is_null() { Ok(given) } else { Err(Thrown::Status(Status::parse(&take_text(error)))) }
}

/// The text at `text`, which is freed.
pub(crate) fn take_text(text: *mut c_char) -> String {
    // SAFETY: see the module: the C function gave a text that ends with NUL and is ours.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        outcrop_capi::rocksdb_free(text.cast());
        copy
    }
}

/// The same for bytes; `None` for null.
pub(crate) fn take_bytes(start: *mut c_char, len: usize) -> Option<Vec<u8>> {
    if start.is_null() {
        return None;
    }
    let copy = bytes_at(start, len).to_vec();
    // SAFETY: as above.
    unsafe { outcrop_capi::rocksdb_free(start.cast()) };
    Some(copy)
}

/// The bytes that a C function points to.
pub(crate) fn bytes_at<'a>(start: *const c_char, len: usize) -> &'a [u8] {
    // SAFETY: see the module.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(start.cast(), len) } }
}

/// The object behind a handle.
pub(crate) fn object<'a, T>(handle: jlong) -> &'a mut T {
    // SAFETY: see the module.
    unsafe { &mut *(handle as *mut T) }
}

/// A handle for `value`, until [`dispose`].
pub(crate) fn handle<T>(value: T) -> jlong {
    Box::into_raw(Box::new(value)) as jlong
}

/// Drops the object behind a handle of [`handle`].
pub(crate) fn dispose<T>(handle: jlong) -> Answer<()> {
    if handle != 0 {
        // SAFETY: see the module.
        drop(unsafe { Box::from_raw(handle as *mut T) });
    }
    Ok(())
}

/// A text for a C function.
pub(crate) fn c_text(text: impl Into<Vec<u8>>) -> Answer<CString> {
    CString::new(text).map_err(|_| illegal("a text with a NUL in it"))
}

/// An argument, from the type that the JVM passes.
pub(crate) trait Take<J> {
    fn take(given: J) -> Self;
}

/// See [`Take`].
pub(crate) fn to<T: Take<J>, J>(given: J) -> T {
    T::take(given)
}

/// An answer, as the type that the JVM wants.
pub(crate) trait Give<J> {
    fn give(self, env: Env) -> Answer<J>;
}

impl<T> Take<jlong> for *mut T {
    fn take(given: jlong) -> *mut T {
        given as *mut T
    }
}

impl<T> Take<jlong> for *const T {
    fn take(given: jlong) -> *const T {
        given as *const T
    }
}

impl<T> Give<jlong> for *mut T {
    fn give(self, _: Env) -> Answer<jlong> {
        Ok(self as jlong)
    }
}

impl<T> Give<jlong> for *const T {
    fn give(self, _: Env) -> Answer<jlong> {
        Ok(self as jlong)
    }
}

/// Numbers are as wide in the functions behind as in Java, or as RocksJava cuts them.
macro_rules! numbers {
    ($($java:ty: $($rust:ty),*;)*) => {$($(
        impl Take<$java> for $rust {
            fn take(given: $java) -> $rust {
                given as $rust
            }
        }

        impl Give<$java> for $rust {
            fn give(self, _: Env) -> Answer<$java> {
                Ok(self as $java)
            }
        }
    )*)*};
}
numbers! {
    jlong: i64, u64, usize, i32, u32;
    jint: i32, u32, u64, usize, i64, u8;
    jbyte: i8, u8, i32, u32, usize;
    jdouble: f64;
}

impl Take<jlong> for u8 {
    fn take(given: jlong) -> u8 {
        given as u8
    }
}

macro_rules! flags {
    ($($rust:ty: $take:expr, $give:expr;)*) => {$(
        impl Take<jboolean> for $rust {
            fn take(given: jboolean) -> $rust {
                ($take)(u8::from(given))
            }
        }

        impl Give<jboolean> for $rust {
            fn give(self, _: Env) -> Answer<jboolean> {
                let set: bool = ($give)(self);
                Ok(set)
            }
        }
    )*};
}
flags! {
    u8: |given| given, |own| own != 0;
    i32: i32::from, |own| own != 0;
    bool: |given| given != 0, |own| own;
    Flag: Flag, |own: Flag| own.is_set();
}

impl Give<()> for () {
    fn give(self, _: Env) -> Answer<()> {
        Ok(())
    }
}

impl Give<jobject> for jobject {
    fn give(self, _: Env) -> Answer<jobject> {
        Ok(self)
    }
}

impl Give<jobject> for &[u8] {
    fn give(self, env: Env) -> Answer<jobject> {
        env.new_bytes(self)
    }
}

impl Give<jobject> for Vec<u8> {
    fn give(self, env: Env) -> Answer<jobject> {
        env.new_bytes(&self)
    }
}

impl Give<jobject> for String {
    fn give(self, env: Env) -> Answer<jobject> {
        env.new_text(&self)
    }
}

/// Numbers as an array of Java's.
macro_rules! arrays {
    ($($number:ty: $new:ident, $set:ident;)*) => {$(
        impl Give<jobject> for Vec<$number> {
            fn give(self, env: Env) -> Answer<jobject> {
                let array = env.given(jni!(env, $new, self.len() as jsize))?;
                jni!(env, $set, array, 0, self.len() as jsize, self.as_ptr());
                Ok(array)
            }
        }
    )*};
}
arrays! {
    jlong: NewLongArray, SetLongArrayRegion;
    jint: NewIntArray, SetIntArrayRegion;
}

/// `None` is null.
impl<T: Give<jobject>> Give<jobject> for Option<T> {
    fn give(self, env: Env) -> Answer<jobject> {
        self.map_or(Ok(std::ptr::null_mut()), |some| some.give(env))
    }
}

/// Runs a native; gives nothing to Java, with an exception, if it ends with one or panics.
pub(crate) fn enter<T: Give<J>, J: Nothing>(env: *mut JNIEnv, native: impl FnOnce(Env) -> Answer<T>) -> J {
    let env = Env(env);
    let caught = catch_unwind(AssertUnwindSafe(|| native(env).and_then(|answer| answer.give(env))));
    let thrown = match caught {
        Ok(Ok(answer)) => return answer,
        Ok(Err(thrown)) => thrown,
        Err(panic) => {
            let text = panic.downcast_ref::<&str>().map(ToString::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
            // An unknown payload is leaked: its destructor could panic again.
            std::mem::forget(panic);
            Thrown::Status(Status::parse(&format!("Operation aborted: panicked: {text}")))
        }
    };
    env.throw(thrown);
    J::NOTHING
}

/// The answer of a native that throws.
pub(crate) trait Nothing {
    const NOTHING: Self;
}

macro_rules! nothing {
    ($($type:ty = $value:expr;)*) => {$(
        impl Nothing for $type {
            const NOTHING: $type = $value;
        }
    )*};
}
nothing! { () = (); jlong = 0; jint = 0; jbyte = 0; jdouble = 0.0; jboolean = false; jobject = std::ptr::null_mut(); }
