"""The paper's five experiments: code and results together, our numbers beside the published ones.

    python -m reproductions fairness          # or simulation1, simulation2, ct, grid, all
    python -m reproductions all --quick       # a look in minutes, into reproductions-quick/

Run it from the root of the repository, or say ``make reproduce`` and ``make reproduce-quick``. A folder per
experiment holds `experiment.py` (settings and one replication), `data.py` (the learners that it draws or
reads), the tables and figures, `README.text.md` (the prose), and what a run has left: `results.csv`,
`seconds.csv`, `settings.json`, figures, and `README.md`, which is written from the numbers. `harness` runs
any of them; `download` fetches tables. None of this is in the wheel.
"""
