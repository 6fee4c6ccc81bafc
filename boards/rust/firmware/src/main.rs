// SPDX-License-Identifier: Apache-2.0
//! A Cortex-M3 (Arm MPS2, AN385, in QEMU) that waits in line for a lock. Its second UART is the way to
//! Redis: QEMU makes a TCP connection of it. A device has a network stack there, whose sockets are
//! streams of embedded-io-async, too; this line cannot close the connection. The first UART has the log.
//!
//! LOCK in the environment of the build is the name of the lock.
#![no_std]
#![no_main]

use core::cell::UnsafeCell;
use core::future::{poll_fn, Future};
use core::pin::pin;
use core::ptr::{read_volatile, write_volatile};
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::task::{Context, Poll, RawWaker, RawWakerVTable, Waker};
use core::time::Duration;
use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use fairlock::embedded::{Client, Clock, Config, Connect};
use fairlock::Error;

const NAME: &str = match option_env!("LOCK") {
    Some(name) => name,
    None => "door:7",
};

/// What cortex-m-rt and a crate of the chip do for a device: its vectors, and its start.
#[repr(C)]
struct Vectors {
    stack: *const u32,
    exceptions: [unsafe extern "C" fn() -> !; 14],
    tick: extern "C" fn(),
    interrupts: [extern "C" fn(); 3],
}
// SAFETY: it is constant
unsafe impl Sync for Vectors {}

#[unsafe(link_section = ".vectors")]
#[used]
static VECTORS: Vectors = Vectors {
    stack: &raw const STACK_TOP,
    exceptions: {
        let mut all: [unsafe extern "C" fn() -> !; 14] = [fault; 14];
        all[0] = start;
        all
    },
    tick,
    interrupts: [nothing, nothing, line_received],
};

extern "C" {
    static STACK_TOP: u32;
    static DATA_FLASH: u32;
    static mut DATA_BEGIN: u32;
    static DATA_END: u32;
    static mut BSS_BEGIN: u32;
    static BSS_END: u32;
}

/// Before its two loops there are no statics, so they are in assembly.
#[unsafe(no_mangle)]
unsafe extern "C" fn start() -> ! {
    // SAFETY: what link.x defines, before anything else runs
    unsafe {
        core::arch::asm!(
            "1: cmp r0, r1", "itt lo", "ldrlo r3, [r2], #4", "strlo r3, [r0], #4", "blo 1b",
            inout("r0") &raw mut DATA_BEGIN => _, in("r1") &raw const DATA_END, inout("r2") &raw const DATA_FLASH => _, out("r3") _,
        );
        core::arch::asm!(
            "1: cmp r0, r1", "it lo", "strlo r2, [r0], #4", "blo 1b",
            inout("r0") &raw mut BSS_BEGIN => _, in("r1") &raw const BSS_END, in("r2") 0,
        );
    }
    main()
}

extern "C" fn fault() -> ! {
    say("fault\n");
    exit(false)
}

/// Wakes the executor below each millisecond. It is not the clock: ticks are lost while the processor is
/// stopped, and with a slow clock a client believes in a lock that it has lost.
extern "C" fn tick() {}
extern "C" fn nothing() {}

fn set(register: usize, value: u32) {
    // SAFETY: a register of the processor, which every Cortex-M3 has
    unsafe { write_volatile(register as *mut u32, value) }
}

fn sleep_until_interrupt() {
    // SAFETY: it does nothing else
    unsafe { core::arch::asm!("wfi") };
}

/// The counter of the board's I/O block, which hardware drives.
#[derive(Clone, Copy)]
struct Counter;

impl Counter {
    const VALUE: *mut u32 = 0x4002_8018 as *mut u32;
    const PRESCALER: *mut u32 = 0x4002_801c as *mut u32;

    fn start() {
        // SAFETY: a register of a device that every AN385 has
        unsafe { write_volatile(Self::PRESCALER, 25_000 - 1) }; // 25 MHz
    }
}

impl Clock for Counter {
    fn now_ms(&self) -> u32 {
        // SAFETY: the same
        unsafe { read_volatile(Self::VALUE) }
    }
    async fn sleep_ms(&self, ms: u32) {
        let began = self.now_ms();
        poll_fn(|_| if self.now_ms().wrapping_sub(began) < ms { Poll::Pending } else { Poll::Ready(()) })
            .await;
    }
}

/// A UART of Arm's CMSDK.
struct Uart(usize);

const LOG: Uart = Uart(0x4000_4000);
const LINE: Uart = Uart(0x4000_5000);
/// Its interrupt, and the processor's registers that enable one, and make it come.
const LINE_RECEIVES: u32 = 2;
const ENABLE: usize = 0xe000_e100;
const PEND: usize = 0xe000_e200;

impl Uart {
    const DATA: usize = 0;
    const STATE: usize = 4;
    const CONTROL: usize = 8;
    const CLEAR: usize = 12;
    const DIVIDER: usize = 16;

    fn get(&self, register: usize) -> u32 {
        // SAFETY: a register of a device that every AN385 has
        unsafe { read_volatile((self.0 + register) as *const u32) }
    }
    fn set(&self, register: usize, value: u32) {
        // SAFETY: the same
        unsafe { write_volatile((self.0 + register) as *mut u32, value) }
    }
    fn is_full(&self) -> bool {
        self.get(Self::STATE) & 1 != 0
    }
    fn has_byte(&self) -> bool {
        self.get(Self::STATE) & 2 != 0
    }
}

/// What the interrupt has received. It is the only one to move `end`, and the line's reader `begin`.
struct Received {
    bytes: UnsafeCell<[u8; 256]>,
    begin: AtomicUsize,
    end: AtomicUsize,
}
// SAFETY: as above
unsafe impl Sync for Received {}
static RECEIVED: Received =
    Received { bytes: UnsafeCell::new([0; 256]), begin: AtomicUsize::new(0), end: AtomicUsize::new(0) };

impl Received {
    fn put(&self, byte: u8) {
        let end = self.end.load(Ordering::Relaxed);
        // SAFETY: nobody reads that place yet
        unsafe { self.bytes.get().cast::<u8>().add(end % 256).write(byte) };
        self.end.store(end.wrapping_add(1), Ordering::Release);
    }
    fn is_full(&self) -> bool {
        self.end.load(Ordering::Relaxed).wrapping_sub(self.begin.load(Ordering::Acquire)) == 256
    }
    fn take(&self) -> Option<u8> {
        let begin = self.begin.load(Ordering::Relaxed);
        if begin == self.end.load(Ordering::Acquire) {
            return None;
        }
        // SAFETY: nobody writes that place until `begin` has moved
        let byte = unsafe { self.bytes.get().cast::<u8>().add(begin % 256).read() };
        self.begin.store(begin.wrapping_add(1), Ordering::Release);
        Some(byte)
    }
}

extern "C" fn line_received() {
    LINE.set(Uart::CLEAR, 2);
    while LINE.has_byte() && !RECEIVED.is_full() {
        RECEIVED.put(LINE.get(Uart::DATA) as u8);
    }
}

#[derive(Debug)]
struct Never;
impl core::fmt::Display for Never {
    fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        Ok(())
    }
}
impl core::error::Error for Never {}
impl embedded_io_async::Error for Never {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}
impl ErrorType for Uart {
    type Error = Never;
}

impl Read for Uart {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, Never> {
        poll_fn(|_| {
            let mut size = 0;
            while let Some(byte) =
                to.get_mut(size).and_then(|place| RECEIVED.take().map(|byte| (place, byte)))
            {
                *byte.0 = byte.1;
                size += 1;
            }
            if self.has_byte() {
                // What had no room: its interrupt comes again.
                set(PEND, 1 << LINE_RECEIVES);
            }
            if size > 0 {
                Poll::Ready(Ok(size))
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

impl Write for Uart {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Never> {
        for byte in bytes {
            poll_fn(|_| if self.is_full() { Poll::Pending } else { Poll::Ready(()) }).await;
            self.set(Self::DATA, u32::from(*byte));
        }
        Ok(bytes.len())
    }
    async fn flush(&mut self) -> Result<(), Never> {
        Ok(())
    }
}

struct Serial(Uart);
impl Connect for Serial {
    type Stream<'a> = &'a mut Uart;
    async fn connect(&mut self) -> Result<&mut Uart, Error> {
        while RECEIVED.take().is_some() {} // nothing of a connection before
        Ok(&mut self.0)
    }
}

static WOKEN: AtomicBool = AtomicBool::new(true);
const WAKER: RawWakerVTable =
    RawWakerVTable::new(|_| RawWaker::new(core::ptr::null(), &WAKER), |_| wake(), |_| wake(), |_| ());
fn wake() {
    WOKEN.store(true, Ordering::Relaxed);
}

/// Polls after each interrupt: a tick, or a byte.
fn block_on(future: impl Future) {
    let mut future = pin!(future);
    // SAFETY: it has no data
    let waker = unsafe { Waker::from_raw(RawWaker::new(core::ptr::null(), &WAKER)) };
    while future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        if !WOKEN.swap(false, Ordering::Relaxed) {
            sleep_until_interrupt();
        }
    }
}

fn say(text: &str) {
    for byte in text.bytes() {
        while LOG.is_full() {}
        LOG.set(Uart::DATA, u32::from(byte));
    }
}

/// Without core::fmt, which takes more flash than the lock's Rust.
fn say_number(mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    say(core::str::from_utf8(&digits[at..]).unwrap_or(""));
}

/// Ends the simulator: SYS_EXIT.
fn exit(good: bool) -> ! {
    let reason = if good { 0x20026 } else { 0x20023 };
    // SAFETY: semihosting
    unsafe { core::arch::asm!("bkpt 0xab", in("r0") 0x18, in("r1") reason) };
    loop {
        sleep_until_interrupt();
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    say("panic\n");
    exit(false)
}

type Locks = Client<Counter, 2, 16, 256>;

/// A static of one task: the executor's.
struct OneTask(Locks);
// SAFETY: interrupts do not use it
unsafe impl Sync for OneTask {}
static CLIENT: OneTask = OneTask(Client::new(Counter, Config::new()));

async fn work(client: &'static Locks) -> Result<(), Error> {
    client.connect()?;
    while !client.is_connected() {
        Counter.sleep_ms(1).await;
    }
    say("waiting\n");
    let began = Counter.now_ms();
    let door = client.acquire(NAME, Some(Duration::from_secs(600)), None).await?;
    say("held ");
    say_number(door.token());
    say(" after ");
    say_number(Counter.now_ms().wrapping_sub(began).into());
    say(" ms\n");
    Counter.sleep_ms(200).await;
    if door.is_lost() {
        return Err(Error::Lost);
    }
    door.release().await?;
    say("released\n");
    let began = Counter.now_ms();
    for _ in 0..50 {
        client.acquire("pairs", None, None).await?.release().await?;
    }
    say("50 pairs in ");
    say_number(Counter.now_ms().wrapping_sub(began).into());
    say(" ms\n");
    Ok(())
}

fn main() -> ! {
    set(0xe000_e014, 25_000 - 1); // SysTick: each millisecond of 25 MHz
    set(0xe000_e010, 0b111);
    Counter::start();
    for uart in [LOG, LINE] {
        uart.set(Uart::DIVIDER, 16);
        uart.set(Uart::CONTROL, 0b1011); // sends, receives, and interrupts for that
    }
    set(ENABLE, 1 << LINE_RECEIVES);
    let client: &'static Locks = &CLIENT.0;
    block_on(async {
        let mut run = pin!(client.run(Serial(LINE)));
        let mut work = pin!(work(client));
        poll_fn(|context| {
            if run.as_mut().poll(context).is_ready() {
                exit(false);
            }
            work.as_mut().poll(context).map(|result| {
                if let Err(error) = result {
                    say("error ");
                    say_number(error.code().unsigned_abs().into());
                    say("\n");
                }
                exit(result.is_ok())
            })
        })
        .await
    });
    exit(false)
}
