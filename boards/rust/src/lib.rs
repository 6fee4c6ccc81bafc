// SPDX-License-Identifier: Apache-2.0
#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "embedded")]
pub mod embedded;
mod error;
#[cfg(feature = "std")]
mod service;
#[cfg(any(feature = "std", feature = "embedded"))]
mod time;

pub use error::Error;
#[cfg(feature = "openssl")]
use openssl_sys as _; // which links it
#[cfg(feature = "std")]
pub use service::*;

/// The version of this crate, and of the library in it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
