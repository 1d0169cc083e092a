"""Rounds on the page of a study."""

import re
import time

from trimtab.live import Study


def part(page, name):
    return re.search(rf'data-part="{name}".*?</section>', page, re.S)[0]


def test_what_was_set_in_each_round_and_when_with_the_zone(service):
    service.make()
    trials = []
    for _ in range(3):
        trial = service.ask().json()
        service.tell(trial["id"], 1.5)
        trials.append(trial)
    page = service.http.get("/studies/a", headers={"accept": "text/html"}).text
    rows = re.findall(r"<tr><td>.*?</tr>", part(page, "rounds"), re.S)
    for row, trial in zip(rows, reversed(trials), strict=True):
        assert f"gain = <b>{trial['knobs']['gain']:.4g}</b>" in row
        assert f"size = <b>{trial['knobs']['size']}</b>" in row
    times = re.findall(r"<time>(.*?)</time>", page)
    assert len(times) >= 3
    assert all(re.fullmatch(rf"\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d {time.strftime('%Z')}", one) for one in times)


def test_the_axis_of_time_has_a_zone():
    with Study.open(":memory:", "a", [{"name": "x", "low": 0, "high": 1, "start": 0.5}], seed=0) as study:
        study.tell(study.ask(), 1.0)
        assert f'"text":"time ({time.strftime("%Z")})"' in study.figure().to_json()
