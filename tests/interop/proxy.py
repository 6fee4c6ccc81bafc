# SPDX-License-Identifier: Apache-2.0
"""Stands between a client and its server, and breaks or stalls its connections.

The requests that name a lock are counted. At the one with the number `at` its connection breaks, and
what was written from there on is, by `fate`, "late": kept, and carried out when deliver() is called;
"lost": never carried out; or "unanswered": carried out, but the client does not hear of it.
"""

import itertools
import socket
import threading
import time

import lab

FATES = ("late", "lost", "unanswered")


class Link:
    """One connection of the client, and the one to the server that belongs to it."""

    def __init__(self, proxy, client):
        self.proxy, self.client = proxy, client
        self.server = socket.create_connection(("127.0.0.1", proxy.server_port))
        for side in (self.client, self.server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.broken = False
        self.rest = b""  # what the server says after that
        for run in (self.carry_requests, self.carry_answers):
            threading.Thread(target=run, daemon=True).start()

    def carry_requests(self):
        stream = lab.Stream(self.client.fileno())
        try:
            while True:
                request = read_request(stream)
                if self.proxy.breaks_at(request):
                    self.end(request + stream.kept)  # what was written with it, too
                    return
                self.proxy.flows.wait()
                self.server.sendall(request)
        except (OSError, lab.Failed):
            if not self.broken:
                shut(self.server)

    def carry_answers(self):
        try:
            while True:
                some = self.server.recv(1 << 16)
                if not some:
                    break
                time.sleep(self.proxy.delay)
                self.proxy.flows.wait()
                if self.broken:
                    self.rest += some
                else:
                    self.client.sendall(some)
        except OSError:
            pass
        shut(self.client)

    def end(self, request):
        self.broken = True
        if self.proxy.fate == "lost":
            shut(self.server)
        elif self.proxy.fate == "unanswered":
            self.carry_out(request)
        else:
            self.proxy.kept.append((self, request))
        shut(self.client)
        self.proxy.has_broken.set()

    def carry_out(self, requests):
        """And returns when the server has done that. What asks for this is not the client's."""
        mark = "done-%d" % next(self.proxy.marks)
        self.server.sendall(requests + b"*2\r\n$4\r\nPING\r\n$%d\r\n%s\r\n" % (len(mark), mark.encode()))
        lab.until(lambda: mark.encode() in self.rest, "the answer to a late request")
        shut(self.server)


class Proxy:
    def __init__(self, server_port, lock):
        self.server_port, self.lock = server_port, lock.encode()
        self.fate, self.at, self.count = "", 0, 0
        self.kept = []
        self.marks = itertools.count()
        self.counts = threading.Lock()
        self.has_broken = threading.Event()
        self.flows = threading.Event()  # not set: nothing comes through, and no connection ends
        self.flows.set()
        self.delay = 0  # of answers, in s
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                Link(self, self.listener.accept()[0])
        except OSError:
            pass  # closed

    def breaks_at(self, request):
        with self.counts:
            self.count += self.lock in request
            return self.fate and self.lock in request and self.count == self.at

    def deliver(self):
        """The late requests arrive, and have been carried out. True: there were some."""
        kept, self.kept = self.kept, []
        for link, requests in kept:
            link.carry_out(requests)
        return bool(kept)

    def close(self):
        self.flows.set()
        shut(self.listener)


def read_request(stream):
    """The bytes of a request, an array of bulk strings."""
    line = stream.line()
    request = line
    for _ in range(int(line[1:])):
        line = stream.line()
        request += line + stream.take(int(line[1:]) + 2)
    return request


def shut(side):
    try:
        side.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
