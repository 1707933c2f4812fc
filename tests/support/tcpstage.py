"""A process with both ends of its TCP connections, in a network namespace of its own: START, then SOME connections."""

from __future__ import annotations

START = """
import ctypes, fcntl, os, signal, socket, struct, sys, threading, time
if ctypes.CDLL(None, use_errno=True).unshare(0x40000000): raise SystemExit("unshare")
control = socket.socket()
fcntl.ioctl(control, 0x8914, struct.pack("16sh14x", b"lo", 0x41))
def listen(port, backlog=1024, address="127.0.0.1"):
    server = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.bind((address, port)); server.listen(backlog)
    return server
def pair(server):
    client = socket.socket(server.family); client.connect(server.getsockname()[:2])
    return client, server.accept()[0]
def wait():
    print("ready")
    signal.pause()
"""

SOME = """
server = listen(7001, 5)
idle = pair(server)
busy = pair(server)
def work():
    while True:
        busy[0].send(b"x" * 100); busy[1].recv(100); busy[1].send(b"y" * 300); busy[0].recv(300); time.sleep(0.001)
threading.Thread(target=work, daemon=True).start()
deaf = pair(server)
deaf[0].setblocking(False)
try:
    while True: deaf[0].send(b"z" * 65536)
except BlockingIOError: pass
left = pair(server)
left[1].close()
waiting = [socket.create_connection(("127.0.0.1", 7001)) for _ in range(3)]
wait()
"""
