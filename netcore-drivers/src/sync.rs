//! The lock behind queue handles: the standard library's where there is one, a spin lock elsewhere.

#[cfg(feature = "std")]
mod imp {
    use std::sync::{Mutex, MutexGuard, PoisonError};

    /// A mutual exclusion lock that does not poison: what it protects is valid after every statement.
    #[derive(Debug, Default)]
    pub(crate) struct Lock<T>(Mutex<T>);

    impl<T> Lock<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }
}

#[cfg(not(feature = "std"))]
mod imp {
    use spin::mutex::{SpinMutex, SpinMutexGuard};

    /// A mutual exclusion lock.
    #[derive(Debug, Default)]
    pub(crate) struct Lock<T>(SpinMutex<T>);

    impl<T> Lock<T> {
        pub(crate) const fn new(value: T) -> Self {
            Self(SpinMutex::new(value))
        }

        pub(crate) fn lock(&self) -> SpinMutexGuard<'_, T> {
            self.0.lock()
        }
    }
}

pub(crate) use imp::Lock;
