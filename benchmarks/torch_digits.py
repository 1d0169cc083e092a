"""An MLP on the digits of scikit-learn, trained from losses alone, at equal forward passes; Adam has gradients.

.venv-hosts/bin/python benchmarks/torch_digits.py          a quarter of an hour; --quick for a try

Each method's learning rate and radius are those with the best mean accuracy on validation data; the test data are
looked at once, with these, on seeds that the choice has not seen.
"""

import argparse
import statistics

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

from trimtab.adapters.torch import ResidualFeedback

BATCH = 64
CHOICES = [{"lr": lr, "radius": radius} for radius in (1e-2, 5e-2) for lr in (1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2)]
METHODS = {
    "two-point, a fresh batch every step": (CHOICES, {"queries": 2, "hold": None}),
    "residual, a fresh batch every step": (CHOICES, {"hold": None}),
    "residual, batches held for 4 steps": (CHOICES, {"hold": 4}),
    "Adam, with gradients": ([{"lr": lr} for lr in (1e-3, 3e-3, 1e-2, 3e-2)], None),
}


def data():
    """Training, validation and test sets of 1097, 350 and 350 digits."""
    digits = load_digits()
    x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
    y = torch.tensor(digits.target)
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(0))
    return [(x[part], y[part]) for part in order.split([1097, 350, 350])]


def batches(x, y, generator):
    while True:
        for part in torch.randperm(len(y), generator=generator).split(BATCH)[:-1]:
            yield x[part], y[part]


def train(train_set, choice, options, passes, seed):
    """A model after so many forward passes."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))
    stream = batches(*train_set, torch.Generator().manual_seed(seed))
    if options is None:
        optimizer, used = torch.optim.Adam(model.parameters(), **choice), 1
    else:
        optimizer = ResidualFeedback(model.parameters(), seed=seed, **choice, **options)
        stream, used = optimizer.held(stream), options.get("queries", 1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, passes // used)
    for _ in range(passes // used):
        x, y = next(stream)

        def loss(x=x, y=y):
            value = cross_entropy(model(x), y)
            if options is None:
                optimizer.zero_grad()
                value.backward()
            return value

        optimizer.step(loss)
        schedule.step()
    return model


def accuracy(model, x, y):
    with torch.no_grad():
        return float((model(x).argmax(1) == y).float().mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=10_000, help="forward passes of a run (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="1000 passes, two seeds")
    arguments = parser.parse_args()
    passes, trials = (1000, 2) if arguments.quick else (arguments.passes, 10)
    torch.set_num_threads(1)
    train_set, valid_set, test_set = data()
    print(f"{passes} forward passes of {BATCH} digits, {trials} seeds\n")
    print("| method | lr | radius | validation | test |\n|---|---|---|---|---|")
    for name, (choices, options) in METHODS.items():
        valid = [
            statistics.mean(accuracy(train(train_set, choice, options, passes, seed), *valid_set) for seed in range(2))
            for choice in choices
        ]
        best = valid.index(max(valid))
        choice = choices[best]
        test = [accuracy(train(train_set, choice, options, passes, 100 + seed), *test_set) for seed in range(trials)]
        print(
            f"| {name} | {choice['lr']:g} | {choice.get('radius', '')} | {valid[best]:.3f}"
            f" | {statistics.mean(test):.3f} ± {statistics.stdev(test):.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
