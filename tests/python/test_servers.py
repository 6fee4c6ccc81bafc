# SPDX-License-Identifier: Apache-2.0
"""Servers of other kinds: with TLS, behind Sentinel, a cluster, a Unix socket, replicas."""

import contextlib
import os
import socket

import fairlock
import fairlock.aio
import rig
from rig import case, lab, raises, require, until

CERTIFICATES = os.path.abspath(os.path.join(lab.BUILD, "tls/certificates"))


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def call(server, *words):
    connection = lab.Redis(server.port)
    try:
        return connection.call(*words)
    finally:
        connection.socket.close()


def certificate(name):
    return os.path.join(CERTIFICATES, name)


@case
def over_tls():
    port = free_port()
    lab.Server(
        *("--tls-port", str(port), "--tls-ca-cert-file", certificate("ca.crt")),
        *(
            "--tls-cert-file",
            certificate("server.crt"),
            "--tls-key-file",
            certificate("server.key"),
        ),
        *("--tls-auth-clients", "optional"),
    )
    ca = certificate("ca.crt")
    for at in (f"rediss://localhost:{port}", f"valkeys://127.0.0.1:{port}"):
        with fairlock.Client(at, ca_file=ca) as client, client.lock("door") as hold:
            require(hold.remaining > 0)
    with fairlock.Client(at, ca_file=ca, certificate=certificate("client.both")) as client:
        client.connect()
    with fairlock.Client(f"rediss://localhost:{port}") as client:
        with raises(fairlock.Untrusted, ConnectionError) as error:
            client.connect()
        with raises(fairlock.Untrusted, ConnectionError):
            client.lock("door").acquire(0)
    with (
        fairlock.Client(at, ca_file=ca, tls_name="redis.example") as client,
        raises(fairlock.Untrusted),
    ):
        client.connect()
    with raises(fairlock.Invalid):
        fairlock.Client(at, ca_file=certificate("none.crt")).connect()
    return error[0]


@case
def over_a_unix_socket():
    path = os.path.join(rig.server.folder.name, "socket")
    rig.redis("CONFIG", "SET", "save", "")
    server = lab.Server("--unixsocket", path)
    with fairlock.Client(f"unix://{path}") as client, client.lock("door"):
        require(call(server, "EXISTS", "door") == 1)


@case
def behind_sentinel():
    master = lab.Server("--repl-diskless-sync-delay", "0")
    replica = lab.Server("--replicaof", "127.0.0.1", str(master.port))
    until(lambda: "master_link_status:up" in call(replica, "INFO", "replication"), "it replicates")
    configuration = os.path.join(master.folder.name, "sentinel.conf")
    port = free_port()
    with open(configuration, "w") as file:
        print(
            f"port {port}\nbind 127.0.0.1\nsentinel monitor door 127.0.0.1 {master.port} 1",
            file=file,
        )
        print("sentinel down-after-milliseconds door 1000", file=file)
        print("sentinel announce-ip 127.0.0.1\nsentinel failover-timeout door 5000", file=file)
    lab.start(
        [os.path.abspath(lab.BUILD + "/redis-server"), configuration, "--sentinel"],
        stdout=-3,
        stdin=-3,
    )

    def sentinel(*words):
        with contextlib.suppress(OSError, lab.Refused):
            return lab.Redis(port).call("SENTINEL", *words, "door")

    def promoted():  # when a server becomes another, it closes its connections
        with contextlib.suppress(OSError, lab.Failed):
            return call(replica, "ROLE")[0] == "master"

    until(lambda: len(sentinel("REPLICAS") or []) == 1, "Sentinel knows the replica")
    with fairlock.Client(f"redis+sentinel://127.0.0.1:{port}/door", offline=60) as client:
        with client.lock("door") as hold:
            require(hold.remaining > 40, "a lease of 60 s, with servers that move")
            until(lambda: call(replica, "EXISTS", "door") == 1, "the replica has it")
            master.process.kill()
            until(promoted, "it is promoted")
            with client.lock("other"):
                pass
            require(not hold.lost)
        require(call(replica, "EXISTS", "door") == 0)


@case
def in_a_cluster():
    nodes = [
        lab.Server("--cluster-enabled", "yes", "--cluster-require-full-coverage", "no")
        for _ in "ab"
    ]
    for node, slots in zip(nodes, (range(8192), range(8192, 16384))):
        call(node, "CLUSTER", "ADDSLOTS", *slots)
    call(nodes[0], "CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
    for node in nodes:
        until(lambda: "cluster_slots_ok:16384" in call(node, "CLUSTER", "INFO"), "it is complete")  # noqa: B023
    names = {}
    for number in range(100):
        name = f"door:{number}"
        names.setdefault(call(nodes[0], "CLUSTER", "KEYSLOT", name) // 8192, name)
    at = "redis+cluster://" + ",".join(f"127.0.0.1:{node.port}" for node in nodes)
    with fairlock.Client(at) as client:
        for _ in range(3):
            for number, name in names.items():
                with client.lock(name, wait=rig.SOON):
                    require(call(nodes[number], "EXISTS", name) == 1)
        with client.lock(names[0]), raises(fairlock.WrongShard, ConnectionError):
            client.lock(names[1]).acquire(0)
    return call(nodes[0], "CLUSTER", "INFO").split()[0]


@case
def replicas_have_to_acknowledge():
    master = lab.Server("--repl-diskless-sync-delay", "0")
    with fairlock.Client(f"redis://127.0.0.1:{master.port}", replicas=1) as client:
        with raises(fairlock.Error) as error:
            client.lock("door").acquire(1)
        replica = lab.Server("--replicaof", "127.0.0.1", str(master.port))
        until(
            lambda: "master_link_status:up" in call(replica, "INFO", "replication"), "it is there"
        )
        with client.lock("door", wait=rig.SOON):
            require(call(replica, "EXISTS", "door") == 1)
    return repr(error[0])


if __name__ == "__main__":
    rig.run()
