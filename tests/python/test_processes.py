# SPDX-License-Identifier: Apache-2.0
"""Programs: how they end and are interrupted, forks, multiprocessing, gunicorn and Celery."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import fairlock
import rig
from rig import (
    NOW,
    case,
    free,
    held,
    program,
    queued,
    raises,
    require,
    soon_free,
    until,
    url,
)


def exit_status(process_id):
    return os.waitstatus_to_exitcode(os.waitpid(process_id, 0)[1])


@case
def program_that_ends_releases():
    code = """
client = fairlock.Client(url)
one, two = client.lock("door").acquire(), client.lock("other").acquire()
if sys.argv[2] == "raise": raise SystemExit(3)
"""
    for how, status in (("return", 0), ("raise", 3)):
        process = program(code, how)
        require(process.wait() == status)
        require(free("door") and free("other"), "the program has ended, and holds")


@case
def control_c_ends_a_wait():
    code = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell ignores it
client = fairlock.Client(url)
print("ready", flush=True)
try:
    client.lock("door").acquire()
except KeyboardInterrupt as error:  # which keeps all that the wait had
    print("interrupted", time.monotonic(), flush=True)
    sys.stdin.readline()
"""
    told, left = [], []
    with fairlock.Client(url()) as client, client.lock("door"):
        for _ in range(10):
            process = program(code, stdin=subprocess.PIPE)
            process.stdout.readline()
            until(lambda: queued("door") == 1, "it waits")
            began = NOW()
            process.send_signal(signal.SIGINT)
            word, at = process.stdout.readline().split()
            until(lambda: queued("door") == 0, "it has left")
            left.append(round((NOW() - began) * 1000, 1))
            told.append(round((float(at) - began) * 1000, 1))
            require(word == "interrupted")
            process.stdin.close()
            require(process.wait() == 0)
    return f"ms to KeyboardInterrupt {told}, to have left the queue {left}"


@case
def signal_handler_that_returns_ends_nothing():
    seen = []
    signal.signal(signal.SIGUSR1, lambda *_: seen.append(NOW()))
    with fairlock.Client(url()) as client, client.lock("door") as hold:
        sent = [0.0]

        def work():
            for _ in range(5):
                time.sleep(0.02)
                sent[0] = NOW()
                os.kill(os.getpid(), signal.SIGUSR1)
                until(lambda: seen and seen[-1] >= sent[0], "the handler ran")
            hold.release()

        thread = threading.Thread(target=work)
        thread.start()
        with client.lock("door", wait=rig.SOON):
            pass
        thread.join()
    require(len(seen) == 5, seen)


@case
def forked_child_has_a_client_of_its_own():
    with fairlock.Client(url(), on_lost=print) as client:
        lock = client.lock("door")
        with lock as hold:
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    require(hold.remaining == 0 and hold.lost)
                    with raises(fairlock.Forked, RuntimeError):
                        hold.release()
                    with raises(fairlock.Forked):
                        hold.check()
                    require(lock.try_acquire() is None, "the parent has it")
                    with client.lock("other") as other:
                        require(not other.lost)
                        grandchild = os.fork()
                        if grandchild == 0:
                            with client.lock("third"):
                                os._exit(7)
                        require(exit_status(grandchild) == 7)
                    status = 0
                finally:
                    os._exit(status)
            require(exit_status(child) == 0, "the child has failed")
            require(not hold.lost and held("door"))
        require(free("door") and free("other"))


@case
def client_has_no_thread_before_its_use():
    code = """
client = fairlock.Client(url, on_lost=print)
print(len(__import__("os").listdir("/proc/self/task")))
with client.lock("door"):
    pass
print(len(__import__("os").listdir("/proc/self/task")))
"""
    before, after = map(int, program(code).stdout.read().split())
    require(before == 1 < after, before, after)


@case
def fork_while_threads_use_it():
    with fairlock.Client(url()) as client:
        stop = []

        def use():
            while not stop:
                with client.lock("door", shared=True):
                    pass

        threads = [threading.Thread(target=use) for _ in range(4)]
        for thread in threads:
            thread.start()
        children = []
        for _ in range(20):
            children.append(os.fork())
            if children[-1] == 0:
                signal.alarm(60)
                with client.lock("other", wait=30):
                    pass
                client.close()
                os._exit(0)
        statuses = [exit_status(child) for child in children]
        stop.append(True)
        for thread in threads:
            thread.join()
    require(statuses == [0] * 20, statuses)
    require(free("other"))


CLIENT = None


def in_a_process(number):
    with CLIENT.lock("door", wait=rig.SOON) as hold:
        return hold.token, os.getpid()


def drop_at_the_end(at):
    client = fairlock.Client(at)
    client.lock("door").acquire()
    client.lock("other").acquire().release()
    globals()["kept"] = client.lock("third").acquire()


@case
def multiprocessing_forks():
    global CLIENT
    context = multiprocessing.get_context("fork")
    with fairlock.Client(url()) as CLIENT:
        with CLIENT.lock("door"):
            pass
        with context.Pool(3) as pool:
            results = pool.map(in_a_process, range(60), chunksize=1)
            pool.close()
            pool.join()
    require(len({token for token, _ in results}) == 60, results)
    process = context.Process(target=drop_at_the_end, args=(url(),))
    process.start()
    process.join()
    require(process.exitcode == 0 and free("door") and free("third"), "it has ended, and holds")


@case
def multiprocessing_spawns():
    with concurrent.futures.ProcessPoolExecutor(
        1, multiprocessing.get_context("spawn")
    ) as executor:
        executor.submit(drop_at_the_end, url()).result()
    soon_free("third")


@case
def killed_holder_is_waited_for():
    """The one thing that only the lease ends."""
    process = program("""
client = fairlock.Client(url, lease=1)
hold = client.lock("door").acquire()
print("held", flush=True)
time.sleep(60)
""")
    process.stdout.readline()
    process.kill()
    with fairlock.Client(url()) as client, client.lock("door", wait=rig.SOON):
        pass


APPLICATION = """
import os, sys
import fairlock
client = fairlock.Client(os.environ["URL"])
lock = client.lock("door", wait=30)
lock.acquire().release()  # in the master: its workers are forks of a client that is in use
count = 0
def app(environ, respond):
    with lock as hold:
        body = f"{hold.token} {os.getpid()}".encode()
    respond("200 OK", [("Content-Length", str(len(body)))])
    return [body]
"""


def folder_with(name, text):
    folder = tempfile.TemporaryDirectory()
    with open(os.path.join(folder.name, name), "w") as file:
        file.write(text)
    return folder


@contextlib.contextmanager
def server_program(folder, *words, **environment):
    """It ends well by SIGTERM. Yields its log, which is shown if the block fails."""
    path = os.path.join(folder, "log")
    environment = {**os.environ, "URL": url(), "HOME": folder, **environment}
    with open(path, "w") as log:
        process = rig.start(
            [sys.executable, "-m", *words], env=environment, stdout=log, stderr=log, cwd=folder
        )
    try:
        yield path
        process.send_signal(signal.SIGTERM)
        require(process.wait(60) == 0, "it has failed", process.returncode)
    except BaseException:
        print("#", read(path).replace("\n", "\n# "))
        raise


def read(path):
    with open(path) as file:
        return file.read()


@case
def gunicorn_forks_its_workers():
    with folder_with("application.py", APPLICATION) as folder:
        words = "gunicorn --preload --workers 3 --threads 4 --bind 127.0.0.1:0 application:app"
        with server_program(folder, *words.split()) as log:
            listens = r"Listening at: (http://\S+)"
            at = until(lambda: re.search(listens, read(log)), "it listens", 60)[1]

            def get(_):
                with urllib.request.urlopen(at, timeout=60) as answer:
                    return answer.read().split()

            with concurrent.futures.ThreadPoolExecutor(12) as executor:
                answers = list(executor.map(get, range(120)))
    require(len({token for token, _ in answers}) == 120)
    soon_free("door")
    return f"{len({worker for _, worker in answers})} workers"


TASKS = """
import os, time
import celery, fairlock, redis
from celery.exceptions import SoftTimeLimitExceeded
app = celery.Celery("tasks", broker=os.environ["URL"], backend=os.environ["URL"])
client = fairlock.Client(os.environ["URL"])
client.connect()  # in the parent of all workers
lock = client.lock("door", wait=30)
store = redis.Redis.from_url(os.environ["URL"])
@app.task
def add():
    with lock as hold:
        value = int(store.get("counter") or 0)
        time.sleep(0.002)
        store.set("counter", value + 1)
        return os.getpid()
@app.task(soft_time_limit=1)
def wait():
    try:
        with client.lock("busy"):
            return "held"
    except SoftTimeLimitExceeded:
        return store.llen("redisson_lock_queue:{busy}")
"""


@case
def celery_forks_its_workers():
    code = """
import tasks
busy = tasks.client.lock("busy").acquire()
waits = tasks.wait.delay()
results = [tasks.add.delay() for _ in range(60)]
print(len({one.get(timeout=60) for one in results}), tasks.store.get("counter").decode(), end=" ")
waits.get(timeout=60)
print(tasks.store.llen("redisson_lock_queue:{busy}"))
"""
    with folder_with("tasks.py", TASKS) as folder:
        words = "celery -A tasks worker --concurrency 3 --without-gossip --without-mingle"
        with server_program(folder, *words.split()):
            environment = {**os.environ, "URL": url(), "PYTHONPATH": folder}
            answer = program(code, env=environment).stdout.read().split()
            require(answer[1:] == ["60", "0"], answer)
    soon_free("door")
    return f"60 tasks in {answer[0]} workers; a soft limit ends a wait"


if __name__ == "__main__":
    rig.run()
