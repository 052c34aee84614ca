"""The protocol on Flower: the same messages, carried between a ServerApp and the ClientApps of the sites.

Every message to a node costs a fresh process there, so the rounds are few and fat: share, score, four
questions at most, conclude. Sites that send moments are asked for these only. Nodes that fail or come late
are left out and named in the result. Flower authenticates nodes and encrypts what travels, but a node runs
whatever app it is sent: see the guide, and the sealed folder where that is not acceptable.

Needs the extra ``flower``.
"""

from __future__ import annotations

try:
    import flwr.app  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "Flower is not installed: install coterie's extra 'flower'.", name=error.name
    ) from error

from coterie.flower.client import make_client_app, save_conclusion, site_from_table
from coterie.flower.in_process import InProcessGrid
from coterie.flower.server import FederatedRun, RunSettings, make_server_app, run_protocol

__all__ = [
    "FederatedRun",
    "InProcessGrid",
    "RunSettings",
    "make_client_app",
    "make_server_app",
    "run_protocol",
    "save_conclusion",
    "site_from_table",
]
