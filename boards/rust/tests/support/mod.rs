// SPDX-License-Identifier: Apache-2.0
//! What the tests share: a private redis-server, a connection that looks at it, and executors.
#![allow(dead_code, reason = "each test uses some of it")]
use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::pin::pin;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{park, sleep, Thread};
use std::time::{Duration, Instant};

/// For what comes, unless something is broken.
pub const SOON: Duration = Duration::from_secs(60);

pub const fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Waits until it is true.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < SOON, "this never came: {what}");
        sleep(millis(2));
    }
}

/// A redis-server at a port of its own, that ends with the test's thread.
pub struct Server {
    pub port: u16,
    folder: PathBuf,
    child: Child,
}

impl Server {
    pub fn start() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("fairlock.{}.{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        for _ in 0..10 {
            let free = TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
            let port = free.expect("a free port").port();
            let mut server = Server { port, child: Self::spawn(&folder, port), folder: folder.clone() };
            if server.comes_up() {
                return server;
            }
        }
        panic!("no server starts");
    }

    fn spawn(folder: &PathBuf, port: u16) -> Child {
        extern "C" {
            fn prctl(option: std::ffi::c_int, signal: std::ffi::c_ulong) -> std::ffi::c_int;
        }
        let program = std::env::var_os("FAIRLOCK_REDIS_SERVER").unwrap_or("redis-server".into());
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]);
        command.arg(folder).args(["--appendonly", "yes", "--appendfsync", "always"]).stdout(Stdio::null());
        if cfg!(target_os = "linux") {
            // SAFETY: PR_SET_PDEATHSIG to SIGKILL, in the child
            unsafe {
                command
                    .pre_exec(|| if prctl(1, 9) == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) })
            };
        }
        command.spawn().expect("redis-server, or FAIRLOCK_REDIS_SERVER=its path")
    }

    fn comes_up(&mut self) -> bool {
        let began = Instant::now();
        while began.elapsed() < SOON {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return false; // the port was taken meanwhile
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() && self.ask("PING") == "PONG" {
                return true;
            }
            sleep(millis(5));
        }
        false
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// What a command answers, in one line.
    pub fn ask(&self, command: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server");
        stream.write_all(format!("{command}\r\n").as_bytes()).expect("to send");
        let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap_or_default());
        let first = lines.next().unwrap_or_default();
        match first.split_at_checked(1) {
            Some(("$", size)) if size != "-1" => lines.next().unwrap_or_default(),
            Some((_, rest)) => rest.into(),
            None => first,
        }
    }

    pub fn waiters(&self, name: &str) -> usize {
        self.ask(&format!("LLEN redisson_lock_queue:{{{name}}}")).parse().expect("a number")
    }

    pub fn is_held(&self, name: &str) -> bool {
        self.ask(&format!("EXISTS {name}")) == "1"
    }

    pub fn waits(&self, name: &str, count: usize) {
        until("waiters in line", || self.waiters(name) == count);
    }

    /// Cuts all connections but ours.
    pub fn cut(&self) {
        self.ask("CLIENT KILL TYPE pubsub");
        self.ask("CLIENT KILL TYPE normal");
    }

    pub fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("it was there");
    }

    pub fn restart(&mut self) {
        self.child = Self::spawn(&self.folder, self.port);
        assert!(self.comes_up());
    }

    /// SIGSTOP: it answers nobody.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

pub fn waker() -> Waker {
    Arc::new(Unpark(std::thread::current())).into()
}

/// An executor that polls only when it is woken.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = waker();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        park();
    }
}
