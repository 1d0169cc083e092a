"""The optimiser for PyTorch, with PyTorch itself."""

import copy
import io
import math
from itertools import cycle

import pytest
import torch

from trimtab.adapters.torch import ResidualFeedback


def linear(dtype=torch.float32):
    torch.manual_seed(0)
    return torch.nn.Linear(3, 2).to(dtype)


def flat(model):
    return torch.cat([p.detach().double().flatten() for p in model.parameters()])


def loss_of(model):
    x = torch.linspace(-1, 1, 12, dtype=next(model.parameters()).dtype).reshape(4, 3)
    return lambda: (model(x) - 1).square().mean()


def probe(model, optimizer, closure):
    """A step, and where it measured."""
    seen = []

    def looking():
        seen.append(flat(model))
        return closure()

    optimizer.step(looking)
    return seen


def test_residual_feedback_by_hand():
    # x₁ = x₀: the first value anchors. x₂ = x₁ − η·(y₁ − y₀)/δ·u₁, with u₁ seen in the query (Eq. 3).
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=0.02, radius=0.1, hold=None, normalised=False)
    start, values = flat(model), iter([3.0, 5.0])
    (first,) = probe(model, optimizer, lambda: next(values))
    torch.testing.assert_close(flat(model), start, rtol=0, atol=1e-6)
    (second,) = probe(model, optimizer, lambda: next(values))
    u = (second - start) / 0.1
    assert not torch.allclose(first, second)
    torch.testing.assert_close(flat(model), start - 0.02 * (5.0 - 3.0) / 0.1 * u, rtol=0, atol=1e-5)


def test_normalised_by_hand():
    # s² is 4, then (4 + 16)/2: the moves are lr·(2/2)·u and lr·(4/√10)·u.
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=0.02, radius=0.1, hold=None)
    values = iter([3.0, 5.0, 9.0])
    probe(model, optimizer, lambda: next(values))
    for contrast in (1.0, 4 / math.sqrt(10)):
        before = flat(model)
        (query,) = probe(model, optimizer, lambda: next(values))
        torch.testing.assert_close(flat(model), before - 0.02 * contrast * (query - before) / 0.1, rtol=0, atol=1e-5)


def test_two_point_by_hand():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=0.02, radius=0.1, queries=2, normalised=False)
    before, values = flat(model), iter([3.0, 5.0])
    up, down = probe(model, optimizer, lambda: next(values))
    torch.testing.assert_close(up - before, before - down, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        flat(model), before - 0.02 * (3.0 - 5.0) / 2 / 0.1 * (up - before) / 0.1, rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("options", [{"hold": None}, {"hold": 4}])
def test_one_forward_pass_per_step(options):
    model, calls = linear(), []
    optimizer = ResidualFeedback(model.parameters(), lr=1e-3, **options)
    for k in range(12):
        optimizer.step(lambda: calls.append(1) or 1.0)
        assert len(calls) == optimizer.round == k + 1


def test_held_batches_are_not_compared_with_each_other():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=0.02, radius=0.1, hold=3)
    moved, batches = [], []
    for batch in optimizer.held([10.0, 1000.0, 7.0]):
        before = flat(model)
        optimizer.step(lambda batch=batch: batch + len(moved))
        moved.append(not torch.allclose(flat(model), before, rtol=0, atol=1e-6))
        batches.append(batch)
    assert batches == [10.0] * 3 + [1000.0] * 3 + [7.0] * 3
    assert moved == [False, True, True] * 3


def test_minimises():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-2, radius=2e-2, hold=None)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 4000)
    loss = loss_of(model)
    with torch.no_grad():
        before = float(loss())
    for _ in range(4000):
        optimizer.step(loss)
        schedule.step()
    with torch.no_grad():
        assert float(loss()) < 0.05 * before


@pytest.mark.parametrize(("dtype", "atol"), [(torch.float32, 1e-7), (torch.float64, 1e-15), (torch.bfloat16, 0)])
def test_parameters_are_restored_when_the_closure_raises(dtype, atol):
    model = linear(dtype)
    optimizer = ResidualFeedback(model.parameters(), lr=1e-2, radius=0.1, hold=None)
    for _ in range(5):
        optimizer.step(loss_of(model))
    before, saved = flat(model), copy.deepcopy(optimizer.state_dict())

    def broken():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimizer.step(broken)
    with pytest.raises(ValueError, match="finite"):
        optimizer.step(lambda: math.inf)
    torch.testing.assert_close(flat(model), before, rtol=0, atol=4 * atol)
    progress = optimizer.state_dict()["state"][0]
    assert {k: v for k, v in progress.items() if k != "master"} == {
        k: v for k, v in saved["state"][0].items() if k != "master"
    }


def test_a_closure_that_calls_backward_is_refused_and_nothing_moves():
    model = linear()
    before = flat(model)
    optimizer = ResidualFeedback(model.parameters(), lr=1e-2)
    with pytest.raises(RuntimeError, match="grad"):
        optimizer.step(lambda: loss_of(model)().backward())
    torch.testing.assert_close(flat(model), before, rtol=0, atol=1e-6)


def test_a_failed_measurement_moves_nothing_and_the_anchor_stays():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=0.02, radius=0.1, hold=None, normalised=False)
    optimizer.step(lambda: 3.0)
    before = flat(model)
    optimizer.step(lambda: math.nan)
    torch.testing.assert_close(flat(model), before, rtol=0, atol=1e-6)
    (query,) = probe(model, optimizer, lambda: 5.0)
    torch.testing.assert_close(flat(model), before - 0.02 * 2.0 / 0.1 * (query - before) / 0.1, rtol=0, atol=1e-5)
    assert optimizer.round == 3


@pytest.mark.parametrize("options", [{}, {"queries": 2}, {"normalised": False}])
def test_one_huge_loss_leaves_numbers(options):
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-3, hold=None, **options)
    huge = cycle([1.7e308, -1.7e308])
    for k in range(40):
        optimizer.step(lambda k=k: next(huge) if k in (20, 21) else float(k))
    assert flat(model).isfinite().all()
    assert math.isfinite(optimizer.state_dict()["state"][0]["square"])
    if options.get("normalised", True):
        assert float(flat(model).abs().max()) < 2.0


@pytest.mark.parametrize(
    ("param", "options", "error"),
    [
        (torch.nn.Parameter(torch.ones(2)), {"radius": -1.0}, ValueError),
        (torch.nn.Parameter(torch.ones(2)), {"lr": math.nan}, ValueError),
        (torch.ones(2, dtype=torch.int64), {}, TypeError),
    ],
)
def test_a_group_that_is_refused_is_not_there(param, options, error):
    optimizer = ResidualFeedback(linear().parameters(), lr=1e-3)
    with pytest.raises(error):
        optimizer.add_param_group({"params": [param], **options})
    assert len(optimizer.param_groups) == 1
    optimizer.step(lambda: 1.0)
    assert param.tolist() == [1, 1]


def test_the_state_of_another_optimiser_is_refused_and_nothing_changes():
    model = linear()
    adam = torch.optim.Adam(model.parameters())
    loss_of(model)().backward()
    adam.step()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-3)
    optimizer.step(loss_of(model))
    before = copy.deepcopy(optimizer.state_dict())
    for other in (adam, torch.optim.SGD(model.parameters())):
        with pytest.raises(ValueError, match=r"lacks .*radius: load the state_dict\(\)"):
            optimizer.load_state_dict(other.state_dict())
    assert optimizer.state_dict() == before
    optimizer.step(loss_of(model))


def test_parameter_groups_have_their_own_rates_and_radii():
    model = linear()
    groups = [{"params": [model.weight], "radius": 0.2, "lr": 0.0}, {"params": [model.bias]}]
    optimizer = ResidualFeedback(groups, lr=0.02, radius=0.1, hold=None)
    weight, bias = model.weight.detach().clone(), model.bias.detach().clone()
    twin = linear()
    (query,) = probe(model, optimizer, lambda: 1.0)
    (same,) = probe(twin, ResidualFeedback(twin.parameters(), lr=0.02, radius=0.1, hold=None), lambda: 1.0)
    torch.testing.assert_close(
        query[:6] - weight.double().flatten(), 2 * (same[:6] - weight.double().flatten()), rtol=1e-4, atol=1e-6
    )
    torch.testing.assert_close(query[6:], same[6:], rtol=0, atol=0)
    optimizer.step(lambda: 2.0)
    torch.testing.assert_close(model.weight.detach(), weight, rtol=0, atol=1e-6)
    assert not torch.allclose(model.bias.detach(), bias)


def test_frozen_parameters_stay_to_the_bit():
    model = linear()
    model.weight.requires_grad_(False)
    before = model.weight.clone()
    optimizer = ResidualFeedback(model.parameters(), lr=0.02)
    for k in range(8):
        optimizer.step(lambda k=k: float(k))
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("at", [3, 8, 13])
def test_resume_is_bit_exact_from_a_weights_only_file(dtype, at, tmp_path):
    def make():
        model = linear(dtype)
        optimizer = ResidualFeedback(model.parameters(), lr=1e-3, radius=0.1, hold=4, seed=7)
        return model, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)

    def go(model, optimizer, schedule, rounds):
        for _ in range(rounds):
            optimizer.step(loss_of(model))
            schedule.step()

    through = make()
    go(*through, 20)
    parts = make()
    go(*parts, at)
    torch.save([part.state_dict() for part in parts], tmp_path / "saved.pt")
    saved = torch.load(tmp_path / "saved.pt", weights_only=True)
    again = linear(dtype)
    optimizer = ResidualFeedback(again.parameters(), lr=123.0, hold=None, seed=99)  # all of it is in the file
    resumed = again, optimizer, torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
    for part, state in zip(resumed, saved, strict=True):
        part.load_state_dict(state)
    go(*resumed, 20 - at)
    assert torch.equal(flat(resumed[0]), flat(through[0]))
    ours, theirs = (o.state_dict()["state"] for o in (resumed[1], through[1]))
    for one, other in zip(ours.values(), theirs.values(), strict=True):
        assert one.keys() == other.keys()
        for key in one:
            assert one[key] is other[key] or bool((torch.as_tensor(one[key]) == torch.as_tensor(other[key])).all())


def test_after_a_resume_a_batch_is_held_for_the_rest_of_its_steps():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-3, hold=4)
    for _ in range(6):
        optimizer.step(lambda: 1.0)
    taken = []
    for batch in optimizer.held("bc"):
        optimizer.step(lambda: 1.0)
        taken.append(batch)
    assert taken == list("bbcccc")


def test_half_precision_learns_in_float32():
    # Moves of 1e-5 at 1.0 are far below what bfloat16 can tell apart (2⁻⁸): the master gathers them.
    weight = torch.nn.Parameter(torch.ones(4, dtype=torch.bfloat16))
    optimizer = ResidualFeedback([weight], lr=1e-5, radius=0.05, hold=None)
    for _ in range(50):
        optimizer.step(lambda: weight.float().sum())
    master = optimizer.state[weight]["master"]
    assert master.dtype == torch.float32
    assert weight.dtype == torch.bfloat16
    assert 0 < float((master - 1).abs().max()) < 2**-9
    assert torch.equal(weight.detach(), master.bfloat16())


def test_no_copy_of_the_parameters_is_kept():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-3)
    for _ in range(6):
        optimizer.step(loss_of(model))
    kept = io.BytesIO()
    torch.save(optimizer.state_dict(), kept)
    assert not any(isinstance(v, torch.Tensor) for state in optimizer.state.values() for v in state.values())


def test_copies_are_independent_and_go_the_same_way():
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-3, hold=None)
    optimizer.step(loss_of(model))
    twin, twins = copy.deepcopy((model, optimizer))
    for m, o in ((model, optimizer), (twin, twins)):
        for _ in range(5):
            o.step(loss_of(m))
    assert torch.equal(flat(model), flat(twin))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"lr": -1.0}, "lr=-1.0"),
        ({"radius": 0.0}, "radius=0.0"),
        ({"hold": 1}, "hold=1"),
        ({"queries": 3}, "queries=3"),
        ({"seed": -1}, "seed=-1"),
        ({"window": 0.5}, "window=0.5"),
    ],
)
def test_errors_name_the_value(options, match):
    with pytest.raises(ValueError, match=match):
        ResidualFeedback(linear().parameters(), **{"lr": 1e-3, **options})


def test_parameters_that_are_not_real_are_refused():
    with pytest.raises(TypeError, match="complex64"):
        ResidualFeedback([torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))], lr=1e-3)


@pytest.mark.parametrize("schedule", ["StepLR", "CosineAnnealingLR", "OneCycleLR", "ReduceLROnPlateau"])
def test_schedulers_of_torch(schedule):
    model = linear()
    optimizer = ResidualFeedback(model.parameters(), lr=1e-2, hold=None)
    options = {
        "StepLR": {"step_size": 2, "gamma": 0.1},
        "CosineAnnealingLR": {"T_max": 10},
        "OneCycleLR": {"max_lr": 1e-2, "total_steps": 20, "cycle_momentum": False},
        "ReduceLROnPlateau": {"patience": 1},
    }[schedule]
    scheduler = getattr(torch.optim.lr_scheduler, schedule)(optimizer, **options)
    rates = set()
    for _ in range(10):
        optimizer.step(loss_of(model))
        scheduler.step(*([1.0] if schedule == "ReduceLROnPlateau" else []))
        rates.add(optimizer.param_groups[0]["lr"])
    assert len(rates) > 1


def test_the_page(example):
    names = example("torch")
    assert names["optimizer"].round > 0
