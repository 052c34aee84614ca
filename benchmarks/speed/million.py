"""A million learners: the exact partition without the similarities, on one GPU.

    python benchmarks/speed/million.py --only 1000000 [--automatic] [--landmarks] [--verify] [--width 32]

Learners of five planted linear truths, 20 predictors, noise variance p/16. Their rows are drawn on the
device in chunks and reduced to second moments; each learner's model is least squares on its rows (that is
Select, and is not timed). Timed are the features, the spectrum and k-means: Exchange and Cluster from
moments to labels. Every size is run twice, and the second time counts: the first compiles. ``--verify``
multiplies S with random vectors and compares 256 rows of the product with double precision. ``--automatic``
looks at 20 numbers of clusters and times the rules that need the spectrum alone: eigengap, gap, gap-jump,
penalty. ``--landmarks`` takes the Nystrom extension from a sample of 1,500 learners for the answer, without
a pass over all pairs. Each run adds a row to ``benchmarks/speed/million.csv``.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from coterie.kernels.limits import LIMITS
from coterie.kernels.matrix_free import SPARE, PairFeatures, nystrom_pairs, top_pairs
from coterie.method.n_clusters.eigengap import eigengap
from coterie.method.n_clusters.gap import gap_rules
from coterie.method.n_clusters.penalty import penalty
from coterie.method.spectral import Spectrum, cluster_rows
from rows import add_row

HERE = Path(__file__).parent
TRUTHS, PREDICTORS, CHUNK = 5, 20, 50_000
MOST = 20


def now(device: str) -> float:
    """Return the time when all that was asked of the device is done."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def draw_features(n_learners: int, n_rows: int, device: str) -> tuple[Any, Any, Any]:
    """Return the features of models and learners, chunk by chunk, and the learners' truths."""
    generator = torch.Generator(device=device).manual_seed(0)
    drawn = {"generator": generator, "device": device}
    slopes = torch.randn(TRUTHS, PREDICTORS, **drawn)
    truth = torch.randint(TRUTHS, (n_learners,), **drawn)
    d = PREDICTORS + 1
    first, second = torch.triu_indices(d, d, device=device)
    doubled = torch.where(first == second, 1.0, 2.0)
    models = torch.empty(n_learners, len(doubled) + d + 1, device=device)
    learners = torch.empty_like(models)
    for start in range(0, n_learners, CHUNK):
        span = slice(start, min(start + CHUNK, n_learners))
        size = span.stop - span.start
        X = torch.randn(size, n_rows, PREDICTORS, **drawn)
        y = torch.einsum("lnp,lp->ln", X, slopes[truth[span]])
        y += (PREDICTORS / 16) ** 0.5 * torch.randn(size, n_rows, **drawn)
        Z = torch.cat([X, torch.ones_like(X[..., :1])], -1)
        G = Z.transpose(1, 2) @ Z / n_rows
        c = (Z.transpose(1, 2) @ y[..., None])[..., 0] / n_rows
        vectors = torch.linalg.solve(G, c)
        models[span] = torch.cat(
            [vectors[:, first] * vectors[:, second] * doubled, -2 * vectors, torch.ones_like(vectors[:, :1])],
            1,
        )
        learners[span] = torch.cat([G[:, first, second], c, (y * y).mean(1, keepdim=True)], 1)
    return models, learners, truth


def fused(features: PairFeatures, device: str, width: int | None) -> PairFeatures:
    """Return the features with the product that runs in one kernel, where there is a GPU."""
    if device == "cpu":
        return features
    from coterie.kernels.fused import FusedTimes

    product = FusedTimes(features, width)
    return PairFeatures(features.models, features.learners, features.errors, features.scale, product, 16_384)


def clusters_on_device(vectors: Any, n_clusters: int) -> Any:
    """Return the k-means labels of the embedding's rows: centres from a sample, then on the device."""
    rows = vectors / vectors.norm(dim=1, keepdim=True)
    sample = rows[:: max(1, len(rows) // 1024)]
    known = cluster_rows(sample.cpu().numpy().astype(float), n_clusters, 0)[0]
    known = torch.as_tensor(known, device=rows.device)
    centres = torch.stack([sample[known == k].mean(0) for k in range(n_clusters)])
    for _ in range(10):
        labels = torch.cdist(rows, centres).argmin(1)
        centres = torch.stack([rows[labels == k].mean(0) for k in range(n_clusters)])
    return labels


def share_right(labels: Any, truth: Any) -> float:
    """Return the share of learners whose cluster is that of their truth."""
    labels, truth = (torch.as_tensor(part).cpu().numpy() for part in (labels, truth))
    table = np.zeros((labels.max() + 1, TRUTHS), dtype=int)
    np.add.at(table, (labels, truth), 1)
    return float(table.max(axis=1).sum() / len(labels)) if len(table) <= TRUTHS else float("nan")


def automatic(pairs: Any) -> tuple[dict[str, int], Any]:
    """Return what the rules for the number of clusters choose, and the labels of the gap's choice."""
    values, vectors, plain = (
        part.cpu().numpy().astype(float) for part in (pairs.values, pairs.vectors, pairs.plain_values)
    )
    spectrum = Spectrum(values, vectors, max(1, int((values > 1 - 1e-5).sum())), pairs.residual, plain)
    found = [cluster_rows(spectrum.embedding(max(k, 2)), k, 0) for k in range(1, MOST + 1)]
    evidence: Any = SimpleNamespace(
        spectrum=spectrum,
        most=MOST,
        seed=0,
        n_rows=None,
        n_learners=len(vectors),
        within_sums=np.array([within for _, within in found]),
    )
    curves = [eigengap(evidence), *gap_rules(evidence), penalty(evidence)]
    chosen = {curve.rule: curve.chosen for curve in curves}
    return chosen, found[chosen["eigengap"] - 1][0]


def product_errors(features: PairFeatures, device: str) -> tuple[float, float]:
    """Return the largest and the typical error of S times vectors, relative to double precision."""
    n = features.shape[0]
    generator = torch.Generator(device=device).manual_seed(1)
    vectors = torch.randn(n, 14, generator=generator, device=device)
    some = torch.randperm(n, generator=generator, device=device)[:256]
    ours = features.times(vectors)[some].double()
    models, learners, errors = (
        part[some].double() for part in (features.models, features.learners, features.errors)
    )
    exact = torch.zeros_like(ours)
    for start in range(0, n, CHUNK):
        span = slice(start, min(start + CHUNK, n))
        there = (models @ features.learners[span].double().T - features.errors[span].double()[None]).abs()
        back = (learners @ features.models[span].double().T - errors[:, None]).abs()
        similarity = torch.exp(-features.scale * (there + back))
        similarity[some[:, None] == torch.arange(span.start, span.stop, device=device)] = 1.0
        exact += similarity @ vectors[span].double()
    missed = ours - exact
    largest = missed.abs().max() / exact.abs().max()
    return float(largest), float((missed**2).mean().sqrt() / (exact**2).mean().sqrt())


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Draw the learners once, cluster them twice, and return the second run."""
    device = options.device
    models, learners, truth = draw_features(options.only, options.rows, device)
    count = MOST + 1 if options.automatic else TRUTHS
    row: dict[str, Any] = {}
    for _ in range(1 if options.once else 2):
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        start = now(device)
        errors = (models * learners).sum(1)
        scale = float(1 / errors.median())
        features = fused(PairFeatures(models, learners, errors, scale), device, options.width)
        ready = now(device)
        residual, passes = float("nan"), 0
        chosen: dict[str, int] = {}
        if options.landmarks:
            sample = np.sort(np.random.default_rng(0).choice(options.only, LIMITS.many, replace=False))
            vectors = nystrom_pairs(features, features.asarray(sample), count + SPARE, 16_384).vectors
            vectors = vectors[:, :TRUTHS]
            done = now(device)
            labels = clusters_on_device(vectors, TRUTHS)
        else:
            pairs = top_pairs(features, count, block=16_384)
            done = now(device)
            residual, passes = pairs.residual, pairs.passes
            if options.automatic:
                chosen, labels = automatic(pairs)
            else:
                labels = clusters_on_device(pairs.vectors, TRUTHS)
        end = now(device)
        row = {
            "learners": options.only,
            "rows": options.rows,
            "clusters": "automatic" if options.automatic else TRUTHS,
            "way": "landmarks" if options.landmarks else "exact",
            "seconds": round(end - start, 4),
            "features": round(ready - start, 4),
            "spectrum": round(done - ready, 4),
            "k_means": round(end - done, 4),
            "passes": passes,
            "residual": residual,
            "right": share_right(labels, truth),
            "chosen": " ".join(f"{rule}={k}" for rule, k in chosen.items()),
            "gpu_gibibytes": round(torch.cuda.max_memory_allocated() / 2**30, 2) if device == "cuda" else "",
            "width": options.width or (16 if count + SPARE < 16 else 32),
        }
        print({name: value for name, value in row.items() if value != ""}, flush=True)
    row["product_error_largest"], row["product_error_rms"] = "", ""
    if options.verify:
        largest, typical = product_errors(features, device)
        row["product_error_largest"], row["product_error_rms"] = f"{largest:.1e}", f"{typical:.1e}"
        print(f"product against double precision: largest {largest:.1e}, root mean square {typical:.1e}")
    return row


def main() -> None:
    """Run one size and add its row to the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", type=int, required=True, help="number of learners")
    parser.add_argument("--rows", type=int, default=50, help="of each learner")
    parser.add_argument("--automatic", action="store_true")
    parser.add_argument("--landmarks", action="store_true")
    parser.add_argument("--verify", action="store_true")
    parser.add_argument("--once", action="store_true", help="run once: what was compiled before is kept")
    parser.add_argument("--width", type=int, default=None, choices=(16, 32))
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--out", type=Path, default=HERE / "million.csv")
    options = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    name = torch.cuda.get_device_name() if options.device == "cuda" else f"{os.cpu_count()} cores"
    machine = f"{name}, torch {torch.__version__}, Python {platform.python_version()}"
    row = {**run(options), "machine": machine}
    add_row(options.out, row)


if __name__ == "__main__":
    main()
