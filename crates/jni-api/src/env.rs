//! The functions of the JVM that natives need: arrays, texts, objects, exceptions.

use crate::callbacks::Global;
use crate::glue::{Answer, Give, Thrown, illegal};
use crate::status::Status;
use jni_sys::{JNIEnv, jbyte, jclass, jfieldID, jint, jlong, jobject, jsize, jvalue};
use std::ffi::{CStr, CString};
use std::sync::OnceLock;

/// The JVM, as the thread of the call sees it.
#[derive(Clone, Copy)]
pub(crate) struct Env(pub(crate) *mut JNIEnv);

/// Calls a function of the JVM's table.
macro_rules! jni {
    ($env:expr, $function:ident $(, $argument:expr)* $(,)?) => {
        // SAFETY: the table is the JVM's, of version 1.6 or newer; arguments are as `glue` says.
        unsafe { ((**$env.0).v1_6.$function)($env.0 $(, $argument)*) }
    };
}
pub(crate) use jni;

/// The class loader of the jar.
pub(crate) static LOADER: OnceLock<Global> = OnceLock::new();

/// A name or a signature for the JVM: none has a NUL.
fn name(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Places in an array end below it, at about twice 2^31; the JVM's functions are asked about addresses that do, too.
const LEAST_ADDRESS: jlong = 1 << 33;

/// Fields of `java.nio.Buffer`: the address of a direct one, and its capacity.
struct BufferFields {
    address: jfieldID,
    capacity: jfieldID,
}

// SAFETY: the JVM lets any thread use the number of a field, for as long as its class is loaded, and this one always is.
unsafe impl Send for BufferFields {}
// SAFETY: as above.
unsafe impl Sync for BufferFields {}

impl BufferFields {
    /// `None` in a JVM that calls them otherwise.
    fn get(env: Env) -> Option<&'static BufferFields> {
        static FIELDS: OnceLock<Option<BufferFields>> = OnceLock::new();
        FIELDS.get_or_init(|| BufferFields::find(env)).as_ref()
    }

    fn find(env: Env) -> Option<BufferFields> {
        let class = jni!(env, FindClass, c"java/nio/Buffer".as_ptr());
        let field = |name: &CStr, kind: &CStr| {
            let field = jni!(env, GetFieldID, class, name.as_ptr(), kind.as_ptr());
            if field.is_null() {
                jni!(env, ExceptionClear);
                return None;
            }
            Some(field)
        };
        if class.is_null() {
            jni!(env, ExceptionClear);
            return None;
        }
        let fields =
            Some(BufferFields { address: field(c"address", c"J")?, capacity: field(c"capacity", c"I")? });
        jni!(env, DeleteLocalRef, class);
        fields
    }
}

impl Env {
    /// `object`, which the JVM gave; null means that it has thrown.
    pub(crate) fn given(self, object: jobject) -> Answer<jobject> {
        if object.is_null() { Err(Thrown::Pending) } else { Ok(object) }
    }

    /// Ends with the exception that the JVM has, if it has one.
    pub(crate) fn check(self) -> Answer<()> {
        if jni!(self, ExceptionCheck) { Err(Thrown::Pending) } else { Ok(()) }
    }

    /// A class of the jar, or of Java. On a thread of the engine the JVM looks for it where the program began, and there the jar need not be.
    pub(crate) fn class(self, class: &str) -> Answer<jclass> {
        let found = jni!(self, FindClass, name(class).as_ptr());
        match LOADER.get() {
            Some(loader) if found.is_null() => {
                jni!(self, ExceptionClear);
                let class = jvalue { l: self.new_text(&class.replace('/', "."))? };
                let signature = "(Ljava/lang/String;)Ljava/lang/Class;";
                self.call(loader.object(), "loadClass", signature, &[class])
            }
            _ => self.given(found),
        }
    }

    pub(crate) fn new_bytes(self, bytes: &[u8]) -> Answer<jobject> {
        let array = self.given(jni!(self, NewByteArray, bytes.len() as jsize))?;
        jni!(self, SetByteArrayRegion, array, 0, bytes.len() as jsize, bytes.as_ptr().cast::<jbyte>());
        Ok(array)
    }

    /// The JVM's own UTF-8 differs for NUL and beyond the first plane: texts go as UTF-16.
    pub(crate) fn new_text(self, text: &str) -> Answer<jobject> {
        let units: Vec<u16> = text.encode_utf16().collect();
        self.given(jni!(self, NewString, units.as_ptr(), units.len() as jsize))
    }

    /// The text of a Java string.
    pub(crate) fn text(self, string: jobject) -> Answer<String> {
        if string.is_null() {
            return Err(Thrown::Java("java/lang/NullPointerException", "a text is null".into()));
        }
        let length = jni!(self, GetStringLength, string);
        let mut units = vec![0u16; length as usize];
        jni!(self, GetStringRegion, string, 0, length, units.as_mut_ptr());
        self.check()?;
        Ok(String::from_utf16_lossy(&units))
    }

    pub(crate) fn length(self, array: jobject) -> Answer<jsize> {
        if array.is_null() {
            return Err(Thrown::Java("java/lang/NullPointerException", "an array is null".into()));
        }
        Ok(jni!(self, GetArrayLength, array))
    }

    /// A part of a `byte[]`.
    pub(crate) fn bytes(self, array: jobject, offset: jint, len: jint) -> Answer<Vec<u8>> {
        let mut bytes = vec![0u8; usize::try_from(len).map_err(|_| illegal("a length is negative"))?];
        self.copy(array, offset, &mut bytes)?;
        Ok(bytes)
    }

    /// The same into `target`, which has the length of the part.
    pub(crate) fn copy(self, array: jobject, offset: jint, target: &mut [u8]) -> Answer<()> {
        if array.is_null() {
            return Err(Thrown::Java("java/lang/NullPointerException", "an array is null".into()));
        }
        jni!(self, GetByteArrayRegion, array, offset, target.len() as jsize, target.as_mut_ptr().cast());
        self.check()
    }

    /// All of a `byte[]`.
    pub(crate) fn all_bytes(self, array: jobject) -> Answer<Vec<u8>> {
        let length = self.length(array)?;
        self.bytes(array, 0, length)
    }

    /// Copies as much of `bytes` as `len` says into a `byte[]`; gives the whole length.
    pub(crate) fn fill(self, array: jobject, offset: jint, len: jint, bytes: &[u8]) -> Answer<jint> {
        let copied = bytes.len().min(usize::try_from(len).unwrap_or(0));
        jni!(self, SetByteArrayRegion, array, offset, copied as jsize, bytes.as_ptr().cast());
        self.check()?;
        Ok(bytes.len() as jint)
    }

    /// The bytes of a direct buffer, or the error that RocksJava has for others.
    pub(crate) fn buffer<'a>(
        self,
        buffer: jobject,
        offset: jint,
        len: jint,
        what: &str,
    ) -> Answer<&'a mut [u8]> {
        let Some((start, capacity)) = self.direct(buffer) else {
            let state = format!(
                "Invalid argument: Invalid {what} argument (argument is not a valid direct ByteBuffer)"
            );
            return Err(Thrown::Status(Status::parse(&state)));
        };
        if offset < 0 || len < 0 || capacity < jlong::from(offset) + jlong::from(len) {
            let state = "Invalid argument: Invalid argument. Capacity is less than requested region (offset + length).";
            return Err(Thrown::Status(Status::parse(state)));
        }
        // SAFETY: the buffer has so many bytes, and its application leaves it alone meanwhile.
        Ok(unsafe { std::slice::from_raw_parts_mut(start.add(offset as usize), len as usize) })
    }

    /// Where the bytes of a direct buffer are, and how many it has; `None` for another buffer.
    ///
    /// The JVM's functions for both change the state of the thread and compare classes, four times for a buffer; fields it reads at once.
    fn direct(self, buffer: jobject) -> Option<(*mut u8, jlong)> {
        if buffer.is_null() {
            return None;
        }
        if let Some(fields) = BufferFields::get(self) {
            let address = jni!(self, GetLongField, buffer, fields.address);
            // Other buffers have a place in an array there, or 0: nowhere near where memory begins.
            if address >= LEAST_ADDRESS {
                return Some((address as *mut u8, jni!(self, GetIntField, buffer, fields.capacity).into()));
            }
        }
        let start: *mut u8 = jni!(self, GetDirectBufferAddress, buffer).cast();
        (!start.is_null()).then(|| (start, jni!(self, GetDirectBufferCapacity, buffer)))
    }

    pub(crate) fn longs(self, array: jobject) -> Answer<Vec<jlong>> {
        let length = self.length(array)?;
        let mut longs = vec![0; length as usize];
        jni!(self, GetLongArrayRegion, array, 0, length, longs.as_mut_ptr());
        Ok(longs)
    }

    pub(crate) fn ints(self, array: jobject) -> Answer<Vec<jint>> {
        let length = self.length(array)?;
        let mut ints = vec![0; length as usize];
        jni!(self, GetIntArrayRegion, array, 0, length, ints.as_mut_ptr());
        Ok(ints)
    }

    /// The answers of `each` for the elements of an `Object[]`, one after the other.
    pub(crate) fn each<T>(
        self,
        array: jobject,
        each: impl Fn(usize, jobject) -> Answer<T>,
    ) -> Answer<Vec<T>> {
        let length = self.length(array)?;
        let one = |place: jint| {
            let element = jni!(self, GetObjectArrayElement, array, place);
            self.check()?;
            let made = each(place as usize, element);
            jni!(self, DeleteLocalRef, element);
            made
        };
        (0..length).map(one).collect()
    }

    /// The arrays of a `byte[][]`.
    pub(crate) fn byte_arrays(self, arrays: jobject) -> Answer<Vec<Vec<u8>>> {
        self.each(arrays, |_, array| self.all_bytes(array))
    }

    /// The texts of a `String[]`.
    pub(crate) fn texts(self, array: jobject) -> Answer<Vec<String>> {
        self.each(array, |_, text| self.text(text))
    }

    /// An `Object[]` of elements of `class`.
    pub(crate) fn new_array<T: Give<jobject>>(
        self,
        class: &str,
        elements: impl IntoIterator<Item = T>,
    ) -> Answer<jobject> {
        let elements: Vec<T> = elements.into_iter().collect();
        let class = self.class(class)?;
        let array =
            self.given(jni!(self, NewObjectArray, elements.len() as jsize, class, std::ptr::null_mut()))?;
        for (place, element) in elements.into_iter().enumerate() {
            let element = element.give(self)?;
            jni!(self, SetObjectArrayElement, array, place as jsize, element);
            jni!(self, DeleteLocalRef, element);
        }
        Ok(array)
    }

    /// `new Class(arguments)`.
    pub(crate) fn new_object(self, class: &str, signature: &str, arguments: &[jvalue]) -> Answer<jobject> {
        let class = self.class(class)?;
        let method = jni!(self, GetMethodID, class, c"<init>".as_ptr(), name(signature).as_ptr());
        if method.is_null() {
            return Err(Thrown::Pending);
        }
        self.given(jni!(self, NewObjectA, class, method, arguments.as_ptr()))
    }

    /// `object.method(arguments)`, which gives an object.
    pub(crate) fn call(
        self,
        object: jobject,
        method: &str,
        signature: &str,
        arguments: &[jvalue],
    ) -> Answer<jobject> {
        let class = jni!(self, GetObjectClass, object);
        let id = jni!(self, GetMethodID, class, name(method).as_ptr(), name(signature).as_ptr());
        if id.is_null() {
            return Err(Thrown::Pending);
        }
        let given = jni!(self, CallObjectMethodA, object, id, arguments.as_ptr());
        self.check()?;
        Ok(given)
    }

    /// A `Map` of the pairs, in their order.
    pub(crate) fn new_map(
        self,
        pairs: impl IntoIterator<Item = Answer<(jobject, jobject)>>,
    ) -> Answer<jobject> {
        let map = self.new_object("java/util/LinkedHashMap", "()V", &[])?;
        for pair in pairs {
            let (key, value) = pair?;
            let signature = "(Ljava/lang/Object;Ljava/lang/Object;)Ljava/lang/Object;";
            let old = self.call(map, "put", signature, &[jvalue { l: key }, jvalue { l: value }])?;
            for used in [key, value, old] {
                jni!(self, DeleteLocalRef, used);
            }
        }
        Ok(map)
    }

    /// `org.rocksdb.Status`.
    pub(crate) fn new_status(self, status: &Status) -> Answer<jobject> {
        let state = status.state.as_deref().map_or(Ok(std::ptr::null_mut()), |state| self.new_text(state))?;
        let arguments = [jvalue { b: status.code }, jvalue { b: status.subcode }, jvalue { l: state }];
        self.new_object("org/rocksdb/Status", "(BBLjava/lang/String;)V", &arguments)
    }

    /// Lets the native throw once it returns.
    pub(crate) fn throw(self, thrown: Thrown) {
        let made = match thrown {
            Thrown::Pending => return,
            Thrown::Status(status) => self.new_status(&status).and_then(|status| {
                let arguments = [jvalue { l: status }];
                self.new_object("org/rocksdb/RocksDBException", "(Lorg/rocksdb/Status;)V", &arguments)
            }),
            Thrown::Java(class, message) => self
                .new_text(&message)
                .and_then(|text| self.new_object(class, "(Ljava/lang/String;)V", &[jvalue { l: text }])),
        };
        // Otherwise the JVM has thrown what it could not make.
        if let Ok(exception) = made {
            jni!(self, Throw, exception);
        }
    }
}
