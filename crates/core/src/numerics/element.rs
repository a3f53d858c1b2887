//! Element types: the value of an element, and its distance from another one.

use half::{bf16, f16};

/// A number of one of the element types.
pub(super) trait Element: Copy {
    fn value(self) -> f64;

    /// |a − b|, without the rounding that large integers would suffer as `f64`.
    fn distance(self, other: Self) -> f64;

    /// Number of representable numbers between the two; for integers, their distance.
    fn ulps(self, other: Self) -> f64;
}

macro_rules! floats {
    ($($float:ty, $bits:ty, $wide:ty;)+) => {$(
        impl Element for $float {
            fn value(self) -> f64 {
                f64::from(self)
            }

            fn distance(self, other: Self) -> f64 {
                (self.value() - other.value()).abs()
            }

            fn ulps(self, other: Self) -> f64 {
                // Sign and magnitude, so that representable numbers become consecutive integers and both
                // zeros become the same one.
                let place = |x: Self| {
                    let bits = x.to_bits();
                    let sign: $bits = 1 << (<$bits>::BITS - 1);
                    let magnitude = <$wide>::from(bits & !sign);
                    if bits & sign == 0 { magnitude } else { -magnitude }
                };
                (place(self) - place(other)).unsigned_abs() as f64
            }
        }
    )+};
}

floats! {
    f64, u64, i128;
    f32, u32, i64;
    f16, u16, i32;
    bf16, u16, i32;
}

macro_rules! integers {
    ($($integer:ty)+) => {$(
        impl Element for $integer {
            fn value(self) -> f64 {
                self as f64
            }

            fn distance(self, other: Self) -> f64 {
                self.abs_diff(other) as f64
            }

            fn ulps(self, other: Self) -> f64 {
                self.distance(other)
            }
        }
    )+};
}

integers! { i64 i32 i16 i8 u64 u32 u16 u8 }
