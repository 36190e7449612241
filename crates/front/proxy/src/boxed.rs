//! Boxes whose memory is allocated before the value is made.

use std::pin::Pin;

/// A value in a box. Unlike [`Box::new`] it allocates first and makes the value afterwards, so that the fields are
/// written in place: copying a large value costs as much as allocating it.
pub(crate) fn in_box<T>(make: impl FnOnce() -> T) -> Box<T> {
    let room = Box::new_uninit();
    Box::write(room, make())
}

/// A future in a box that is made in place (see [`in_box`]). Most of its size is room for later states, which is not
/// copied then.
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::into_pin(in_box(make))
}
