"""What programs in Python count on. One line a thing that works.

Arguments: "unix", where Unix sockets are to be had; "network", to use loopback, too.
"""

import asyncio
import multiprocessing
import multiprocessing.shared_memory
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile
import threading


def double(number):
    return 2 * number


def add_under_lock(lock, total):
    for _ in range(100):
        with lock:
            total.value += 1


def in_processes(method):
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        assert pool.map(double, range(5)) == [0, 2, 4, 6, 8]
    lock, total = context.Lock(), context.Value("i", 0)
    processes = [context.Process(target=add_under_lock, args=(lock, total)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert total.value == 300
    print("multiprocessing,", method)


def shared_memory():
    block = multiprocessing.shared_memory.SharedMemory(create=True, size=1 << 16)
    same = multiprocessing.shared_memory.SharedMemory(block.name)
    block.buf[0] = 7
    assert same.buf[0] == 7
    same.close()
    block.close()
    block.unlink()
    print("shared memory")


def database():
    with sqlite3.connect("data.sqlite") as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table notes (text)")
        connection.executemany("insert into notes values (?)", [("one",), ("two",)])
    with sqlite3.connect("data.sqlite") as connection:
        assert connection.execute("select count(*) from notes").fetchone() == (2,)
    print("sqlite3")


async def in_loop():
    child = await asyncio.create_subprocess_exec("cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert (await child.communicate(b"piped"))[0] == b"piped"
    assert await asyncio.to_thread(double, 21) == 42
    print("asyncio")


def over_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=lambda: server.accept()[0].sendall(b"served"))
        thread.start()
        with socket.create_connection(server.getsockname()) as client:
            assert client.recv(6) == b"served"
        thread.join()
    print("sockets")


def main():
    assert ssl.create_default_context().get_ca_certs(), "no certificate authority"
    print("ssl")
    database()
    assert subprocess.run(["sh", "-c", "echo $((6 * 7)) | cat"], capture_output=True, check=True).stdout == b"42\n"
    print("subprocess")
    with tempfile.NamedTemporaryFile() as file:
        file.write(b"x")
    print("tempfile")
    asyncio.run(in_loop())
    for method in ("fork", "spawn", "forkserver") if "unix" in sys.argv else ("fork", "spawn"):
        in_processes(method)
    shared_memory()
    if "network" in sys.argv:
        over_loopback()


if __name__ == "__main__":
    main()
