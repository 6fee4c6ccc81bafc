// SPDX-License-Identifier: Apache-2.0
//! Times as the library has them: milliseconds in 32 bits, with two values that mean something else.
use core::time::Duration;

const FOREVER: u32 = u32::MAX;
const RENEW: u32 = 0x7e7e_7e7e;
/// The longest: 12.4 days.
const LONGEST: u32 = 0x3fff_ffff;

/// Rounded up, so that what is longer than 0 is not nothing. Above `LONGEST`: more than that.
pub(crate) fn ms(time: Duration) -> u32 {
    let whole = time.as_secs().saturating_mul(1000);
    let ms = whole.saturating_add(time.subsec_nanos().div_ceil(1_000_000).into());
    ms.min(u64::from(LONGEST) + 1) as u32
}

/// A wait beyond the longest has no limit.
pub(crate) fn wait_ms(wait: Option<Duration>) -> u32 {
    wait.map(ms).filter(|&ms| ms <= LONGEST).unwrap_or(FOREVER)
}

pub(crate) fn lease_ms(lease: Option<Duration>) -> u32 {
    lease.map_or(RENEW, ms)
}
