"""The benchmark of speed: processes of peers, rounds, finished measurements, bars, the page. Peers are fakes here."""

from __future__ import annotations

import doctest
import gzip
import json
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskmatch import MaskMatchError
from maskmatch_lab.benchmarks import common, material, plots
from maskmatch_lab.benchmarks.peers import environments
from maskmatch_lab.benchmarks.peers.process import Crew, PeerDiedError, PeerError, PeerProcess
from maskmatch_lab.benchmarks.peers.table import OURS, PEERS, Peer
from maskmatch_lab.benchmarks.speed import __main__ as speed
from maskmatch_lab.benchmarks.speed import bars, curves, page, pictures, prediction, rounds, training
from maskmatch_lab.benchmarks.speed.kept import Kept
from maskmatch_lab.benchmarks.speed.rounds import Work, alternate
from maskmatch_lab.benchmarks.speed.sizes import TINY

FAKE = Path(__file__).parents[1] / "fake_peer.py"


@pytest.fixture
def counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """All peers are fakes; the file has a line for each work that they prepared."""
    path = tmp_path / "counts"
    path.touch()
    monkeypatch.setattr(Crew, "command", lambda *_: [sys.executable, str(FAKE), str(path)])
    monkeypatch.setattr(speed, "python_of", lambda *_: Path(sys.executable))
    monkeypatch.setattr(prediction, "_command", lambda _: 0.5)
    return path


@pytest.fixture
def crew(counts: Path, tmp_path: Path) -> Any:
    with Crew(tmp_path / "environments", tmp_path / "logs") as crew:
        yield crew


def step(labels: int, curve: str = "curve", peer: str = OURS, **settings: Any) -> Work:
    return Work(curve, peer, "step", {"labels": labels, **settings}, units=2, size=labels)


def test_a_process_answers_what_it_is_asked_whatever_libraries_print(crew: Crew) -> None:
    about = crew.ask(OURS, "about")
    assert set(about["versions"]) == {"torch"}
    assert crew.ask(OURS, "prepare", name="a", kind="training", settings={"names": ["x"]})["seconds"] >= 0
    answer = crew.ask(OURS, "run", name="a")
    assert answer["steps"] == 3
    assert answer["peak_megabytes"] > 1
    assert crew.ask(OURS, "predict", name="a", texts=["one", "two"])["labels"] == ["x", "x"]
    assert crew.ask(OURS, "drop", name="a") == {}
    with pytest.raises(PeerError, match="KeyError"):
        crew.ask(OURS, "run", name="a")


def test_a_failure_is_told_in_a_line_and_a_dead_process_starts_again(crew: Crew) -> None:
    with pytest.raises(PeerError, match="maskmatch: ValueError: too many labels"):
        crew.ask(OURS, "prepare", name="a", kind="step", settings={"labels": 666})
    with pytest.raises(PeerDiedError, match="maskmatch ended"):
        crew.ask(OURS, "prepare", name="a", kind="step", settings={"labels": 13})
    assert crew.ask(OURS, "prepare", name="a", kind="step", settings={"labels": 1})
    assert crew.lives[OURS, ""] == 3


def test_a_process_that_takes_too_long_is_ended(crew: Crew) -> None:
    crew.ask(OURS, "prepare", name="a", kind="step", settings={"labels": 777})
    with pytest.raises(PeerDiedError, match=r"took longer than 0\.2 s"):
        crew.ask(OURS, "run", name="a", longest=0.2)


def test_rounds_give_medians_of_turns_and_end_curves_that_fail(crew: Crew) -> None:
    works = [step(1), step(10, "other", "SetFit"), step(666), step(700)]
    points = [point.to_dict() for point in alternate(crew, works, repeats=3, limit=30)]
    assert [len(point.get("runs", [])) for point in points] == [3, 3, 0, 0]
    assert points[0]["seconds"] == pytest.approx(sorted(points[0]["runs"])[1] / 2, abs=1e-3)
    assert "too many labels" in points[2]["ended"]
    assert points[3]["ended"] == points[2]["ended"], "what is larger is not tried"


def test_a_curve_ends_before_a_run_that_would_take_too_long(crew: Crew) -> None:
    works = [step(1, slow=True), step(2, slow=True), step(4, slow=True)]
    points = alternate(crew, works, repeats=1, limit=40)
    assert points[0].seconds == [50.0]  # it is not known before
    assert [point.ended for point in points[1:]] == ["a run would take about 50 s"] * 2


def test_a_process_that_dies_over_one_work_prepares_the_others_again(crew: Crew) -> None:
    points = alternate(crew, [step(1, "one"), step(13, "deadly"), step(2, "two")], repeats=2, limit=30)
    assert [len(point.seconds) for point in points] == [2, 0, 2]
    assert points[1].ended is not None
    assert "ended" in points[1].ended
    points = alternate(crew, [step(1, "one"), step(13, "deadly")], repeats=2, limit=30)
    assert [len(point.seconds) for point in points] == [2, 0], "also if nothing is prepared after it"


def test_what_is_finished_is_not_measured_again_unless_something_changed(tmp_path: Path) -> None:
    measured: list[int] = []

    def measure() -> int:
        measured.append(1)
        return len(measured)

    kept = Kept(tmp_path)
    assert kept.measured("a", {"size": 1}, measure)["found"] == 1
    assert Kept(tmp_path).measured("a", {"size": 1}, measure)["found"] == 1
    assert kept.measured("a", {"size": 2}, measure)["found"] == 2
    assert Kept(tmp_path, again=True).measured("a", {"size": 1}, measure)["found"] == 3


@pytest.fixture
def data(tmp_path: Path, tiny_default: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small dataset, and a results folder of the test's own."""
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(page, "RESULTS", tmp_path / "results", raising=False)
    home = tmp_path / "data" / "banking77"
    home.mkdir(parents=True)
    rows = [
        {"text": f"where is my {label} {number}", "label": label} for number in range(6) for label in ("card", "refund")
    ]
    for split in ("train", "test"):
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (home / f"{split}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    return tmp_path / "data"


def test_all_parts_run_keep_what_they_found_and_make_a_page(
    data: Path, counts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(speed, "Sizes", lambda: TINY)
    asked = ["--data", str(data), "--kept", str(tmp_path / "kept"), "--environments", str(tmp_path / "environments")]
    speed.main(asked)
    results = {part: common.read_results(f"speed_{part}") for part in speed.PARTS}
    assert all(str(tmp_path) not in json.dumps(result) for result in results.values())
    assert results["training"]["command"] == "python -m maskmatch_lab.benchmarks.speed --only training"
    assert set(results["training"]["peers"]) == set(PEERS)
    assert {row["peer"] for row in results["training"]["table"]} == {OURS, "SetFit", "bare loop", "tf-idf"}
    assert {row["accuracy"] for row in results["training"]["table"]} == {0.5}
    assert {point["peer"] for point in results["prediction"]["points"]} == set(PEERS)
    sizes = {point["size"] for point in results["curves"]["step_labels"]["points"]}
    assert sizes == set(TINY.labels)
    points = results["curves"]["prediction_labels"]["points"]
    assert [point["recall"] for point in points if point["way"] == "maskmatch"] == [1.0] * len(TINY.labels)

    common.write_results("overhead", {"time_ratio": 1.2})
    accuracy = {"full": {"mean": 0.5, "sd": 0.0}, "sampled": {"mean": 0.498, "sd": 0.0}}
    common.write_results("many_labels", {"dataset": "many", "accuracy": accuracy})
    figures = page.figures()
    assert page.NOT_YET not in figures
    assert "as a multiple of the bare loop over the same token batches | at most 1.15 | 1.2 | **no**" in figures
    assert "loss in accuracy on many with sampled labels instead of all | at most 0.005 | 0.002 | yes" in figures
    assert "loss in accuracy of maskmatch, ONNX int8 against torch | at most 0.005 | 0 | yes" in figures
    for path, picture in page.pictures(tmp_path).items():
        assert ElementTree.fromstring(picture).tag.endswith("svg")
        assert path.name in figures

    before = counts.read_text(encoding="utf-8")
    speed.main([*asked, "--only", "training", "curves"])
    assert counts.read_text(encoding="utf-8") == before, "a finished measurement ran again"
    assert common.read_results("speed_training")["table"] == results["training"]["table"]


def test_a_tiny_run_leaves_the_results_alone(data: Path, counts: Path, tmp_path: Path) -> None:
    speed.main(["--data", str(data), "--kept", str(tmp_path / "kept"), "--tiny", "--only", "training"])
    assert not (tmp_path / "results").exists()
    assert (tmp_path / "kept" / "tiny" / "results" / "speed_training.json").is_file()


def test_the_page_says_what_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(page, "RESULTS", tmp_path, raising=False)
    assert page.figures().count(page.NOT_YET) == 2 * len(speed.PARTS) + len(page.OTHERS)
    assert page.pictures(tmp_path) == {}


def training_row(
    way: str, accuracy: float, seconds: float, share: float | None = None, turns: int = 3
) -> dict[str, Any]:
    return {
        "dataset": "banking77",
        "way": way,
        "peer": "SetFit" if share is None else OURS,
        "share": share,
        "accuracies": [accuracy] * turns,
        "seconds": seconds,
    }


def test_bars_tell_what_was_reached() -> None:
    table = [
        training_row("SetFit, 5 iterations", 0.78, 120.0),
        training_row("maskmatch", 0.77, 10.0, 0.25),
        training_row("maskmatch", 0.79, 24.0, 0.5),
        training_row("maskmatch", 0.81, 48.0, 1.0),
    ]
    time, accuracy = bars.of_part("training", {"table": table})
    assert (time["value"], time["met"]) == (0.2, False)
    assert accuracy["value"] == pytest.approx(0.03)
    assert accuracy["met"]
    assert training.time_to_reach(table, "banking77", table[0]) == table[2]
    table[0]["accuracies"] = [0.9] * 3
    assert [bar["met"] for bar in bars.of_part("training", {"table": table})] == [False, False]
    table[1] |= {"accuracies": [0.9] * 3}
    assert bars.of_part("training", {"table": table})[0]["met"]


def test_ways_are_compared_over_the_turns_that_both_have() -> None:
    once, often = training_row("SetFit, 20 iterations", 0.8, 600.0, turns=1), training_row("maskmatch", 0.0, 10.0, 1.0)
    often["accuracies"] = [0.81, 0.5, 0.5]
    assert training.gain(often, once) == pytest.approx(0.01)
    assert training.gain(once, often) == pytest.approx(-0.01)


def test_the_page_says_from_where_on_an_index_is_the_cheaper_one() -> None:
    exact, index = curves.SEARCHES
    points = [
        {"way": way, "size": size, "seconds": seconds, "index": {"seconds": 2.0}}
        for way, taken in ((exact, (0.001, 0.004)), (index, (0.002, 0.0015)))
        for size, seconds in zip((1000, 9000), taken, strict=True)
    ]
    assert "from 9,000 labels: it saves 2.5 ms per text at 9,000 labels (built in 2.0 s)." in page.crossing(points)
    assert "nowhere up to 1,000 labels." in page.crossing([point for point in points if point["size"] == 1000])
    assert page.crossing([]) == page.NOT_YET
    later = [{**point, "size": 20_000, "seconds": 0.001} for point in points if point["size"] == 9000]
    assert "nowhere up to 20,000 labels." in page.crossing([*points, *later])  # 9,000 may have been by chance


def test_the_page_says_what_was_measured_at_another_time() -> None:
    cells = [
        {"way": way, "measured": f"2026-01-01T{time}:00+00:00"}
        for way, time in (("ours", "12:00"), ("SetFit", "12:50"), ("hurry", "15:00"), ("hurry", "15:10"))
    ]
    about, sessions = page.sessions(cells)
    assert about == "Measured in 2 sessions:"
    assert sessions.splitlines()[2:] == ["| 2026-01-01 12:00 | ours, SetFit |", "| 2026-01-01 15:00 | hurry |"]
    assert page.sessions(cells[:2]) == []


def test_no_environment_is_needed_where_nothing_is_required(tmp_path: Path) -> None:
    assert environments.python_of(PEERS[OURS], tmp_path) == Path(sys.executable)
    assert environments.is_ready(PEERS[OURS], tmp_path)


def test_an_environment_sees_the_projects_packages_and_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    peer = Peer("a peer", "a_peer", ("some==1",))
    monkeypatch.setattr(environments, "_install", lambda peer, _: made.append(peer.name))
    assert not environments.is_ready(peer, tmp_path)
    for _ in range(2):
        python = environments.python_of(peer, tmp_path)
    assert made == ["a peer"]
    assert environments.is_ready(peer, tmp_path)
    assert python.is_relative_to(tmp_path)
    [link] = tmp_path.rglob("project.pth")
    assert (Path(link.read_text(encoding="utf-8").strip()) / "torch").is_dir()
    assert not environments.is_ready(Peer("a peer", "a_peer", ("some==2",)), tmp_path)


def test_an_environment_with_a_torch_of_its_own_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bring_torch(_: Peer, python: Path) -> None:
        next(python.parents[1].rglob("site-packages")).joinpath("torch").mkdir()

    monkeypatch.setattr(environments, "_install", bring_torch)
    with pytest.raises(MaskMatchError, match="installed its own torch"):
        environments.python_of(Peer("a peer", "a_peer", ("some==1",)), tmp_path)


@pytest.mark.parametrize("name", [peer.name for peer in PEERS.values() if peer.requirements])
def test_a_real_peer_starts_in_its_environment(name: str, tmp_path: Path) -> None:
    if not environments.is_ready(PEERS[name], environments.DEFAULT_FOLDER):
        pytest.skip(f"{name} has no environment here; `make bench` makes one")
    with Crew(environments.DEFAULT_FOLDER, tmp_path) as crew:
        assert set(crew.ask(name, "about")["versions"]) == set(PEERS[name].packages)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from("abcdefg"), min_size=3, unique=True), st.integers(1, 40))
def test_names_are_distinct_and_the_first_of_more(words: list[str], count: int) -> None:
    names = material.make_names(words, count)
    assert len(set(names)) == len(names) == count
    assert all(2 <= len(name.split()) <= 5 for name in names)
    assert material.make_names(words, count + 3)[:count] == names


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 30), st.integers(1, 5))
def test_texts_have_the_length_that_was_asked_for(length: int, count: int) -> None:
    texts = material.make_texts(["my card is lost", "refund please"], length, count)
    assert [len(text.split()) for text in texts] == [length] * count


@settings(max_examples=8, deadline=None)
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=12),
        st.lists(st.tuples(st.floats(1e-3, 1e7), st.floats(1e-5, 1e4)), min_size=1, max_size=5),
        min_size=1,
        max_size=12,
    )
)
def test_a_picture_is_well_formed_whatever_it_shows(series: dict[str, list[tuple[float, float]]]) -> None:
    axis = plots.Axis("labels & more", str)
    picture = plots.line_chart("curves", series, axis, axis)
    root = ElementTree.fromstring(picture)
    assert root.get("aria-label") == "curves"
    assert "labels & more" in [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("module", [material, pictures, rounds])
def test_examples_in_docstrings_hold(module: Any) -> None:
    result = doctest.testmod(module)
    assert result.attempted
    assert not result.failed


def test_a_process_that_cannot_start_tells_its_last_words(tmp_path: Path) -> None:
    process = PeerProcess([sys.executable, "-c", "raise SystemExit('no such library')"], "a peer", tmp_path / "log")
    with pytest.raises(PeerDiedError, match="a peer ended: no such library"):
        process.ask("about")
    process.close()
