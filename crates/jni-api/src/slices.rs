//! `org.rocksdb.Slice` and `DirectSlice`: bytes that the slice owns, or those of a direct buffer.

use crate::env::{Env, jni};
use crate::glue::{Answer, bytes_at, dispose, handle, illegal, object};
use jni_sys::{jbyte, jint, jlong, jobject};

/// The object behind a slice's handle.
pub(crate) struct JavaSlice {
    /// Empty if the bytes are a buffer's.
    own: Vec<u8>,
    start: *const u8,
    len: usize,
    /// How long it may get: so many bytes are there from its start on.
    room: usize,
}

impl JavaSlice {
    pub(crate) fn of(own: Vec<u8>) -> JavaSlice {
        JavaSlice { start: own.as_ptr(), len: own.len(), room: own.len(), own }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        bytes_at(self.start.cast(), self.len)
    }
}

pub(crate) fn create(bytes: Vec<u8>) -> Answer<jlong> {
    Ok(handle(JavaSlice::of(bytes)))
}

/// The array from `offset` to its end.
pub(crate) fn create_from(env: Env, array: jobject, offset: jint) -> Answer<jlong> {
    let rest = env.length(array)? - offset;
    create(env.bytes(array, offset, rest)?)
}

/// The first `len` bytes of a direct buffer; without a length those before the first NUL, as in RocksJava, or all.
pub(crate) fn create_direct(env: Env, buffer: jobject, len: Option<jint>) -> Answer<jlong> {
    let capacity = jni!(env, GetDirectBufferCapacity, buffer);
    if capacity < 0 {
        return Err(illegal("Could not access DirectBuffer"));
    }
    let bytes = env.buffer(buffer, 0, len.unwrap_or(capacity as jint), "buffer")?;
    let end = if len.is_none() { bytes.iter().position(|byte| *byte == 0) } else { None };
    let (start, len) = (bytes.as_ptr(), end.unwrap_or(bytes.len()));
    Ok(handle(JavaSlice { own: Vec::new(), start, len, room: capacity as usize }))
}

pub(crate) fn text(slice: jlong, hex: bool) -> Answer<String> {
    let bytes = object::<JavaSlice>(slice).bytes();
    Ok(match hex {
        true => bytes.iter().map(|byte| format!("{byte:02X}")).collect(),
        false => String::from_utf8_lossy(bytes).into_owned(),
    })
}

pub(crate) fn compare(slice: jlong, other: jlong) -> Answer<jint> {
    Ok(object::<JavaSlice>(slice).bytes().cmp(object::<JavaSlice>(other).bytes()) as jint)
}

pub(crate) fn starts_with(slice: jlong, other: jlong) -> Answer<bool> {
    Ok(object::<JavaSlice>(slice).bytes().starts_with(object::<JavaSlice>(other).bytes()))
}

pub(crate) fn remove_prefix(slice: jlong, len: jint) -> Answer<()> {
    let slice = object::<JavaSlice>(slice);
    let len = usize::try_from(len).unwrap_or(0).min(slice.len);
    slice.start = slice.bytes()[len..].as_ptr();
    slice.len -= len;
    slice.room -= len;
    Ok(())
}

/// No longer than its bytes or its buffer; RocksJava would read behind them.
pub(crate) fn set_length(slice: jlong, len: jint) -> Answer<()> {
    let slice = object::<JavaSlice>(slice);
    slice.len = slice.room.min(usize::try_from(len).unwrap_or(0));
    Ok(())
}

/// The bytes stay until the slice is disposed: it may be in use by an iterator's bounds.
pub(crate) fn clear(slice: jlong) -> Answer<()> {
    let slice = object::<JavaSlice>(slice);
    slice.start = slice.own.as_ptr();
    slice.len = 0;
    slice.room = slice.own.len();
    Ok(())
}

pub(crate) fn byte(slice: jlong, place: jint) -> Answer<jbyte> {
    let bytes = object::<JavaSlice>(slice).bytes();
    let byte = usize::try_from(place).ok().and_then(|place| bytes.get(place));
    byte.map(|byte| *byte as jbyte)
        .ok_or_else(|| illegal(format!("a slice of {} has no byte {place}", bytes.len())))
}

/// A direct buffer over the slice's bytes.
pub(crate) fn direct_data(env: Env, slice: jlong) -> Answer<jobject> {
    let slice = object::<JavaSlice>(slice);
    env.given(jni!(env, NewDirectByteBuffer, slice.start.cast_mut().cast(), slice.len as jlong))
}

pub(crate) fn destroy(slice: jlong) -> Answer<()> {
    dispose::<JavaSlice>(slice)
}
