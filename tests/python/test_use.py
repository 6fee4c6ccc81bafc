# SPDX-License-Identifier: Apache-2.0
"""The client for threads: what each call does, and what it raises."""

import contextlib
import gc
import math
import signal
import socket
import threading
import time
import warnings

import fairlock
import rig
from rig import NOW, case, free, held, queued, raises, redis, require, soon_free, took, until, url


@case
def holds_and_releases():
    with fairlock.Client(url()) as client:
        client.connect()
        with client.lock("door", wait=10) as hold:
            require(hold.token > 0 and 20 < hold.remaining <= 30 and not hold.lost, hold)
            require(hold.name == "door" and "held" in repr(hold) and ":" in hold.id)
            require(redis("HKEYS", "door") == [hold.id], hold.id)
            hold.check()
            require(client.lock("door").try_acquire() is None, "somebody else holds it")
            with raises(fairlock.Busy, fairlock.NotAcquired):
                client.lock("door").acquire(wait=0)
        require(free("door") and hold.remaining == 0 and not hold.lost and hold.id == "")
        with raises(fairlock.NotHeld, RuntimeError):
            hold.release()
        with raises(fairlock.NotHeld):
            hold.check()
        first, hold = hold, client.lock(b"door").acquire()
        require(hold.token > first.token, "tokens rise")
        with hold:
            hold.release()  # which the end of the block then does not
        require(free("door"))
    with raises(fairlock.Closed, RuntimeError):
        client.lock("door").acquire()


@case
def waits_end_in_time():
    with fairlock.Client(url()) as client, client.lock("door"):
        late = []
        for wait in (0.05, 0.3, 0.7):
            began = NOW()
            with raises(fairlock.Timeout, TimeoutError, fairlock.NotAcquired):
                client.lock("door").acquire(wait)
            late.append(NOW() - began - wait)
            require(late[-1] > -0.002, "too early", late)  # its clock counts milliseconds
        require(queued("door") == 0)
    return f"late by ms {[round(1000 * one, 1) for one in late]}"


@case
def lock_has_defaults():
    with fairlock.Client(url()) as client:
        lock = client.lock("door", wait=0, lease=5)
        with lock as hold:
            require(hold.remaining <= 5, "its own lease")
            with raises(fairlock.Busy):
                lock.acquire()
            with raises(fairlock.Timeout):
                lock.acquire(wait=0.1)
        with lock.acquire(lease=None) as hold:
            require(hold.remaining > 20, "the client's lease")


@case
def arguments_are_checked():
    with fairlock.Client(url()) as client:
        lock = client.lock("door")
        for bad in ({"wait": -1}, {"wait": math.nan}, {"wait": 1e9}, {"lease": 0}, {"lease": -1}):
            with raises(fairlock.Invalid, ValueError):
                lock.acquire(**bad)
        for limit in (0, 1001):
            with raises(fairlock.Invalid):
                client.lock("door", limit=limit)
        with raises(fairlock.TooLong, ValueError):
            client.lock("x" * 5000).acquire()
        for name in ("", "{x}"):
            with raises(fairlock.Invalid):
                client.lock(name).acquire()
    for bad in ({"lease": 0}, {"waiter": 0.5}, {"client_id": "a:b"}, {"replicas": -1}):
        with raises(fairlock.Invalid) as error:
            fairlock.Client(url(), **bad)
        words = str(error[0]).split(": ")
        require(len(words) == len(set(words)), "it says something twice", error)
    for text in fairlock._core.TEXTS:
        with raises(fairlock.Invalid, ValueError):
            fairlock.Client(url(), **{text: "a\0b"})
    for wrong in (url() + "\0", url().replace("//", "//u:a\0b@"), "redis://u:a%00b@h"):
        with raises(fairlock.Invalid, ValueError):
            fairlock.Client(wrong)
    for wrong in ("", "redis://", "http://x", "redis://h:port"):
        with raises(fairlock.Invalid, ValueError):
            fairlock.Client(wrong)
    with raises(fairlock.Invalid):
        fairlock.Client(url(), ca_file="/ca.pem")  # without TLS
    with raises(TypeError):
        fairlock.Client(url(), leese=3)


@case
def wait_ends_before_there_is_a_connection():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with fairlock.Client(f"redis://127.0.0.1:{silent.getsockname()[1]}") as client:
            for wait in (0.001, 0.2):
                with raises(fairlock.Unreachable):
                    client.lock("door").acquire(wait)


@case
def server_says_why():
    redis("ACL", "SETUSER", "bad", "on", ">pw", "+hello", "+auth", "+time", "~nothing")
    with fairlock.Client(url().replace("//", "//bad:pw@")) as client:
        with raises(fairlock.Denied, PermissionError) as error:
            client.lock("door").acquire(1)
        require("NOPERM" in str(error[0]) and "door" in str(error[0]), error)
    with fairlock.Client(url(), user="bad", password="wrong") as client:
        with raises(fairlock.Denied) as error:
            client.connect()
        require("WRONGPASS" in str(error[0]), error)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # nobody listens
        with fairlock.Client(f"redis://127.0.0.1:{bound.getsockname()[1]}", offline=1) as client:
            with raises(fairlock.Unreachable, ConnectionError) as error:
                client.connect()
            with raises(fairlock.Unreachable):
                client.lock("door").acquire(0)
    return error[0]


@case
def silent_server_ends_no_later():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with fairlock.Client(f"redis://127.0.0.1:{silent.getsockname()[1]}") as client:
            began = NOW()
            with raises(fairlock.Unreachable, ConnectionError):
                client.lock("door").acquire(0.3)
            late = NOW() - began - 0.3
    require(late < 3, "it took the time of an answer", late)
    return f"late by {late:.2f} s"


@case
def threads_share_a_lock():
    inside, tokens = [], []
    with fairlock.Client(url()) as client:
        lock = client.lock("door")

        def work():
            for _ in range(20):
                with lock as hold:
                    inside.append(1)
                    require(len(inside) == 1, "two hold it")
                    tokens.append(hold.token)
                    inside.pop()

        threads = [threading.Thread(target=work) for _ in range(100)]
        began = NOW()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = NOW() - began
    require(len(tokens) == 2000 and tokens == sorted(set(tokens)), len(tokens))
    return f"{seconds / 2000 * 1e6:.0f} us a hold"


@case
def with_statements_nest():
    with fairlock.Client(url()) as client:
        share = client.lock("door", shared=True)
        with share as one, share as two:
            require(one.id != two.id and redis("HLEN", "door") == 3)
            two.release()
            require(held("door"))
        with contextlib.ExitStack() as stack:
            one, two = stack.enter_context(share), stack.enter_context(share)
            require(one.id != two.id)
        share.__enter__()
        require(held("door"))
        share.__exit__(None, None, None)
        require(free("door"))
        with raises(RuntimeError):
            share.__exit__(None, None, None)


@case
def another_thread_releases():
    with fairlock.Client(url()) as client:
        hold = client.lock("door").acquire()
        thread = threading.Thread(target=hold.release)
        thread.start()
        thread.join()
        require(free("door"))
        results = []

        def release():
            try:
                hold.release()
                results.append(True)
            except fairlock.NotHeld:
                results.append(False)

        hold = client.lock("door").acquire()
        threads = [threading.Thread(target=release) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        require(results.count(True) == 1, "one of them has released it", results)


@case
def shared_and_limited():
    with fairlock.Client(url()) as client:
        holds = [client.lock("door", shared=True, wait=5).acquire() for _ in range(3)]
        require(client.lock("door").try_acquire() is None)
        for hold in holds:
            hold.release()
        permit = client.lock("door", limit=2)
        holds = [permit.acquire(5) for _ in range(2)]
        require(permit.try_acquire() is None, "two of two")
        holds.pop().release()
        with permit:
            pass
        holds.pop().release()
        require(free("door"))


@case
def kept_lock_sends_nothing():
    def sent():
        return int(redis("INFO", "commandstats").split("cmdstat_evalsha:calls=")[1].split(",")[0])

    with fairlock.Client(url(), keep=10) as client:
        lock = client.lock("door")
        for _ in range(10):
            with client.lock("door"):
                pass
        before = sent()
        for _ in range(100):
            with client.lock("door"):
                pass
        require(sent() - before <= 2, sent() - before)
        require(held("door"))
        with fairlock.Client(url()) as other, other.lock("door", wait=10):
            pass
        del lock
    require(free("door"))


@case
def names_are_text_or_bytes():
    with fairlock.Client(url()) as client:
        for wrong in (5, True, [100, 111], None):
            with raises(TypeError):
                client.lock(wrong)
        with client.lock(b"door", wait=float("inf")), client.lock(bytearray(b"gate")):
            pass


@case
def signal_handlers_may_use_the_client():
    calls = []

    def handler(*_):
        hold = other.try_acquire()
        if hold is not None:
            hold.release()
        calls.append(hold)

    with fairlock.Client(url()) as client:
        lock, other = client.lock("door"), client.lock("gate")
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
        try:
            for _ in range(1000):
                lock.acquire().release()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    require(len(calls) > 3, len(calls))
    return f"{len(calls)} calls"


@case
def loss_is_told_without_the_client():
    told = threading.Event()
    hold = fairlock.Client(url(), lease=1, on_lost=lambda _: told.set()).lock("door").acquire()
    redis("DEL", "door")
    require(told.wait(rig.SOON), hold)


@case
def many_names_keep_little():
    with fairlock.Client(url()) as client:
        for number in range(1000):
            with client.lock(f"door:{number}"):
                pass
        kept = client._core().idle
        require(len(kept) == len(client._core().idle_keys) <= 128, len(kept))
        holds = [client.lock("door", shared=True).acquire() for _ in range(200)]
        for hold in holds:
            hold.release()
        require(sum(map(len, kept.values())) == len(client._core().idle_keys) <= 128)


@case
def dropped_holds_are_released():
    with fairlock.Client(url()) as client:

        def leak():
            client.lock("door").acquire()

        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            leak()
        require(len(seen) == 1 and seen[0].category is ResourceWarning, seen)
        client.lock("door").acquire(5).release()

        class Cycle:
            pass

        cycle = Cycle()
        cycle.own = cycle
        cycle.hold = client.lock("door").acquire()
        del cycle
        gc.collect()
        client.lock("door").acquire(5).release()


@case
def dropped_client_keeps_its_hold():
    client = fairlock.Client(url())
    hold = client.lock("door").acquire()
    del client
    gc.collect()
    require(held("door") and hold.remaining > 0)
    del hold
    soon_free("door")
    client = fairlock.Client(url(), on_lost=print)  # whose thread does not keep it alive
    client.connect()
    before = threading.active_count()
    del client
    until(lambda: threading.active_count() == before - 1, "its thread has ended")


@case
def close_ends_all():
    client = fairlock.Client(url())
    hold = client.lock("door").acquire()
    ended = []

    def wait():
        try:
            client.lock("door").acquire()
        except fairlock.Error as error:
            ended.append(error)

    threads = [threading.Thread(target=wait) for _ in range(5)]
    for thread in threads:
        thread.start()
    until(lambda: queued("door") == 5, "they wait")
    client.close()
    require(free("door"), "the server knows it")
    for thread in threads:
        thread.join()
    require(len(ended) == 5 and all(isinstance(one, fairlock.Closed) for one in ended), ended)
    require(hold.remaining == 0)
    with raises(fairlock.NotHeld):
        hold.release()
    client.close()


@case
def close_under_use():
    """Threads that use a client while another one closes it get exceptions, nothing else."""
    unexpected = []

    def use(client):
        try:
            while True:
                with client.lock("door", shared=True, wait=1) as hold:
                    hold.remaining, hold.lost, hold.id  # noqa: B018
        except (fairlock.Closed, fairlock.NotHeld):
            pass
        except BaseException as error:
            unexpected.append(error)

    for _ in range(20):
        client = fairlock.Client(url(), on_lost=unexpected.append)
        threads = [threading.Thread(target=use, args=(client,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.02)
        client.close()
        for thread in threads:
            thread.join()
    require(not unexpected, unexpected)
    require(free("door"))


@case
def tells_of_a_loss():
    told = []

    def on_lost(hold):
        told.append(hold)
        with client.lock("other"):  # it may use the client
            pass

    with fairlock.Client(url(), lease=1, on_lost=on_lost) as client:
        hold = client.lock("door").acquire()
        redis("DEL", "door")
        began = NOW()
        until(lambda: told, "on_lost was called")
        after = NOW() - began
        require(told == [hold] and hold.lost and hold.remaining == 0)
        with raises(fairlock.Lost):
            hold.check()
        with raises(fairlock.Lost):
            hold.release()
        require(hold.lost)
        with raises(fairlock.Lost), client.lock("door"):
            redis("DEL", "door")
        with raises(ZeroDivisionError) as error, client.lock("door"):
            redis("DEL", "door")
            1 / 0  # noqa: B018
        require("lost" in str(getattr(error[0], "__notes__", "lost")))
    return f"told after {after * 1000:.0f} ms, with a lease of 1 s"


@case
def callback_that_fails_ends_nothing():
    failed, told = [], []
    threading.excepthook, hook = failed.append, threading.excepthook

    def on_lost(hold):
        told.append(hold)
        raise ZeroDivisionError

    try:
        with fairlock.Client(url(), lease=0.5, on_lost=on_lost) as client:
            for count in (1, 2):
                hold = client.lock("door").acquire()
                redis("DEL", "door")
                until(
                    lambda: len(told) == count,  # noqa: B023
                    "on_lost was called",
                )
                del hold
            until(lambda: len(failed) == 2, "the hook was called")
    finally:
        threading.excepthook = hook
    require(failed[0].exc_type is ZeroDivisionError)


@case
def holder_is_asked():
    asked = []
    with fairlock.Client(url(), on_ask=lambda hold, words: asked.append((hold, words))) as client:
        hold = client.lock("door").acquire()
        require(rig.ask("door") == 1, "it listens")
        until(lambda: asked, "on_ask was called")
        require(asked == [(hold, "")], asked)
        hold.release()


@case
def fixed_lease_ends():
    with fairlock.Client(url()) as client:
        hold = client.lock("door", lease=0.3).acquire()
        until(lambda: hold.lost, "the lease has ended")
        with raises(fairlock.Lost):
            hold.release()


@case
def renewed_while_python_computes():
    """In operations that keep the interpreter's lock for as long as they take."""
    number = 3**100_000
    while took(lambda: number * number % 7) < 0.2:  # noqa: B023
        number *= number

    def compute(client):
        with client.lock("door") as hold:
            began = NOW()
            while NOW() - began < 2.5:
                number * number % 7
            return not hold.lost

    with fairlock.Client(url(), lease=1) as client:
        rig.once_of_three(lambda: compute(client))


@case
def connection_is_replaced():
    with fairlock.Client(url()) as client:
        hold = client.lock("door").acquire()
        redis("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        time.sleep(0.1)
        require(not hold.lost)
        hold.release()
    require(free("door"))


@case
def interrupts_around_a_grant():
    """A signal's exception comes before, while or after the lock does: nobody's hold stays."""
    counts = [0, 0]

    def alarm(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, alarm)
    with fairlock.Client(url()) as client:
        shared = client.lock("door", wait=5)
        for i in range(200):
            first = client.lock("door").acquire()
            threading.Timer(0.003, first.release).start()
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.002 + (i % 20) * 0.00012)
                with shared if i % 2 else client.lock("door", wait=5) as _hold:
                    counts[0] += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                counts[1] += 1
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
            soon_free("door")
    require(counts[1] >= 20, "too few are hit", counts)
    return f"{counts[0]} held, {counts[1]} interrupted"


@case
def interrupts_of_short_holds():
    """They hit any instruction of with, also the first one of __exit__."""
    hits = 0

    def alarm(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, alarm)
    with fairlock.Client(url()) as client:
        shared = client.lock("door", wait=5)
        for i in range(500):
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.00012 + (i % 50) * 0.000003)
                while True:
                    with shared:
                        pass
            except KeyboardInterrupt:
                hits += 1
            with client.lock("door", wait=rig.SOON):
                pass
    require(hits == 500)


if __name__ == "__main__":
    rig.run()
