"""How the coteries differ, along the predictor that tells each pair apart best."""

from __future__ import annotations

from typing import Any

from coterie._text import number, percent
from coterie.report.figures.look import Figure, axis, figure, headed, short_names
from coterie.report.words import region_words


def _caption(pair: dict[str, Any]) -> str:
    shares = [
        f"{predictor['name']} {percent(predictor['importance'])}"
        for predictor in pair["predictors"]
        if round(100 * predictor["importance"])
    ]
    depends = f"The difference goes with {', '.join(shares)}. " if shares else ""
    return f"{depends}{region_words(pair)}"


def _steps(profile: dict[str, list[Any]]) -> tuple[list[Any], list[Any], list[str]]:
    """Return the corners of a line that is level over each bin."""
    across: list[Any] = []
    up: list[Any] = []
    texts: list[str] = []
    bins = zip(profile["from"], profile["to"], profile["values"], profile["rows"], strict=True)
    for low, high, value, rows in bins:
        across += [low, high]
        up += [value, value]
        text = f"{number(low)} to {number(high)}: {number(value)} ({rows} rows)"
        texts += [text, text]
    return across, up, texts


def differences_figures(data: dict[str, Any]) -> list[Figure]:
    """Draw the difference of two coteries' predictions, a small picture for each pair."""
    figures = []
    for pair in data["pairs"]:
        first, second = pair["clusters"]
        (name,) = short_names([pair["predictors"][0]["name"]])
        across, up, texts = _steps(pair["profile"])
        line = {
            "type": "scatter",
            "mode": "lines",
            "x": across,
            "y": up,
            "text": texts,
            "line": {"color": "@ink", "width": 2.5},
            "hovertemplate": f"{name} %{{text}}<extra></extra>",
        }
        # Differences inside the band are no larger than the noise of single rows.
        band = {"type": "rect", "xref": "paper", "x0": 0, "x1": 1, "y0": -pair["noise"], "y1": pair["noise"]}
        layout = {
            "xaxis": axis(title=name, showgrid=False, nticks=6),
            "yaxis": axis(nticks=5, zeroline=True, zerolinecolor="@quiet"),
            "shapes": [
                {**band, "fillcolor": "@faint", "opacity": 0.55, "line": {"width": 0}, "layer": "below"}
            ],
            **headed(f"<b>coterie {first} minus coterie {second}</b>", 240),
        }
        label = f"Prediction of coterie {first} minus that of coterie {second}"
        figures.append(figure(f"differences-{first}-{second}", label, [line], layout, caption=_caption(pair)))
    return figures
