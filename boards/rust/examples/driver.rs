// SPDX-License-Identifier: Apache-2.0
//! The client as a program that is driven by lines: HOST PORT [WAITER_MS [LEASE_MS [KEEP_MS]]]. What is not
//! of this crate belongs to the tests of the repository (tests/interop/RELEASES.md), which hold it to the
//! format, and let it contend with the other clients. It must not retry, correct or order anything by itself.
use fairlock::{Client, Error, Holder};
use std::collections::HashMap;
use std::fmt::Display;
use std::io::{stdin, stdout, BufRead, Write};
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::thread::sleep;
use std::time::Duration;

type Holders = HashMap<(String, Option<u32>), Holder>;

/// By CLOCK_MONOTONIC, which all processes share, unlike std's Instant.
fn now_us() -> i64 {
    #[repr(C)]
    struct Timespec(std::ffi::c_long, std::ffi::c_long);
    extern "C" {
        fn clock_gettime(clock: std::ffi::c_int, time: *mut Timespec) -> std::ffi::c_int;
    }
    const CLOCK_MONOTONIC: std::ffi::c_int = if cfg!(target_os = "linux") { 1 } else { 6 };
    let mut time = Timespec(0, 0);
    // SAFETY: a struct timespec, as the system has it
    unsafe { clock_gettime(CLOCK_MONOTONIC, &mut time) };
    time.0 * 1_000_000 + time.1 / 1000
}

fn say(line: impl Display) {
    let mut out = stdout().lock();
    // At once: who kills this program loses no line.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

fn end(why: &str) -> ! {
    eprintln!("{why}");
    // Nothing is dropped: what it holds or waits for ends with its connection and its lease.
    std::process::exit(1)
}

/// 0 stands for one that is renewed.
fn lease_of(ms: u64) -> Option<Duration> {
    (ms != 0).then(|| Duration::from_millis(ms))
}

fn answer<T>(result: Result<T, Error>, good: impl FnOnce(T) -> String) {
    say(match result {
        Ok(value) => good(value),
        Err(Error::Busy) => "busy".into(),
        Err(Error::Timeout) => "timeout".into(),
        Err(Error::Lost) => "lost".into(),
        Err(Error::NotHeld) => "not-held".into(),
        Err(error) => format!("error {}", error.code()),
    });
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
}

fn status(result: Result<(), Error>) -> i32 {
    result.map_or_else(Error::code, |()| 0)
}

fn contend(holder: &mut Holder, for_ms: u64, hold_ms: u64, pause_ms: u64, dice: &mut Dice) {
    let until = now_us() + for_ms as i64 * 1000;
    while now_us() < until {
        let asked = now_us();
        let mut result = holder.acquire(Duration::from_secs(60), None).map(drop);
        if result.is_ok() {
            let begun = now_us();
            let token = holder.token().unwrap_or(0);
            sleep(Duration::from_millis(hold_ms));
            let ended = now_us();
            result = holder.release();
            say(format_args!("hold {asked} {begun} {ended} {token}"));
        }
        if result.is_err() {
            say(format_args!("failed {asked} {}", status(result)));
        }
        sleep(Duration::from_micros(if pause_ms > 0 { dice.roll() % (pause_ms * 1000) } else { 0 }));
    }
    say("done");
}

/// Holds it for so long, and tells until when it believed that: the clock is read before the belief. A
/// careless one never asks.
fn work_in(holder: &mut Holder, name: &str, limit: u32, ms: u64, careless: bool) {
    let asked = now_us();
    let got = holder.acquire(Duration::from_secs(120), None);
    say(format_args!("acquired {name} {}", status(got.map(drop))));
    let Ok(token) = got else { return };
    let begun = now_us();
    let mut seen = None;
    let mut now = begun;
    while seen.is_none() || now < begun + ms as i64 * 1000 {
        if !careless && holder.remaining().is_zero() {
            break;
        }
        seen = Some(now);
        sleep(Duration::from_millis(1));
        now = now_us();
    }
    if careless {
        seen = Some(now_us());
    }
    if let Some(seen) = seen {
        say(format_args!("hold {name} {limit} {asked} {begun} {seen} {token}"));
    }
    say(format_args!("released {name} {}", status(holder.release())));
}

struct Driver {
    client: Client,
    holders: Holders,
    lines: Receiver<String>,
    dice: Dice,
}

impl Driver {
    fn holder(&mut self, name: &str, limit: Option<u32>) -> &mut Holder {
        let lock = self.client.lock(name);
        self.holders.entry((name.into(), limit)).or_insert_with(|| {
            let lock = limit.map_or(lock.clone(), |limit| lock.shared(limit));
            lock.holder().unwrap_or_else(|error| end(&format!("{name}: {error}")))
        })
    }

    /// One of two locks after the other, the second often shared, and now and then for 4 s, until another
    /// line comes, which is returned.
    fn work(&mut self, name: &str, limit: u32, careless: bool) -> Option<String> {
        let shared = format!("{name}.shared");
        loop {
            match self.lines.try_recv() {
                Err(TryRecvError::Empty) => {}
                next => {
                    say("done");
                    return next.ok();
                }
            }
            let dice = self.dice.roll();
            let ms = if dice % 200 == 0 { 4000 } else { dice % 20 };
            let one = if dice / 64 % 2 != 0 { &shared } else { name };
            let shares = (one == shared && dice / 128 % 4 != 0).then_some(limit);
            work_in(self.holder(one, shares), one, shares.unwrap_or(0), ms, careless);
            sleep(Duration::from_millis(dice / 512 % 20));
        }
    }

    /// Returns a line that came meanwhile.
    fn obey(&mut self, line: &str) -> Option<String> {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [verb, name, rest @ ..] = words.as_slice() else { std::process::exit(0) };
        if !self.holders.keys().any(|(known, _)| known == name) {
            if let Err(error) = self.client.lock(*name).holder() {
                say(format_args!("error {error}"));
                return None;
            }
        }
        let number = |index: usize| rest.get(index).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
        let limit = verb.contains("share").then(|| number(0) as u32);
        let acquire = |holder: &mut Holder, wait, lease| {
            let token = holder.acquire(Duration::from_millis(wait), lease_of(lease));
            answer(token, |token| format!("held {token}"));
        };
        match *verb {
            "id" | "share-id" => say(format_args!("id {}", self.holder(name, limit).id())),
            "acquire" => acquire(self.holder(name, None), number(0), number(1)),
            "share" => acquire(self.holder(name, limit), number(1), number(2)),
            "release" | "unshare" => answer(self.holder(name, limit).release(), |()| "released".into()),
            "holds" => {
                let token = self.holder(name, None).token();
                say(token.map_or("not-held".into(), |token| format!("held {token}")));
            }
            "force" | "inspect" => say("unsupported"),
            "contend" => {
                let mut dice = Dice(self.dice.roll());
                contend(self.holder(name, None), number(0), number(1), number(2), &mut dice);
            }
            "work" => return self.work(name, number(0) as u32, number(1) != 0),
            _ => end(line),
        }
        None
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, times @ ..] = words.as_slice() else {
        end("HOST PORT [WAITER_MS [LEASE_MS [KEEP_MS]]]")
    };
    let time = |index: usize| {
        let ms = times.get(index).and_then(|word| word.parse().ok()).unwrap_or(0);
        Duration::from_millis(ms)
    };
    let client = Client::builder(format!("redis://{host}:{port}"))
        .waiter(time(0))
        .lease(time(1))
        .keep(time(2))
        .open()
        .unwrap_or_else(|error| end(&error.to_string()));
    if let Err(error) = client.connect() {
        end(&format!("{error}: {}", client.last_error()));
    }
    say("ready");
    let (to, lines) = channel();
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                return;
            }
        }
    });
    let seed = u64::from(std::process::id());
    let mut driver = Driver { client, holders: Holders::new(), lines, dice: Dice(seed) };
    let mut line = driver.lines.recv().ok();
    while let Some(text) = line {
        line = driver.obey(&text).or_else(|| driver.lines.recv().ok());
    }
    std::process::exit(0) // nothing is dropped, as in end()
}
