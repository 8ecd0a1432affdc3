//! Sizes, durations and budgets as they are written in the configuration.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes: `512MiB`, `50GiB`, or a plain number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// Binary units, largest first, with the shorter spellings that people use.
const UNITS: [(&str, &str, u64); 4] = [
    ("TiB", "T", 1 << 40),
    ("GiB", "G", 1 << 30),
    ("MiB", "M", 1 << 20),
    ("KiB", "K", 1 << 10),
];

impl FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a size such as 512MiB or 50GiB, found {text:?}");
        let text = text.trim();
        let (number, unit) = split_unit(text).ok_or_else(wrong)?;
        let scale = match unit {
            "" | "B" => 1,
            unit => UNITS
                .iter()
                .find(|(long, short, _)| {
                    unit.eq_ignore_ascii_case(long) || unit.eq_ignore_ascii_case(short)
                })
                .map(|u| u.2)
                .ok_or_else(wrong)?,
        };
        number
            .checked_mul(scale)
            .map(Bytes)
            .ok_or_else(|| format!("{text:?} is more than 2^64 bytes"))
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match UNITS
            .iter()
            .find(|(_, _, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale))
        {
            Some((unit, _, scale)) => write!(f, "{}{unit}", self.0 / scale),
            None => write!(f, "{}", self.0),
        }
    }
}

/// A span of time: `500ms`, `90s`, `10m`, `24h`, `7d`, or a plain number of seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

/// Units of time in milliseconds, largest first.
const TIMES: [(&str, u64); 5] = [
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("m", 60_000),
    ("s", 1000),
    ("ms", 1),
];

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("expected a duration such as 90s, 10m or 24h, found {text:?}");
        let (number, unit) = split_unit(text.trim()).ok_or_else(wrong)?;
        let unit = if unit.is_empty() { "s" } else { unit };
        let scale = TIMES
            .iter()
            .find(|(name, _)| *name == unit)
            .ok_or_else(wrong)?
            .1;
        let milliseconds = number
            .checked_mul(scale)
            .ok_or_else(|| format!("{text:?} is too long"))?;
        Ok(Span(Duration::from_millis(milliseconds)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, scale) = TIMES
            .iter()
            .find(|(_, scale)| milliseconds >= *scale && milliseconds.is_multiple_of(*scale))
            .unwrap_or(&("s", 1000));
        write!(f, "{}{unit}", milliseconds / scale)
    }
}

/// A limit of memory: `auto` (from the machine and its cgroup, or from the card) or a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Budget {
    /// Decided at start from what the machine has.
    Auto,
    /// Given.
    Bytes(u64),
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "auto" {
            return Ok(Budget::Auto);
        }
        Bytes::from_str(text)
            .map(|b| Budget::Bytes(b.0))
            .map_err(|e| e.replace("expected a size", "expected \"auto\" or a size"))
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Auto => f.write_str("auto"),
            Budget::Bytes(bytes) => Bytes(*bytes).fmt(f),
        }
    }
}

/// Splits `50GiB` into 50 and `GiB`.
fn split_unit(text: &str) -> Option<(u64, &str)> {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    Some((text[..end].parse().ok()?, text[end..].trim_start()))
}

/// Serde by `FromStr` and `Display`, plain numbers included.
macro_rules! as_text {
    ($($name:ident),*) => {$(
        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Text(std::marker::PhantomData))
            }
        }
    )*};
}
as_text!(Bytes, Span, Budget);

/// Reads a string or a whole number with the target's `FromStr`.
struct Text<T>(std::marker::PhantomData<T>);

impl<T: FromStr<Err = String>> de::Visitor<'_> for Text<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string with a unit or a whole number")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<T, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<T, E> {
        self.visit_str(&number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_durations_are_read_and_written_alike() {
        for text in ["0", "17", "1KiB", "512MiB", "50GiB", "3TiB"] {
            assert_eq!(text.parse::<Bytes>().unwrap().to_string(), text);
        }
        for text in ["0s", "1ms", "1500ms", "90s", "10m", "36h", "7d"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("50 gib".parse(), Ok(Bytes(50 << 30)));
        assert_eq!("2G".parse(), Ok(Bytes(2 << 30)));
        assert_eq!("30".parse(), Ok(Span(Duration::from_secs(30))));
        assert_eq!("auto".parse(), Ok(Budget::Auto));
        assert_eq!("1MiB".parse(), Ok(Budget::Bytes(1 << 20)));
    }

    #[test]
    fn anything_else_is_refused_and_quoted() {
        for text in ["", "GiB", "50 GB", "-1", "1.5GiB", "fifty", "20000000TiB"] {
            let message = text.parse::<Bytes>().unwrap_err();
            assert!(message.contains(&format!("{text:?}")), "{message}");
            assert!(text.parse::<Budget>().is_err());
        }
        for text in ["", "s", "1w", "1h30m", "99999999999999999999d"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }
}
