"""Tables small enough to fit in a moment, and the command run in this process."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from coterie.cli.app import main
from coterie.cli.folders import Workplace
from coterie.cli.preparing import prepare
from coterie.cli.running import make_model, run_fit
from coterie.datasets import make_linear_learners


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def complaint(self) -> str:
        """The one sentence of a command that refuses."""
        assert self.code == 2, self
        assert self.out == ""
        lines = self.err.strip().split("\n")
        assert len(lines) == 1, self.err
        assert lines[0].startswith("coterie: ")
        return lines[0].removeprefix("coterie: ")


def make_table(n_learners: int = 6, n_rows: int = 20) -> pl.DataFrame:
    """Return learners of two truths: a, c, e and b, d, f."""
    data = make_linear_learners(
        n_learners=n_learners, n_truths=2, n_rows=n_rows, n_features=2, random_state=0
    )
    names = {f"learner {k:02}": chr(ord("a") + k) for k in range(n_learners)}
    sites = [names.get(name, name) for name in data.groups.tolist()]
    return pl.DataFrame(data.X, schema=["x0", "x1"]).with_columns(y=pl.Series(data.y), site=pl.Series(sites))


@pytest.fixture
def run(monkeypatch, capsys) -> Callable[..., Outcome]:
    """Run the command in this process."""

    def command(*arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["coterie", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return command


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    """Keep the key out of the user's cache, and colours out of the output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTERIE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("NO_COLOR", "1")
        yield


@pytest.fixture
def table() -> pl.DataFrame:
    """A table of six learners."""
    return make_table()


@pytest.fixture
def here(monkeypatch, tmp_path, table) -> Path:
    """A folder to work in, with table.csv."""
    monkeypatch.chdir(tmp_path)
    table.write_csv(tmp_path / "table.csv")
    return tmp_path


@pytest.fixture(scope="session")
def fitted_once(tmp_path_factory) -> Path:
    """The results of a fit, made once."""
    place = Workplace(tmp_path_factory.mktemp("fitted") / "out")
    rows, recipe = prepare(make_table(), target="y", group="site")
    run_fit(make_model("lr"), rows, recipe, place, report=False)
    return place.out


@pytest.fixture
def fitted(here, fitted_once) -> Path:
    """The model of table.csv."""
    shutil.copytree(fitted_once, here / "out")
    return here / "out" / "model.coterie"
