// SPDX-License-Identifier: Apache-2.0
//! The client for services, against a real server.
mod support;

use fairlock::{Builder, Client, Error, Guard, Holder, Lock};
use std::future::Future;
use std::net::TcpListener;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::thread::{scope, sleep, spawn};
use std::time::{Duration, Instant};
use support::{block_on, millis, until, waker, Server, SOON};

fn client(server: &Server) -> Client {
    Client::new(server.url()).expect("a client")
}

#[test]
fn guards_and_clients_go_to_other_threads() {
    fn sent<T: Send + 'static>() {}
    fn shared<T: Sync + Send + Clone + 'static>() {}
    sent::<Guard>();
    sent::<Holder>();
    shared::<Client>();
    shared::<Lock>();
    let server = Server::start();
    let door = client(&server).lock("door");
    let guard = door.acquire(None, None).unwrap();
    spawn(move || drop(guard)).join().unwrap();
    let guard = door.acquire(SOON, None).unwrap();
    spawn(move || guard.release()).join().unwrap().unwrap();
}

#[test]
fn a_hold_has_a_token_and_a_time() {
    let server = Server::start();
    let door = client(&server).lock("door");
    let guard = door.acquire(None, None).unwrap();
    let first = guard.token();
    assert!(guard.remaining() > millis(20_000) && guard.remaining() <= millis(30_000));
    assert!(!guard.is_lost());
    assert_eq!(door.try_acquire(None).err(), Some(Error::Busy));
    guard.release().unwrap();
    let guard = door.acquire(None, millis(5000)).unwrap();
    assert!(guard.token() > first && guard.remaining() <= millis(5000));
    guard.release().unwrap();
    assert!(!server.is_held("door"));
}

#[test]
fn a_wait_ends_in_time_and_leaves_the_queue() {
    let server = Server::start();
    let door = client(&server).lock("door");
    let guard = door.acquire(None, None).unwrap();
    let began = Instant::now();
    assert_eq!(door.acquire(millis(200), None).err(), Some(Error::Timeout));
    assert!(began.elapsed() >= millis(198)); // its clock counts milliseconds
    assert_eq!(server.waiters("door"), 0);
    drop(guard);
    // The release in the background does not make it a waiter who is passed.
    door.acquire(SOON, None).unwrap().release().unwrap();
}

#[test]
fn threads_are_served_in_the_order_in_which_they_asked() {
    let server = Server::start();
    let clients = [client(&server), client(&server), client(&server)];
    let guard = clients[0].lock("door").acquire(None, None).unwrap();
    let order = Mutex::new(Vec::new());
    scope(|threads| {
        for number in 0..12 {
            let door = clients[number % clients.len()].lock("door");
            let order = &order;
            threads.spawn(move || {
                let guard = door.acquire(None, None).unwrap();
                order.lock().unwrap().push(number);
                guard.release().unwrap();
            });
            server.waits("door", number + 1);
        }
        guard.release().unwrap();
    });
    assert_eq!(order.into_inner().unwrap(), (0..12).collect::<Vec<_>>());
}

/// Threads of one client that count under a lock; each hold has a larger token. Returns all tokens.
fn count_under_lock(door: &Lock, threads: usize, each: usize) -> Vec<u64> {
    let inside = AtomicU64::new(0);
    let tokens = Mutex::new(Vec::new());
    scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                for round in 0..each {
                    let guard = door.acquire(None, None).unwrap();
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                    tokens.lock().unwrap().push(guard.token());
                    assert_eq!(inside.fetch_sub(1, Ordering::SeqCst), 1);
                    if round % 2 == 0 {
                        guard.release().unwrap();
                    } // else it is dropped
                }
            });
        }
    });
    tokens.into_inner().unwrap()
}

#[test]
fn a_hundred_threads_exclude_each_other() {
    let server = Server::start();
    let tokens = count_under_lock(&client(&server).lock("door"), 100, 20);
    assert!(tokens.len() == 2000 && tokens.windows(2).all(|pair| pair[0] < pair[1]));
    until("the last release", || !server.is_held("door"));
}

#[test]
fn tasks_exclude_each_other_and_the_threads_beside_them() {
    let server = Server::start();
    let door = client(&server).lock("door");
    let last = AtomicU64::new(0);
    scope(|threads| {
        for number in 0..16 {
            let (door, last) = (&door, &last);
            threads.spawn(move || {
                for _ in 0..20 {
                    let guard = match number % 2 {
                        0 => block_on(door.acquire_async(None, None)).unwrap(),
                        _ => door.acquire(None, None).unwrap(),
                    };
                    assert!(last.swap(guard.token(), Ordering::SeqCst) < guard.token());
                    block_on(guard.release_async()).unwrap();
                }
            });
        }
    });
}

#[test]
fn a_future_may_be_dropped_in_any_state() {
    let server = Server::start();
    let door = client(&server).lock("door");
    drop(door.acquire_async(None, None)); // never polled
    let guard = door.acquire(None, None).unwrap();
    let waker = waker();
    let mut context = Context::from_waker(&waker);
    {
        let mut waits = pin!(door.acquire_async(None, None));
        assert!(waits.as_mut().poll(&mut context).is_pending());
        server.waits("door", 1);
    } // while it waits
    server.waits("door", 0);
    {
        let mut waits = pin!(door.acquire_async(None, None));
        assert!(waits.as_mut().poll(&mut context).is_pending());
        server.waits("door", 1);
        guard.release().unwrap();
        until("the handover", || server.waiters("door") == 0);
    } // when it was granted, and nobody has looked
    let guard = door.acquire(SOON, None).unwrap();
    {
        let mut releases = pin!(guard.release_async());
        let _ = releases.as_mut().poll(&mut context);
    } // while it releases
    for _ in 0..100 {
        let mut begins = pin!(door.acquire_async(None, None));
        let _ = begins.as_mut().poll(&mut context);
    } // as soon as it has begun
    door.acquire(SOON, None).unwrap().release().unwrap();
    until("nothing is left", || !server.is_held("door") && server.waiters("door") == 0);
}

#[test]
fn a_guard_that_is_forgotten_holds_on() {
    let server = Server::start();
    let client = Client::builder(server.url()).lease(millis(500)).open().unwrap();
    std::mem::forget(client.lock("door").acquire(None, None).unwrap());
    sleep(millis(1500));
    assert!(server.is_held("door"));
    client.lock("other").acquire(None, None).unwrap().release().unwrap();
}

#[test]
fn a_hold_with_a_fixed_lease_is_lost_after_it() {
    let server = Server::start();
    let door = client(&server).lock("door");
    let guard = door.acquire(None, millis(300)).unwrap();
    block_on(guard.lost());
    assert!(guard.is_lost() && guard.token() > 0);
    assert_eq!(guard.release(), Err(Error::Lost));
}

#[test]
fn a_hold_whose_key_is_deleted_is_lost_and_its_owner_is_told() {
    let server = Server::start();
    let client = Client::builder(server.url()).lease(millis(3000)).open().unwrap();
    let guard = Arc::new(client.lock("door").acquire(None, None).unwrap());
    let watch = [(); 3].map(|()| {
        let guard = guard.clone();
        spawn(move || block_on(guard.lost()))
    });
    server.ask("DEL door");
    for thread in watch {
        thread.join().unwrap();
    }
    assert!(guard.is_lost());
}

#[test]
fn connections_are_cut() {
    let server = Server::start();
    let patient = || Client::builder(server.url()).offline(Duration::from_secs(600)).open().unwrap();
    let clients = [patient(), patient()];
    let last = AtomicU64::new(0);
    scope(|threads| {
        let busy = clients.each_ref().map(|client| {
            threads.spawn(|| {
                for _ in 0..40 {
                    let guard = client.lock("door").acquire(None, None).unwrap();
                    assert!(last.swap(guard.token(), Ordering::SeqCst) < guard.token());
                    sleep(millis(3));
                    let released = guard.release();
                    // Its answer may have been lost again and again.
                    assert!(matches!(released, Ok(()) | Err(Error::Unknown)), "{released:?}");
                }
            })
        });
        while !busy.iter().all(|thread| thread.is_finished()) {
            server.cut();
            sleep(millis(40));
        }
    });
}

#[test]
fn the_server_is_killed_and_comes_back() {
    let mut server = Server::start();
    let client = Client::builder(server.url()).offline(Duration::from_secs(60)).open().unwrap();
    let door = client.lock("door");
    let guard = door.acquire(None, None).unwrap();
    scope(|threads| {
        let waits = threads.spawn(|| door.acquire(None, None).map(|guard| guard.token()));
        server.waits("door", 1);
        server.kill();
        sleep(millis(300));
        assert!(!guard.is_lost());
        server.restart();
        let token = guard.token();
        guard.release().unwrap();
        assert!(waits.join().unwrap().unwrap() > token);
    });
}

#[test]
fn nobody_answers() {
    let mut server = Server::start();
    let quick = || Client::builder(server.url()).offline(millis(1000)).connect(millis(500)).open().unwrap();
    let (client, other) = (quick(), quick());
    let guard = client.lock("door").acquire(None, None).unwrap();
    server.freeze();
    let began = Instant::now();
    drop(guard); // does not wait
    assert!(began.elapsed() < millis(900));
    drop(client); // waits a second
    server.thaw();
    server.kill();
    assert_eq!(other.connect(), Err(Error::Unreachable));
    assert!(!other.last_error().is_empty());
    assert_eq!(other.lock("door").acquire(None, None).err(), Some(Error::Unreachable));
}

#[test]
fn a_wait_ends_before_there_is_a_connection() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let client = Client::new(format!("redis://{}", silent.local_addr().unwrap())).unwrap();
    for wait in [1, 200] {
        assert_eq!(client.lock("door").acquire(millis(wait), None).err(), Some(Error::Unreachable));
    }
}

#[test]
fn the_last_to_go_tells_the_server() {
    let server = Server::start();
    let guard = client(&server).lock("door").acquire(None, None).unwrap();
    assert!(server.is_held("door"));
    drop(guard);
    assert!(!server.is_held("door"));
    // A future's waker may be what drops the last client, in the thread that wakes it.
    let held = client(&server).lock("door").acquire(None, None).unwrap();
    let door = client(&server).lock("door");
    struct Last(Mutex<Option<Lock>>);
    impl std::task::Wake for Last {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }
    let mut waits = Box::pin(door.acquire_async(None, None));
    let last = Arc::new(Last(Mutex::new(Some(door))));
    assert!(waits.as_mut().poll(&mut Context::from_waker(&last.clone().into())).is_pending());
    held.release().unwrap();
    until("it is woken", || last.0.lock().unwrap().is_none());
    assert!(matches!(waits.as_mut().poll(&mut Context::from_waker(&waker())), Poll::Ready(Ok(_))));
    drop(waits);
    until("it is released", || !server.is_held("door"));
}

#[test]
fn a_limit_binds() {
    let server = Server::start();
    let client = client(&server);
    let two = client.lock("load").shared(2);
    let holds = [two.acquire(None, None).unwrap(), two.acquire(None, None).unwrap()];
    assert_eq!(two.try_acquire(None).err(), Some(Error::Busy));
    assert_eq!(client.lock("load").try_acquire(None).err(), Some(Error::Busy));
    scope(|threads| {
        let waits = threads.spawn(|| client.lock("load").acquire(None, None).unwrap().release());
        server.waits("load", 1);
        // Who comes later does not pass the one who wants it alone.
        assert_eq!(two.try_acquire(None).err(), Some(Error::Busy));
        drop(holds);
        waits.join().unwrap().unwrap();
    });
    let any = client.lock("read").shared(0);
    let readers: Vec<_> = (0..20).map(|_| any.acquire(SOON, None).unwrap()).collect();
    assert_eq!(client.lock("read").try_acquire(None).err(), Some(Error::Busy));
    readers.into_iter().for_each(|reader| reader.release().unwrap());
    assert_eq!(client.lock("read").shared(1001).try_acquire(None).err(), Some(Error::Invalid));
    assert_eq!(client.lock("read").shared(u32::MAX).try_acquire(None).err(), Some(Error::Invalid));
}

#[test]
fn a_holder_re_enters_and_has_one_id() {
    let server = Server::start();
    let client = client(&server);
    client.connect().unwrap();
    let mut holder = client.lock("door").holder().unwrap();
    let id = holder.id();
    assert!(!id.is_empty() && holder.token().is_none());
    assert_eq!(holder.release(), Err(Error::NotHeld));
    let token = holder.acquire(None, None).unwrap();
    assert_eq!(holder.acquire(Duration::ZERO, None), Ok(token));
    holder.release().unwrap();
    assert_eq!(holder.token(), Some(token));
    holder.release().unwrap();
    assert!(holder.acquire(None, None).unwrap() > token && holder.id() == id);
    drop(holder);
    client.lock("door").acquire(SOON, None).unwrap().release().unwrap();
}

#[test]
fn a_lock_keeps_holders_that_are_idle() {
    let server = Server::start();
    let client = client(&server);
    let holder = || server.ask("HGET fairlock:{door} holder");
    let door = client.lock("door");
    let guard = door.acquire(None, None).unwrap();
    let first = holder();
    guard.release().unwrap();
    let guard = door.clone().acquire(None, None).unwrap();
    assert_eq!(holder(), first);
    assert_eq!(client.lock("door").try_acquire(None).err(), Some(Error::Busy));
    block_on(guard.release_async()).unwrap();
    let guard = block_on(door.acquire_async(None, None)).unwrap();
    assert_eq!(holder(), first);
    drop(guard); // gives the holder up, too
    let guard = door.acquire(SOON, None).unwrap();
    assert_ne!(holder(), first);
    drop((door, client, guard));
    assert!(!server.is_held("door"));
}

#[test]
fn a_forked_process_has_no_part_in_it() {
    extern "C" {
        fn fork() -> i32;
        fn _exit(status: i32) -> !;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }
    let server = Server::start();
    let client = client(&server);
    let guard = block_on(client.lock("door").acquire_async(None, None)).unwrap();
    let (there, theirs) = (client.clone(), client.lock("other"));
    // SAFETY: the child calls what has to work there, and ends
    match unsafe { fork() } {
        0 => {
            let refused = theirs.try_acquire(None).err() == Some(Error::Forked);
            let lost = guard.is_lost();
            drop((guard, theirs, there, client));
            // SAFETY: the same
            unsafe { _exit(if refused && lost { 7 } else { 8 }) }
        }
        child => {
            let mut status = 0;
            // SAFETY: our child
            assert_eq!(unsafe { waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 7 << 8);
        }
    }
    assert!(!guard.is_lost() && server.is_held("door"));
    guard.release().unwrap();
}

#[test]
fn what_is_wrong_is_said() {
    let server = Server::start();
    let client = client(&server);
    assert_eq!(client.lock("").try_acquire(None).err(), Some(Error::Invalid));
    assert_eq!(client.lock("{x}").try_acquire(None).err(), Some(Error::Invalid));
    assert_eq!(client.lock([b'x'; 5000]).try_acquire(None).err(), Some(Error::TooLong));
    assert_eq!(client.lock("x").acquire(None, millis(1)).err(), Some(Error::Invalid));
    assert_eq!(client.lock("x").acquire(None, Duration::MAX).err(), Some(Error::Invalid));
    client.lock("x").acquire(Duration::MAX, None).unwrap().release().unwrap();
    let error: Box<dyn std::error::Error + Send + Sync> = Error::Timeout.into();
    assert!(error.to_string().contains("wait"), "{error}");
    assert_eq!(Error::Timeout.code(), -2);
    let wrong = Client::new("http://localhost").unwrap_err().to_string();
    assert!(wrong.contains("redis://"), "{wrong}");
    assert!(Client::new("redis://a\0b").is_err());
    let with = |set: fn(Builder, &'static str) -> Builder| set(Client::builder(server.url()), "a\0b").open();
    for set in [Builder::user, Builder::password, Builder::client_id, Builder::client_name, Builder::tls_name]
    {
        assert!(with(set).unwrap_err().to_string().contains("NUL"));
    }
    assert!(Client::builder(server.url()).waiter(millis(1)).open().is_err());
    #[cfg(not(feature = "openssl"))]
    assert!(Client::new("rediss://localhost").is_err());
    server.ask("CONFIG SET requirepass secret");
    let denied = Client::new(server.url()).unwrap();
    assert_eq!(denied.connect(), Err(Error::Denied));
    assert_eq!(denied.lock("door").acquire(None, None).err(), Some(Error::Denied));
    let known = Client::builder(server.url()).password("secret").open().unwrap();
    known.lock("door").acquire(None, None).unwrap().release().unwrap();
    assert!(!format!("{:?}", Client::builder(server.url()).password("secret")).contains("secret"));
}
