//! Numbers of the rules: each with its name and its reason where it is used, and in one list, so that a benchmark can move it and see
//! what changes.
//!
//! `constants! { /// Reason. pub(super) NAME: f64 = 2.0; }` makes a `static` of each and `CONSTANTS`, the list of the module's. The rules
//! read a number with [`Constant::get`], a relaxed load; nothing but a sensitivity run moves one.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number of the rules.
#[derive(Debug)]
pub struct Constant<T> {
    /// Where it stands: module and name.
    name: &'static str,
    reason: &'static str,
    value: T,
    /// The bits of the `f64` that is in force.
    now: AtomicU64,
}

/// A [`Constant`] of whatever type, as a sensitivity run sees it.
pub trait Movable: Sync + std::fmt::Debug {
    /// Module path and name, from the folder of the detector on: `rules::peer::level::APART`.
    fn name(&self) -> &'static str;
    /// Why it is what it is.
    fn reason(&self) -> String;
    /// The value that the rules are made for.
    fn value(&self) -> f64;
    /// Puts `value` in force, rounded where it is a count; the old value comes back with [`Movable::value`]. Returns whether that differs
    /// from what the rules are made for.
    fn move_to(&self, value: f64) -> bool;
}

impl<T> Constant<T> {
    const fn with_bits(name: &'static str, reason: &'static str, value: T, bits: u64) -> Self {
        Self {
            name,
            reason,
            value,
            now: AtomicU64::new(bits),
        }
    }

    fn name_in_crate(&self) -> &'static str {
        self.name.split_once("::").map_or(self.name, |(_, rest)| rest)
    }

    fn in_force(&self) -> f64 {
        f64::from_bits(self.now.load(Ordering::Relaxed))
    }

    fn reason_in_one_line(&self) -> String {
        self.reason.split_whitespace().collect::<Vec<_>>().join(" ")
    }
}

impl Constant<f64> {
    /// A constant in its place; `constants!` calls this.
    #[must_use]
    pub const fn new(name: &'static str, reason: &'static str, value: f64) -> Self {
        Self::with_bits(name, reason, value, value.to_bits())
    }

    /// The value in force.
    #[must_use]
    pub fn get(&self) -> f64 {
        self.in_force()
    }
}

impl Constant<usize> {
    /// A constant in its place; `constants!` calls this.
    #[must_use]
    pub const fn new(name: &'static str, reason: &'static str, value: usize) -> Self {
        Self::with_bits(name, reason, value, (value as f64).to_bits())
    }

    /// The value in force.
    #[must_use]
    pub fn get(&self) -> usize {
        self.in_force() as usize
    }
}

impl Movable for Constant<f64> {
    fn name(&self) -> &'static str {
        self.name_in_crate()
    }

    fn reason(&self) -> String {
        self.reason_in_one_line()
    }

    fn value(&self) -> f64 {
        self.value
    }

    fn move_to(&self, value: f64) -> bool {
        self.now.store(value.to_bits(), Ordering::Relaxed);
        value.to_bits() != self.value.to_bits()
    }
}

impl Movable for Constant<usize> {
    fn name(&self) -> &'static str {
        self.name_in_crate()
    }

    fn reason(&self) -> String {
        self.reason_in_one_line()
    }

    fn value(&self) -> f64 {
        self.value as f64
    }

    fn move_to(&self, value: f64) -> bool {
        let whole = value.round().max(0.0);
        self.now.store(whole.to_bits(), Ordering::Relaxed);
        whole as usize != self.value
    }
}

/// Numbers of a detector, each with its reason as a doc comment; see [`crate::contract::constant`].
macro_rules! constants {
    ($($(#[doc = $reason:expr])* $visible:vis $name:ident: $type:ty = $value:expr;)+) => {
        $(
            $(#[doc = $reason])*
            $visible static $name: $crate::contract::constant::Constant<$type> =
                $crate::contract::constant::Constant::<$type>::new(
                    concat!(module_path!(), "::", stringify!($name)), concat!($($reason),*), $value);
        )+
        /// The numbers above, for a sensitivity run.
        pub(crate) static CONSTANTS: &[&dyn $crate::contract::constant::Movable] = &[$(&$name),+];
    };
}
pub(crate) use constants;

#[cfg(test)]
mod tests {
    use super::*;

    constants! {
        /// Half of
        /// something.
        SHARE: f64 = 0.5;
        /// A few.
        FEW: usize = 3;
    }

    #[test]
    fn a_moved_number_is_in_force_until_it_is_moved_back() {
        assert_eq!((SHARE.get(), FEW.get()), (0.5, 3));
        assert!(SHARE.move_to(1.0) && FEW.move_to(1.5));
        assert_eq!((SHARE.get(), FEW.get()), (1.0, 2));
        for constant in CONSTANTS {
            assert!(!constant.move_to(constant.value()));
        }
        assert_eq!((SHARE.get(), FEW.get()), (0.5, 3));
    }

    #[test]
    fn a_number_knows_its_place_and_its_reason() {
        assert_eq!(CONSTANTS[0].name(), "contract::constant::tests::SHARE");
        assert_eq!(CONSTANTS[0].reason(), "Half of something.");
    }
}
