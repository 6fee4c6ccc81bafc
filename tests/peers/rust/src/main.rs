// SPDX-License-Identifier: Apache-2.0
//! A contender in Rust: contender fairlock|fairlock-async|rslock|redlock PORT. It speaks the lines of
//! ../README.md.
use std::io::stdin;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

const LOCK: &str = "sixteen-byte-nam";
const LEASE: Duration = Duration::from_secs(30);
const HOLD: Duration = Duration::from_millis(3);
const PAUSE_US: u64 = 6000;
/// rslock and redlock give up after so many tries; between two they wait up to 200 ms, as by default.
const TRIES: u32 = 1_000_000;

fn now_ns() -> i64 {
    #[repr(C)]
    struct Timespec(std::ffi::c_long, std::ffi::c_long);
    extern "C" {
        fn clock_gettime(clock: std::ffi::c_int, time: *mut Timespec) -> std::ffi::c_int;
    }
    let mut time = Timespec(0, 0);
    // SAFETY: CLOCK_MONOTONIC, and a struct timespec as the system has it
    unsafe { clock_gettime(1, &mut time) };
    time.0 * 1_000_000_000 + time.1
}

/// Acquires, calls, and releases; returns when it had acquired, and when it began to release.
type Take = Box<dyn FnMut(&mut dyn FnMut())>;

fn fairlock(url: &str) -> Take {
    let lock = fairlock::Client::new(url).expect("a URL").lock(LOCK);
    Box::new(move |held| {
        let guard = lock.acquire(None, LEASE).expect("the lock");
        held();
        guard.release().expect("held until now");
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn fairlock_async(url: &str) -> Take {
    let lock = fairlock::Client::new(url).expect("a URL").lock(LOCK);
    let runtime = runtime();
    Box::new(move |held| {
        runtime.block_on(async {
            let guard = lock.acquire_async(None, LEASE).await.expect("the lock");
            held();
            guard.release_async().await.expect("held until now");
        })
    })
}

fn rslock(url: &str) -> Take {
    let mut manager = rslock::LockManager::new(vec![url]);
    manager.set_retry(TRIES, Duration::from_millis(200));
    let runtime = runtime();
    Box::new(move |held| {
        runtime.block_on(async {
            let guard = manager.acquire(LOCK.as_bytes(), LEASE).await.expect("the lock");
            held();
            guard.release().await;
        })
    })
}

fn redlock(url: &str) -> Take {
    let mut locks = redlock::RedLock::new(vec![url]);
    locks.set_retry(TRIES, 200);
    Box::new(move |held| {
        let lock =
            locks.lock(LOCK.as_bytes(), LEASE.as_millis() as usize).expect("a server").expect("the lock");
        held();
        locks.unlock(&lock);
    })
}

fn answer(numbers: &[i64]) {
    println!("done 0");
    let words: Vec<String> = numbers.iter().map(i64::to_string).collect();
    println!("{}", words.join(" "));
}

fn pairs(take: &mut Take, count: usize) {
    let mut took = Vec::with_capacity(count);
    for _ in 0..count {
        let start = now_ns();
        take(&mut || ());
        took.push(now_ns() - start);
    }
    answer(&took);
}

fn contend(take: &mut Take, count: usize) {
    let mut events = Vec::with_capacity(3 * count);
    let seed = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    let mut dice = seed as u64;
    for _ in 0..count {
        events.push(now_ns());
        take(&mut || {
            events.push(now_ns());
            sleep(HOLD);
            events.push(now_ns());
        });
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        sleep(Duration::from_micros((dice >> 33) % PAUSE_US));
    }
    answer(&events);
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let [_, peer, port] = words.as_slice() else { panic!("contender PEER PORT") };
    let url = format!("redis://127.0.0.1:{port}");
    let (mut take, version) = match peer.as_str() {
        "fairlock" => (fairlock(&url), fairlock::VERSION),
        "fairlock-async" => (fairlock_async(&url), fairlock::VERSION),
        "rslock" => (rslock(&url), "0.10.0"), // as in Cargo.toml
        "redlock" => (redlock(&url), "2.0.0"),
        _ => panic!("no such peer: {peer}"),
    };
    println!("ready {} {version}", now_ns());
    for line in stdin().lines().map_while(Result::ok) {
        let Some((verb, count)) = line.split_once(' ') else { continue };
        let count = count.parse().expect("a number");
        match verb {
            "pairs" => pairs(&mut take, count),
            _ => contend(&mut take, count),
        }
    }
}
