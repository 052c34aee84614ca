"""Processes of Flower on this machine, with TLS and node keys, for tests."""

from __future__ import annotations

import datetime
import ipaddress
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from coterie.datasets import make_linear_learners

TEMPLATE = Path(__file__).parents[2] / "examples" / "flower"
# Nodes start in a few seconds each on a quiet machine; the rest is for machines that are not quiet. Flower
# itself gives a node up that has not been heard of for a minute.
PATIENCE = 300.0
ROUND_SECONDS = 300
CLIENT = """
import time
from pathlib import Path

from coterie.flower import make_client_app, site_from_table


def load_site(context):
    stall = context.node_config.get("stall")
    # It has shared when it is here again: now it is scoring. Whoever was restarted does not stall again.
    if stall and "coterie.kept" in context.state and not Path(str(stall)).exists():
        Path(str(stall)).touch()
        time.sleep(3600)
    return site_from_table(context)


app = make_client_app(load_site)
"""


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _certificate(key: Any, subject: str, signer: Any, issuer: str, *extensions: Any) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signer, hashes.SHA256())


def _write_key(key: Any, path: Path, layout: serialization.PrivateFormat) -> None:
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, layout, serialization.NoEncryption()))
    path.chmod(0o600)


def write_certificates(folder: Path) -> None:
    """Write ca.crt, server.crt and server.key for this machine."""
    authority, server = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    usage = dict.fromkeys(("content_commitment", "key_encipherment", "data_encipherment"), False)
    usage |= dict.fromkeys(("key_agreement", "encipher_only", "decipher_only", "digital_signature"), False)
    own = _certificate(
        authority,
        "test CA",
        authority,
        "test CA",
        (x509.BasicConstraints(ca=True, path_length=None), True),
        (x509.KeyUsage(key_cert_sign=True, crl_sign=True, **usage), True),
    )
    names = x509.SubjectAlternativeName(
        [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    )
    purpose = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    theirs = _certificate(server, "localhost", authority, "test CA", (names, False), (purpose, False))
    for name, certificate in (("ca.crt", own), ("server.crt", theirs)):
        (folder / name).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_key(server, folder / "server.key", serialization.PrivateFormat.PKCS8)


def write_node_key(path: Path) -> None:
    """Write a node's private key, and its public one beside it."""
    key = ec.generate_private_key(ec.SECP384R1())
    _write_key(key, path, serialization.PrivateFormat.OpenSSH)
    layout = serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    path.with_suffix(".pub").write_bytes(key.public_key().public_bytes(*layout))


def free_ports(n: int) -> list[int]:
    """Return ports on which nobody listens."""
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Deployment:
    """Processes of Flower in a folder of their own; all are ended with it."""

    def __init__(self, folder: Path, n_nodes: int) -> None:
        self.folder = folder
        self.port, *self.node_ports = free_ports(n_nodes + 1)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        root = folder / "home"
        root.mkdir()
        connection = f'address = "127.0.0.1:{self.port}"\nroot-certificates = "{folder / "ca.crt"}"'
        (root / "config.toml").write_text(f"[superlink.loop]\n{connection}\n")
        binaries = str(Path(sys.executable).parent)
        self.env = {
            **os.environ,
            "PATH": f"{binaries}{os.pathsep}{os.environ.get('PATH', '')}",
            "FLWR_TELEMETRY_ENABLED": "0",
            "FLWR_DISABLE_UPDATE_CHECK": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "FLWR_HOME": str(root),
            # Many processes on few cores: threads of their own would only wait for each other.
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "no_proxy": "127.0.0.1,localhost",
        }
        write_certificates(folder)

    def start(self, name: str, *command: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("wb") as log:
            self.processes[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.env,
                cwd=self.folder,
                start_new_session=True,
            )
        return self.processes[name]

    def flwr(self, *arguments: str) -> str:
        done = subprocess.run(
            ["flwr", *arguments],
            env=self.env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start_link(self) -> None:
        certificates = ("ca-certfile", "ca.crt"), ("certfile", "server.crt"), ("keyfile", "server.key")
        options = [part for name, file in certificates for part in (f"--ssl-{name}", str(self.folder / file))]
        self.start(
            "superlink",
            *("flower-superlink", "--host", "127.0.0.1", "--port", str(self.port), *options),
            *("--enable-supernode-auth", "--disable-runtime-dependency-installation"),
        )
        self.wait_until(self._link_is_up, "the SuperLink listens")

    def _link_is_up(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def start_node(self, name: str, port: int, config: dict[str, Any]) -> subprocess.Popen[bytes]:
        texts = " ".join(f'{key}="{value}"' for key, value in config.items())
        return self.start(
            name,
            *("flower-supernode", "--root-certificates", str(self.folder / "ca.crt")),
            *("--superlink", f"127.0.0.1:{self.port}", "--host", "127.0.0.1", "--port", str(port)),
            *("--auth-supernode-private-key", str(self.folder / name), "--node-config", texts),
        )

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert time.monotonic() < deadline, f"waited in vain until {what}:\n{self.logs()}"
            time.sleep(0.2)

    def logs(self) -> str:
        paths = sorted(self.folder.glob("*.log"))
        return "\n".join(f"--- {path.name}\n{path.read_text(errors='replace')[-3000:]}" for path in paths)

    def kill(self, name: str) -> None:
        # The group: a node's app runs in processes of their own below it.
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def close(self) -> None:
        for name, process in self.processes.items():
            try:
                os.killpg(process.pid, signal.SIGTERM)
                process.wait(timeout=5)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                pass
            try:
                self.kill(name)
            except ProcessLookupError:
                process.wait()


def site_tables(folder: Path, *, classes: bool = False) -> list[dict[str, Any]]:
    """Five sites of two truths: 0, 2 and 4; 1 and 3."""
    data = make_linear_learners(n_learners=5, n_truths=2, n_rows=40, n_features=3, random_state=0)
    configs = []
    for k, site in enumerate(dict.fromkeys(data.groups.tolist())):
        mine = data.groups == site
        path = folder / f"rows{k}.csv"
        y = np.where(data.y[mine] > 0, "yes", "no") if classes else data.y[mine]
        pl.DataFrame({f"x{j}": data.X[mine, j] for j in range(3)} | {"y": y}).write_csv(path)
        configs.append({"site": site, "table": path, "target": "y"})
    return configs


def registered_nodes(deployment: Deployment, names: list[str]) -> None:
    """Make a key for every node, and register it."""
    for name in names:
        write_node_key(deployment.folder / name)
    with ThreadPoolExecutor(2) as pool:
        keys = [str(deployment.folder / f"{name}.pub") for name in names]
        list(pool.map(lambda key: deployment.flwr("supernode", "register", key, "loop"), keys))
