"""Makes scikit_learn.json: matrices like the scaled rows of a timer, and what scikit-learn finds on them.

Remake (needs numpy and scikit-learn only), from the root of the repository:

    python tests/golden/make_scikit_learn.py > tests/golden/scikit_learn.json

Values are rounded to four decimals, so that both sides read the very same numbers. Where scikit-learn's answer hangs on
the order of the rows, the file holds what does not: DBSCAN runs on rows in lexicographic order (a border row within
reach of two clusters goes to the first), and a linkage or mean shift is kept only when three orders of the rows agree (ties).
Silhouettes are taken on distances summed directly: scikit-learn's own use x^2 - 2xy + y^2, good for eight digits only.
"""

import json
import os
import sys
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, MeanShift, estimate_bandwidth
from sklearn.metrics import adjusted_rand_score, calinski_harabasz_score, davies_bouldin_score, silhouette_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

warnings.filterwarnings("ignore")
GRID = [("ward", "euclidean")] + [(l, m) for l in ("complete", "average", "single") for m in ("euclidean", "manhattan")]
CASES = [
    ("near-equal", 4), ("shifted", 4), ("heavy", 5), ("clusters", 6), ("quantised", 8), ("heavy", 8), ("shifted", 10),
    ("clusters", 12), ("near-equal", 16), ("quantised", 16), ("heavy", 20), ("shifted", 24), ("clusters", 32),
    ("quantised", 32), ("heavy", 48), ("shifted", 64), ("quantised", 64), ("clusters", 96), ("heavy", 128),
    ("shifted", 128), ("quantised", 200), ("clusters", 256), ("heavy", 300), ("shifted", 500), ("near-equal", 500),
    ("shifted", 1024),
]  # fmt: skip


def raw(kind, n, rng):
    """Durations of n ranks over 30 steps, reduced to min, max, range, mean."""
    level = np.ones(n)
    if kind == "shifted":
        level[rng.choice(n, max(1, n // 20), replace=False)] = 1.25
    if kind == "clusters":
        level = np.array([1.0, 1.2, 1.5])[rng.integers(0, 3, n)] * rng.normal(1, 0.01, n)
    noise = rng.standard_t(3, (n, 30)) if kind == "heavy" else rng.normal(size=(n, 30))
    scale = 1e-5 if kind == "near-equal" else 0.02
    values = level[:, None] * np.maximum(1 + scale * noise, 0.5)
    if kind == "quantised":
        values = np.round(values, 2)
        mean = np.round(values.mean(1), 2)
    else:
        mean = values.mean(1)
    return np.column_stack([values.min(1), values.max(1), values.max(1) - values.min(1), mean])


def scaled(x):
    median = np.median(x, 0)
    spread = np.median(np.abs(x - median), 0) * 1.4826
    spread = np.where(spread > 1e-12, spread, x.std(0))
    return (x - median) / np.where(spread > 1e-12, spread, 1.0)


def scores(x, labels):
    if not 2 <= len(set(labels)) < len(x):
        return None
    distances = np.sqrt(((x[:, None] - x[None]) ** 2).sum(2))
    silhouette = silhouette_score(distances, labels, metric="precomputed")
    return [silhouette, calinski_harabasz_score(x, labels), davies_bouldin_score(x, labels)]


def labelled(x, labels, **more):
    return {**more, "labels": [int(v) for v in labels], "scores": scores(x, labels)}


def dbscan(x, eps, k):
    order = np.lexsort(x.T[::-1])
    labels = np.empty(len(x), int)
    labels[order] = DBSCAN(eps=eps, min_samples=k).fit_predict(x[order])
    return labelled(x, labels, eps=eps, min_samples=k)


def whatever_the_order(fit, x, rng):
    """The labels, or None when other orders of the rows give another partition."""
    labels = fit(x)
    for _ in range(2):
        order = rng.permutation(len(x))
        other = np.empty(len(x), int)
        other[order] = fit(x[order])
        if adjusted_rand_score(labels, other) < 1:
            return None
    return labels


def linkage(x, method, metric, rng):
    labels = whatever_the_order(AgglomerativeClustering(2, linkage=method, metric=metric).fit_predict, x, rng)
    return None if labels is None else labelled(x, labels, linkage=method, metric=metric)


def mean_shift(x, quantile, rng):
    bandwidth = float(estimate_bandwidth(x, quantile=quantile))
    if bandwidth <= 0:
        return None
    labels = whatever_the_order(MeanShift(bandwidth=bandwidth, bin_seeding=True).fit_predict, x, rng)
    return None if labels is None else {"quantile": quantile, "bandwidth": bandwidth, "labels": labels.tolist()}


def case(number, kind, n):
    rng = np.random.default_rng(number)
    x = np.round(scaled(raw(kind, n, rng)), 4) + 0.0
    k = min(4, n - 1)
    distances = np.sort(NearestNeighbors(n_neighbors=k + 1).fit(x).kneighbors(x)[0][:, -1])
    middle = float(np.round(distances[n // 2], 4)) + 0.00005
    far = float(np.round(distances[-max(1, n // 10)], 4)) + 0.00005
    return {
        "name": f"{kind}-{n}",
        "rows": x.tolist(),
        "kmeans": [
            labelled(x, fit.labels_, k=k, inertia=fit.inertia_)
            for k in (2, 3, 4)
            if k < len(np.unique(x, axis=0)) and k < n
            for fit in [KMeans(k, n_init=10, random_state=0).fit(x)]
        ],
        "dbscan": [dbscan(x, eps, k) for eps in (middle, far) if eps > 0.001],
        "linkage": [found for pair in GRID if (found := linkage(x, *pair, rng))],
        "mean_shift": [found for q in (0.2, 0.3, 0.5) if (found := mean_shift(x, q, rng))],
        "gmm": {
            t: GaussianMixture(2, covariance_type=t, n_init=3, random_state=0, reg_covar=1e-6).fit(x).score(x)
            for t in ("full", "tied", "diag", "spherical")
        },
    }


json.dump([case(i, kind, n) for i, (kind, n) in enumerate(CASES)], sys.stdout, separators=(",", ":"))
print()
