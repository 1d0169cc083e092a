"""Ship changing data over a link: tune the compression level, the chunk size and the number of threads.

    python examples/zlib_shipper.py --out out/zlib_shipper.png

Each round compresses a megabyte with zlib on a pool of threads and measures the time. The link carries 10 MB/s and
costs 0.2 ms per chunk. The value is milliseconds per megabyte. A high level saves bytes and costs time. Small chunks
spread over threads, but compress badly and pay the overhead. Each thread has a price. The data change from logs to
measurements to compressed files and back, so the best setting moves. `trimtab` sets the three knobs from this one
number per round. Each round is also shipped with fixed knobs, for comparison.
"""

import argparse
import math
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import trimtab as tt

SIZE = 2**20  # bytes a round
LINK, OVERHEAD, PRICE = 10e6, 2e-4, 5e-4  # bytes a second, seconds a chunk, seconds a thread
START = (0.9, 0.25, 0.8)  # level 8, chunks of 16 kB, 3 threads
KNOBS = [
    tt.Knob("level", 1, 9, 8, type="integer"),
    tt.Knob("chunk", 2**12, 2**20, 2**14, type="integer", scale="log", unit="bytes"),
    tt.Knob("threads", 1, 4, 3, type="integer"),
]


def decode(x):
    """Three numbers in [0, 1] → level 1 to 9, bytes a chunk (4 kB to 1 MB, in equal ratios), threads 1 to 4."""
    a, b, c = np.clip(x, 0.0, 1.0)
    return round(1 + 8 * a), round(2 ** (12 + 8 * b)), round(1 + 3 * c)


class Shipper:
    """A realisation of the data: by the seed, where in the cycle of kinds it starts."""

    def __init__(self, seed=0, period=200):
        rng = np.random.default_rng(seed)
        self.period, self.phase = period, rng.random()
        words = [bytes(rng.integers(97, 123, rng.integers(3, 9)).astype(np.uint8)) for _ in range(400)]
        text = b" ".join(words[k] for k in np.minimum(rng.zipf(1.3, SIZE // 4), 400) - 1)[:SIZE]
        numbers = np.cumsum(rng.integers(-3, 4, SIZE // 4)).astype("<i4").tobytes()
        self.kinds = [text, numbers, rng.bytes(SIZE)]
        self.pools = {n: ThreadPoolExecutor(n) for n in range(1, 5)}

    def data(self, round):
        """A mixture of two neighbouring kinds, in blocks of 16 kB, which moves on with the rounds."""
        place = (3 * round / self.period + 3 * self.phase) % 3
        first, share = int(place), place - int(place)
        blocks = np.random.default_rng(round).random(SIZE >> 14) < share
        pair = self.kinds[first], self.kinds[(first + 1) % 3]
        return b"".join(pair[int(later)][k << 14 : (k + 1) << 14] for k, later in enumerate(blocks))

    def ship(self, round, level, chunk, threads):
        """Milliseconds a megabyte."""
        data = self.data(round)
        chunks = [data[k : k + chunk] for k in range(0, SIZE, chunk)]
        start = time.perf_counter()
        packed = list(self.pools[threads].map(lambda part: len(zlib.compress(part, level)), chunks))
        took = time.perf_counter() - start
        sent = sum(min(small, len(part)) for small, part in zip(packed, chunks, strict=True))
        return 1000 * (took + sent / LINK + OVERHEAD * len(chunks) + PRICE * threads)

    def close(self):
        for pool in self.pools.values():
            pool.shutdown()


def run(rounds, seed=0):
    """Return the values with trimtab, the values with fixed knobs, and the centre of each round."""
    shipper, tuner = Shipper(seed), tt.Tuner(knobs=KNOBS, seed=seed)
    values, still, centres = [], [], []
    for t in range(rounds):
        trial = tuner.ask()
        centres.append(list(tuner.setting.values()))
        values.append(shipper.ship(t, **trial.knobs))
        tuner.tell(trial, values[-1])
        still.append(shipper.ship(t, *decode(START)))
    shipper.close()
    return np.array(values), np.array(still), np.array(centres)


def draw(values, still, centres, out):
    import matplotlib.pyplot as plt

    from trimtab import plotting

    plt.rcParams.update(plotting.STYLE)

    figure, axes = plt.subplots(
        4, 1, figsize=(plotting.WIDTH, 7), sharex=True, layout="constrained", height_ratios=[2, 1, 1, 1]
    )
    for series, colour, label in ((still, plotting.GREY, "fixed knobs"), (values, plotting.BLUE, "trimtab")):
        axes[0].plot(series, ".", ms=3, color=colour, alpha=0.5)
        middle = np.median(np.lib.stride_tricks.sliding_window_view(series, min(9, len(series))), axis=1)
        axes[0].plot(np.arange(len(middle)) + 4, middle, color=colour, lw=1.8, label=f"{label} (median of 9)")
    axes[0].set(ylabel="ms per megabyte", title="Shipping changing data, tuned from one number per round")
    axes[0].legend()
    for axis, name, series in zip(axes[1:], ("level", "chunk (bytes)", "threads"), centres.T, strict=True):
        axis.plot(series, color=plotting.BLUE)
        axis.set(ylabel=name, yscale="log" if "chunk" in name else "linear")
    axes[-1].set_xlabel("round (one megabyte each)")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    print(f"drawn: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="where to draw")
    parser.add_argument("--rounds", type=int, default=400)
    options = parser.parse_args()
    values, still, centres = run(options.rounds)
    tail = slice(math.ceil(options.rounds / 10), None)
    print(
        f"mean after a tenth: {values[tail].mean():.1f} ms/MB with trimtab, {still[tail].mean():.1f} with fixed knobs"
    )
    if options.out:
        draw(values, still, centres, options.out)
