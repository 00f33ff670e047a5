//! The native methods that the classes of a jar declare, read from the class files.
//!
//! ```text
//! class file = magic:u32 minor:u16 major:u16, the constants, access:u16 this:u16 super:u16, interfaces, fields, methods
//! method     = access:u16 name:u16 descriptor:u16, attributes                                  all numbers big-endian
//! ```
//! Names are indexes into the constants. Attributes are skipped by their lengths.

use std::path::Path;

const NATIVE: u16 = 0x0100;
const STATIC: u16 = 0x0008;

/// The native methods of all classes of `jar`, one a line, in order: class, method, descriptor, static or instance.
///
/// # Errors
/// The jar cannot be read, or is none.
pub fn natives_of(jar: &Path) -> Result<String, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", jar.display());
    let file = std::fs::File::open(jar).map_err(|error| failed(&error))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| failed(&error))?;
    let mut lines = Vec::new();
    for place in 0..archive.len() {
        let mut entry = archive.by_index(place).map_err(|error| failed(&error))?;
        if !entry.name().ends_with(".class") {
            continue;
        }
        let mut bytes = Vec::new();
        std::io::copy(&mut entry, &mut bytes).map_err(|error| failed(&error))?;
        let found = natives(&bytes).ok_or_else(|| failed(&format!("{} is no class file", entry.name())))?;
        lines.extend(found);
    }
    lines.sort();
    Ok(lines.join("\n") + "\n")
}

/// The lines of one class file; `None` if it is none.
fn natives(class: &[u8]) -> Option<Vec<String>> {
    let mut rest = Reader(class);
    if rest.u32()? != 0xCAFE_BABE {
        return None;
    }
    rest.skip(4)?;
    let constants = constants(&mut rest)?;
    let text = |index: u16| match constants.get(usize::from(index))? {
        Constant::Text(text) => Some(text.as_str()),
        _ => None,
    };
    rest.skip(2)?;
    let class = match constants.get(usize::from(rest.u16()?))? {
        Constant::Class(name) => text(*name)?,
        _ => return None,
    };
    rest.skip(2)?;
    let interfaces = rest.u16()?;
    rest.skip(2 * usize::from(interfaces))?;
    members(&mut rest)?;
    let methods = members(&mut rest)?.into_iter().filter(|(access, ..)| access & NATIVE != 0);
    methods
        .map(|(access, name, descriptor)| {
            let kind = if access & STATIC == 0 { "instance" } else { "static" };
            Some(format!("{class} {} {} {kind}", text(name)?, text(descriptor)?))
        })
        .collect()
}

enum Constant {
    Text(String),
    /// The index of its name.
    Class(u16),
    Other,
}

fn constants(rest: &mut Reader<'_>) -> Option<Vec<Constant>> {
    let count = usize::from(rest.u16()?);
    // The first has the index 1.
    let mut constants = vec![Constant::Other];
    while constants.len() < count {
        let tag = rest.u8()?;
        let constant = match tag {
            1 => {
                let length = usize::from(rest.u16()?);
                Constant::Text(String::from_utf8_lossy(rest.take(length)?).into_owned())
            }
            7 => Constant::Class(rest.u16()?),
            8 | 16 | 19 | 20 => rest.skip(2)?,
            15 => rest.skip(3)?,
            3 | 4 | 9..=12 | 17 | 18 => rest.skip(4)?,
            // Wide numbers take two indexes.
            5 | 6 => {
                constants.push(Constant::Other);
                rest.skip(8)?
            }
            _ => return None,
        };
        constants.push(constant);
    }
    Some(constants)
}

/// Access, name and descriptor of the fields or the methods.
fn members(rest: &mut Reader<'_>) -> Option<Vec<(u16, u16, u16)>> {
    let count = rest.u16()?;
    (0..count)
        .map(|_| {
            let member = (rest.u16()?, rest.u16()?, rest.u16()?);
            let attributes = rest.u16()?;
            for _ in 0..attributes {
                rest.skip(2)?;
                let length = rest.u32()?;
                rest.skip(usize::try_from(length).ok()?)?;
            }
            Some(member)
        })
        .collect()
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn skip(&mut self, count: usize) -> Option<Constant> {
        self.take(count).map(|_| Constant::Other)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from(self.u16()?) << 16 | u32::from(self.u16()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Vec<u8> {
        [&[1, 0, u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
    }

    /// `class A { static native void f(long); native int g(); int h() {...} }`, with a constant of two indexes.
    fn example() -> Vec<u8> {
        let mut class = vec![0xCA, 0xFE, 0xBA, 0xBE, 0, 0, 0, 52, 0, 10];
        class.extend([7, 0, 2]);
        class.extend([text("A"), text("f"), text("(J)V"), text("g"), text("()I"), text("h")].concat());
        class.extend([5, 0, 0, 0, 0, 0, 0, 0, 1]);
        class.extend([0, 0x20, 0, 1, 0, 0, 0, 0, 0, 0, 0, 3]);
        class.extend([0x01, 0x08, 0, 3, 0, 4, 0, 0]);
        class.extend([0x01, 0x00, 0, 5, 0, 6, 0, 1, 0, 2, 0, 0, 0, 2, 9, 9]);
        class.extend([0x00, 0x00, 0, 7, 0, 6, 0, 0, 0, 0]);
        class
    }

    #[test]
    fn native_methods_are_listed_with_their_descriptors() {
        assert_eq!(natives(&example()).unwrap(), ["A f (J)V static", "A g ()I instance"]);
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = example();
        // The attributes of the class, two bytes, are not read.
        for end in 0..whole.len() - 2 {
            assert_eq!(natives(&whole[..end]), None, "{end}");
        }
    }
}
