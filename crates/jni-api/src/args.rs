//! Keys and values as natives pass them.

use crate::env::Env;
use crate::glue::{Answer, bytes_at, object};
use crate::slices::JavaSlice;
use jni_sys::{jint, jlong, jobject};
use std::ffi::c_char;

/// Bytes of Java's, wherever they are.
#[derive(Clone, Copy)]
pub(crate) enum Bytes {
    Array(jobject, jint, jint),
    Whole(jobject),
    Buffer(jobject, jint, jint),
    /// The handle of an `org.rocksdb.Slice`.
    Slice(jlong),
}

pub(crate) fn part(array: jobject, offset: jint, len: jint) -> Bytes {
    Bytes::Array(array, offset, len)
}

pub(crate) fn start(array: jobject, len: jint) -> Bytes {
    Bytes::Array(array, 0, len)
}

pub(crate) fn whole(array: jobject) -> Bytes {
    Bytes::Whole(array)
}

pub(crate) fn direct(buffer: jobject, offset: jint, len: jint) -> Bytes {
    Bytes::Buffer(buffer, offset, len)
}

pub(crate) fn slice(handle: jlong) -> Bytes {
    Bytes::Slice(handle)
}

/// Bytes of so many or fewer are copied without an allocation: most keys, and many values.
const SHORT: usize = 128;

/// Bytes for as long as a call takes: a copy of those of an array, or where they are.
pub(crate) enum Held<'a> {
    Short([u8; SHORT], usize),
    Long(Vec<u8>),
    Lent(&'a [u8]),
}

impl Held<'_> {
    fn copied(env: Env, array: jobject, offset: jint, len: jint) -> Answer<Self> {
        match usize::try_from(len) {
            Ok(len) if len <= SHORT => {
                let mut bytes = [0; SHORT];
                env.copy(array, offset, &mut bytes[..len])?;
                Ok(Held::Short(bytes, len))
            }
            _ => Ok(Held::Long(env.bytes(array, offset, len)?)),
        }
    }
}

impl Default for Held<'_> {
    fn default() -> Self {
        Held::Lent(&[])
    }
}

impl std::ops::Deref for Held<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Held::Short(bytes, len) => &bytes[..*len],
            Held::Long(bytes) => bytes,
            Held::Lent(bytes) => bytes,
        }
    }
}

impl AsRef<[u8]> for Held<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl Bytes {
    pub(crate) fn get<'a>(self, env: Env) -> Answer<Held<'a>> {
        self.named(env, "key")
    }

    /// `name` is what an error calls a buffer that is not direct.
    pub(crate) fn named<'a>(self, env: Env, name: &str) -> Answer<Held<'a>> {
        Ok(match self {
            Bytes::Array(array, offset, len) => Held::copied(env, array, offset, len)?,
            Bytes::Whole(array) => Held::copied(env, array, 0, env.length(array)?)?,
            Bytes::Buffer(buffer, offset, len) => Held::Lent(&*env.buffer(buffer, offset, len, name)?),
            Bytes::Slice(handle) => {
                let bytes = object::<JavaSlice>(handle).bytes();
                Held::Lent(bytes_at(bytes.as_ptr().cast(), bytes.len()))
            }
        })
    }

    /// As much of `value` as there is room for; gives the whole length.
    pub(crate) fn fill(self, env: Env, value: &[u8]) -> Answer<jint> {
        self.room(env)?.fill(env, value)
    }

    /// Where a value is to go. A buffer that is not direct is an error before anything is read, as in RocksJava.
    pub(crate) fn room<'a>(self, env: Env) -> Answer<Room<'a>> {
        Ok(match self {
            Bytes::Array(array, offset, len) => Room::Array(array, offset, len),
            Bytes::Whole(array) => Room::Array(array, 0, env.length(array)?),
            Bytes::Buffer(buffer, offset, len) => Room::Buffer(env.buffer(buffer, offset, len, "value")?),
            Bytes::Slice(_) => Room::Buffer(&mut []),
        })
    }
}

/// Room of Java's for a value.
pub(crate) enum Room<'a> {
    Array(jobject, jint, jint),
    Buffer(&'a mut [u8]),
}

impl Room<'_> {
    /// See [`Bytes::fill`].
    pub(crate) fn fill(self, env: Env, value: &[u8]) -> Answer<jint> {
        match self {
            Room::Array(array, offset, len) => env.fill(array, offset, len, value),
            Room::Buffer(room) => {
                let copied = room.len().min(value.len());
                room[..copied].copy_from_slice(&value[..copied]);
                Ok(value.len() as jint)
            }
        }
    }
}

/// Bytes as C functions take them.
pub(crate) trait AsC {
    fn c(&self) -> *const c_char;
}

impl AsC for [u8] {
    fn c(&self) -> *const c_char {
        self.as_ptr().cast()
    }
}
