"""Sites that never see each other's rows come to the local fit's partition, and it is watched what they open.

    python benchmarks/federated/show.py --sites 50 --attacked 20

The electrical grid under attack: each site has a folder with its own table, the first of them report the
negated response. `coterie share`, `score` and `conclude` run as a process each, forked for every command,
with an audit hook that writes down every file that the process opens. In the end the partition is compared
with that of a local fit on all rows, and the lists of files with what each site may open: its own folder and
the sealed one.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

# Before numpy is imported: threads do not survive a fork.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import polars  # noqa: F401  imported here once, so that it is not imported in every process anew

import coterie.cli.app
import coterie.cli.sites
import coterie.federated.folder
import coterie.federated.wire.evaluate
from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners

# The root of the repository, where the reproductions are.
sys.path.insert(0, str(Path(__file__).parents[2]))

from reproductions.grid.data import load_grid_stability
from reproductions.grid.splitting import split_into_learners

ROUNDS = 13


def deal_rows(n_sites: int, n_attacked: int, source: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return X, y and the sites of the rows, with the response of the first sites negated."""
    if source == "grid":
        grid = load_grid_stability()
        split = split_into_learners(grid.X, grid.y, n_sites, 160)
        X, y, groups = split.X, split.y, split.groups
    else:
        data = make_linear_learners(n_learners=n_sites, n_truths=1, n_rows=40, n_features=3, random_state=0)
        X, y, groups = data.X, data.y, data.groups
    sites = list(dict.fromkeys(groups.tolist()))
    return X, np.where(np.isin(groups, sites[:n_attacked]), -y, y), groups


def write_tables(root: Path, X: np.ndarray, y: np.ndarray, groups: np.ndarray) -> list[str]:
    """Give each site a folder with its own table; return the sites."""
    (root / "box").mkdir(parents=True)
    (root / "audit").mkdir()
    names = [f"x{k}" for k in range(X.shape[1])]
    sites = list(dict.fromkeys(groups.tolist()))
    for site in sites:
        (root / "sites" / site).mkdir(parents=True)
        mine = groups == site
        with open(root / "sites" / site / "rows.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([*names, "y"])
            writer.writerows(np.column_stack([X[mine], y[mine]]).tolist())
    return sites


def run_command(arguments: Sequence[str], watched: Path | None = None) -> tuple[int, str]:
    """Run a command in a process of its own; write down what it opens; return its exit code and output."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        opened: set[str] = set()

        def hook(event: str, details: tuple[object, ...]) -> None:
            if event == "open" and isinstance(details[0], (str, bytes, os.PathLike)):
                opened.add(os.path.realpath(os.fsdecode(details[0])))
            elif event in ("subprocess.Popen", "os.exec", "os.posix_spawn"):
                opened.add(f"process: {details[0]}")

        code = 1
        try:
            os.dup2(writing, 1)
            os.dup2(writing, 2)
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            sys.argv = ["coterie", *arguments]
            if watched is not None:
                # A site remembers what it answered; here all sites are on one machine.
                own = watched.parent.parent / "sites" / watched.name
                os.environ["COTERIE_CACHE"] = str(own / "cache")
            sys.addaudithook(hook)
            coterie.cli.app.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            lines = [f"{path}\n" for path in sorted(opened)]
            if watched is not None:
                with open(watched, "a") as file:
                    file.writelines(lines)
            os._exit(code)
    os.close(writing)
    with open(reading, "rb") as pipe:
        output = pipe.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), output


def _checked(arguments: Sequence[str], watched: Path | None = None, accepted: Sequence[int] = (0,)) -> str:
    code, output = run_command(arguments, watched)
    if code not in accepted:
        sys.exit(f"coterie {' '.join(arguments)} ended with {code}: {output}")
    return output


def run_protocol_once(root: Path, sites: Sequence[str], candidates: str) -> dict[str, object]:
    """Share, score, answer and conclude; return the conclusion."""
    box = ["--folder", str(root / "box")]
    for command in ("share", "score"):
        extra = ["--candidates", candidates] if command == "share" else []
        for site in sites:
            table = str(root / "sites" / site / "rows.csv")
            own = [command, table, "--target", "y", "--name", site, *box, *extra]
            _checked(own, root / "audit" / site)
    for _ in range(ROUNDS):
        found = json.loads(_checked(["conclude", *box, "--json"], accepted=(0, 3)))
        if found["state"] == "concluded":
            return dict(found)
        for site in found["waiting"]:
            table = str(root / "sites" / site / "rows.csv")
            _checked(["score", table, "--name", site, *box], root / "audit" / site)
    sys.exit("The sites came to no conclusion.")


def strange_files(root: Path, sites: Sequence[str]) -> list[str]:
    """Return what sites opened that is neither theirs nor in the sealed folder; their own must be there."""
    strange, inside = [], os.path.realpath(root)
    for site in sites:
        opened = set((root / "audit" / site).read_text().splitlines())
        own, box = os.path.join(inside, "sites", site), os.path.join(inside, "box")
        if os.path.join(own, "rows.csv") not in opened:
            strange.append(f"{site} did not open its own rows")
        for path in sorted(opened):
            mine = path.startswith((own + os.sep, box + os.sep)) or path in (own, box)
            if path.startswith(inside) and not mine:
                strange.append(f"{site} opened {path}")
    return strange


def main() -> None:
    """Show it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--sites", type=int, default=50)
    parser.add_argument("--attacked", type=int, default=20)
    parser.add_argument("--candidates", default="lr")
    parser.add_argument("--source", choices=("grid", "simulated"), default="grid")
    options = parser.parse_args()
    X, y, groups = deal_rows(options.sites, options.attacked, options.source)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        sites = write_tables(root, X, y, groups)
        began = time.perf_counter()
        found = run_protocol_once(root, sites, options.candidates)
        seconds = time.perf_counter() - began
        strange = strange_files(root, sites)
        sizes = [path.stat().st_size for path in (root / "box").iterdir()]
    local = CoterieRegressor(options.candidates.split(","), refine="average", n_bootstrap=0).fit(
        X, y, groups=groups
    )
    labels = dict(zip(local.learner_ids_.tolist(), local.learner_labels_.tolist(), strict=True))
    label_of_last = found["labels"][sites[-1]]
    accused = {site for site, label in found["labels"].items() if label != label_of_last}
    result = {
        "sites": len(sites),
        "attacked": options.attacked,
        "coteries": found["n_clusters"],
        "rounds": found["rounds"],
        "same partition as the local fit": found["labels"] == labels,
        "attacked are those outside the last site's coterie": accused == set(sites[: options.attacked]),
        "files of others that were opened": strange,
        "bytes in the folder": sum(sizes),
        "seconds": round(seconds, 1),
    }
    print(json.dumps(result, indent=1))
    sys.exit(0 if result["same partition as the local fit"] and not strange else 1)


if __name__ == "__main__":
    main()
