//! Calls from the engine into Java: objects that outlive the call that gave them, on whichever thread.
//!
//! A thread of the engine is attached to the JVM as a daemon at its first call and detached as it ends. An exception that a
//! callback throws is described on standard error and cleared, as in RocksJava: there is no caller to give it to.

use crate::env::{Env, jni};
use crate::glue::{Answer, Thrown};
use jni_sys::{JNIInvokeInterface_, JavaVM, jint, jmethodID, jobject, jvalue};
use std::cell::RefCell;
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

/// An object of Java's that outlives the call that gave it.
pub(crate) struct Global {
    vm: *mut JavaVM,
    object: jobject,
}

// SAFETY: the JVM lets any attached thread use a global reference.
unsafe impl Send for Global {}
// SAFETY: as above.
unsafe impl Sync for Global {}

/// References that a callback needs at most.
const FRAME: jint = 64;

impl Global {
    pub(crate) fn new(env: Env, object: jobject) -> Answer<Global> {
        let mut vm = null_mut();
        jni!(env, GetJavaVM, &mut vm);
        Ok(Global { vm, object: env.given(jni!(env, NewGlobalRef, object))? })
    }

    /// The reference, for calls on a thread that Java made.
    pub(crate) fn object(&self) -> jobject {
        self.object
    }

    /// Calls with the JVM as this thread sees it; `None` if the JVM takes no more threads, or is ending.
    pub(crate) fn with<T>(&self, call: impl FnOnce(Env, jobject) -> T) -> Option<T> {
        let mut env: *mut c_void = null_mut();
        // SAFETY: the JVM outlives its native libraries.
        unsafe {
            let table: &JNIInvokeInterface_ = &**self.vm;
            if (table.v1_4.GetEnv)(self.vm, &mut env, jni_sys::JNI_VERSION_1_6) != jni_sys::JNI_OK {
                let attached = (table.v1_4.AttachCurrentThreadAsDaemon)(self.vm, &mut env, null_mut());
                if attached != jni_sys::JNI_OK {
                    return None;
                }
                // A thread that is ending has no place left: the JVM detaches it.
                let _ = ATTACHED.try_with(|attached| *attached.borrow_mut() = Some(Attached(self.vm)));
            }
        }
        Some(call(Env(env.cast()), self.object))
    }

    /// The same, with a frame for the references that `call` makes. `None` after an exception, too.
    pub(crate) fn run<T>(&self, call: impl FnOnce(Env, jobject) -> Answer<T>) -> Option<T> {
        self.with(|env, object| {
            let done = Frame::push(env).and_then(|_frame| {
                let done = call(env, object).and_then(|given| env.check().map(|()| given));
                if done.is_err() {
                    described(env);
                }
                done
            });
            done.ok()
        })?
    }
}

impl Drop for Global {
    /// A reference that no thread of the JVM's can give back any more stays with it.
    fn drop(&mut self) {
        self.with(|env, object| jni!(env, DeleteGlobalRef, object));
    }
}

/// Describes the exception that a callback ended with, and clears it.
fn described(env: Env) {
    jni!(env, ExceptionDescribe);
    jni!(env, ExceptionClear);
}

/// A frame of references, until it is dropped.
pub(crate) struct Frame(Env);

impl Frame {
    pub(crate) fn push(env: Env) -> Answer<Frame> {
        if jni!(env, PushLocalFrame, FRAME) == jni_sys::JNI_OK {
            return Ok(Frame(env));
        }
        // There is no frame to be popped, but an OutOfMemoryError.
        described(env);
        Err(Thrown::Pending)
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        jni!(self.0, PopLocalFrame, null_mut());
    }
}

/// Detaches the thread as it ends.
struct Attached(*mut JavaVM);

thread_local! {
    static ATTACHED: RefCell<Option<Attached>> = const { RefCell::new(None) };
}

impl Drop for Attached {
    fn drop(&mut self) {
        // SAFETY: the JVM outlives its native libraries.
        unsafe { ((**self.0).v1_4.DetachCurrentThread)(self.0) };
    }
}

/// A method of an object that a callback calls, looked for once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Method(jmethodID);

// SAFETY: the JVM lets any thread use the number of a method, for as long as its class is loaded; a `Global` keeps it.
unsafe impl Send for Method {}
// SAFETY: as above.
unsafe impl Sync for Method {}

impl Method {
    /// The method of the class of `object`.
    pub(crate) fn of(env: Env, object: jobject, name: &CStr, signature: &CStr) -> Answer<Method> {
        Method::of_class(env, jni!(env, GetObjectClass, object), name, signature)
    }

    pub(crate) fn of_class(env: Env, class: jobject, name: &CStr, signature: &CStr) -> Answer<Method> {
        let id = jni!(env, GetMethodID, class, name.as_ptr(), signature.as_ptr());
        if id.is_null() { Err(Thrown::Pending) } else { Ok(Method(id)) }
    }

    pub(crate) fn call(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<()> {
        jni!(env, CallVoidMethodA, object, self.0, arguments.as_ptr());
        env.check()
    }

    pub(crate) fn call_bool(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<bool> {
        let given = jni!(env, CallBooleanMethodA, object, self.0, arguments.as_ptr());
        env.check().map(|()| given)
    }

    pub(crate) fn call_int(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<jint> {
        let given = jni!(env, CallIntMethodA, object, self.0, arguments.as_ptr());
        env.check().map(|()| given)
    }

    pub(crate) fn call_long(self, env: Env, object: jobject, arguments: &[jvalue]) -> Answer<i64> {
        let given = jni!(env, CallLongMethodA, object, self.0, arguments.as_ptr());
        env.check().map(|()| given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jni_sys::JNIEnv;
    use std::cell::Cell;

    /// Places in the tables of functions that JNI has.
    const GET_ENV: usize = 6;
    const ATTACH_AS_DAEMON: usize = 7;
    const EXCEPTION_DESCRIBE: usize = 16;
    const EXCEPTION_CLEAR: usize = 17;
    const PUSH_LOCAL_FRAME: usize = 19;
    const POP_LOCAL_FRAME: usize = 20;

    thread_local! {
        static CLEARED: Cell<u32> = const { Cell::new(0) };
        static POPPED: Cell<u32> = const { Cell::new(0) };
    }

    unsafe extern "system" fn detached(_: *mut JavaVM, _: *mut *mut c_void, _: jint) -> jint {
        jni_sys::JNI_EDETACHED
    }

    unsafe extern "system" fn refused(_: *mut JavaVM, _: *mut *mut c_void, _: *mut c_void) -> jint {
        jni_sys::JNI_ERR
    }

    unsafe extern "system" fn no_memory(_: *mut JNIEnv, _: jint) -> jint {
        jni_sys::JNI_ENOMEM
    }

    unsafe extern "system" fn clear(_: *mut JNIEnv) {
        CLEARED.set(CLEARED.get() + 1);
    }

    unsafe extern "system" fn nothing(_: *mut JNIEnv) {}

    unsafe extern "system" fn pop(_: *mut JNIEnv, given: jobject) -> jobject {
        POPPED.set(POPPED.get() + 1);
        given
    }

    #[test]
    fn a_thread_that_the_jvm_does_not_take_calls_nothing() {
        let mut table = [std::ptr::null::<c_void>(); 16];
        table[GET_ENV] = detached as *const c_void;
        table[ATTACH_AS_DAEMON] = refused as *const c_void;
        let mut vm: JavaVM = table.as_ptr().cast();
        let global = Global { vm: &raw mut vm, object: null_mut() };
        assert!(global.with(|_, _| ()).is_none());
        assert!(global.run(|_, _| Ok(())).is_none());
    }

    #[test]
    fn a_frame_that_was_not_pushed_is_not_popped() {
        let mut functions = [std::ptr::null::<c_void>(); 256];
        functions[PUSH_LOCAL_FRAME] = no_memory as *const c_void;
        functions[POP_LOCAL_FRAME] = pop as *const c_void;
        functions[EXCEPTION_DESCRIBE] = nothing as *const c_void;
        functions[EXCEPTION_CLEAR] = clear as *const c_void;
        let mut env: JNIEnv = functions.as_ptr().cast();
        let env = Env(&raw mut env);
        assert!(matches!(Frame::push(env), Err(Thrown::Pending)));
        assert_eq!((CLEARED.get(), POPPED.get()), (1, 0));
    }
}
