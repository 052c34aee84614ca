"""A workbook of one sheet or more, written by hand: no library that writes them is needed."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if isinstance(value, (int, float)):
        return f"<c><v>{value}</v></c>"
    return f'<c t="inlineStr"><is><t>{escape(str(value))}</t></is></c>'


def _sheet(rows: Sequence[Sequence[Any]], cells: str) -> str:
    lines = "".join(f"<row>{''.join(map(_cell, row))}</row>" for row in rows)
    lines += f"<row>{cells}</row>" if cells else ""
    return f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'


def write_workbook(path: Path, *, cells: str = "", **sheets: Sequence[Sequence[Any]]) -> Path:
    """Write sheets, each a list of rows, and behind them cells as they are written in XML."""
    numbered = dict(enumerate(sheets, 1))
    listed = "".join(f'<sheet name="{n}" sheetId="{k}" r:id="r{k}"/>' for k, n in numbered.items())
    links = "".join(
        f'<Relationship Id="r{k}" Type="{_OFFICE}/worksheet" Target="worksheets/s{k}.xml"/>' for k in numbered
    )
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="w" '
        f'Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets>'
        "</workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{links}'
        "</Relationships>",
        **{f"xl/worksheets/s{k}.xml": _sheet(sheets[n], cells) for k, n in numbered.items()},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(name, text)
    return path
