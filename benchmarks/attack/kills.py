"""Kill fit, save and the commands of the sealed folder at every moment, fill their disk, make it read-only.

    python benchmarks/attack/kills.py [--every 1] [--random 100] [--seed 0] [--only NAME] [--report FILE]

For every command the file operations of a whole run are counted. Then the command is run again, once for each
operation and each fault: killed right after it, the disk full from it on, the disk read-only from it on.
Random kills from outside come on top. Afterwards what was there before must be there, or the new whole.
What the command prints must be one sentence. The command that it offers must succeed and end as a run without
a fault does, and no file may be left over. Needs Linux. Exits with 1 when something was not as it must be.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from cases import FAULTS, RANDOM, Attack, Counts, Scenario
from forking import import_what_it_imported, in_fork, run, run_command, run_save
from shim import Fault

FIT = ["fit", "table.csv", "--target", "y", "--group", "site", "--candidates", "lr", "--n-clusters", "2"]
FIT += ["--collaboration", "average", "--no-report", "--out", "out"]
SITES = ("a", "b", "c", "d")
SHARE = {s: ["share", f"{s}.csv", "--name", s, "--target", "y", "--folder", "shared"] for s in SITES}
SCORE = {s: ["score", f"{s}.csv", "--name", s, "--folder", "shared"] for s in SITES}
CONCLUDE = ["conclude", "--folder", "shared"]
# Beside the results lies something of the user's.
STRANGER = "thesis.tex"


def write_tables(work: Path) -> None:
    """Write a table of four learners of two truths, and a table for each of them."""
    import polars as pl

    from coterie.datasets import make_linear_learners

    data = make_linear_learners(n_learners=4, n_truths=2, n_rows=20, n_features=2, random_state=0)
    names = dict(zip(data.learner_ids.tolist(), SITES, strict=True))
    frame = pl.DataFrame({"x0": data.X[:, 0], "x1": data.X[:, 1], "y": data.y})
    frame = frame.with_columns(site=pl.Series([names[group] for group in data.groups.tolist()]))
    frame.write_csv(work / "table.csv")
    for site in SITES:
        frame.filter(pl.col("site") == site).drop("site").write_csv(work / f"{site}.csv")


class Templates:
    """What is there before each command, made by the commands themselves.

    Parameters
    ----------
    base : Path
        A folder for them.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def made(self, name: str, like: str, *commands: list[str]) -> Path:
        """Copy another template and run commands in it."""
        folder = self._base / name
        shutil.copytree(self._base / like, folder)
        for arguments in commands:
            ran = run(run_command, arguments, folder)
            if ran.code not in (0, 3):
                raise RuntimeError(f"{arguments} ended with {ran.code}: {ran.err}")
            import_what_it_imported(folder)
        return folder

    def scenarios(self) -> list[Scenario]:
        """Return all scenarios."""
        bare = self._base / "bare"
        (bare / "work" / "shared").mkdir(parents=True)
        (bare / "work" / STRANGER).write_text("mine")
        # Threads that polars starts here would be missing in later forks.
        in_fork(lambda: write_tables(bare / "work"))
        fitted = self.made("fitted", "bare", [*FIT, "--candidates", "ridge"])
        stopped = self.made("stopped", "fitted")
        run(run_command, [*FIT, "--force"], stopped, Fault("kill", 20))
        if not list(stopped.glob("work/out.unfinished/fits/*")):
            raise RuntimeError("A fit that was killed after 20 operations has left nothing to go on with.")
        linear = [[*command, "--candidates", "linear"] for command in SHARE.values()]
        shared = self.made("shared", "bare", *linear[1:])
        scored = self.made("scored", "shared", linear[0], *(SCORE[site] for site in SITES[1:]))
        asked = self.made("asked", "scored", SCORE[SITES[0]])
        answering = self.made("answering", "asked", CONCLUDE)
        first = SITES[0]
        model = "out/model.coterie"
        return [
            Scenario("fit", "fit", bare, FIT, reruns=((), ("--resume",), ("--force",))),
            Scenario("fit --force", "fit", fitted, [*FIT, "--force"]),
            Scenario("fit --force --resume", "fit", stopped, [*FIT, "--force", "--resume"]),
            Scenario("save", "save", fitted, [model, model], run_save),
            Scenario("save as", "save", fitted, [model, "new.coterie"], run_save),
            Scenario("share", "folder", shared, linear[0]),
            Scenario("score", "folder", scored, SCORE[first]),
            Scenario("conclude", "folder", asked, CONCLUDE, codes=(0, 3)),
            Scenario("score, answering", "folder", answering, SCORE[first]),
        ]


def as_report(found: dict[str, Counts], arguments: str) -> str:
    """Return the report as Markdown."""
    import numpy
    import polars
    import sklearn

    import coterie

    modules = {"coterie": coterie, "numpy": numpy, "scikit-learn": sklearn, "polars": polars}
    versions = ", ".join(f"{name} {module.__version__}" for name, module in modules.items())
    lines = [
        "# Kills, full disks, disks that turn read-only",
        "",
        f"`python benchmarks/attack/kills.py{arguments}`",
        "",
        f"{platform.system()}, Python {platform.python_version()}, {versions}.",
        "",
        "| command | file operations | killed after one | disk full from one on | read-only from one on "
        "| killed at random | not as it must be |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, counts in found.items():
        cases = " | ".join(str(counts.cases[kind]) for kind in (*FAULTS, RANDOM))
        lines.append(f"| {name} | {counts.operations} | {cases} | {len(counts.wrong)} |")
    total = sum(sum(counts.cases.values()) for counts in found.values())
    wrong = [what for counts in found.values() for what in counts.wrong]
    lines += ["", f"{total} cases; not as it must be: {len(wrong)}.", ""]
    ends = sum((counts.ends for counts in found.values()), Counter[str]())
    lines += ["How the commands ended, by exit code (-9: killed; 2: refused in one sentence):", ""]
    lines += [f"- {end}: {count}" for end, count in sorted(ends.items())]
    return "\n".join([*lines, *(f"- {what}" for what in wrong)]) + "\n"


def main() -> int:
    """Attack everything and report."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--every", type=int, default=1, help="Look at one of so many operations.")
    parser.add_argument("--random", type=int, default=100, help="Random kills of fit, save and folder each.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="Scenarios whose name begins so.")
    parser.add_argument("--report", type=Path, help="Write the report to this file.")
    options = parser.parse_args()
    found: dict[str, Counts] = {}
    with tempfile.TemporaryDirectory(prefix="coterie-attack-") as folder:
        scenarios = Templates(Path(folder)).scenarios()
        attack, sizes = Attack(Path(folder)), Counter(scenario.group for scenario in scenarios)
        for scenario in scenarios:
            if not scenario.name.startswith(options.only):
                continue
            n_random = -(-options.random // sizes[scenario.group])
            counts = attack.attack(scenario, options.every, n_random, options.seed)
            found[scenario.name] = counts
            print(f"{scenario.name}: {counts.cases.total()} cases, {len(counts.wrong)} wrong", flush=True)
    text = as_report(found, f" --every {options.every} --random {options.random} --seed {options.seed}")
    print(text)
    if options.report:
        options.report.write_text(text, encoding="utf-8")
    return 1 if any(counts.wrong for counts in found.values()) else 0


if __name__ == "__main__":
    if sys.platform != "linux":
        sys.exit("The attack needs Linux: /proc and fork.")
    # Before anything is imported that starts threads, which a fork would not have.
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "POLARS_MAX_THREADS"), "1")
    sys.exit(main())
