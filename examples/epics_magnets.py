"""A pair of corrector magnets that drifts, kept in place through EPICS: a real IOC, Channel Access, ophyd and Bluesky.

.venv-hosts/bin/python examples/epics_magnets.py --out out/epics_magnets.png

The IOC is a process of its own, on the loopback and on ports of its own. Two magnets steer a beam through an aperture;
the currents that centre it move, as ground and temperature do, and nobody knows them. A measurement is one noisy
number, the beam loss, and time goes on by one.
"""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np

PREFIX = "TRIM"
LIMIT = 5.0  # of a magnet, in amperes
COUPLING = np.array([[1.0, 0.35], [-0.25, 0.8]])  # from currents to the position of the beam, mm/A
FLOOR, NOISE = 2.0, 0.05  # of the loss, in percent
ROUNDS = 400


def best(t):
    """The currents that centre the beam at time t."""
    t = np.asarray(t)
    return np.stack([1.5 * np.sin(2 * np.pi * t / 300), -1.0 + t / 200], axis=-1)


def loss(t, currents):
    """The loss at time t in percent, without noise."""
    position = (np.asarray(currents) - best(t)) @ COUPLING.T
    return FLOOR + (position**2).sum(axis=-1)


def serve():
    """The IOC, until its standard input is closed."""
    from softioc import asyncio_dispatcher, builder, softioc

    rng, time = np.random.default_rng(0), 0
    builder.SetDeviceName(PREFIX)
    builder.SetBlocking(True)  # a put is complete when all that follows from it is done
    limits = {"DRVL": -LIMIT, "DRVH": LIMIT, "EGU": "A", "PREC": 6}
    magnets = [builder.aOut(name, initial_value=0.0, **limits) for name in ("H", "V")]
    reading = builder.aOut("LOSS", initial_value=FLOOR, EGU="%", PREC=6)  # an output record: set before the put is done

    def measure(_):
        nonlocal time
        reading.set(loss(time, [magnet.get() for magnet in magnets]) + NOISE * rng.standard_normal())
        time += 1

    builder.longOut("MEASURE", initial_value=0, always_update=True, on_update=measure)
    builder.LoadDatabase()
    softioc.iocInit(asyncio_dispatcher.AsyncioDispatcher())
    print("ready", flush=True)
    sys.stdin.read()
    os._exit(0)  # an IOC has threads that do not end by themselves


def free_port():
    """A port that is free for both TCP and UDP."""
    for _ in range(100):
        with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            tcp.bind(("127.0.0.1", 0))
            try:
                udp.bind(tcp.getsockname())
            except OSError:
                continue
            return tcp.getsockname()[1]
    raise OSError("no port is free for both TCP and UDP")


def loopback():
    """The settings that keep EPICS on this machine, and out of the way of any other IOC on it."""
    here = "127.0.0.1"
    return {
        "EPICS_CA_ADDR_LIST": here,
        "EPICS_CA_AUTO_ADDR_LIST": "NO",
        "EPICS_CA_SERVER_PORT": str(free_port()),
        "EPICS_CA_REPEATER_PORT": str(free_port()),
        "EPICS_CAS_INTF_ADDR_LIST": here,
        "EPICS_CAS_AUTO_BEACON_ADDR_LIST": "NO",
        "EPICS_PVAS_INTF_ADDR_LIST": here,
        "EPICS_PVAS_SERVER_PORT": str(free_port()),
        "EPICS_PVAS_BROADCAST_PORT": str(free_port()),
        "EPICS_PVAS_AUTO_BEACON_ADDR_LIST": "NO",
        "EPICS_PVA_ADDR_LIST": here,
        "EPICS_PVA_AUTO_ADDR_LIST": "NO",
    }


def follow(rounds):
    """Tune the magnets; gives the documents, validated, the tuner, and the currents they are left at."""
    import event_model
    from bluesky import RunEngine
    from ophyd import Component, Device, EpicsSignal, EpicsSignalRO, Kind

    import trimtab as tt
    from trimtab.adapters.bluesky import tune

    class Monitor(Device):
        """The beam loss monitor: a trigger measures once."""

        loss = Component(EpicsSignalRO, "LOSS", auto_monitor=False, kind=Kind.hinted)
        measure = Component(EpicsSignal, "MEASURE", put_complete=True, kind=Kind.omitted)

        def trigger(self):
            return self.measure.set(1)

    magnets = {name: EpicsSignal(f"{PREFIX}:{name}", name=name, put_complete=True) for name in ("H", "V")}
    monitor = Monitor(f"{PREFIX}:", name="monitor")
    for device in (*magnets.values(), monitor):
        device.wait_for_connection(timeout=20)
    knobs = [{"name": name, "low": -LIMIT, "high": LIMIT, "start": float(magnets[name].get())} for name in magnets]
    tuner, documents = tt.Tuner(knobs=knobs, seed=0), []

    def collect(name, document):
        event_model.schema_validators[event_model.DocumentNames[name]].validate(document)
        documents.append((name, document))

    engine = RunEngine({})
    engine.subscribe(collect)
    engine(tune([monitor], "monitor_loss", tuner, magnets, rounds))
    left = {name: float(magnet.get()) for name, magnet in magnets.items()}
    for device in (*magnets.values(), monitor):
        device.destroy()
    return documents, tuner, left


def run(rounds=ROUNDS):
    """Start the IOC, follow the drift, stop the IOC."""
    os.environ.update(loopback())  # before anything of EPICS is imported
    ioc = subprocess.Popen(
        [sys.executable, __file__, "--ioc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        for line in ioc.stdout:
            if line.strip() == "ready":
                break
        else:
            raise RuntimeError(f"the IOC ended with {ioc.wait()} before it was ready")
        return follow(rounds)
    finally:
        ioc.stdin.close()
        ioc.wait(timeout=20)
        ioc.stdout.close()


def draw(documents, out):
    """Both magnets against what would be best, and the loss; all of it out of the documents."""
    import matplotlib.pyplot as plt

    from trimtab import plotting

    events = [document["data"] for name, document in documents if name == "event"]
    t = np.arange(len(events))
    centre = np.array([[event["trimtab_H"], event["trimtab_V"]] for event in events])
    played = np.array([[event["H"], event["V"]] for event in events])
    blue, orange, grey = plotting.BLUE, plotting.VERMILION, plotting.GREY
    plt.rcParams.update(plotting.STYLE)
    figure, axes = plt.subplots(3, 1, figsize=(plotting.WIDTH, 6.4), sharex=True, layout="constrained")
    for k, (axis, name) in enumerate(zip(axes, "HV", strict=False)):
        axis.plot(t, played[:, k], ".", color=blue, ms=2, alpha=0.5, label="as set, with the probe")
        axis.plot(t, centre[:, k], color=blue, lw=1.2, label="trimtab's operating point")
        axis.plot(t, best(t)[:, k], "--", color=orange, lw=1.8, label="the best, which drifts")
        axis.set(ylabel=f"{PREFIX}:{name} (A)", ylim=(-2.7, 2.7))
    axes[0].legend(loc="lower left", ncols=3)
    axes[2].semilogy(t, loss(t, [0.0, 0.0]), color=grey, lw=1.2, label="fixed magnets")
    axes[2].semilogy(t, [event["monitor_loss"] for event in events], ".", color=blue, ms=3, label="as measured")
    axes[2].axhline(FLOOR, color=orange, ls="--", lw=1.8, label="the least possible")
    axes[2].set(xlabel="round (one measurement each)", ylabel="beam loss (%)", ylim=(1.5, 12))
    axes[2].set_yticks([2, 5, 10], labels=["2", "5", "10"])
    axes[2].minorticks_off()
    axes[2].legend(loc="upper right", ncols=3)
    figure.suptitle("Two drifting corrector magnets, followed through EPICS and Bluesky")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    mean = loss(t, played).mean()
    print(f"mean loss {mean:.2f}%, {loss(t, [0.0, 0.0]).mean():.2f}% with fixed magnets, at least {FLOOR:.2f}%")
    print(f"{len(documents)} documents, all valid; drawn: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/epics_magnets.png"), help="where to draw (%(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how many measurements (%(default)s)")
    parser.add_argument("--ioc", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ioc:
        serve()
    else:
        draw(run(arguments.rounds)[0], arguments.out)
