"""How well kinds of machines are recovered, on fleets drawn from SpareCores: groups, Tarema's variant, plain baselines.

    WHORL_DATASETS=… python tests/studies/group_fleets.py [--tune] [--draws 200] [--pools any,alike]

A fleet repeats a few machine types and multiplies each score by noise. Constants of groups.py were chosen with --tune:
types of azure, alicloud and ovh and other seeds; what is reported comes from the other vendors. Pool `any`: all types;
pool `alike`: types of one vendor with equal vCPU, each pair at least 10 % apart in some aspect."""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.stats import chi2
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from tasks.advice.groups import SMALLEST, group_machines, score_table
from tasks.advice.tarema import tarema_groups

ASPECTS = ["stressng_1", "stressng_n", "redis_set", "zstd", "rd_small", "rd_big"]
TAREMA_ASPECTS = ["stressng_1", "stressng_n", "rd_big"]  # processor with one thread, with all, memory
TUNING = ["azure", "alicloud", "ovh"]
Z95 = 1.959964
LEAST_DIFFERENCE = np.log(1.10)
EXECUTIONS = 5
K_MEANS_STARTS = 10


def silhouette_groups(log_scores, rng, max_groups=10):
    """k-means on log scores scaled to deviation 1, with the k from 2 that has the best mean silhouette: (n,)."""
    x = (log_scores - log_scores.mean(axis=0)) / np.maximum(log_scores.std(axis=0), SMALLEST)
    seeds = rng.integers(2**31, size=max_groups + 1)
    candidates = [
        KMeans(k, n_init=K_MEANS_STARTS, random_state=int(seeds[k])).fit(x).labels_.astype(np.int64)
        for k in range(2, min(len(x) - 1, max_groups) + 1)
    ]
    return max(candidates, key=lambda groups: float(silhouette_score(x, groups)))


def noise_cut_groups(log_scores, deviations, confidence=0.95):
    """Complete linkage cut where no two of n machines of one kind would be further apart by noise: (n,).

    deviations: (d,) of a log score, known. Bonferroni over the pairs."""
    n, d = log_scores.shape
    distance = np.sqrt(2 * chi2.ppf(1 - (1 - confidence) / (n * (n - 1) / 2), d))
    tree = linkage(log_scores / deviations, "complete")
    return np.asarray(fcluster(tree, distance, "distance") - 1, dtype=np.int64)


def draw_types(types, n_kinds, pool, rng):
    """(n_kinds, n_aspects) scores of machine types."""
    if pool == "any":
        return types.iloc[rng.choice(len(types), n_kinds, replace=False)][ASPECTS].to_numpy()
    while True:
        first = types.iloc[rng.integers(len(types))]
        like = types[(types.vcpu == first.vcpu) & (types.vendor == first.vendor)][ASPECTS].to_numpy()
        if len(like) < n_kinds:
            continue
        drawn = like[rng.choice(len(like), n_kinds, replace=False)]
        gaps = np.abs(np.log(drawn[:, None]) - np.log(drawn)).max(axis=-1)[np.triu_indices(n_kinds, 1)]
        if (gaps >= LEAST_DIFFERENCE).all():
            return drawn


def rows_of(scores):
    """(n_executions, n, d) as rows of machine, aspect, score."""
    runs, n, d = scores.shape
    names = np.tile(np.repeat([f"n{at:02d}" for at in range(n)], d), runs)
    return pd.DataFrame({"machine": names, "aspect": np.tile(ASPECTS, n * runs), "score": scores.ravel()})


def answers(scores, noise, rng):
    """Groups by each method, and whether it says that it cannot tell: by name. scores: (n_executions, n, d)."""
    single = rows_of(scores[:1])
    told = single.assign(low=single.score * np.exp(-Z95 * noise), high=single.score * np.exp(Z95 * noise))
    made = {}
    rows = {"ours, intervals": told, "ours, 5 executions": rows_of(scores), "ours, one score, no interval": single}
    for name, frame in rows.items():
        grouping = group_machines(frame)
        of = grouping.group_of
        made[name] = [of[machine] for machine in sorted(of)], grouping.cannot_be_told_apart
    table = score_table(single)
    raw = scores[0][:, [ASPECTS.index(aspect) for aspect in TAREMA_ASPECTS]]
    made["Tarema's variant"] = tarema_groups(raw, rng), False
    made["k-means, silhouette, standardised logs"] = silhouette_groups(table.log_scores, rng), False
    made["complete linkage cut at the true noise"] = (
        noise_cut_groups(table.log_scores, np.full(len(ASPECTS), noise)),
        False,
    )
    return made


def measure(types, sizes, pool, noise, draws, seed):
    """One row a method."""
    found = []
    truth = np.repeat(np.arange(len(sizes)), sizes)
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw, len(sizes), round(100 * noise), pool == "any"])
        level = draw_types(types, len(sizes), pool, rng)[truth]
        scores = level * np.exp(noise * rng.standard_normal((EXECUTIONS, *level.shape)))
        for name, (groups, is_open) in answers(scores, noise, rng).items():
            found.append((name, adjusted_rand_score(truth, groups), len(set(groups)), is_open))
    rows = pd.DataFrame(found, columns=["method", "rand", "k", "open"])
    for name, of in rows.groupby("method", sort=False):
        answered = of[~of.open].rand
        yield {
            "pool": pool, "sizes": "/".join(map(str, sizes)), "noise": noise, "method": name,
            "median": of.rand.median(), "mean": of.rand.mean(), "share 1.0": (of.rand == 1).mean(),
            "k right": (of.k == len(sizes)).mean(), "cannot tell": of.open.mean(),
            "of the wrong": of[of.rand < 1].open.mean(), "mean of answered": answered.mean(),
        }  # fmt: skip


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--pools", default="any,alike")
    told = parser.parse_args()
    types = pd.read_csv(Path(os.environ["WHORL_DATASETS"]) / "sparecores" / "summary_scores.csv").dropna()
    types = types[types.vendor.isin(TUNING) == told.tune].reset_index(drop=True)
    is_first = True
    for pool in told.pools.split(","):
        for sizes in ([5, 5, 5], [5, 4, 4, 2], [15]) if pool == "any" else ([5, 5, 5], [5, 4, 4, 2]):
            for noise in (0.02, 0.06):
                rows = pd.DataFrame(measure(types, sizes, pool, noise, told.draws, 1 if told.tune else 2))
                sys.stdout.write(rows.round(3).to_csv(index=False, header=is_first))
                is_first = False
                sys.stdout.flush()


if __name__ == "__main__":
    main()
