"""Notifications to systemd (sd_notify(3)), and the unit file that `trimtab init --systemd` writes."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import socket
import sys
import time
from pathlib import Path

from trimtab.util.files import writing

UNIT = """\
# Written by `trimtab init --systemd`. For your user: copy it to ~/.config/systemd/user/, then run
#   systemctl --user daemon-reload && systemctl --user enable --now {name}
# and `loginctl enable-linger`, so that it also runs while you are logged out. For the whole machine: copy it to
# /etc/systemd/system/, set User=, and leave out --user.
[Unit]
Description=trimtab tunes {study}
After=network-online.target
Wants=network-online.target

[Service]
Type=notify
ExecStart={program} tune {file} --log json
WorkingDirectory={folder}
# It sends keep-alives even while it waits for a command or for the store.
WatchdogSec=180
Restart=on-failure
RestartSec=10
# Bad input and guard settings need a person; see the table of exit statuses in docs/live.md.
RestartPreventExitStatus=2 3
# Time to finish the present round, and then to apply the last setting.
KillMode=mixed
TimeoutStopSec={stop}
LimitNOFILE=65536

[Install]
WantedBy=default.target
"""


def notify(**words: str | int) -> None:
    """Notify systemd if it started this process: notify(READY=1, STATUS="...")."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    text = "\n".join(f"{key}={value}" for key, value in words.items())
    where = "\0" + address[1:] if address.startswith("@") else address
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(1.0)
        channel.sendto(text.encode(), where)


class Heartbeat:
    """Keep-alive for systemd's watchdog, to be called often; does nothing without a watchdog."""

    def __init__(self) -> None:
        watch = os.environ.get("WATCHDOG_USEC", "")
        mine = os.environ.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        self._every = int(watch) / 1e6 / 4 if watch.isdigit() and mine else None
        self._last = -1e9

    def __call__(self) -> None:
        """Send a keep-alive if one is due."""
        if self._every is not None and time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            notify(WATCHDOG=1)


def write_unit(file: Path, study: str, timeout: float) -> Path:
    """Write the unit for a study.toml, beside it."""
    file = file.resolve()
    path = file.with_name(f"trimtab-{study}.service")
    if path.exists():
        raise ValueError(f"{path} already exists: move it away first")
    program = shutil.which("trimtab", path=str(Path(sys.executable).parent)) or shutil.which("trimtab") or "trimtab"
    words = {"program": _quoted(program), "file": _quoted(str(file)), "folder": _escaped(str(file.parent))}
    stop = int(2 * timeout + 30)  # the round, then the last setting
    with writing(path):
        path.write_text(UNIT.format(name=path.stem, study=study, stop=stop, **words), encoding="utf-8")
    return path


def install_lines(unit: Path) -> list[str]:
    """Return the shell commands that install and start a unit for this user.

    >>> install_lines(Path("trimtab-demo.service"))[1]
    'systemctl --user daemon-reload && systemctl --user enable --now trimtab-demo'
    """
    folder = "~/.config/systemd/user"
    return [
        f"mkdir -p {folder} && cp {shlex.quote(str(unit))} {folder}/",
        f"systemctl --user daemon-reload && systemctl --user enable --now {unit.stem}",
    ]


def _escaped(word: str) -> str:
    return word.replace("%", "%%")


def _quoted(word: str) -> str:
    """Quote a word of ExecStart=."""
    return shlex.quote(_escaped(word).replace("$", "$$"))
