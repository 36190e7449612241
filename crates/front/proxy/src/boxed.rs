//! Boxes whose memory is allocated before the value is made.

use std::pin::Pin;

/// A value in a box. Unlike [`Box::new`] it allocates first and makes the value afterwards, so that its fields are
/// written where they stay: of a large value a copy costs as much as the allocation.
pub(crate) fn in_box<T>(make: impl FnOnce() -> T) -> Box<T> {
    let room = Box::new_uninit();
    Box::write(room, make())
}

/// A future in a box. Most of its size is for its later states, so only its arguments are written (see [`in_box`]).
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(in_box(make))
}
