"""Ctrl-C while workers start is handled when they have started."""

import signal
import threading

import pytest

from trimtab.lab.parallel.executors import interrupts_blocked


def start_workers(go, sent, started):
    """The start of workers is interrupted half-way, by a signal that another thread receives."""
    with interrupts_blocked():
        go.set()
        assert sent.wait(300)
        started.append(True)


def test_an_interrupt_waits_until_the_workers_have_started():
    go, sent, started = threading.Event(), threading.Event(), []

    def receive():
        go.wait(300)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        sent.set()

    handler, thread = signal.getsignal(signal.SIGINT), threading.Thread(target=receive)
    thread.start()
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        with pytest.raises(KeyboardInterrupt):
            start_workers(go, sent, started)
        assert started
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        thread.join()
        signal.signal(signal.SIGINT, handler)


def test_without_an_interrupt_nothing_changes():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_blocked():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
