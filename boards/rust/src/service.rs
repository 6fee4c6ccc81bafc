// SPDX-License-Identifier: Apache-2.0
//! The client for services, over boards/service: a client of the library in C with a thread of its own,
//! which renews leases whatever the program does. What that thread has to say comes as events. They are
//! read by another thread, and only if something asynchronous is used.
use crate::time::{lease_ms, ms, wait_ms};
use crate::Error;
use std::collections::HashMap;
use std::ffi::{c_char, c_int, CStr, CString};
use std::fmt;
use std::future::{poll_fn, Future};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

const PENDING: c_int = 1;
const EXCLUSIVE: c_int = -1;
const FOREVER: u32 = u32::MAX;
const ERROR_SIZE: usize = 512;
const ID_SIZE: usize = 80;
const ENDED: u32 = 1;
const LOST: u32 = 2;
/// How many idle holders a lock keeps.
const IDLE_MAX: usize = 16;
/// How long the last owner of a client waits until the server knows of what was dropped.
const CLOSE_MS: u32 = 1000;

/// struct fls_options
#[repr(C)]
struct RawOptions {
    size: usize,
    texts: [*const c_char; TEXTS],
    numbers: [u32; NUMBERS],
}
const TEXTS: usize = 11;
const NUMBERS: usize = 9;

/// struct fls_event
#[repr(C)]
struct RawEvent {
    size: usize,
    user: usize,
    token: u64,
    lost: u64,
    asked: u64,
    what: u32,
    status: i32,
    reason: i32,
    words: [c_char; 216],
}

#[repr(C)]
struct RawClient {
    _private: [u8; 0],
}
#[repr(C)]
struct RawLock {
    _private: [u8; 0],
}

extern "C" {
    fn fls_open(options: *const RawOptions, error: *mut c_char) -> *mut RawClient;
    fn fls_close(client: *mut RawClient, ms: u32);
    fn fls_connect(client: *mut RawClient) -> c_int;
    fn fls_error(client: *mut RawClient, text: *mut c_char);
    fn fls_new(
        client: *mut RawClient,
        name: *const u8,
        size: usize,
        limit: c_int,
        user: usize,
        status: *mut c_int,
    ) -> *mut RawLock;
    fn fls_free(lock: *mut RawLock);
    fn fls_acquire(lock: *mut RawLock, wait_ms: u32, lease_ms: u32, event: c_int) -> c_int;
    fn fls_release(lock: *mut RawLock, event: c_int) -> c_int;
    fn fls_wait(lock: *mut RawLock, ms: u32) -> c_int;
    fn fls_held(lock: *mut RawLock) -> u64;
    fn fls_token(lock: *mut RawLock) -> u64;
    fn fls_remaining_ms(lock: *mut RawLock) -> u32;
    fn fls_id(lock: *mut RawLock, text: *mut c_char);
    fn fls_next(client: *mut RawClient, ms: u32, event: *mut RawEvent) -> c_int;
    fn fls_stop(client: *mut RawClient);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner) // nothing is left half done under any
}

fn text_of(fill: impl FnOnce(*mut c_char), size: usize) -> String {
    let mut text = vec![0u8; size];
    fill(text.as_mut_ptr().cast());
    CStr::from_bytes_until_nul(&text)
        .map_or_else(|_| String::new(), |text| text.to_string_lossy().into_owned())
}

/// Why a client cannot be made, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenError(String);

impl fmt::Display for OpenError {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.0)
    }
}

impl std::error::Error for OpenError {}

/// What a client is to be: begins with [`Client::builder`]. What is not named has the library's default.
#[derive(Clone, Default)]
#[must_use]
pub struct Builder {
    texts: [Option<String>; TEXTS],
    numbers: [u32; NUMBERS],
}

macro_rules! texts {
    ($($(#[$text:meta])* $name:ident: $index:literal,)*) => {
        $($(#[$text])*
        pub fn $name(mut self, $name: impl Into<String>) -> Self {
            self.texts[$index] = Some($name.into());
            self
        })*
    };
}

macro_rules! times {
    ($($(#[$text:meta])* $name:ident: $index:literal,)*) => {
        $($(#[$text])*
        pub fn $name(mut self, $name: Duration) -> Self {
            self.numbers[$index] = ms($name);
            self
        })*
    };
}

impl Builder {
    texts! {
        /// Its holders' ids begin so: for people who look at the queue. Printable, no colon, at most 40.
        client_id: 1,
        /// Shown by CLIENT LIST; no spaces.
        client_name: 2,
        /// The user of the server, if the URL does not name one.
        user: 3,
        /// Its password, if the URL has none.
        password: 4,
        /// The user of the Sentinels.
        sentinel_user: 5,
        /// The password of the Sentinels.
        sentinel_password: 6,
        /// With rediss://, as what follows: a file of certificates to trust, in PEM. Default: the system's.
        ca_file: 7,
        /// A file with our certificate.
        certificate: 8,
        /// A file with its key, if that is another one.
        key: 9,
        /// The name that the server's certificate must have, if it is not the host's.
        tls_name: 10,
    }
    times! {
        /// The lease of a hold that is renewed: 100 ms to 12 days. Default: 30 s; with servers that move, 60 s.
        lease: 0,
        /// After so long a silence a waiter loses its place: 2 s to 10 min. Default: 5 s.
        waiter: 1,
        /// A handover that is not confirmed within this goes to the next: 1 s to `waiter`. Default: `waiter`.
        claim: 2,
        /// A later answer means a dead connection. Default: two fifths of `waiter`.
        response: 3,
        /// To connect. Default: `waiter`; with servers that move, 1 s.
        connect: 4,
        /// An operation fails after so long without a useful answer. Default: twice `waiter`; with servers
        /// that move, 60 s.
        offline: 5,
        /// For so long a lock that nobody else wants is kept after its release, and acquired again without
        /// asking the server. Default: not at all.
        keep: 7,
    }

    /// So many replicas have to acknowledge a hold before it counts.
    pub fn replicas(mut self, replicas: u32) -> Self {
        self.numbers[6] = replicas;
        self
    }

    /// Makes the client, which connects to nothing yet.
    pub fn open(self) -> Result<Client, OpenError> {
        let texts: Vec<Option<CString>> = self
            .texts
            .into_iter()
            .map(|text| text.map(CString::new).transpose())
            .collect::<Result<_, _>>()
            .map_err(|_| OpenError("there is a NUL in an option".into()))?;
        let mut options =
            RawOptions { size: size_of::<RawOptions>(), texts: [null(); TEXTS], numbers: self.numbers };
        for (to, text) in options.texts.iter_mut().zip(&texts) {
            *to = text.as_ref().map_or(null(), |text| text.as_ptr());
        }
        let mut raw = std::ptr::null_mut();
        // SAFETY: the texts live until it has copied them, and ERROR_SIZE is what it wants
        let error = text_of(|error| raw = unsafe { fls_open(&options, error) }, ERROR_SIZE);
        if raw.is_null() {
            return Err(OpenError(error));
        }
        Ok(Client(Arc::new(Inner {
            raw: Raw(raw),
            news: Arc::default(),
            reader: Mutex::default(),
            process: std::process::id(),
        })))
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Builder").finish_non_exhaustive() // there are passwords in it
    }
}

struct Raw(*mut RawClient);
// SAFETY: any thread may call its functions
unsafe impl Send for Raw {}
// SAFETY: the same
unsafe impl Sync for Raw {}

/// A client: one connection, with a thread that services it. Any number of threads and tasks share it; a
/// clone is the same client.
///
/// The last one to be dropped, guards among them, tells the server what was given up, which takes a round
/// trip, and 1 s if it does not answer. After a `fork()`, a child has to make a client of its own.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    raw: Raw,
    news: Arc<News>,
    reader: Mutex<Option<JoinHandle<()>>>,
    /// Whose threads these are.
    process: u32,
}

impl Client {
    /// `redis://[user:password@]host[:port][/database]`, or `unix:///path`; for servers that move
    /// `redis+sentinel://host[:port],.../service` or `redis+cluster://host[:port],...`; with TLS (feature
    /// `openssl`) `rediss` in place of `redis`. Connects to nothing yet.
    pub fn new(url: impl Into<String>) -> Result<Self, OpenError> {
        Self::builder(url).open()
    }

    /// With options.
    pub fn builder(url: impl Into<String>) -> Builder {
        let mut builder = Builder::default();
        builder.texts[0] = Some(url.into());
        builder
    }

    /// The lock of this name: any bytes, 1 to 4096. It is the name of a key, which nothing else may use.
    /// Keep it: the next acquire by it, or by a clone, needs half as many bytes on the network as the first.
    pub fn lock(&self, name: impl AsRef<[u8]>) -> Lock {
        Lock { client: self.0.clone(), name: name.as_ref().into(), limit: EXCLUSIVE, idle: Idle::default() }
    }

    /// Connects, to see whether the server can be reached and accepts us: nothing else needs it.
    pub fn connect(&self) -> Result<(), Error> {
        // SAFETY: an open client, as everywhere
        Error::check(unsafe { fls_connect(self.0.raw.0) })
    }

    /// What the server or the system has said last, for a log; or "".
    pub fn last_error(&self) -> String {
        // SAFETY: there is room
        text_of(|text| unsafe { fls_error(self.0.raw.0, text) }, ERROR_SIZE)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Inner {
    /// From now on events are read.
    fn read_events(&self) {
        let mut reader = locked(&self.reader);
        if reader.is_some() {
            return;
        }
        let (raw, news) = (Raw(self.raw.0), self.news.clone());
        let read = move || {
            let raw = raw;
            news.read(raw.0);
        };
        let thread = std::thread::Builder::new().name("fairlock".into()).spawn(read);
        *reader = Some(thread.expect("the system has a thread"));
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.news.closing.store(true, Ordering::SeqCst);
        let reader = locked(&self.reader).take();
        // SAFETY: nobody else has the client: the reader looks at `closing` after each event
        unsafe { fls_stop(self.raw.0) };
        // A waker may drop the last client in the reader itself; and a forked process has no reader.
        let here = std::thread::current().id();
        let forked = std::process::id() != self.process;
        if let Some(reader) = reader.filter(|reader| !forked && reader.thread().id() != here) {
            let _ = reader.join();
        }
        // SAFETY: the same
        unsafe { fls_close(self.raw.0, CLOSE_MS) };
    }
}

/// Who hears of events, by the number of the holder.
#[derive(Default)]
struct News {
    closing: AtomicBool,
    holders: Mutex<Holders>,
}

#[derive(Default)]
struct Holders {
    last: usize,
    states: HashMap<usize, Arc<Mutex<State>>>,
}

#[derive(Default)]
struct State {
    /// How an operation has ended that was begun for an event.
    ended: Option<c_int>,
    waits: Option<Waker>,
    watch: Vec<Waker>,
}

impl News {
    fn add(&self) -> (usize, Arc<Mutex<State>>) {
        let state = Arc::<Mutex<State>>::default();
        let mut holders = locked(&self.holders);
        holders.last += 1;
        let number = holders.last;
        holders.states.insert(number, state.clone());
        (number, state)
    }

    fn read(&self, raw: *mut RawClient) {
        // SAFETY: all zero is a value of it
        let mut event: RawEvent = unsafe { std::mem::zeroed() };
        event.size = size_of::<RawEvent>();
        while !self.closing.load(Ordering::SeqCst) {
            // SAFETY: the client is closed only after this thread, or by it, which it then sees
            if unsafe { fls_next(raw, FOREVER, &mut event) } == 0 {
                continue; // a signal, or the end
            }
            let state = locked(&self.holders).states.get(&event.user).cloned();
            let Some(state) = state else { continue };
            let mut wakers = Vec::new();
            {
                let mut state = locked(&state);
                if event.what & ENDED != 0 {
                    state.ended = Some(event.status);
                    wakers.extend(state.waits.take());
                }
                if event.what & LOST != 0 {
                    wakers.append(&mut state.watch);
                }
            }
            drop(state);
            wakers.into_iter().for_each(Waker::wake);
        }
    }
}

/// Holders that the server knows, and has subscribed, and that neither hold nor wait.
type Idle = Arc<Mutex<Vec<Holder>>>;

/// A lock by its name. Cheap to clone; each acquire is a holder of its own.
#[derive(Clone)]
pub struct Lock {
    client: Arc<Inner>,
    name: Arc<[u8]>,
    limit: c_int,
    idle: Idle,
}

impl Lock {
    /// The same lock, but shared with others: with up to `limit` in all, 1 to 1000; 0: with any number. Of
    /// different limits the smallest in use counts. Who wants it alone waits in the same queue.
    pub fn shared(&self, limit: u32) -> Lock {
        // One that is too large stays so, and is refused.
        let limit = c_int::try_from(limit).unwrap_or(c_int::MAX);
        Lock { limit, idle: Idle::default(), ..self.clone() }
    }

    /// Acquires, waiting in line for up to `wait`; `None`: without a limit. `lease`: after that the hold
    /// ends; `None`: it is the client's, and renewed for as long as the process runs.
    pub fn acquire(
        &self,
        wait: impl Into<Option<Duration>>,
        lease: impl Into<Option<Duration>>,
    ) -> Result<Guard, Error> {
        let mut holder = self.idle_holder()?;
        let result = holder.acquire(wait, lease);
        self.guard(holder, result)
    }

    /// Acquires if that takes no wait, and passes nobody who waits; otherwise [`Error::Busy`].
    pub fn try_acquire(&self, lease: impl Into<Option<Duration>>) -> Result<Guard, Error> {
        self.acquire(Duration::ZERO, lease)
    }

    /// As [`acquire`](Self::acquire), for any executor. Begins when it is polled; dropped, it leaves the
    /// queue.
    pub fn acquire_async(
        &self,
        wait: impl Into<Option<Duration>>,
        lease: impl Into<Option<Duration>>,
    ) -> impl Future<Output = Result<Guard, Error>> + Send + 'static {
        let (lock, wait, lease) = (self.clone(), wait_ms(wait.into()), lease_ms(lease.into()));
        async move {
            let holder = lock.idle_holder()?;
            // SAFETY: a lock that is not freed, as everywhere
            let ended = holder.by_event(|raw| unsafe { fls_acquire(raw, wait, lease, 1) }).await;
            // SAFETY: the same
            let result = ended.map(|()| unsafe { fls_token(holder.raw.0) });
            lock.guard(holder, result)
        }
    }

    fn idle_holder(&self) -> Result<Holder, Error> {
        let idle = locked(&self.idle).pop();
        idle.map_or_else(|| self.holder(), Ok)
    }

    fn guard(&self, holder: Holder, result: Result<u64, Error>) -> Result<Guard, Error> {
        match result {
            Ok(token) => Ok(Guard { holder, idle: self.idle.clone(), token }),
            Err(error) => {
                if matches!(error, Error::Busy | Error::Timeout) {
                    holder.rest(&self.idle);
                }
                Err(error)
            }
        }
    }

    /// A holder to use again and again.
    pub fn holder(&self) -> Result<Holder, Error> {
        let (number, state) = self.client.news.add();
        let mut status = 0;
        // SAFETY: the name is copied
        let raw = unsafe {
            fls_new(self.client.raw.0, self.name.as_ptr(), self.name.len(), self.limit, number, &mut status)
        };
        if raw.is_null() {
            locked(&self.client.news.holders).states.remove(&number);
            return Err(Error::from_code(status));
        }
        Ok(Holder { raw: Handle(raw), number, state, client: self.client.clone() })
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut lock = to.debug_struct("Lock");
        lock.field("name", &String::from_utf8_lossy(&self.name));
        if self.limit != EXCLUSIVE {
            lock.field("limit", &self.limit);
        }
        lock.finish_non_exhaustive()
    }
}

struct Handle(*mut RawLock);
// SAFETY: any thread may call its functions, one after the other
unsafe impl Send for Handle {}
// SAFETY: what takes &self only reads
unsafe impl Sync for Handle {}

/// One holder of a lock, without a scope: for who acquires again and again, re-enters, or wants to know its
/// own id. Others use a [`Guard`]. Dropped in any state, it gives up its place or its hold in the background.
pub struct Holder {
    raw: Handle,
    number: usize,
    state: Arc<Mutex<State>>,
    client: Arc<Inner>,
}

impl Holder {
    /// As [`Lock::acquire`]. Returns the fencing token. One that holds re-enters, and has to release as
    /// often.
    pub fn acquire(
        &mut self,
        wait: impl Into<Option<Duration>>,
        lease: impl Into<Option<Duration>>,
    ) -> Result<u64, Error> {
        // SAFETY: a lock that is not freed, as everywhere
        self.block(unsafe { fls_acquire(self.raw.0, wait_ms(wait.into()), lease_ms(lease.into()), 0) })?;
        // SAFETY: the same
        Ok(unsafe { fls_token(self.raw.0) })
    }

    /// As [`Guard::release`].
    pub fn release(&mut self) -> Result<(), Error> {
        // SAFETY: the same
        self.block(unsafe { fls_release(self.raw.0, 0) })
    }

    /// The fencing token, if it holds at this moment.
    pub fn token(&self) -> Option<u64> {
        // SAFETY: the same
        Some(unsafe { fls_held(self.raw.0) }).filter(|&token| token != 0)
    }

    /// As [`Guard::remaining`].
    pub fn remaining(&self) -> Duration {
        // SAFETY: the same
        Duration::from_millis(unsafe { fls_remaining_ms(self.raw.0) }.into())
    }

    /// By which it is shown in the queue and as the holder; "" before the first connection.
    pub fn id(&self) -> String {
        // SAFETY: there is room
        text_of(|text| unsafe { fls_id(self.raw.0, text) }, ID_SIZE)
    }

    /// Neither holds nor waits.
    fn rest(self, idle: &Idle) {
        let mut idle = locked(idle);
        if idle.len() < IDLE_MAX {
            idle.push(self);
        } // else it is dropped
    }

    fn block(&self, mut status: c_int) -> Result<(), Error> {
        while status == PENDING {
            // SAFETY: the same. It returns early for a signal, as other calls of std go on after one.
            status = unsafe { fls_wait(self.raw.0, FOREVER) };
        }
        Error::check(status)
    }

    async fn by_event(&self, begin: impl FnOnce(*mut RawLock) -> c_int) -> Result<(), Error> {
        self.client.read_events();
        locked(&self.state).ended = None;
        let begun = begin(self.raw.0);
        if begun != PENDING {
            return Error::check(begun);
        }
        let ended = poll_fn(|context| {
            let mut state = locked(&self.state);
            let Some(status) = state.ended.take() else {
                state.waits = Some(context.waker().clone());
                return Poll::Pending;
            };
            Poll::Ready(status)
        });
        Error::check(ended.await)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more
        unsafe { fls_free(self.raw.0) };
        locked(&self.client.news.holders).states.remove(&self.number);
    }
}

impl fmt::Debug for Holder {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Holder")
            .field("id", &self.id())
            .field("token", &self.token())
            .finish_non_exhaustive()
    }
}

/// A hold. Dropped, it is released in the background, without waiting. Any thread may have it.
#[must_use = "it is released when it is dropped"]
pub struct Guard {
    holder: Holder,
    idle: Idle,
    token: u64,
}

impl Guard {
    /// The fencing token, larger than those of all holds before. What is locked refuses lower ones.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// For how long it is still safe to act as the holder; zero: lost. Ask before each step that must not
    /// be done twice.
    pub fn remaining(&self) -> Duration {
        self.holder.remaining()
    }

    /// Whether the hold has ended.
    pub fn is_lost(&self) -> bool {
        self.remaining().is_zero()
    }

    /// Waits until the hold has ended although it was not released.
    pub async fn lost(&self) {
        self.holder.client.read_events();
        poll_fn(|context| {
            // Before looking, so that an event in between wakes it.
            let mut state = locked(&self.holder.state);
            if !state.watch.iter().any(|waker| waker.will_wake(context.waker())) {
                state.watch.push(context.waker().clone());
            }
            drop(state);
            if self.is_lost() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Releases, and waits for the server's answer. The lock goes to the next in line whatever is returned.
    /// [`Error::Lost`]: the hold had ended before.
    pub fn release(mut self) -> Result<(), Error> {
        self.holder.release()?;
        self.holder.rest(&self.idle);
        Ok(())
    }

    /// The same for any executor. Begins when it is polled; dropped, it goes on in the background.
    pub async fn release_async(self) -> Result<(), Error> {
        // SAFETY: a lock that is not freed, as everywhere
        self.holder.by_event(|raw| unsafe { fls_release(raw, 1) }).await?;
        self.holder.rest(&self.idle);
        Ok(())
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Guard").field("token", &self.token).field("remaining", &self.remaining()).finish()
    }
}
