"""Write the tables of pays.csv into README.md: python benchmarks/federated/pays_page.py."""

from __future__ import annotations

import csv
import re
from pathlib import Path

HERE = Path(__file__).parent
CANDIDATES = {
    "ridge": "Lines (`--candidates ridge`)",
    "default": "Default candidates (`--candidates default`)",
}
HEAD = (
    "table",
    "sites",
    "alone",
    "models",
    "moments",
    "local default",
    "models / alone",
    "models / local default",
    "moments / alone",
    "moments / local default",
    "bytes a site sends: models",
    "moments",
)


def table(lines: list[dict[str, str]]) -> str:
    """Return one table of Markdown, a row for each table of data."""
    rows = [" | ".join(HEAD), "|".join("---" for _ in HEAD)]
    for name in dict.fromkeys(line["table"] for line in lines):
        by = {line["sites send"]: line for line in lines if line["table"] == name}
        models, moments = by.get("models", {}), by.get("moments", {})
        known = models or moments
        ratios = [
            each.get(f"over messages / {what}", "")
            for each in (models, moments)
            for what in ("alone", "local default")
        ]
        errors = [each.get("over messages", "") for each in (models, moments)]
        sent = [each.get("bytes a site sends", "") for each in (models, moments)]
        cells = [name, known["sites"], known["alone"], *errors, known["local default"], *ratios, *sent]
        rows.append(" | ".join(cells))
    return "\n".join(f"| {row} |" if "---" not in row else f"|{row}|" for row in rows)


def main() -> None:
    """Replace what stands between the first table and the words on them."""
    lines = list(csv.DictReader((HERE / "pays.csv").open()))
    parts = []
    for candidates, said in CANDIDATES.items():
        for seed in sorted({line["seed"] for line in lines}):
            mine = [line for line in lines if (line["candidates"], line["seed"]) == (candidates, seed)]
            parts.append(f"{said}, seed {seed}:\n\n{table(mine)}")
    page = (HERE / "README.md").read_text()
    whole = "\n\n".join(parts)
    page = re.sub(
        r"Lines \(`--candidates ridge`\).*?(?=\n\n\*\*Against alone)", lambda _: whole, page, flags=re.DOTALL
    )
    (HERE / "README.md").write_text(page)


if __name__ == "__main__":
    main()
