// SPDX-License-Identifier: Apache-2.0
//! The client for firmware: `no_std`, without a heap, asynchronous, on any executor.
//!
//! [`Client`] has all memory: that of the engine, its buffers, and a slot for each holder or waiter, in
//! which a handle stays until the server knows that it is gone. So a future may be dropped in any state,
//! which leaves the queue, and a [`Guard`] may be dropped, which releases, or forgotten, which holds for
//! ever. One task services the client by [`Client::run`]; any other task of the same executor acquires.
//!
//! ```
//! use embedded_io_async::{Read, Write};
//! use fairlock::embedded::{Client, Clock, Config, Connect};
//! use fairlock::Error;
//! use core::time::Duration;
//!
//! /// A network stack has this as a socket. With embassy-net: `type Stream<'a> = TcpSocket<'a>`, made
//! /// of buffers in `self`, and connected.
//! struct Server<S>(S);
//! impl<S: Read + Write> Connect for Server<S> {
//!     type Stream<'a> = &'a mut S where S: 'a;
//!     async fn connect(&mut self) -> Result<&mut S, Error> {
//!         Ok(&mut self.0)
//!     }
//! }
//!
//! async fn service<C: Clock, S: Read + Write>(client: &'static Client<C>, stream: S) {
//!     client.run(Server(stream)).await;
//! }
//!
//! async fn work<C: Clock>(client: &'static Client<C>) -> Result<(), Error> {
//!     let valve = client.acquire("valve:7", Some(Duration::from_secs(10)), None).await?;
//!     // ... sends valve.token() along
//!     valve.release().await
//! }
//! ```
use crate::time::{lease_ms, ms, wait_ms};
use crate::Error;
use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_char, c_int, c_void, CStr};
use core::future::{pending, poll_fn, Future};
use core::pin::{pin, Pin};
use core::ptr::null;
use core::task::{Poll, Waker};
use core::time::Duration;
use embedded_io_async::{Read, Write};

mod sizes {
    include!(concat!(env!("OUT_DIR"), "/sizes.rs"));
}

/// A clock that never jumps, and that goes on while the processor sleeps: a counter that hardware drives, not a
/// count of ticks, which are lost while the processor is stopped.
pub trait Clock {
    /// Milliseconds since any moment. Wraps around at 2^32.
    fn now_ms(&self) -> u32;
    /// Ends after so many milliseconds, or a little later. Dropping it ends it.
    fn sleep_ms(&self, ms: u32) -> impl Future<Output = ()>;
}

/// The clock of embassy-time.
#[cfg(feature = "embassy-time")]
#[derive(Clone, Copy, Debug, Default)]
pub struct EmbassyClock;

#[cfg(feature = "embassy-time")]
impl Clock for EmbassyClock {
    fn now_ms(&self) -> u32 {
        embassy_time::Instant::now().as_millis() as u32
    }
    fn sleep_ms(&self, ms: u32) -> impl Future<Output = ()> {
        embassy_time::Timer::after_millis(ms.into())
    }
}

/// Opens connections to the server: one after the other.
pub trait Connect {
    /// A connection. A future of `read()` that is dropped must not have taken a byte: sockets and buffered
    /// serial lines keep that, TLS may not. No time limit is needed.
    type Stream<'a>: Read + Write
    where
        Self: 'a;
    /// Connects. Dropped after [`Config::connect_ms`]. Return [`Error::Unreachable`] if it fails, or
    /// [`Error::Untrusted`] if nobody should try again before a person has looked.
    fn connect(&mut self) -> impl Future<Output = Result<Self::Stream<'_>, Error>>;
    /// Closes, and lets the server know, by a FIN or a reset: one that does not know takes the client for one
    /// that listens, and hands it locks. By default the stream is dropped, which is not enough for
    /// embassy-net, whose sockets have to be aborted and flushed. It is waited for for a second. If the future
    /// of [`Client::run`] is dropped, so is the stream.
    fn close(stream: Self::Stream<'_>) -> impl Future<Output = ()> {
        async { drop(stream) }
    }
}

/// What a client is to be. Times in milliseconds; 0 and `None`: the default of `lock/fairlock.h`, which
/// has more about each.
#[derive(Clone, Copy, Debug, Default)]
pub struct Config {
    /// Its holders' ids begin so: for people who look at the queue. Printable, no colon, at most 40.
    pub client_id: Option<&'static CStr>,
    /// The user of the server.
    pub user: Option<&'static CStr>,
    /// The password of the server.
    pub password: Option<&'static CStr>,
    /// Shown by CLIENT LIST; no spaces.
    pub client_name: Option<&'static CStr>,
    /// SELECT.
    pub database: u32,
    /// The lease of a hold that is renewed. Default: 30000.
    pub lease_ms: u32,
    /// After so long a silence a waiter loses its place. Default: 5000.
    pub waiter_ms: u32,
    /// A handover that is not confirmed within this goes to the next. Default: `waiter_ms`.
    pub claim_ms: u32,
    /// A later answer means a dead connection. Default: two fifths of `waiter_ms`.
    pub response_ms: u32,
    /// To connect. Default: `waiter_ms`.
    pub connect_ms: u32,
    /// An operation fails after so long without a useful answer. Default: twice `waiter_ms`.
    /// `u32::MAX`: only its wait ends it.
    pub offline_ms: u32,
}

impl Config {
    /// All defaults.
    pub const fn new() -> Self {
        Config {
            client_id: None,
            user: None,
            password: None,
            client_name: None,
            database: 0,
            lease_ms: 0,
            waiter_ms: 0,
            claim_ms: 0,
            response_ms: 0,
            connect_ms: 0,
            offline_ms: 0,
        }
    }
}

#[repr(C)]
struct Options {
    texts: [*const c_char; 4],
    numbers: [u32; 7],
}

impl Options {
    fn of(config: &Config) -> Self {
        let texts = [config.client_id, config.user, config.password, config.client_name];
        Options {
            texts: texts.map(|text| text.map_or(null(), CStr::as_ptr)),
            numbers: [
                config.database,
                config.lease_ms,
                config.waiter_ms,
                config.claim_ms,
                config.response_ms,
                config.connect_ms,
                config.offline_ms,
            ],
        }
    }
}

/// Memory of a struct of C, which only C looks into.
#[repr(C, align(8))]
struct Memory<const SIZE: usize>(UnsafeCell<[u8; SIZE]>);

impl<const SIZE: usize> Memory<SIZE> {
    const fn new() -> Self {
        Memory(UnsafeCell::new([0; SIZE]))
    }
    fn at(&self) -> *mut c_void {
        self.0.get().cast()
    }
}

type Raw = *mut c_void;
type Ended = unsafe extern "C" fn(handle: Raw, end: *const c_void, context: Raw);
type Freed = unsafe extern "C" fn(slot: Raw, context: Raw);

extern "C" {
    fn fairlock_rust_init(
        client: Raw,
        options: *const Options,
        receive: Raw,
        send: Raw,
        size: usize,
        ended: Ended,
        lost: Ended,
        context: Raw,
    ) -> c_int;
    fn fairlock_rust_add(client: Raw, slot: Raw, name: *const u8, size: usize) -> c_int;
    fn fairlock_rust_add_shared(client: Raw, slot: Raw, name: *const u8, size: usize, limit: u32) -> c_int;
    fn fairlock_rust_abandon(
        from: Raw,
        to: Raw,
        name: *mut u8,
        name_size: usize,
        freed: Freed,
        context: Raw,
        now: u32,
    ) -> c_int;
    // The engine is the first member of the client.
    fn fairlock_engine_acquire(handle: Raw, wait_ms: u32, lease_ms: u32, now: u32) -> c_int;
    fn fairlock_engine_release(handle: Raw, now: u32) -> c_int;
    fn fairlock_engine_result(handle: Raw) -> c_int;
    fn fairlock_engine_token(handle: Raw, now: u32) -> u64;
    fn fairlock_engine_remaining_ms(handle: Raw, now: u32) -> u32;
    fn fairlock_engine_wants(engine: Raw, now: u32) -> u32;
    fn fairlock_engine_connect(engine: Raw, now: u32);
    fn fairlock_engine_ready(engine: Raw) -> bool;
    fn fairlock_engine_opening(engine: Raw, now: u32);
    fn fairlock_engine_opened(engine: Raw, now: u32);
    fn fairlock_engine_closed(engine: Raw, status: c_int, now: u32);
    fn fairlock_engine_output(engine: Raw, size: *mut usize, now: u32) -> *const u8;
    fn fairlock_engine_sent(engine: Raw, size: usize);
    fn fairlock_engine_input(engine: Raw, size: *mut usize) -> *mut u8;
    fn fairlock_engine_received(engine: Raw, size: usize, now: u32);
    fn fairlock_engine_tick(engine: Raw, now: u32);
    fn fairlock_engine_deadline(engine: Raw, now: u32) -> u32;
}

/// For how long a connection is closed at most.
const CLOSE_MS: u32 = 1000;
const PENDING: c_int = 1;
const WANTS_CONNECT: u32 = 1;
const WANTS_CLOSE: u32 = 2;

#[derive(Clone, Copy, PartialEq)]
enum Use {
    Free,
    /// A future or a guard has it.
    Taken,
    /// It has a handle that neither holds nor waits, for the next acquire of its lock, which then needs half
    /// as many bytes on the network.
    Idle,
    /// It has what is left of a handle that was given up, until the server has been told.
    Leaving,
}

struct Slot<const NAME: usize> {
    memory: Memory<{ sizes::SLOT }>,
    name: UnsafeCell<[u8; NAME]>,
    name_size: Cell<usize>,
    /// None: exclusive
    limit: Cell<Option<u32>>,
    used: Cell<Use>,
    /// Who waits for its operation, for the loss of its hold, or until it is free.
    waker: Cell<Option<Waker>>,
}

impl<const NAME: usize> Slot<NAME> {
    const fn new() -> Self {
        Slot {
            memory: Memory::new(),
            name: UnsafeCell::new([0; NAME]),
            name_size: Cell::new(0),
            limit: Cell::new(None),
            used: Cell::new(Use::Free),
            waker: Cell::new(None),
        }
    }

    fn handle(&self) -> Raw {
        self.memory.at().wrapping_byte_add(sizes::HANDLE)
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn wait(&self, waker: &Waker) {
        if let Some(other) = self.waker.replace(Some(waker.clone())) {
            if !other.will_wake(waker) {
                other.wake(); // which looks again
            }
        }
    }
}

/// A client: one connection, with room for `LOCKS` holders and waiters at a time, those that were dropped
/// among them until the server has been told, for names of up to `NAME` bytes, and with two buffers of
/// `BUFFER` bytes each. With 512, a request is sent at once; with less it goes out in pieces, but what is
/// received needs `NAME`, the size of `client_id`, and 132.
///
/// It stays where it is: a static, such as a `StaticCell`. It is neither `Send` nor `Sync` when it is used:
/// all tasks run on one executor.
pub struct Client<C: Clock, const LOCKS: usize = 4, const NAME: usize = 32, const BUFFER: usize = 512> {
    engine: Memory<{ sizes::CLIENT }>,
    receive: UnsafeCell<[u8; BUFFER]>,
    send: UnsafeCell<[u8; BUFFER]>,
    slots: [Slot<NAME>; LOCKS],
    /// To which a handle moves when it is given up: one slot is always free.
    spare: Slot<NAME>,
    runner: Cell<Option<Waker>>,
    kicked: Cell<bool>,
    running: Cell<bool>,
    started: Cell<bool>,
    clock: C,
    config: Config,
}

impl<C: Clock, const LOCKS: usize, const NAME: usize, const BUFFER: usize> Client<C, LOCKS, NAME, BUFFER> {
    /// Connects to nothing yet.
    pub const fn new(clock: C, config: Config) -> Self {
        Client {
            engine: Memory::new(),
            receive: UnsafeCell::new([0; BUFFER]),
            send: UnsafeCell::new([0; BUFFER]),
            slots: [const { Slot::new() }; LOCKS],
            spare: Slot::new(),
            runner: Cell::new(None),
            kicked: Cell::new(false),
            running: Cell::new(false),
            started: Cell::new(false),
            clock,
            config,
        }
    }

    /// Acquires the lock, waiting in line for up to `wait`: `None` has no limit, and zero is a try. With
    /// `lease` as `None`, the lease is that of the configuration, and renewed as long as [`run`](Self::run)
    /// runs. Dropping the future leaves the queue. Beside the errors of the lock, [`Error::TooLong`]: a name
    /// above `NAME`, or no room in `BUFFER`; and [`Error::InProgress`]: all of `LOCKS` are in use.
    pub async fn acquire(
        &'static self,
        name: impl AsRef<[u8]>,
        wait: Option<Duration>,
        lease: Option<Duration>,
    ) -> Result<Guard<C, LOCKS, NAME, BUFFER>, Error> {
        // SAFETY: a slot that is free, and the name in it
        let add = |client, slot, name, size| unsafe { fairlock_rust_add(client, slot, name, size) };
        self.acquire_by(name.as_ref(), None, wait_ms(wait), lease_ms(lease), add).await
    }

    /// The same, but shares the lock with others: with up to `limit` in all, 1 to 1000; 0: with any number.
    /// Who wants it alone waits in the same queue.
    pub async fn acquire_shared(
        &'static self,
        name: impl AsRef<[u8]>,
        limit: u32,
        wait: Option<Duration>,
        lease: Option<Duration>,
    ) -> Result<Guard<C, LOCKS, NAME, BUFFER>, Error> {
        let add = |client, slot, name, size| {
            // SAFETY: the same
            unsafe { fairlock_rust_add_shared(client, slot, name, size, limit) }
        };
        self.acquire_by(name.as_ref(), Some(limit), wait_ms(wait), lease_ms(lease), add).await
    }

    async fn acquire_by(
        &'static self,
        name: &[u8],
        limit: Option<u32>,
        wait: u32,
        lease: u32,
        add: impl Fn(Raw, Raw, *const u8, usize) -> c_int,
    ) -> Result<Guard<C, LOCKS, NAME, BUFFER>, Error> {
        self.start()?;
        let asked = self.clock.now_ms();
        let slot = match self.idle(name, limit) {
            Some(slot) => slot,
            None => {
                let slot = self.room(wait).await?;
                self.add(slot, name, add)?;
                slot.limit.set(limit);
                slot
            }
        };
        slot.used.set(Use::Taken);
        // From here on, whatever drops it gives up the place or the hold.
        let mut guard = Guard { client: self, slot, token: 0 };
        let now = self.clock.now_ms();
        let left = if wait == u32::MAX { wait } else { wait.saturating_sub(now.wrapping_sub(asked)) };
        // SAFETY: a handle that is in the engine
        let begun = unsafe { fairlock_engine_acquire(slot.handle(), left, lease, now) };
        let ended = Error::check(self.end_of(slot, begun).await);
        if let Err(error) = ended {
            if matches!(error, Error::Busy | Error::Timeout) {
                guard.rest();
            }
            return Err(error);
        }
        // SAFETY: the same
        guard.token = unsafe { fairlock_engine_token(slot.handle(), self.clock.now_ms()) };
        Ok(guard)
    }

    /// Services the client: a task of its own, that never ends. Nothing is sent, received or renewed while it
    /// is not polled. When it is dropped, the connection is closed, and it may be called again. Returns
    /// [`Error::Invalid`] or [`Error::TooLong`] if the configuration cannot be used, and
    /// [`Error::InProgress`] if the client is serviced already.
    pub async fn run<T: Connect>(&'static self, mut to: T) -> Error {
        if let Err(error) = self.start() {
            return error;
        }
        if self.running.replace(true) {
            return Error::InProgress;
        }
        let _running = Running(self);
        loop {
            if self.tick() & WANTS_CONNECT == 0 {
                self.until(pin!(pending::<()>())).await;
                continue;
            }
            let opening = Opening::new(self);
            let stream = {
                let mut connecting = pin!(to.connect());
                loop {
                    if let Some(stream) = self.until(connecting.as_mut()).await {
                        break stream;
                    }
                    if self.tick() & WANTS_CLOSE != 0 {
                        break Err(Error::Unreachable);
                    }
                }
            };
            match stream {
                Ok(mut stream) => {
                    // SAFETY: the engine, by the task that services it
                    unsafe { fairlock_engine_opened(self.engine.at(), self.clock.now_ms()) };
                    self.serve(&mut stream).await;
                    drop(opening);
                    self.close::<T>(stream).await;
                }
                Err(Error::Untrusted) => opening.close(Error::Untrusted),
                Err(_) => {}
            }
        }
    }

    /// Connects, although no lock needs it yet, so that the first one is quicker.
    pub fn connect(&'static self) -> Result<(), Error> {
        self.start()?;
        // SAFETY: an engine that was initialised
        unsafe { fairlock_engine_connect(self.engine.at(), self.clock.now_ms()) };
        self.wake_runner();
        Ok(())
    }

    /// Whether the server has answered the greeting.
    pub fn is_connected(&'static self) -> bool {
        // SAFETY: an engine that was initialised
        self.started.get() && unsafe { fairlock_engine_ready(self.engine.at()) }
    }

    fn start(&'static self) -> Result<(), Error> {
        if self.started.get() {
            return Ok(());
        }
        // SAFETY: from here on all memory stays where it is, as the client is static. The callbacks are
        // given slots of this client, and it.
        let status = unsafe {
            fairlock_rust_init(
                self.engine.at(),
                &Options::of(&self.config),
                self.receive.get().cast(),
                self.send.get().cast(),
                BUFFER,
                Self::on_change,
                Self::on_change,
                self.context(),
            )
        };
        Error::check(status)?;
        self.started.set(true);
        Ok(())
    }

    fn context(&'static self) -> Raw {
        core::ptr::from_ref(self).cast_mut().cast()
    }

    fn all(&self) -> impl Iterator<Item = &Slot<NAME>> {
        self.slots.iter().chain(core::iter::once(&self.spare))
    }

    /// An operation of this handle has ended, or its hold is lost.
    unsafe extern "C" fn on_change(handle: Raw, _: *const c_void, context: Raw) {
        // SAFETY: context() is static
        let client = unsafe { &*context.cast::<Self>() };
        if let Some(slot) = client.all().find(|slot| slot.handle() == handle) {
            slot.wake();
        }
    }

    unsafe extern "C" fn on_freed(memory: Raw, context: Raw) {
        // SAFETY: context() is static
        let client = unsafe { &*context.cast::<Self>() };
        if let Some(slot) = client.all().find(|slot| slot.memory.at() == memory) {
            slot.used.set(Use::Free);
            slot.wake();
        }
    }

    fn idle(&'static self, name: &[u8], limit: Option<u32>) -> Option<&'static Slot<NAME>> {
        self.all().find(|slot| {
            slot.used.get() == Use::Idle
                && slot.limit.get() == limit
                && slot.name_size.get() == name.len()
                && {
                    // SAFETY: its name has so many bytes, and does not change while the slot is in use
                    let own: &[u8] =
                        unsafe { core::slice::from_raw_parts(slot.name.get().cast(), name.len()) };
                    own == name
                }
        })
    }

    /// A slot that is free, beside the one that has to be. If some become free soon, this waits for them.
    async fn room(&'static self, wait: u32) -> Result<&'static Slot<NAME>, Error> {
        poll_fn(|context| {
            let free = || {
                let mut free = self.all().filter(|slot| slot.used.get() == Use::Free);
                free.next().filter(|_| free.next().is_some())
            };
            if free().is_none() {
                self.all()
                    .find(|slot| slot.used.get() == Use::Idle)
                    .into_iter()
                    .for_each(|slot| self.vacate(slot));
            }
            if let Some(slot) = free() {
                return Poll::Ready(Ok(slot));
            }
            let mut leaving = self.all().filter(|slot| slot.used.get() == Use::Leaving);
            let Some(first) = leaving.next() else {
                return Poll::Ready(Err(Error::InProgress));
            };
            if wait == 0 {
                return Poll::Ready(Err(Error::InProgress));
            }
            // one who waits, for each of them
            let alone = |slot: &&Slot<NAME>| {
                let waker = slot.waker.take();
                let alone = waker.as_ref().is_none_or(|waker| waker.will_wake(context.waker()));
                slot.waker.set(waker);
                alone
            };
            let slot = if alone(&first) { first } else { leaving.find(alone).unwrap_or(first) };
            slot.wait(context.waker());
            Poll::Pending
        })
        .await
    }

    fn add(
        &'static self,
        slot: &'static Slot<NAME>,
        name: &[u8],
        add: impl Fn(Raw, Raw, *const u8, usize) -> c_int,
    ) -> Result<(), Error> {
        if name.len() > NAME {
            return Err(Error::TooLong);
        }
        let at: *mut u8 = slot.name.get().cast();
        // SAFETY: the slot is free, so nobody else looks at its memory, and name.len() <= NAME
        unsafe {
            slot.memory.at().write_bytes(0, sizes::SLOT);
            at.copy_from_nonoverlapping(name.as_ptr(), name.len());
        }
        slot.name_size.set(name.len());
        Error::check(add(self.engine.at(), slot.memory.at(), at, name.len()))
    }

    /// Waits for the end of an operation that was begun with this status.
    async fn end_of(&'static self, slot: &'static Slot<NAME>, begun: c_int) -> c_int {
        self.wake_runner(); // also what has ended at once may have something to send
        if begun != PENDING {
            return begun;
        }
        poll_fn(|context| {
            // SAFETY: a handle that is in the engine
            match unsafe { fairlock_engine_result(slot.handle()) } {
                PENDING => {
                    slot.waker.set(Some(context.waker().clone()));
                    Poll::Pending
                }
                status => Poll::Ready(status),
            }
        })
        .await
    }

    /// Gives up whatever the handle in this slot does: what is left of it goes to the free one.
    fn vacate(&'static self, slot: &'static Slot<NAME>) {
        slot.waker.set(None);
        let Some(to) = self.all().find(|slot| slot.used.get() == Use::Free) else {
            unreachable!("room() leaves one");
        };
        to.used.set(Use::Leaving);
        to.waker.set(None);
        // SAFETY: the handle is in the engine, and the memory at `to` is in nobody's use until on_freed()
        unsafe {
            fairlock_rust_abandon(
                slot.memory.at(),
                to.memory.at(),
                to.name.get().cast(),
                NAME,
                Self::on_freed,
                self.context(),
                self.clock.now_ms(),
            );
        }
        slot.used.set(Use::Free);
        // There may be room now, which those do not hear of who wait for another one.
        self.all().filter(|slot| slot.used.get() == Use::Leaving).for_each(Slot::wake);
        self.wake_runner();
    }

    fn wake_runner(&self) {
        self.kicked.set(true);
        if let Some(waker) = self.runner.take() {
            waker.wake();
        }
    }

    /// Does what is due, and returns what is wanted of the connection.
    fn tick(&self) -> u32 {
        let now = self.clock.now_ms();
        // SAFETY: an engine that was initialised
        unsafe {
            fairlock_engine_tick(self.engine.at(), now);
            fairlock_engine_wants(self.engine.at(), now)
        }
    }

    /// Waits for `work`. None: something is due, or was begun; call again.
    async fn until<F: Future>(&self, mut work: Pin<&mut F>) -> Option<F::Output> {
        // SAFETY: an engine that was initialised
        let due = unsafe { fairlock_engine_deadline(self.engine.at(), self.clock.now_ms()) };
        let mut sleep = pin!(self.clock.sleep_ms(due));
        poll_fn(|context| {
            // First, so that what has arrived is never taken for late.
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if self.kicked.take() {
                return Poll::Ready(None);
            }
            self.runner.set(Some(context.waker().clone()));
            sleep.as_mut().poll(context).map(|()| None)
        })
        .await
    }

    /// The same for work that must not be dropped half done. None: the connection has to be closed.
    async fn finish<F: Future>(&self, mut work: Pin<&mut F>) -> Option<F::Output> {
        loop {
            if let Some(output) = self.until(work.as_mut()).await {
                return Some(output);
            }
            // SAFETY: an engine that is connected. What may have arrived is not looked at meanwhile; but
            // a server that is so late is given up, as it would not take what is being sent.
            unsafe { fairlock_engine_received(self.engine.at(), 0, self.clock.now_ms()) };
            if self.tick() & WANTS_CLOSE != 0 {
                return None;
            }
        }
    }

    async fn close<T: Connect>(&self, stream: T::Stream<'_>) {
        let began = self.clock.now_ms();
        let mut closing = pin!(T::close(stream));
        while self.clock.now_ms().wrapping_sub(began) < CLOSE_MS
            && self.until(closing.as_mut()).await.is_none()
        {
            self.tick();
        }
    }

    /// A connection, until it has to be closed.
    async fn serve<S: Read + Write>(&self, stream: &mut S) {
        let engine = self.engine.at();
        let mut flushed = true;
        while self.tick() & WANTS_CLOSE == 0 {
            let mut size = 0;
            // SAFETY: the bytes stay until sent() or closed()
            let output = unsafe {
                let data = fairlock_engine_output(engine, &mut size, self.clock.now_ms());
                if size > 0 {
                    core::slice::from_raw_parts(data, size)
                } else {
                    &[]
                }
            };
            if size > 0 {
                match self.finish(pin!(stream.write(output))).await {
                    // SAFETY: at most so many
                    Some(Ok(sent)) if sent > 0 => unsafe { fairlock_engine_sent(engine, sent.min(size)) },
                    _ => return,
                }
                flushed = false;
                continue;
            }
            if !flushed {
                let Some(Ok(())) = self.finish(pin!(stream.flush())).await else {
                    return;
                };
                flushed = true;
                continue; // more may have come meanwhile
            }
            // SAFETY: nobody else looks at that part of the buffer until received()
            let room = unsafe {
                let at = fairlock_engine_input(engine, &mut size);
                if size == 0 {
                    return;
                }
                core::slice::from_raw_parts_mut(at, size)
            };
            let received = match self.until(pin!(stream.read(room))).await {
                Some(Ok(received)) if received > 0 => received.min(size),
                None => 0,
                _ => return,
            };
            // SAFETY: at most so many
            unsafe { fairlock_engine_received(engine, received, self.clock.now_ms()) };
        }
    }
}

/// While `run()` runs.
struct Running<C: Clock + 'static, const L: usize, const N: usize, const B: usize>(
    &'static Client<C, L, N, B>,
);

impl<C: Clock, const L: usize, const N: usize, const B: usize> Drop for Running<C, L, N, B> {
    fn drop(&mut self) {
        self.0.running.set(false);
    }
}

/// A connection that is opened, or is open; closed for the engine when this is dropped, also with the
/// future of `run()`.
struct Opening<C: Clock + 'static, const L: usize, const N: usize, const B: usize> {
    client: &'static Client<C, L, N, B>,
    why: Error,
}

impl<C: Clock, const L: usize, const N: usize, const B: usize> Opening<C, L, N, B> {
    fn new(client: &'static Client<C, L, N, B>) -> Self {
        // SAFETY: an engine that was initialised
        unsafe { fairlock_engine_opening(client.engine.at(), client.clock.now_ms()) };
        Opening { client, why: Error::Unreachable }
    }
    fn close(mut self, why: Error) {
        self.why = why;
    }
}

impl<C: Clock, const L: usize, const N: usize, const B: usize> Drop for Opening<C, L, N, B> {
    fn drop(&mut self) {
        let now = self.client.clock.now_ms();
        // SAFETY: an engine whose connection was being opened
        unsafe { fairlock_engine_closed(self.client.engine.at(), self.why.code(), now) };
    }
}

/// A hold. Dropped, it is released in the background, while [`Client::run`] runs. Forgotten, it is held, and
/// renewed, for ever.
#[must_use = "it is released when it is dropped"]
pub struct Guard<
    C: Clock + 'static,
    const LOCKS: usize = 4,
    const NAME: usize = 32,
    const BUFFER: usize = 512,
> {
    client: &'static Client<C, LOCKS, NAME, BUFFER>,
    slot: &'static Slot<NAME>,
    token: u64,
}

impl<C: Clock, const LOCKS: usize, const NAME: usize, const BUFFER: usize> Guard<C, LOCKS, NAME, BUFFER> {
    /// The fencing token, larger than those of all holds before. What is locked refuses lower ones.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// For how long it is still safe to act as the holder; zero: lost. Ask before each step that must not
    /// be done twice.
    pub fn remaining(&self) -> Duration {
        Duration::from_millis(self.remaining_ms().into())
    }

    /// The same in milliseconds.
    pub fn remaining_ms(&self) -> u32 {
        // SAFETY: a handle that is in the engine
        unsafe { fairlock_engine_remaining_ms(self.slot.handle(), self.client.clock.now_ms()) }
    }

    /// Whether the hold has ended.
    pub fn is_lost(&self) -> bool {
        self.remaining_ms() == 0
    }

    /// Waits until the hold has ended although it was not released. To stop what moves in time, have
    /// hardware do it: a timer, loaded with [`remaining_ms`](Self::remaining_ms).
    pub async fn lost(&self) {
        poll_fn(|context| {
            if self.is_lost() {
                return Poll::Ready(());
            }
            self.slot.wait(context.waker());
            Poll::Pending
        })
        .await;
    }

    /// Releases, and waits for the server's answer. The lock goes to the next in line whatever is returned.
    /// [`Error::Lost`]: the hold had ended before.
    pub async fn release(self) -> Result<(), Error> {
        // SAFETY: a handle that is in the engine
        let begun = unsafe { fairlock_engine_release(self.slot.handle(), self.client.clock.now_ms()) };
        Error::check(self.client.end_of(self.slot, begun).await)?;
        self.rest();
        Ok(())
    }

    /// Neither holds nor waits.
    fn rest(self) {
        self.slot.waker.set(None);
        self.slot.used.set(Use::Idle);
        core::mem::forget(self);
    }
}

impl<C: Clock, const LOCKS: usize, const NAME: usize, const BUFFER: usize> Drop
    for Guard<C, LOCKS, NAME, BUFFER>
{
    fn drop(&mut self) {
        self.client.vacate(self.slot);
    }
}

impl<C: Clock, const LOCKS: usize, const NAME: usize, const BUFFER: usize> core::fmt::Debug
    for Guard<C, LOCKS, NAME, BUFFER>
{
    fn fmt(&self, to: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        to.debug_struct("Guard").field("token", &self.token).finish_non_exhaustive()
    }
}

const _: () = assert!(
    size_of::<Options>() == 4 * size_of::<usize>() + 28 + if size_of::<usize>() == 8 { 4 } else { 0 }
);
const _: fn(Duration) -> u32 = ms;
