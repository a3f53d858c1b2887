//! A pull scanner over JSON text, for the one format whose files are large.
//!
//! It is strict rather than general: the grammar is RFC 8259 with one addition, the bare `NaN`, `Infinity`
//! and `-Infinity` that Google Benchmark and Python write. Strings without escapes are borrowed, a number
//! takes one pass and `str::parse`, and a value that is not needed is validated and skipped without being
//! built. Nesting is limited, so no input can exhaust the stack.

use std::borrow::Cow;

use super::{BoxedFault, fault};

/// Maximum nesting, deeper than any result has; serde_json has the same limit.
const MAX_DEPTH: u32 = 128;

pub(super) type Scan<T> = Result<T, BoxedFault>;

#[derive(Debug, Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// Marks the first byte that ends or interrupts a string (a quote, a backslash or a control character) in the
/// high bit of that byte. Later bytes may be marked wrongly, because the subtraction borrows from them. If
/// nothing is marked, the result is 0, whose 64 trailing zeros stand for the whole word.
#[inline]
fn string_ends(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let quote = zero(word ^ (ONES * b'"' as u64));
    let backslash = zero(word ^ (ONES * b'\\' as u64));
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    (quote | backslash | control) & HIGH
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the byte offset of the next unread byte.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = bytes.get(self.at) {
            self.at += 1;
        }
    }

    /// Returns the first byte of the next value or punctuation without consuming it.
    #[inline]
    pub(super) fn peek(&mut self) -> Scan<u8> {
        self.skip_space();
        self.byte().ok_or_else(|| fault(self.at, "the file ends in the middle of a value"))
    }

    /// Consumes one punctuation byte.
    #[inline]
    fn take(&mut self, wanted: u8) -> Scan<()> {
        let found = self.peek()?;
        if found != wanted {
            return Err(fault(self.at, format!("expected `{}`", char::from(wanted))));
        }
        self.at += 1;
        Ok(())
    }

    /// Opens an object; call [`Scanner::next_key`] until it returns `None`.
    pub(super) fn begin_object(&mut self) -> Scan<()> {
        self.take(b'{')
    }

    /// Returns the next key of an object and consumes its colon; `None` at the closing brace.
    #[inline]
    pub(super) fn next_key(&mut self, first: &mut bool) -> Scan<Option<Cow<'a, str>>> {
        if !self.next_element(first, b'}')? {
            return Ok(None);
        }
        self.peek()?;
        let key = self.string()?;
        self.take(b':')?;
        Ok(Some(key))
    }

    /// Consumes these bytes if they come next. The bytes were parsed before at the same position in the
    /// grammar, so they need no second check.
    #[inline]
    pub(super) fn take_again(&mut self, seen: &str) -> bool {
        let next = self.text.as_bytes().get(self.at..self.at + seen.len());
        let same = next == Some(seen.as_bytes());
        if same {
            self.at += seen.len();
        }
        same
    }

    /// Consumes the white space that follows, and returns the text since offset `start`.
    pub(super) fn taken_since(&mut self, start: usize) -> &'a str {
        self.skip_space();
        &self.text[start..self.at]
    }

    /// Opens an array; call [`Scanner::next_item`] until it returns false.
    pub(super) fn begin_array(&mut self) -> Scan<()> {
        self.take(b'[')
    }

    /// Returns whether an array has one more item; consumes the comma before it, or the closing bracket.
    pub(super) fn next_item(&mut self, first: &mut bool) -> Scan<bool> {
        self.next_element(first, b']')
    }

    #[inline]
    fn next_element(&mut self, first: &mut bool, close: u8) -> Scan<bool> {
        let found = self.peek()?;
        if found == close {
            self.at += 1;
            return Ok(false);
        }
        if std::mem::take(first) {
            return Ok(true);
        }
        if found != b',' {
            return Err(fault(self.at, format!("expected `,` or `{}`", char::from(close))));
        }
        self.at += 1;
        // An element must follow a comma: `[1,]` is not JSON.
        if self.peek()? == close {
            return Err(fault(self.at, "a comma with nothing after it"));
        }
        Ok(true)
    }

    /// Reads a string, which is borrowed if it has no escapes.
    #[inline]
    pub(super) fn string(&mut self) -> Scan<Cow<'a, str>> {
        self.take(b'"')?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        loop {
            // Eight bytes are skipped at a time while none of them is special.
            while let Some(word) = bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
                let found = string_ends(u64::from_le_bytes(*word));
                self.at += found.trailing_zeros() as usize / 8;
                if found != 0 {
                    break;
                }
            }
            match bytes.get(self.at) {
                Some(b'"') => {
                    let text = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped_string(start).map(Cow::Owned),
                Some(0..0x20) => return Err(fault(self.at, "a control character inside a string")),
                Some(_) => self.at += 1,
                None => return Err(fault(self.at, "the file ends inside a string")),
            }
        }
    }

    /// Reads the rest of a string whose first escape is at `self.at`.
    #[cold]
    fn escaped_string(&mut self, start: usize) -> Scan<String> {
        let mut built = self.text[start..self.at].to_owned();
        loop {
            let run = self.at;
            let bytes = self.text.as_bytes();
            while !matches!(bytes.get(self.at), None | Some(b'"' | b'\\' | 0..0x20)) {
                self.at += 1;
            }
            built.push_str(&self.text[run..self.at]);
            match self.byte() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(built);
                }
                Some(b'\\') => {
                    self.at += 1;
                    built.push(self.escape()?);
                }
                Some(_) => return Err(fault(self.at, "a control character inside a string")),
                None => return Err(fault(self.at, "the file ends inside a string")),
            }
        }
    }

    /// Reads the character of an escape whose backslash is consumed.
    fn escape(&mut self) -> Scan<char> {
        let at = self.at;
        let byte = self.byte().ok_or_else(|| fault(at, "the file ends inside a string"))?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(at),
            _ => return Err(fault(at, "an unknown escape in a string")),
        })
    }

    /// Reads `\uXXXX`, or two of them if the first is a leading surrogate.
    fn unicode_escape(&mut self, at: usize) -> Scan<char> {
        let mut code = u32::from(self.hex4()?);
        if (0xd800..0xdc00).contains(&code) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let low = u32::from(self.hex4()?);
            if (0xdc00..0xe000).contains(&low) {
                code = 0x1_0000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
        }
        char::from_u32(code).ok_or_else(|| fault(at, "half of a surrogate pair in a string"))
    }

    fn hex4(&mut self) -> Scan<u16> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let value = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u16::from_str_radix(digits, 16).ok())
            .ok_or_else(|| fault(self.at, "a `\\u` escape needs four hexadecimal digits"))?;
        self.at += 4;
        Ok(value)
    }

    /// Reads a number; a bare `NaN` or `Infinity` counts as one. A number too large for f64 becomes infinite.
    #[inline]
    pub(super) fn number(&mut self) -> Scan<f64> {
        self.peek()?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        let negative = bytes.get(self.at) == Some(&b'-');
        self.at += usize::from(negative);
        let mut integer: u64 = 0;
        let whole = self.at;
        while let Some(digit @ b'0'..=b'9') = bytes.get(self.at) {
            integer = integer.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.at += 1;
        }
        let digits = self.at - whole;
        if digits == 0 {
            self.at = start;
            return self.bare_word();
        }
        if digits > 1 && bytes.get(whole) == Some(&b'0') {
            return Err(fault(start, "a number with a leading zero"));
        }
        match bytes.get(self.at) {
            Some(b'.' | b'e' | b'E') => self.fraction_and_exponent(start)?,
            // An integer with fewer than 16 digits is exact in f64.
            _ if digits < 16 => {
                let value = integer as f64;
                return Ok(if negative { -value } else { value });
            }
            _ => {}
        }
        self.text[start..self.at].parse().map_err(|_| fault(start, "not a number"))
    }

    #[inline]
    fn fraction_and_exponent(&mut self, start: usize) -> Scan<()> {
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits(start)?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits(start)?;
        }
        Ok(())
    }

    /// Consumes at least one digit.
    #[inline]
    fn digits(&mut self, start: usize) -> Scan<()> {
        let bytes = self.text.as_bytes();
        let from = self.at;
        while let Some(b'0'..=b'9') = bytes.get(self.at) {
            self.at += 1;
        }
        if self.at == from { Err(fault(start, "not a number")) } else { Ok(()) }
    }

    #[cold]
    fn bare_word(&mut self) -> Scan<f64> {
        for (word, value) in [
            ("NaN", f64::NAN),
            ("-NaN", f64::NAN),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
        ] {
            if self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(fault(self.at, "expected a number"))
    }

    pub(super) fn boolean(&mut self) -> Scan<bool> {
        match self.peek()? {
            b't' => self.word("true").map(|()| true),
            b'f' => self.word("false").map(|()| false),
            _ => Err(fault(self.at, "expected true or false")),
        }
    }

    fn word(&mut self, word: &'static str) -> Scan<()> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(fault(self.at, format!("expected `{word}`")));
        }
        self.at += word.len();
        Ok(())
    }

    /// Validates and skips one value of any kind.
    #[inline]
    pub(super) fn skip(&mut self) -> Scan<()> {
        self.skip_nested(0)
    }

    fn skip_nested(&mut self, depth: u32) -> Scan<()> {
        if depth > MAX_DEPTH {
            return Err(fault(self.at, "values are nested too deeply"));
        }
        match self.peek()? {
            b'"' => self.string().map(drop),
            b'{' => {
                self.begin_object()?;
                let mut first = true;
                while self.next_key(&mut first)?.is_some() {
                    self.skip_nested(depth + 1)?;
                }
                Ok(())
            }
            b'[' => {
                self.begin_array()?;
                let mut first = true;
                while self.next_item(&mut first)? {
                    self.skip_nested(depth + 1)?;
                }
                Ok(())
            }
            b't' | b'f' => self.boolean().map(drop),
            b'n' => self.word("null"),
            _ => self.number().map(drop),
        }
    }

    /// Checks that nothing but white space follows the outermost value.
    pub(super) fn end(&mut self) -> Scan<()> {
        self.skip_space();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(fault(self.at, "text after the end of the value"))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;

    use super::Scanner;

    fn accepts(text: &str) -> bool {
        let mut json = Scanner::new(text);
        json.skip().and_then(|()| json.end()).is_ok()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        /// serde_json is the reference for valid JSON.
        #[test]
        fn accepts_exactly_what_serde_json_accepts(text in "([\\[\\]{},:]|\"[a\\\\u\"é]*\"|-?[0-9.eE+]{1,5}|true|null|\\\\ud8|[ \n]|\\PC){0,12}") {
            prop_assert_eq!(accepts(&text), serde_json::from_str::<IgnoredAny>(&text).is_ok(), "{}", text);
        }

        #[test]
        fn reads_every_string_as_serde_json_does(value in ".{0,40}", escaped in any::<bool>()) {
            let mut text = serde_json::to_string(&value).unwrap();
            if escaped {
                // Writes every character as an escape, including surrogate pairs.
                let units: String = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
                text = format!("\"{units}\"");
            }
            prop_assert_eq!(Scanner::new(&text).string().unwrap(), value);
        }

        #[test]
        fn reads_every_number_to_the_nearest_f64(value in any::<f64>().prop_filter("finite", |v| v.is_finite())) {
            for text in [format!("{value}"), format!("{value:e}"), format!("{value:.16e}"), format!("{value:.3}")] {
                prop_assert_eq!(Scanner::new(&text).number().unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits());
            }
        }
    }

    #[test]
    fn bare_words_of_google_benchmark_are_numbers_and_nothing_else_is() {
        assert!(Scanner::new("NaN").number().unwrap().is_nan());
        assert_eq!(Scanner::new("-Infinity").number().unwrap(), f64::NEG_INFINITY);
        assert_eq!(Scanner::new("1e999").number().unwrap(), f64::INFINITY);
        for wrong in ["nan", "Inf", "+1", ".5", "1.", "0x1", "--1", "01", "1e", ""] {
            let mut json = Scanner::new(wrong);
            assert!(json.number().and_then(|_| json.end()).is_err(), "{wrong}");
        }
    }
}
