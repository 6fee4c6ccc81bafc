# SPDX-License-Identifier: Apache-2.0
"""Fills the stream of a history: histories.py PORT KEY COUNT KIND. Kind: crowd, COUNT holds of three hosts, of which
one was broken; hostile, COUNT entries of anything, from a fixed seed."""
import random
import socket
import sys

port, key, count, kind = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
START_MS = 1796000000000
random.seed(1)
server = socket.create_connection(('127.0.0.1', port))
answers = server.makefile('rb')


def words_of(*words):
    coded = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b'*%d\r\n' % len(coded) + b''.join(b'$%d\r\n%s\r\n' % (len(word), word) for word in coded)


def crowd():
    for i in range(count):
        began = START_MS + 1000 * i
        token = began * 1000
        yield began, ('begin', token, 'id', 'host-%d.%d.a.b:1' % (i % 3, i), 'waited', 4000, 'command', 'job')
        if i == count // 2:
            yield began + 900, ('broken', token, 'by', 'anna@ops', 'reason', 'stuck')
        else:
            yield began + 900, ('end', token, 'status', 0)


FIELDS = ['begin', 'end', 'lost', 'broken', 'left', 'id', 'waited', 'command', 'status', 'by', 'reason', 'shared',
          b'\xff', b'', b'x' * 300]
VALUES = [b'</text></title><script>alert(1)</script>', b'\xff\xfe\x00\x01', b'"\\\n\r\t', b'\xef\xbf\xbe\xef\xbf\xbf',
          b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'a' * 9000, b'\x1b[31m\x9b', b'-->]]>&amp;&#0;', b"'>", b'', b' ', b':::', b'...:',
          b'.1.2.3:4', b'99999999999999999999', b'-1', b'0', b'9007199254740993', b'9007199254740991', b'1e9', b'\xe2\x80\xae']


def hostile():
    now = START_MS
    for _ in range(count):
        now += random.choice([0, 1, 5, 1000])
        entry = []
        for _ in range(random.randint(1, 6)):
            entry.append(random.choice(FIELDS))
            entry.append(random.choice(VALUES + [(now + random.randint(-1000000, 1000000)) * 1000,
                                                 random.randint(0, 10000000), 'h%d.1.2.x:1' % random.randint(0, 300)]))
        yield now, entry


server.sendall(words_of('DEL', key))
answers.readline()
batch = []
for number, (at, entry) in enumerate({'crowd': crowd, 'hostile': hostile}[kind]()):
    batch.append(words_of('XADD', key, '%d-%d' % (at, number), *entry))
    if len(batch) == 500:
        server.sendall(b''.join(batch))
        for _ in batch:
            assert answers.readline()[:1] == b'$' and answers.readline()
        batch = []
server.sendall(b''.join(batch))
for _ in batch:
    assert answers.readline()[:1] == b'$' and answers.readline()
