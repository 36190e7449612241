//! Boxes for futures.

use std::pin::Pin;

/// A future in a box. Unlike [`Box::pin`] it allocates first and makes the future afterwards, so that
/// only the arguments are written: a future is mostly room for what it does later, and copying it costs
/// as much as the allocation.
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    let room = Box::new_uninit();
    Box::into_pin(Box::write(room, make()))
}
