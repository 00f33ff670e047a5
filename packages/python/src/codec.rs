//! How keys and values of Python are bytes in the database.
//!
//! ```text
//! bytes       as they are
//! rocksdict   a byte for the type, then:
//!             1 bytes   2 str, UTF-8   3 int, two's complement, big-endian, as short as it goes
//!             4 float, 8 bytes, big-endian   5 bool, one byte   6 anything else, by `dumps` (values only)
//! ```
//! The second is the form that the package `rocksdict` stores in; `docs/design/0026` says how that was found out. Keys in it are in
//! an order of their own: numbers as numbers, all else by its bytes.

use crate::errors::{invalid, not_supported, raised};
use outcrop::{Comparator, Error, UserComparator};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyMemoryView, PyString};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

/// How keys and values are stored.
pub enum Codec {
    /// As they are.
    Bytes,
    /// As `rocksdict` stores them.
    Rocksdict {
        /// Makes bytes of other objects.
        dumps: Option<Py<PyAny>>,
        /// Makes them objects again.
        loads: Option<Py<PyAny>>,
    },
}

const BYTES: u8 = 1;
const STR: u8 = 2;
const INT: u8 = 3;
const FLOAT: u8 = 4;
const BOOL: u8 = 5;
const OBJECT: u8 = 6;

/// The bytes of an object that is bytes.
fn plain<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Option<Cow<'a, [u8]>>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Cow::Borrowed(bytes.as_bytes())));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Some(Cow::Owned(bytes.to_vec())));
    }
    if object.cast::<PyMemoryView>().is_ok() {
        return Ok(Some(Cow::Owned(object.call_method0("tobytes")?.extract()?)));
    }
    Ok(None)
}

fn type_name(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "an object".to_string(), |name| name.to_string())
}

impl Codec {
    /// The codec called `name`, with what it needs.
    pub fn named(name: Option<&str>, dumps: Option<Py<PyAny>>, loads: Option<Py<PyAny>>) -> PyResult<Codec> {
        match name {
            None | Some("bytes") if dumps.is_none() && loads.is_none() => Ok(Codec::Bytes),
            None | Some("bytes") => Err(invalid("dumps and loads belong to encoding=\"rocksdict\"")),
            Some("rocksdict") => Ok(Codec::Rocksdict { dumps, loads }),
            Some(other) => Err(invalid(format!("encoding {other:?}: there are \"bytes\" and \"rocksdict\""))),
        }
    }

    /// The stored form of a key.
    pub fn key<'a>(&self, key: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        match self {
            Codec::Bytes => Codec::only_bytes(key),
            Codec::Rocksdict { .. } => match tagged(key)? {
                Some(bytes) => Ok(Cow::Owned(bytes)),
                None => Err(PyTypeError::new_err(format!(
                    "a key is bytes, str, int, float or bool, not {}",
                    type_name(key)
                ))),
            },
        }
    }

    /// The stored form of a value.
    pub fn value<'a>(&self, value: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        let Codec::Rocksdict { dumps, .. } = self else { return Codec::only_bytes(value) };
        if let Some(bytes) = tagged(value)? {
            return Ok(Cow::Owned(bytes));
        }
        let Some(dumps) = dumps else {
            return Err(PyTypeError::new_err(format!(
                "a value is bytes, str, int, float or bool, not {}: open the database with dumps=pickle.dumps to store others",
                type_name(value)
            )));
        };
        let dumped = dumps.bind(value.py()).call1((value,))?;
        let bytes = plain(&dumped)?.ok_or_else(|| PyTypeError::new_err("dumps() must give bytes"))?;
        Ok(Cow::Owned(with_tag(OBJECT, &bytes)))
    }

    fn only_bytes<'a>(object: &'a Bound<'_, PyAny>) -> PyResult<Cow<'a, [u8]>> {
        plain(object)?.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "keys and values are bytes, not {}: encode it, or open the database with encoding=\"rocksdict\"",
                type_name(object)
            ))
        })
    }

    /// The object whose stored form is `bytes`.
    pub fn decode(&self, py: Python<'_>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
        let Codec::Rocksdict { loads, .. } = self else {
            return Ok(PyBytes::new(py, bytes).into_any().unbind());
        };
        let corrupt = |why: &str| raised(Error::corruption(format!("a stored key or value {why}")));
        let Some((tag, rest)) = bytes.split_first() else { return Err(corrupt("is empty: it has no type")) };
        match *tag {
            BYTES => Ok(PyBytes::new(py, rest).into_any().unbind()),
            STR => {
                let text = std::str::from_utf8(rest).map_err(|_| corrupt("is a str that is not UTF-8"))?;
                Ok(PyString::new(py, text).into_any().unbind())
            }
            INT if rest.len() <= 8 => Ok(short_number(rest).into_pyobject(py)?.into_any().unbind()),
            INT => {
                let keywords = pyo3::types::PyDict::new(py);
                keywords.set_item("signed", true)?;
                let number = py.get_type::<PyInt>();
                Ok(number
                    .call_method("from_bytes", (PyBytes::new(py, rest), "big"), Some(&keywords))?
                    .unbind())
            }
            FLOAT => {
                let bytes = rest.try_into().map_err(|_| corrupt("is a float that has not 8 bytes"))?;
                Ok(PyFloat::new(py, f64::from_be_bytes(bytes)).into_any().unbind())
            }
            BOOL => match rest {
                [flag @ 0..=1] => Ok(PyBool::new(py, *flag == 1).to_owned().into_any().unbind()),
                _ => Err(corrupt("is a bool that is neither 0 nor 1")),
            },
            OBJECT => match loads {
                Some(loads) => loads.call1(py, (PyBytes::new(py, rest),)),
                None => Err(not_supported(
                    "the value is a pickled object: loading one runs the code that it names. If you trust the file, open it with loads=pickle.loads",
                )),
            },
            other => Err(corrupt(&format!(
                "begins with the type {other}, which rocksdict has not: was it written as plain bytes?"
            ))),
        }
    }

    /// The order of keys of a new column family.
    pub fn order(&self) -> Comparator {
        match self {
            Codec::Bytes => Comparator::Bytewise,
            Codec::Rocksdict { .. } => rocksdict_order(),
        }
    }
}

fn with_tag(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut tagged = Vec::with_capacity(bytes.len() + 1);
    tagged.push(tag);
    tagged.extend_from_slice(bytes);
    tagged
}

/// The stored form of those types that need no `dumps`.
fn tagged(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if let Some(bytes) = plain(object)? {
        return Ok(Some(with_tag(BYTES, &bytes)));
    }
    if let Ok(text) = object.cast::<PyString>() {
        let bytes = text.encode_utf8()?;
        return Ok(Some(with_tag(STR, bytes.as_bytes())));
    }
    // Before int: a bool is one.
    if let Ok(flag) = object.cast::<PyBool>() {
        return Ok(Some(vec![BOOL, u8::from(flag.is_true())]));
    }
    if let Ok(number) = object.cast::<PyInt>() {
        return match number.extract::<i64>() {
            Ok(short) => Ok(Some(with_tag(INT, shortest(&short.to_be_bytes())))),
            Err(_) => {
                let bits: usize = number.call_method0("bit_length")?.extract()?;
                let keywords = pyo3::types::PyDict::new(object.py());
                keywords.set_item("signed", true)?;
                let bytes: Vec<u8> =
                    number.call_method("to_bytes", (bits / 8 + 1, "big"), Some(&keywords))?.extract()?;
                Ok(Some(with_tag(INT, shortest(&bytes))))
            }
        };
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Some(with_tag(FLOAT, &number.value().to_be_bytes())));
    }
    Ok(None)
}

/// A number in two's complement, big-endian, without the leading bytes that say nothing.
fn shortest(mut bytes: &[u8]) -> &[u8] {
    while let [first, second, ..] = bytes
        && ((*first == 0 && *second < 0x80) || (*first == 0xFF && *second >= 0x80))
    {
        bytes = &bytes[1..];
    }
    bytes
}

/// The number in at most 8 bytes.
fn short_number(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|first| *first >= 0x80);
    let start = if negative { -1 } else { 0 };
    bytes.iter().fold(start, |number: i64, byte| (number << 8) | i64::from(*byte))
}

/// The order that `rocksdict` gives its keys.
pub const ROCKSDICT: &str = "rocksdict";

/// See [`ROCKSDICT`].
pub fn rocksdict_order() -> Comparator {
    Comparator::User(Arc::new(RocksdictOrder))
}

struct RocksdictOrder;

impl UserComparator for RocksdictOrder {
    fn name(&self) -> &str {
        ROCKSDICT
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match (a, b) {
            ([INT, a @ ..], [INT, b @ ..]) => compare_numbers(shortest(a), shortest(b)),
            _ => a.cmp(b),
        }
    }
}

fn compare_numbers(a: &[u8], b: &[u8]) -> Ordering {
    let negative = |bytes: &[u8]| bytes.first().is_some_and(|first| *first >= 0x80);
    // No bytes at all are 0, as one byte of 0 is.
    let digits = |bytes: &[u8]| if bytes == [0] { 0 } else { bytes.len() };
    match (negative(a), negative(b)) {
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
        (false, false) => {
            digits(a).cmp(&digits(b)).then_with(|| a[a.len() - digits(a)..].cmp(&b[b.len() - digits(b)..]))
        }
        (true, true) => b.len().cmp(&a.len()).then_with(|| a.cmp(b)),
    }
}
