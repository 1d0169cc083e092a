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


def read(service):
    return service.http.get("/studies/a", headers={"accept": "text/html"}).text


def test_the_context_of_the_last_rounds_and_what_depends_on_it(service):
    service.make(context=["load"])
    for k in range(30):
        body = {"context": {"load": None if k == 29 else k % 10}}
        trial = service.http.post("/v1/studies/a/trials:ask", json=body).json()
        service.tell(trial["id"], (trial["knobs"]["gain"] - 4 - 0.3 * (k % 10)) ** 2)
    page = read(service)
    rows = re.findall(r"<tr><td>.*?</tr>", part(page, "rounds"), re.S)
    assert "load = <b>–</b>" in rows[0]
    assert "load = <b>8</b>" in rows[1]
    about = part(page, "context")
    row = re.findall(r'<th scope="row">load</th>(.*?)</tr>', about)[0]
    assert re.findall(r'"figure">([^<]*)<', row)[:2] == ["0", "9"]
    assert "%" in row
    (points,) = re.findall(r'aria-label="operating point of gain for load.*?<polyline points="(.*?)"', about, re.S)
    places = [tuple(map(float, point.split(","))) for point in points.split()]
    assert [x for x, _ in places] == [5.0 * k for k in range(21)]
    with Study.open_unlocked(service.store, "a") as study:
        knob = study.knobs.all[0]
        for x, y in places[::5]:
            assert abs(100 - y - 100 * knob.share(study.at({"load": 9 * x / 100})["gain"])) < 0.01
    measured = about.split("operating point of gain")[1].split("<polyline")[0].count('class="measured"')
    assert measured == 29


def test_a_page_without_context_has_no_such_part(service):
    service.make()
    service.run(2)
    assert 'data-part="context"' not in read(service)
