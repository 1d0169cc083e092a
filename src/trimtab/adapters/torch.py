"""PyTorch: models trained from the values of their loss, one forward pass per step.

    p ← x + δu(seed, round)                    in place; u is drawn again when needed, never stored
    y = closure()                              one forward pass
    a = y − (previous value, same batch)       residual feedback (Eq. 3); two-point: a = (y₊ − y₋)/2
    x ← x − lr·(a/s)·u                         normalised: s is the running rms of a
    x ← x − lr·a/δ·u                           as in the paper

Between steps the parameters are the centre x. The only additional memory of the size of the model is a float32 copy of
parameters in half precision, because bfloat16 and float16 cannot resolve a step.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b
from typing import TypeVar

from trimtab.inputs import LARGEST
from trimtab.types import Document
from trimtab.util.extras import pip_install
from trimtab.validation import real, whole

try:
    import torch
except ImportError as error:
    raise ImportError(f"trimtab.adapters.torch needs PyTorch: {pip_install('torch')}") from error

__all__ = ["ResidualFeedback"]

Batch = TypeVar("Batch")
HALVES = (torch.bfloat16, torch.float16)
FARTHEST = 1e18  # largest move of a parameter per step; its square is finite in float32


class ResidualFeedback(torch.optim.Optimizer):
    """Residual feedback: `step(closure)` measures the loss once, at x + δu, and moves by its change.

    The closure computes the loss and returns it; it needs no gradient and must not call backward. Per parameter group:

    lr: typical move of each parameter per step, less than `radius`; with `normalised=False`, η of the paper.
    radius: δ, the probing radius of each parameter.

    For all groups:

    hold: use each batch for this many consecutive steps (`for batch in optimizer.held(loader)`); the first value of a
    batch only sets the anchor, since losses of two batches do not compare. None: the objective never changes.
    normalised: scale moves by the running rms of the contrast, over about `window` steps.
    queries: 2 measures at x + δu and x − δu, with two forward passes on the same batch; `hold` is not needed.
    seed: that of the directions, which are functions of (seed, round).

    A loss of NaN is a failed measurement and moves nothing. An infinite loss is an error. After an error, also one in
    the closure, the parameters are restored, up to rounding (exactly in half precision), and the round is not counted.

    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = ResidualFeedback(model.parameters(), lr=3e-4, hold=None)
    >>> float(optimizer.step(lambda: model.weight.square().sum())) > 0
    True
    """

    def __init__(
        self,
        params: Iterable[torch.Tensor] | Iterable[Document],
        lr: float,
        *,
        radius: float = 1e-3,
        hold: int | None = 4,
        normalised: bool = True,
        window: float = 100.0,
        queries: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__(params, {"lr": lr, "radius": radius})
        why = (
            ": the first step on a batch only anchors; None, where the objective is one and the same, never re-anchors"
        )
        # State common to all parameters is stored with the first one, so that `state_dict` and copies include it.
        self._progress.update(
            round=0,
            anchor=None,
            contrasts=0,
            square=0.0,
            seed=whole("seed", seed, 0, 2**63),
            hold=None if hold is None else whole("hold", hold, 2, why=why),
            normalised=bool(normalised),
            window=real("window", window, 1, why=" of steps"),
            queries=whole("queries", queries, 1, 3),
        )

    def add_param_group(self, param_group: Document) -> None:
        """Add parameters, with an lr and a radius of their own if they have them."""
        super().add_param_group(param_group)
        try:
            _check(self.param_groups[-1])
        except (TypeError, ValueError):
            self.param_groups.pop()
            raise

    @property
    def _progress(self) -> Document:
        progress: Document = self.state[self.param_groups[0]["params"][0]]
        return progress

    @property
    def round(self) -> int:
        """The number of steps taken."""
        return int(self._progress["round"])

    def held(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Repeat each batch `hold` times; after a resume, the first one only for its remaining steps."""
        for batch in batches:
            hold = self._progress["hold"] or 1
            for _ in range(hold - self.round % hold):
                yield batch

    def step(self, closure: Callable[[], torch.Tensor | float]) -> torch.Tensor | float:
        """Measure at the query and move the parameters; returns the result of the closure (the first of a pair)."""
        sides = (1.0, -1.0)[: self._progress["queries"]]
        side, values, results = 0.0, [], []
        with torch.no_grad():
            try:
                for next_side in sides:
                    self._displace(side, next_side)
                    side = next_side
                    results.append(closure())
                    values.append(_number(results[-1]))
            except BaseException:
                self._displace(side, 0.0)
                raise
            self._displace(side, 0.0, self._learn(values))
        self._progress["round"] += 1
        return results[0]

    def _learn(self, values: list[float]) -> float:
        """The contrast, divided by its running rms if `normalised`; 0 without one."""
        progress = self._progress
        if progress["hold"] and progress["round"] % progress["hold"] == 0:
            progress["anchor"] = None
        if any(math.isnan(value) for value in values):
            return 0.0
        if len(values) == 2:
            contrast = (values[0] - values[1]) / 2
        else:
            anchor, progress["anchor"] = progress["anchor"], values[0]
            if anchor is None:
                return 0.0
            contrast = values[0] - anchor
        contrast = min(max(contrast, -LARGEST), LARGEST)
        if not progress["normalised"]:
            return contrast
        progress["contrasts"] += 1
        share = max(1 / progress["contrasts"], 1 / progress["window"])
        progress["square"] += (contrast * contrast - progress["square"]) * share
        return contrast / math.sqrt(progress["square"]) if progress["square"] else 0.0

    def _displace(self, side: float, to: float, contrast: float = 0.0) -> None:
        """Displace from x + side·δu to x + to·δu and move x against the contrast, in one pass over the parameters."""
        progress, generators = self._progress, {}
        start = _mixed(progress["seed"], progress["round"])
        moving = [(group, p) for group in self.param_groups for p in group["params"] if p.requires_grad]
        for group, p in moving:
            if p.device not in generators:
                generators[p.device] = torch.Generator(p.device).manual_seed(start)
            radius, master = group["radius"], self._master(p)
            u = torch.randn(p.shape, generator=generators[p.device], dtype=master.dtype, device=p.device)
            move = -contrast * group["lr"] / (1.0 if progress["normalised"] else radius)
            move = min(max(move, -FARTHEST), FARTHEST)
            if master is p:
                p.add_(u, alpha=(to - side) * radius + move)
            else:
                master.add_(u, alpha=move)
                p.copy_(torch.add(master, u, alpha=to * radius))

    def _master(self, p: torch.Tensor) -> torch.Tensor:
        """The tensor that holds a parameter's centre: the parameter itself, or its float32 copy in half precision."""
        if p.dtype not in HALVES:
            return p
        state = self.state[p]
        if "master" not in state:
            state["master"] = p.detach().float()
        return state["master"]

    def load_state_dict(self, state_dict: Document) -> None:
        """Resume: the next step is bit for bit that of the saved optimiser."""
        groups = state_dict["param_groups"]
        saved = [index for group in groups for index in group["params"]]
        progress = state_dict["state"].get(next(iter(saved), None), {})
        lacking = [name for name in self._progress if name not in (*progress, "master")]
        lacking += [name for name in self.defaults if any(name not in group for group in groups)]
        if lacking:
            raise ValueError(
                f"the state to load lacks {', '.join(lacking)}: load the state_dict() of a ResidualFeedback, or"
                " start without one"
            )
        super().load_state_dict(state_dict)
        own = [p for group in self.param_groups for p in group["params"]]
        for index, p in zip(saved, own, strict=True):  # torch casts loaded state to the precision of the parameter
            if "master" in (state := state_dict["state"].get(index, {})):
                self.state[p]["master"] = state["master"].detach().clone().to(p.device)


def _check(group: Document) -> None:
    """Check a parameter group."""
    real("lr", group["lr"], 0)
    real("radius", group["radius"], 0, above=True)
    for p in group["params"]:
        if not p.dtype.is_floating_point:
            raise TypeError(f"a parameter of {p.dtype} cannot be probed: give real floating-point parameters")


def _mixed(seed: int, round: int) -> int:
    """Hash (seed, round) to the seed of a generator, so that neighbouring ones are unrelated."""
    return int.from_bytes(blake2b(struct.pack("<QQ", seed, round), digest_size=8).digest()) >> 1


def _number(result: torch.Tensor | float) -> float:
    value = float(result)
    if math.isinf(value):
        raise ValueError(f"the closure returned {value}: a loss must be finite, or NaN for a failed measurement")
    return value
