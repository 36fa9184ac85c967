//! `printf`: C conversions, with arguments packed as for the device's `vprintf`.

use std::ffi::{CStr, CString, c_char};
use std::io::{self, Write};
use std::ptr;

/// Formats a call; returns the text and the number of arguments.
///
/// Arguments follow one another, each at its natural alignment after C's promotions (CUDA C++ Programming Guide,
/// Formatted Output; `vprintf` of the device runtime).
///
/// # Safety
/// `format` must be NUL-terminated; `arguments` must match it, with NUL-terminated strings.
pub(crate) unsafe fn format(format: *const c_char, arguments: *const u8) -> (Vec<u8>, i32) {
    // SAFETY: guaranteed by the caller.
    let mut rest = unsafe { CStr::from_ptr(format) }.to_bytes();
    let mut text = Vec::new();
    let mut arguments = Arguments { next: arguments, count: 0 };
    while let Some(percent) = rest.iter().position(|byte| *byte == b'%') {
        add(&mut text, &rest[..percent]);
        let conversion = Conversion::parse(&rest[percent..]);
        rest = &rest[percent + conversion.length..];
        // SAFETY: as above.
        unsafe { conversion.print(&mut text, &mut arguments) };
    }
    add(&mut text, rest);
    (text, arguments.count)
}

/// The address of each string that a call prints, and the most bytes that it prints of it if its precision limits them.
///
/// # Safety
/// As for [`format`], but the strings may be anything.
pub(crate) unsafe fn strings(
    format: *const c_char,
    arguments: *const u8,
) -> Vec<(usize, Option<usize>)> {
    // SAFETY: guaranteed by the caller.
    let mut rest = unsafe { CStr::from_ptr(format) }.to_bytes();
    let mut arguments = Arguments { next: arguments, count: 0 };
    let mut found = Vec::new();
    while let Some(percent) = rest.iter().position(|byte| *byte == b'%') {
        let conversion = Conversion::parse(&rest[percent..]);
        rest = &rest[percent + conversion.length..];
        // SAFETY: as above.
        found.extend(unsafe { conversion.string(&mut arguments) });
    }
    found
}

/// Appends to a text, whose length the program chooses: what does not fit into memory is lost.
fn add(text: &mut Vec<u8>, more: &[u8]) {
    if text.try_reserve(more.len()).is_ok() {
        text.extend_from_slice(more);
    }
}

/// Writes formatted text in one call, so that texts of different threads do not mix.
pub(crate) fn write(output: &mut Option<Box<dyn Write + Send>>, text: &[u8]) {
    // If the output is closed, only the text is lost.
    let _ = match output {
        Some(output) => output.write_all(text),
        None => {
            let mut output = io::stdout().lock();
            output.write_all(text).and_then(|()| output.flush())
        }
    };
}

struct Arguments {
    next: *const u8,
    count: i32,
}

impl Arguments {
    /// The next argument.
    ///
    /// # Safety
    /// The argument must exist and be of this type.
    unsafe fn take<T: Copy>(&mut self) -> T {
        let gap = self.next.align_offset(align_of::<T>());
        self.count += 1;
        // SAFETY: guaranteed by the caller.
        unsafe {
            let at = self.next.add(gap).cast::<T>();
            self.next = at.add(1).cast();
            at.read()
        }
    }
}

/// A conversion, such as `%-08.*lld`.
struct Conversion<'a> {
    /// Number of bytes in the format.
    length: usize,
    /// `%`, flags, width and precision, including `*`.
    prefix: &'a [u8],
    /// Whether a modifier (`l`, `ll`, `z` …) makes the integer 64 bits wide.
    is_long: bool,
    /// Number of bits that `h` or `hh` truncates the integer to.
    narrow: Option<u32>,
    letter: u8,
}

impl Conversion<'_> {
    fn parse(text: &[u8]) -> Conversion<'_> {
        let skip = |from: usize, set: &[u8]| {
            from + text[from..].iter().take_while(|byte| set.contains(byte)).count()
        };
        let prefix = skip(skip(1, b"-+ #0"), b"0123456789*.");
        let modifiers = skip(prefix, b"hlqjztL");
        let is_long = text[prefix..modifiers].iter().any(|byte| b"lqjzt".contains(byte));
        let narrow = match &text[prefix..modifiers] {
            b"hh" => Some(8),
            b"h" => Some(16),
            _ => None,
        };
        let letter = text.get(modifiers).copied().unwrap_or(0);
        let length = (modifiers + 1).min(text.len());
        Conversion { length, prefix: &text[..prefix], is_long, narrow, letter }
    }

    /// Takes the arguments of the conversion; returns its string and the limit of its length, if it prints one.
    ///
    /// # Safety
    /// The arguments of the conversion must exist.
    unsafe fn string(&self, arguments: &mut Arguments) -> Option<(usize, Option<usize>)> {
        let dot = self.prefix.iter().position(|byte| *byte == b'.');
        let digits = dot.map(|dot| String::from_utf8_lossy(&self.prefix[dot + 1..]).into_owned());
        // A precision without digits is 0, a negative one counts as missing (C17, 7.21.6.1).
        let mut limit = digits.and_then(|digits| match digits.as_str() {
            "" => Some(0),
            digits => digits.parse().ok(),
        });
        for (at, _) in self.prefix.iter().enumerate().filter(|(_, byte)| **byte == b'*') {
            // SAFETY: `*` takes an `int`.
            let value = unsafe { arguments.take::<i32>() };
            if dot.is_some_and(|dot| at > dot) {
                limit = usize::try_from(value).ok();
            }
        }
        // SAFETY: as in `print`.
        unsafe {
            match self.letter {
                b'd' | b'i' | b'u' | b'o' | b'x' | b'X' if self.is_long => {
                    arguments.take::<u64>();
                }
                b'd' | b'i' | b'u' | b'o' | b'x' | b'X' | b'c' => {
                    arguments.take::<u32>();
                }
                b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                    arguments.take::<f64>();
                }
                b'p' => {
                    arguments.take::<usize>();
                }
                b's' => return Some((arguments.take::<usize>(), limit)),
                _ => {}
            }
        }
        None
    }

    /// # Safety
    /// The arguments of the conversion must exist.
    unsafe fn print(&self, text: &mut Vec<u8>, arguments: &mut Arguments) {
        let mut format = Vec::new();
        for byte in self.prefix {
            if *byte == b'*' {
                // SAFETY: `*` takes an `int`.
                let value = unsafe { arguments.take::<i32>() };
                format.extend_from_slice(value.to_string().as_bytes());
            } else {
                format.push(*byte);
            }
        }
        // SAFETY: each letter takes the type that C defines, and `snprintf` receives the same type.
        unsafe {
            match self.letter {
                b'%' => text.push(b'%'),
                b'd' | b'i' => {
                    let value = if self.is_long {
                        arguments.take::<i64>()
                    } else {
                        i64::from(arguments.take::<i32>())
                    };
                    let value = match self.narrow {
                        Some(bits) => value << (64 - bits) >> (64 - bits),
                        None => value,
                    };
                    self.append(text, format, b"ll", |buffer, size, format| {
                        libc::snprintf(buffer, size, format, value)
                    });
                }
                b'u' | b'o' | b'x' | b'X' => {
                    let value = if self.is_long {
                        arguments.take::<u64>()
                    } else {
                        u64::from(arguments.take::<u32>())
                    };
                    let value = match self.narrow {
                        Some(bits) => value & ((1 << bits) - 1),
                        None => value,
                    };
                    self.append(text, format, b"ll", |buffer, size, format| {
                        libc::snprintf(buffer, size, format, value)
                    });
                }
                b'c' => {
                    let value = arguments.take::<i32>();
                    self.append(text, format, b"", |buffer, size, format| {
                        libc::snprintf(buffer, size, format, value)
                    });
                }
                b'e' | b'E' | b'f' | b'F' | b'g' | b'G' | b'a' | b'A' => {
                    let value = arguments.take::<f64>();
                    self.append(text, format, b"", |buffer, size, format| {
                        libc::snprintf(buffer, size, format, value)
                    });
                }
                b'p' => {
                    let value = arguments.take::<*const u8>();
                    self.append(text, format, b"", |buffer, size, format| {
                        libc::snprintf(buffer, size, format, value)
                    });
                }
                b's' => {
                    let value = arguments.take::<*const c_char>();
                    let value = if value.is_null() { c"(null)".as_ptr() } else { value };
                    self.append(text, format, b"", |buffer, size, format| {
                        libc::snprintf(buffer, size, format, value)
                    });
                }
                // Not a conversion: print it unchanged.
                letter => {
                    add(text, &format);
                    if letter != 0 {
                        add(text, &[letter]);
                    }
                }
            }
        }
    }

    /// Appends the output of `snprintf` for one argument.
    fn append(
        &self,
        text: &mut Vec<u8>,
        mut format: Vec<u8>,
        modifier: &[u8],
        print: impl Fn(*mut c_char, usize, *const c_char) -> i32,
    ) {
        format.extend_from_slice(modifier);
        format.push(self.letter);
        // The format came from a C string, so it has no NUL.
        let Ok(format) = CString::new(format) else { return };
        let Ok(length) = usize::try_from(print(ptr::null_mut(), 0, format.as_ptr())) else {
            return;
        };
        // As `add`: a width or a precision asks for any length.
        let start = text.len();
        if text.try_reserve(length + 1).is_ok() {
            text.resize(start + length + 1, 0);
            print(text[start..].as_mut_ptr().cast(), length + 1, format.as_ptr());
            text.truncate(start + length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packs arguments like the device.
    #[derive(Default)]
    struct Packed(Vec<u64>, usize);

    impl Packed {
        fn push<T: Copy>(mut self, value: T) -> Packed {
            let size = size_of::<T>();
            self.1 = self.1.next_multiple_of(size);
            self.0.resize((self.1 + size).div_ceil(8), 0);
            // SAFETY: the vector is large enough and aligned.
            unsafe { self.0.as_mut_ptr().cast::<u8>().add(self.1).cast::<T>().write(value) };
            self.1 += size;
            self
        }
    }

    fn print(text: &CStr, arguments: Packed) -> String {
        // SAFETY: the tests pass arguments that match their formats.
        let (text, _) = unsafe { format(text.as_ptr(), arguments.0.as_ptr().cast()) };
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn conversions_are_cs() {
        let none = Packed::default;
        assert_eq!(print(c"100%% of %d\n", none().push(-3i32)), "100% of -3\n");
        assert_eq!(
            print(c"%5u|%-5d|%05d|%+d", none().push(7u32).push(7i32).push(7i32).push(7i32)),
            "    7|7    |00007|+7"
        );
        assert_eq!(
            print(c"%d %lld %x", none().push(1i32).push(i64::MIN).push(255u32)),
            "1 -9223372036854775808 ff"
        );
        assert_eq!(
            print(c"%.2f %g %e", none().push(1.005f64).push(0.5f64).push(1e10f64)),
            "1.00 0.5 1.000000e+10"
        );
        assert_eq!(print(c"%*.*f|", none().push(8i32).push(1i32).push(2.25f64)), "     2.2|");
        assert_eq!(print(c"%c%c", none().push(72i32).push(105i32)), "Hi");
        assert_eq!(
            print(c"%-4s|%s", none().push(c"ab".as_ptr()).push(ptr::null::<u8>())),
            "ab  |(null)"
        );
        assert_eq!(print(c"%hhd %hu", none().push(511i32).push(65537u32)), "-1 1");
        assert_eq!(print(c"%zu %p", none().push(9u64).push(16usize)), "9 0x10");
        assert_eq!(print(c"%", none()), "%");
        assert_eq!(print(c"50%y", none()), "50%y");
    }

    #[test]
    fn strings_are_found_among_the_arguments() {
        let find = |text: &CStr, arguments: Packed| {
            // SAFETY: the tests pass arguments that match their formats.
            unsafe { strings(text.as_ptr(), arguments.0.as_ptr().cast()) }
        };
        let none = Packed::default;
        assert_eq!(
            find(
                c"%d%% %s %lu %c %.3s %g",
                none().push(1i32).push(64usize).push(2u64).push(3i32).push(80usize).push(0.5f64)
            ),
            [(64, None), (80, Some(3))]
        );
        assert_eq!(
            find(
                c"%*d %*.*s %.*s %.s",
                none()
                    .push(1i32)
                    .push(2i32)
                    .push(3i32)
                    .push(4i32)
                    .push(96usize)
                    .push(-1i32)
                    .push(8usize)
                    .push(9usize)
            ),
            [(96, Some(4)), (8, None), (9, Some(0))]
        );
    }

    #[test]
    fn arguments_are_counted() {
        let packed = Packed::default().push(1i32).push(2i32).push(3.0f64);
        // SAFETY: as packed.
        let (_, count) = unsafe { format(c"%*d %f".as_ptr(), packed.0.as_ptr().cast()) };
        assert_eq!(count, 3);
    }
}
