"""``coterie inspect``: what is in a model's file, without making any of its models."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from coterie.cli.errors import CommandError
from coterie.cli.files import find_model
from coterie.cli.options import AsJson, Model
from coterie.cli.printing import tell_json


def describe(path: str) -> dict[str, Any]:
    """Return what a model's file says of itself, for JSON: versions, settings, learners, clusters, columns.

    No model in it is made, for that would run code of somebody's file. Checksums are verified.
    """
    path = find_model(path)
    from coterie.persistence.archive import Budget, read_archive
    from coterie.persistence.arrays import unpack_arrays
    from coterie.persistence.codec import Decoder
    from coterie.summary import plain

    try:
        manifest, members = read_archive(Path(path))
        # Models stay bytes: where one is, its name in the file stands for it.
        arrays, budget = unpack_arrays(members["arrays.npz"]), Budget(Path(path).stat().st_size)
        decoder = Decoder(arrays, lambda member: f"a model ({member})", budget)
        attributes = manifest["estimator"]
        partition = decoder.decode(manifest["fit"]["partition"])
        labels = decoder.decode(manifest["learners"]["labels"]).tolist()
        learners = dict(zip(decoder.decode(manifest["learners"]["ids"]).tolist(), labels, strict=True))
        recipe = decoder.decode(attributes["table_"]) if "table_" in attributes else None
        settings = {name: decoder.decode(value) for name, value in manifest["parameters"].items()}
        predictor_names = decoder.decode(attributes.get("feature_names_in_"))
    except (ValueError, OSError, KeyError, TypeError, AttributeError) as error:
        text = str(error) if isinstance(error, (ValueError, OSError)) else "its manifest is not whole"
        raise CommandError(f"{text.rstrip('.')}.") from None
    return {
        "file": path,
        "versions": {name: manifest.get(name) for name in ("coterie", "scikit-learn", "numpy", "format")},
        "holds_rows": manifest.get("rows"),
        "n_models": sum(name.startswith("models/") for name in members),
        "settings": plain(settings),
        "n_learners": len(learners),
        "n_clusters": partition.n_clusters,
        "rule": partition.rule,
        "clear": partition.clear,
        "notes": list(partition.notes),
        "learners": {str(learner): label for learner, label in learners.items()},
        "predictors": None if predictor_names is None else plain(predictor_names.tolist()),
        "table": None if recipe is None else plain(asdict(recipe)),
    }


def _show(description: dict[str, Any]) -> None:
    """Print what `describe` returned, as lines and tables."""
    from coterie.cli.summary import named, show_line, show_rows

    versions = ", ".join(f"{name} {version}" for name, version in description["versions"].items())
    show_line(f"{description['file']}: {versions}")
    rows_text = "with the rows of fit" if description["holds_rows"] else "without the rows of fit"
    show_line(f"{description['n_models']} models, {rows_text}; every checksum is right")
    show_line(
        "Settings: " + ", ".join(f"{name}={value!r}" for name, value in description["settings"].items())
    )
    clear_text = "" if description["clear"] else ", but no clear ones"
    show_line(
        f"{description['n_learners']} learners, {description['n_clusters']} coteries{clear_text}, "
        f"by {description['rule']}"
    )
    members: dict[int, list[str]] = {}
    for learner, label in description["learners"].items():
        members.setdefault(label, []).append(learner)
    table_rows = [{"cluster": label, "learners": named(members[label])} for label in sorted(members)]
    show_rows(["cluster", "learners"], table_rows)
    if description["table"]:
        table = description["table"]
        show_line(f"Target {table['target']!r}, learners by {table['group']!r}; columns:")
        show_rows(["name", "remark"], table["columns"])
    elif description["predictors"]:
        show_line(f"Predictors: {named(description['predictors'])}")
    for note in description["notes"]:
        show_line(f"Note: {note}")


def inspect(model: Model, as_json: AsJson = False) -> None:
    """Show what is in a model's file: versions, settings, learners, coteries, columns."""
    about = describe(model)
    if as_json:
        tell_json(about)
    else:
        _show(about)
