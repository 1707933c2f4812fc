"""`opskit irqs` on a busy web server over loopback: its softirqs are the work of its own threads, and no finding."""

from __future__ import annotations

import json
import os

import pytest

SERVER = """
import os, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
if sys.argv[1] != "any": os.sched_setaffinity(0, {int(sys.argv[1])})
class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "2000")
        self.end_headers()
        self.wfile.write(b"x" * 2000)
    def log_message(self, *_): pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
CLIENT = """
import http.client, sys
line = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
done = 0
while True:
    line.request("GET", "/")
    line.getresponse().read()
    done += 1
    if done == 1: print(done, flush=True)
"""


@pytest.mark.parametrize("place", ["any", "pinned"])
def test_a_busy_web_server_over_loopback(inprocess, spawn, place):
    """Two clients without a pause, the server on any CPU or pinned to one: thousands of packets, no finding, no command."""
    cpu = max(os.sched_getaffinity(0))
    server = spawn(SERVER, cpu if place == "pinned" else place)
    for _ in range(2):
        spawn(CLIENT, server.line)
    rates = []
    for _ in range(4):  # another real-time thread may keep the server off its CPU for a while
        done = inprocess("irqs", "-i", "0.6", "-f", "json")
        document = json.loads(done.out)
        assert (done.code, document["findings"], document["commands"]) == (0, [], [])
        assert document["verdict"][0].startswith("No CPU is saturated by interrupts")
        rates.append(sum(row["net_rx_per_s"] for row in document["cpus"]))
        if rates[-1] > 500:
            return
    raise AssertionError(rates)
