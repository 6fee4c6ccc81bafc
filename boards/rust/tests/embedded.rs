// SPDX-License-Identifier: Apache-2.0
//! The client for firmware on this host, against a real server: by an executor that polls only when it is
//! woken, a thread that reads each connection, and one that keeps time.
mod support;

use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use fairlock::embedded::{Client, Clock, Config, Connect};
use fairlock::Error;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{poll_fn, Future};
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::pin::{pin, Pin};
use std::sync::{Arc, Condvar, LazyLock, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use support::{block_on, millis, until, waker, Server, SOON};

/// A moment just before the clock of the library wraps around.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);
const BEFORE: u32 = u32::MAX - 500;

struct Timers {
    due: Mutex<Vec<(Instant, Waker)>>,
    changed: Condvar,
}

static TIMERS: LazyLock<&'static Timers> = LazyLock::new(|| {
    let timers = Box::leak(Box::new(Timers { due: Mutex::default(), changed: Condvar::new() }));
    std::thread::spawn(|| timers.run());
    timers
});

impl Timers {
    fn run(&self) {
        let mut due = self.due.lock().unwrap();
        loop {
            let now = Instant::now();
            due.retain(|(at, waker)| {
                *at > now || {
                    waker.wake_by_ref();
                    false
                }
            });
            let next = due.iter().map(|(at, _)| *at - now).min().unwrap_or(Duration::from_secs(3600));
            due = self.changed.wait_timeout(due, next).unwrap().0;
        }
    }
}

#[derive(Clone, Copy)]
struct Host;

impl Clock for Host {
    fn now_ms(&self) -> u32 {
        BEFORE.wrapping_add(START.elapsed().as_millis() as u32)
    }
    async fn sleep_ms(&self, ms: u32) {
        let end = Instant::now() + millis(ms.into());
        poll_fn(|context| {
            if Instant::now() >= end {
                return Poll::Ready(());
            }
            TIMERS.due.lock().unwrap().push((end, context.waker().clone()));
            TIMERS.changed.notify_one();
            Poll::Pending
        })
        .await;
    }
}

#[derive(Debug)]
struct Broken;
impl std::fmt::Display for Broken {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("broken")
    }
}
impl std::error::Error for Broken {}
impl embedded_io_async::Error for Broken {
    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

#[derive(Default)]
struct Arrived {
    bytes: VecDeque<u8>,
    ended: bool,
    waker: Option<Waker>,
}

struct Stream {
    socket: TcpStream,
    arrived: Arc<Mutex<Arrived>>,
}

impl ErrorType for Stream {
    type Error = Broken;
}

impl Read for Stream {
    async fn read(&mut self, to: &mut [u8]) -> Result<usize, Broken> {
        poll_fn(|context| {
            let mut arrived = self.arrived.lock().unwrap();
            let size = to.len().min(arrived.bytes.len()).min(7); // in pieces
            if size == 0 && !arrived.ended {
                arrived.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            for byte in &mut to[..size] {
                *byte = arrived.bytes.pop_front().unwrap();
            }
            Poll::Ready(Ok(size))
        })
        .await
    }
}

impl Write for Stream {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        Host.sleep_ms(0).await;
        let some = &bytes[..bytes.len().min(50)];
        self.socket.write_all(some).map_err(|_| Broken)?;
        Ok(some.len())
    }
    async fn flush(&mut self) -> Result<(), Broken> {
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

struct Tcp(u16);

impl Connect for Tcp {
    type Stream<'a> = Stream;
    async fn connect(&mut self) -> Result<Stream, Error> {
        let socket = TcpStream::connect(("127.0.0.1", self.0)).map_err(|_| Error::Unreachable)?;
        socket.set_nodelay(true).unwrap();
        let arrived = Arc::<Mutex<Arrived>>::default();
        let (to, mut from) = (arrived.clone(), socket.try_clone().unwrap());
        std::thread::spawn(move || loop {
            let mut bytes = [0; 500];
            let size = from.read(&mut bytes).unwrap_or(0);
            let mut arrived = to.lock().unwrap();
            arrived.bytes.extend(&bytes[..size]);
            arrived.ended |= size == 0;
            arrived.waker.take().into_iter().for_each(Waker::wake);
            if size == 0 {
                return;
            }
        });
        Ok(Stream { socket, arrived })
    }
    async fn close(stream: Self::Stream<'_>) {
        Host.sleep_ms(5).await;
        drop(stream);
    }
}

type Small = Client<Host, 3, 16, 200>;

fn client(config: Config) -> &'static Small {
    Box::leak(Box::new(Client::new(Host, config)))
}

/// Runs both, and ends with the second.
async fn beside<T>(run: impl Future<Output = Error>, work: impl Future<Output = T>) -> T {
    let (mut run, mut work) = (pin!(run), pin!(work));
    poll_fn(|context| {
        if let Poll::Ready(error) = run.as_mut().poll(context) {
            panic!("run() has returned {error:?}");
        }
        work.as_mut().poll(context)
    })
    .await
}

async fn all<F: Future>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut outputs: Vec<_> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, output) in futures.iter_mut().zip(&mut outputs) {
            if let Some(Poll::Ready(value)) = future.as_mut().map(|future| future.as_mut().poll(context)) {
                *output = Some(value);
                *future = None;
            }
        }
        if futures.iter().all(Option::is_none) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    outputs.into_iter().map(Option::unwrap).collect()
}

async fn within<F: Future>(ms: u32, future: F) -> Option<F::Output> {
    let (mut future, mut sleep) = (pin!(future), pin!(Host.sleep_ms(ms)));
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => sleep.as_mut().poll(context).map(|()| None),
    })
    .await
}

async fn comes(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < SOON, "this never came: {what}");
        Host.sleep_ms(2).await;
    }
}

#[test]
fn a_lock_is_acquired_and_released() {
    let server = Server::start();
    let client = client(Config { client_id: Some(c"meter"), ..Config::new() });
    block_on(beside(client.run(Tcp(server.port)), async {
        let door = client.acquire("door", None, None).await.unwrap();
        let token = door.token();
        assert!(token > 0 && !door.is_lost() && door.remaining() <= millis(30_000) && client.is_connected());
        assert!(server.ask("HGET fairlock:{door} holder").starts_with("meter."));
        assert_eq!(client.acquire("door", Some(Duration::ZERO), None).await.err(), Some(Error::Busy));
        assert_eq!(client.acquire("door", Some(millis(100)), None).await.err(), Some(Error::Timeout));
        assert_eq!(server.waiters("door"), 0);
        door.release().await.unwrap();
        assert!(!server.is_held("door"));
        drop(client.acquire("door", None, None).await.unwrap());
        comes("the release", || !server.is_held("door")).await;
        let door = client.acquire("door", None, Some(millis(1000))).await.unwrap();
        assert!(door.token() > token && door.remaining() <= millis(1000));
        door.lost().await;
        assert_eq!(door.release().await, Err(Error::Lost));
        assert_eq!(client.acquire("a name of seventeen", None, None).await.err(), Some(Error::TooLong));
        assert_eq!(client.acquire("", None, None).await.err(), Some(Error::Invalid));
        assert_eq!(client.run(Tcp(server.port)).await, Error::InProgress);
    }));
}

#[test]
fn tasks_take_turns_with_threads_of_a_service() {
    let server = Server::start();
    let last = Cell::new(0);
    let service = fairlock::Client::new(server.url()).unwrap();
    let threads = [(); 3].map(|()| {
        let door = service.lock("door");
        std::thread::spawn(move || {
            for _ in 0..30 {
                door.acquire(None, None).unwrap().release().unwrap();
            }
        })
    });
    let client = client(Config::new());
    block_on(beside(client.run(Tcp(server.port)), async {
        let task = |number| {
            let last = &last;
            async move {
                for round in 0..30 {
                    let door = client.acquire("door", None, None).await.unwrap();
                    assert!(last.replace(door.token()) < door.token());
                    if (number + round) % 3 == 0 {
                        drop(door);
                    } else {
                        door.release().await.unwrap();
                    }
                }
            }
        };
        all((0..3).map(task)).await;
        comes("the last release", || server.waiters("door") == 0).await;
    }));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn they_are_served_in_the_order_in_which_they_asked() {
    let server = Server::start();
    let service = fairlock::Client::new(server.url()).unwrap();
    let client = client(Config::new());
    let order = RefCell::new(Vec::new());
    let (order, server, service) = (&order, &server, &service);
    block_on(beside(client.run(Tcp(server.port)), async {
        let first = service.lock("door").acquire(None, None).unwrap();
        let tasks = (0..3).map(|number| async move {
            comes("its turn to ask", || server.waiters("door") == number).await;
            let door = client.acquire("door", None, None).await.unwrap();
            order.borrow_mut().push(number);
            door.release().await.unwrap();
        });
        let opens = async {
            comes("all", || server.waiters("door") == 3).await;
            first.release().unwrap();
        };
        let mut tasks: Vec<Pin<Box<dyn Future<Output = ()>>>> =
            tasks.map(|task| Box::pin(task) as _).collect();
        tasks.push(Box::pin(opens));
        all(tasks).await;
    }));
    assert_eq!(*order.borrow(), [0, 1, 2]);
}

#[test]
fn a_future_may_be_dropped_in_any_state() {
    let server = Server::start();
    let client = client(Config::new());
    let service = fairlock::Client::new(server.url()).unwrap();
    block_on(beside(client.run(Tcp(server.port)), async {
        drop(client.acquire("door", None, None));
        let held = service.lock("door").acquire_async(None, None).await.unwrap();
        assert!(within(1, client.acquire("door", None, None)).await.is_none());
        {
            let mut waits = pin!(client.acquire("door", None, None));
            within(1, waits.as_mut()).await;
            comes("it waits", || server.waiters("door") == 1).await;
        }
        comes("it has left", || server.waiters("door") == 0).await;
        {
            let mut waits = pin!(client.acquire("door", None, None));
            within(1, waits.as_mut()).await;
            comes("it waits", || server.waiters("door") == 1).await;
            held.release_async().await.unwrap();
            comes("it was granted", || server.waiters("door") == 0).await;
        }
        let held = service.lock("door").acquire_async(SOON, None).await.unwrap();
        held.release_async().await.unwrap();
        for ms in [0, 0, 0, 1, 1, 1] {
            let door = client.acquire("door", Some(SOON), None).await.unwrap();
            within(ms, door.release()).await;
            within(ms, client.acquire("door", Some(SOON), None)).await;
        }
        drop(service.lock("door").acquire_async(SOON, None).await.unwrap());
        comes("nothing is left", || !server.is_held("door") && server.waiters("door") == 0).await;
    }));
}

#[test]
fn a_guard_that_is_forgotten_holds_on_in_its_slot() {
    let server = Server::start();
    let client = client(Config { lease_ms: 1000, ..Config::new() });
    block_on(beside(client.run(Tcp(server.port)), async {
        std::mem::forget(client.acquire("a", None, None).await.unwrap());
        Host.sleep_ms(3000).await;
        assert!(server.is_held("a"));
        let b = client.acquire("b", None, None).await.unwrap();
        let c = client.acquire("c", None, None).await.unwrap();
        assert_eq!(client.acquire("d", None, None).await.err(), Some(Error::InProgress));
        drop((b, c)); // two that leave, for the two that ask
        let get = |name| async move { client.acquire(name, None, None).await.unwrap() };
        let both = all(["d", "e"].map(get)).await;
        assert_eq!(client.acquire("f", None, None).await.err(), Some(Error::InProgress));
        drop(both);
        // Tasks that are more than the room ask again; whoever cannot have any is told.
        let results = all(["d", "e", "f"].map(|name| client.acquire(name, None, None))).await;
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 2);
    }));
}

#[test]
fn a_handle_stays_for_the_next_acquire_until_its_slot_is_needed() {
    let server = Server::start();
    let client = client(Config::new());
    let holder = |name: &str| server.ask(&format!("HGET fairlock:{{{name}}} holder"));
    block_on(beside(client.run(Tcp(server.port)), async {
        let door = client.acquire("door", None, None).await.unwrap();
        let first = holder("door");
        assert_eq!(client.acquire("door", Some(Duration::ZERO), None).await.err(), Some(Error::Busy));
        door.release().await.unwrap();
        let again = client.acquire("door", None, None).await.unwrap();
        assert!(!first.is_empty());
        again.release().await.unwrap();
        for round in 0..20 {
            let name = format!("name {}", round % 7);
            let alone = client.acquire(&name, Some(SOON), None).await.unwrap();
            if round % 3 == 0 {
                drop(alone);
            } else {
                alone.release().await.unwrap();
            }
            client.acquire_shared(&name, round % 5, Some(SOON), None).await.unwrap().release().await.unwrap();
        }
        let door = client.acquire("door", Some(SOON), None).await.unwrap();
        assert_ne!(holder("door"), first);
        let last = holder("door");
        door.release().await.unwrap();
        let _door = client.acquire("door", Some(SOON), None).await.unwrap();
        assert_eq!(holder("door"), last);
    }));
}

#[test]
fn a_limit_binds() {
    let server = Server::start();
    let client = client(Config::new());
    let service = fairlock::Client::new(server.url()).unwrap();
    block_on(beside(client.run(Tcp(server.port)), async {
        let one = client.acquire_shared("load", 2, None, None).await.unwrap();
        let other = service.lock("load").shared(2).acquire_async(SOON, None).await.unwrap();
        let third = client.acquire_shared("load", 2, Some(Duration::ZERO), None).await;
        assert_eq!(third.err(), Some(Error::Busy));
        assert_eq!(client.acquire("load", Some(Duration::ZERO), None).await.err(), Some(Error::Busy));
        drop(one);
        client.acquire_shared("load", 2, None, None).await.unwrap().release().await.unwrap();
        other.release_async().await.unwrap();
        client.acquire("load", None, None).await.unwrap().release().await.unwrap();
        assert_eq!(client.acquire_shared("load", 1001, None, None).await.err(), Some(Error::Invalid));
    }));
}

#[test]
fn connections_are_cut() {
    let server = Server::start();
    let client = client(Config { offline_ms: u32::MAX, ..Config::new() });
    let service = fairlock::Client::builder(server.url()).offline(Duration::from_secs(600)).open().unwrap();
    let done = Cell::new(false);
    let last = Cell::new(0);
    block_on(beside(client.run(Tcp(server.port)), async {
        let task = async {
            for _ in 0..20 {
                let door = client.acquire("door", None, None).await.unwrap();
                assert!(last.replace(door.token()) < door.token());
                Host.sleep_ms(3).await;
                drop(door);
                let door = service.lock("door").acquire_async(None, None).await.unwrap();
                assert!(last.replace(door.token()) < door.token());
            }
            done.set(true);
        };
        let cuts = async {
            while !done.get() {
                server.cut();
                Host.sleep_ms(40).await;
            }
        };
        let both: [Pin<Box<dyn Future<Output = ()>>>; 2] = [Box::pin(task), Box::pin(cuts)];
        all(both).await;
    }));
}

#[test]
fn the_server_is_killed_and_frozen_and_comes_back() {
    let mut server = Server::start();
    let port = server.port;
    let client = client(Config { offline_ms: u32::MAX, waiter_ms: 2000, ..Config::new() });
    block_on(beside(client.run(Tcp(port)), async {
        let door = client.acquire("door", None, None).await.unwrap();
        let mut waits = pin!(client.acquire("door", None, None));
        within(1, waits.as_mut()).await;
        comes("it waits", || server.waiters("door") == 1).await;
        server.kill();
        Host.sleep_ms(300).await;
        assert!(!door.is_lost());
        server.restart();
        let token = door.token();
        door.release().await.unwrap();
        let door = waits.await.unwrap();
        assert!(door.token() > token);
        server.freeze();
        let timeout = client.acquire("other", Some(millis(300)), None).await;
        assert!(matches!(timeout, Err(Error::Timeout | Error::Unreachable)), "{timeout:?}");
        comes("it gives the connection up", || !client.is_connected()).await;
        server.thaw();
        client.acquire("other", Some(SOON), None).await.unwrap().release().await.unwrap();
        door.release().await.unwrap();
    }));
}

#[test]
fn run_may_be_dropped_and_called_again() {
    let server = Server::start();
    let client = client(Config::new());
    let mut door = None;
    for _ in 0..3 {
        let next = block_on(beside(client.run(Tcp(server.port)), async {
            client.connect().unwrap();
            if let Some(door) = door.take() {
                assert_eq!(fairlock::embedded::Guard::release(door).await, Ok(()));
            }
            client.acquire("door", Some(SOON), None).await.unwrap()
        }));
        assert!(!client.is_connected() && !next.is_lost());
        door = Some(next);
    }
    // Nobody services it: a future waits, and a guard is released later.
    drop(door);
    let mut waits = pin!(client.acquire("door", None, None));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&waker())).is_pending());
    assert!(server.is_held("door"));
    drop(block_on(beside(client.run(Tcp(server.port)), waits)).unwrap());
    until("it is cut off", || server.ask("CLIENT LIST TYPE pubsub").is_empty());
}

#[test]
fn a_configuration_may_be_wrong() {
    let client = client(Config { waiter_ms: 1, ..Config::new() });
    assert_eq!(block_on(client.acquire("door", None, None)).err(), Some(Error::Invalid));
    assert_eq!(client.connect(), Err(Error::Invalid));
    assert_eq!(block_on(client.run(Tcp(1))), Error::Invalid);
}

#[test]
fn nobody_listens() {
    let client = client(Config { offline_ms: 500, ..Config::new() });
    block_on(beside(client.run(Tcp(1)), async {
        assert_eq!(client.acquire("door", None, None).await.err(), Some(Error::Unreachable));
    }));
}
