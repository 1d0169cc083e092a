"""A PyTorch model that keeps up with data that drift, from the values of the loss alone: no backward pass.

.venv-hosts/bin/python examples/torch_stream.py --out out/torch_stream.png

A network of 8 inputs predicts a number from a stream whose law turns while it runs. Every step is one forward pass on
a batch; batches are held for four steps, so that values of the same batch are compared. Beside it the same network as
it was at first, and Adam, which has gradients: where you have them, use them.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch

from trimtab import plotting
from trimtab.adapters.torch import ResidualFeedback

STEPS, HOLD, BATCH = 12_000, 4, 64


def batch(step, generator):
    """Inputs and what they should give, by the law of this step: weights that turn in two planes."""
    angle = torch.tensor(2 * np.pi * (step // HOLD) / (STEPS / HOLD))
    weights = torch.cat([torch.stack([torch.cos(angle), torch.sin(angle)]).repeat(2), torch.ones(4) / 2])
    x = torch.randn(BATCH, 8, generator=generator)
    return x, x @ weights[:, None] + 0.1 * torch.randn(BATCH, 1, generator=generator)


def run(kind):
    """The loss of every step, as played."""
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    if kind == "forward passes alone":
        optimizer = ResidualFeedback(model.parameters(), lr=3e-3, radius=1e-2, hold=HOLD, seed=0)
    else:
        optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses = []
    for step in range(STEPS):
        if step % HOLD == 0:
            x, y = batch(step, generator)

        def closure(x=x, y=y):
            loss = (model(x) - y).square().mean()
            if kind == "Adam, with gradients":
                optimizer.zero_grad()
                loss.backward()
            return loss

        loss = closure() if kind == "the model of the first day" else optimizer.step(closure)
        losses.append(float(loss.detach()))
    return np.array(losses)


def draw(out):
    """The running mean of the loss, one line each."""
    colours = {
        "the model of the first day": plotting.GREY,
        "forward passes alone": plotting.BLUE,
        "Adam, with gradients": plotting.VERMILION,
    }
    plt.rcParams.update(plotting.STYLE)
    figure, axis = plt.subplots(figsize=(plotting.WIDTH, 3.4), layout="constrained")
    for kind, colour in colours.items():
        losses = run(kind)
        means = losses[: len(losses) // 100 * 100].reshape(-1, 100).mean(axis=1)
        axis.semilogy(100 * np.arange(len(means)), means, color=colour, label=kind)
        print(f"{kind}: mean loss {losses.mean():.3f}, of the second half {losses[STEPS // 2 :].mean():.3f}")
    axis.set(xlabel="forward passes", ylabel="loss, mean of 100 passes", title="A network on a stream whose law turns")
    axis.legend(loc="center right")
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out)
    print(f"drawn: {out}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("out/torch_stream.png"), help="where to draw (%(default)s)")
    torch.set_num_threads(1)
    draw(parser.parse_args().out)
