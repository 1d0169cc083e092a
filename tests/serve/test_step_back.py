"""A service returns a study to its baseline when tuning makes matters worse."""

import numpy as np
import pytest


@pytest.mark.parametrize("reaction", ["stop", "restart"])
def test_a_service_pauses_or_goes_on(service, reaction):
    guard = {"on_revert": reaction}
    service.make("a", knobs=[{"name": "x", "low": 0.0, "high": 1.0, "start": 0.5}], baseline={"every": 4}, guard=guard)
    rng, blocked = np.random.default_rng(1), None
    for _ in range(200):
        trial = service.ask().json()
        if "id" not in trial:
            blocked = trial
            break
        value = 20 + rng.standard_normal() + (0 if trial["kind"] == "baseline" else 5)
        assert service.tell(trial["id"], value).status_code == 200
    resets = [event for event in service.events(limit=1000) if event["kind"] == "reset"]
    assert resets
    assert "worse than the baseline, by " in resets[0]["note"]
    assert (blocked is not None) == (reaction == "stop")
    if blocked is not None:
        assert "back to the baseline" in str(blocked)
        assert len(resets) == 1
