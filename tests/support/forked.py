"""Run a function in a forked child, which may change its rights or limits."""

from __future__ import annotations

import os


def in_child(work):
    """The result of `work()` in a forked child, as text."""
    receive, send = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(send, str(work()).encode())
        except BaseException as error:
            os.write(send, repr(error).encode())
        os._exit(0)
    os.close(send)
    with open(receive) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return text
