#!/usr/bin/env python3
"""Writes golden.json: what SciPy and statsmodels say about the inputs the Rust tests use.

Run it with numpy, scipy, statsmodels and hdrhistogram installed; the versions used are stored in the file:
    python3 make.py > golden.json
Where neither library has a routine (optimal partition, session offsets, MSER, the Hodges-Lehmann interval) the answer
comes from a direct enumeration or the defining formula.
"""
import itertools
import json
import math
import warnings
from importlib import metadata

import numpy as np
import scipy
import statsmodels
import statsmodels.api as sm
from hdrh.histogram import HdrHistogram
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint
from statsmodels.tsa.stattools import acf

warnings.simplefilter("ignore")
MASK = (1 << 64) - 1


class Rng:
    """xoshiro256** seeded by SplitMix64, and Lemire's bounded draw: the generator of rng.rs."""

    def __init__(self, seed):
        self.s, counter = [], seed
        for _ in range(4):
            counter = (counter + 0x9E3779B97F4A7C15) & MASK
            z = counter
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            self.s.append(z ^ (z >> 31))

    def next(self):
        s = self.s
        rotl = lambda x, k: ((x << k) | (x >> (64 - k))) & MASK
        result = (rotl((s[1] * 5) & MASK, 7) * 9) & MASK
        t = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
        return result

    def below(self, n):
        m = self.next() * n
        if (m & MASK) < n:
            unfair = (MASK + 1 - n) % n
            while (m & MASK) < unfair:
                m = self.next() * n
        return m >> 64


def samples():
    """Log ratios of pairs: ordinary, tiny, tied, with zeros, with two states, without spread."""
    g = np.random.default_rng(20240711)
    named = {
        "two": [0.013, -0.021],
        "three": [-0.031, -0.027, -0.035],
        "five": g.normal(-0.03, 0.012, 5),
        "six_all_down": -np.abs(g.normal(0.03, 0.01, 6)),
        "eleven": g.normal(0.0, 0.017, 11),
        "twelve": g.normal(-0.03, 0.017, 12),
        "twenty": g.normal(0.01, 0.017, 20),
        "fifty": g.normal(0.002, 0.01, 50),
        "ties": np.round(g.normal(-0.01, 0.02, 10), 2),
        "ties_and_zeros": [0.0, 0.01, 0.01, -0.01, 0.02, 0.0, 0.02, 0.03, -0.02],
        "two_states": np.concatenate([g.normal(0.0, 0.004, 9), g.normal(-0.11, 0.004, 4)]),
        "skewed": np.exp(g.normal(0, 1, 15)) / 50,
    }
    return {name: [float(v) for v in values] for name, values in named.items()}


def walsh(x):
    return sorted((x[i] + x[j]) / 2 for i in range(len(x)) for j in range(i, len(x)))


def signed_rank_cdf(n):
    """P(W <= w) by counting all sign patterns."""
    counts = [1]
    for rank in range(1, n + 1):
        longer = counts + [0] * rank
        for w, c in enumerate(counts):
            longer[w + rank] += c
        counts = longer
    return np.cumsum(counts) / 2.0**n


def hl_interval(x, level):
    cdf, averages = signed_rank_cdf(len(x)), walsh(x)
    outside = int(np.sum(cdf <= (1 - level) / 2 + 1e-15))
    return None if outside == 0 else [averages[outside - 1], averages[-outside]]


def signed_rank_p(x):
    moved = np.array([v for v in x if v != 0])
    if len(moved) <= 13:
        # All sign patterns: SciPy's permutation test of the signed ranks, which allows ties.
        result = stats.permutation_test(
            (moved,), lambda z, axis: np.sum(np.sign(z) * stats.rankdata(np.abs(z), axis=axis), axis=axis),
            permutation_type="samples", n_resamples=np.inf, vectorized=True)
        return float(result.pvalue)
    return float(stats.wilcoxon(moved, method="exact").pvalue)


def sign_flip_p(x):
    x = np.array([v for v in x if v != 0.0])
    if len(x) == 0:
        return 1.0
    sums = np.array([np.dot(x, s) for s in itertools.product([1, -1], repeat=len(x))])
    return float(np.mean(np.abs(sums) >= abs(x.sum()) - 1e-12 * np.abs(x).sum()))


def paired():
    rows = []
    for name, x in samples().items():
        t = stats.ttest_1samp(x, 0.0)
        ci = t.confidence_interval(0.95)
        ci99 = t.confidence_interval(0.99)
        rows.append({
            "name": name, "values": x,
            "mean": float(np.mean(x)), "median": float(np.median(x)), "sd": float(np.std(x, ddof=1)),
            "mad_sd": float(stats.median_abs_deviation(x, scale="normal")),
            "t_p": float(t.pvalue), "t_95": [float(ci.low), float(ci.high)],
            "t_99": [float(ci99.low), float(ci99.high)],
            "hodges_lehmann": float(np.median(walsh(x))), "hodges_lehmann_95": hl_interval(x, 0.95),
            "signed_rank_p": signed_rank_p(x),
            "sign_flip_p": sign_flip_p(x) if len(x) <= 15 else None,
            "quantiles": [[q, float(np.quantile(x, q))] for q in (0.05, 0.25, 0.5, 0.9, 0.99)],
        })
    return rows


def two_samples():
    g = np.random.default_rng(7)
    cases = {
        "apart": (g.normal(5, 1, 8), g.normal(2, 1, 7)),
        "alike": (g.normal(5, 1, 9), g.normal(5, 1, 6)),
        "wider": (g.normal(0, 3, 16), g.normal(0, 0.5, 16)),
        "tiny": (np.array([1.0, 2.0]), np.array([3.0, 4.5, 5.0])),
        "ties": (np.array([1.0, 1, 2, 3]), np.array([2.0, 3, 3, 4, 5])),
    }
    rows = []
    for name, (a, b) in cases.items():
        ties = len(set(a) | set(b)) < len(a) + len(b)
        if ties:
            # Exact with ties: every assignment of the pooled mid-ranks.
            ranks = stats.rankdata(np.concatenate([a, b]))
            sums = np.array([sum(c) for c in itertools.combinations(ranks, len(a))])
            seen = ranks[: len(a)].sum()
            p = min(1.0, 2 * min(np.mean(sums <= seen), np.mean(sums >= seen)))
        else:
            p = stats.mannwhitneyu(a, b, method="exact").pvalue
        levene = stats.levene(a, b, center="median")
        rows.append({"name": name, "a": a.tolist(), "b": b.tolist(), "rank_sum_p": float(p),
                     "brown_forsythe_p": float(levene.pvalue),
                     "dominance": float(np.mean(np.sign(a[:, None] - b[None, :])))})
    return rows


def multiple():
    g = np.random.default_rng(3)
    cases = [[0.01], [0.04, 0.01, 0.03, 0.5], [0.05, 0.05, 0.05], [1.0, 0.0, 0.5, 0.5],
             [float(v) for v in np.concatenate([g.uniform(0, 1, 25), g.uniform(0, 0.005, 7)])]]
    return [{"p": p, "q": [float(v) for v in multipletests(p, method="fdr_bh")[1]]} for p in cases]


def rates():
    rows = []
    for events, trials in [(0, 20), (1, 20), (5, 200), (20, 20), (3, 7), (11, 1000)]:
        low, high = proportion_confint(events, trials, alpha=0.05, method="beta")
        rows.append([events, trials, 0.0 if events == 0 else float(low), 1.0 if events == trials else float(high)])
    return rows


def series():
    g = np.random.default_rng(11)
    ar = [0.0]
    for e in g.normal(0, 1, 119):
        ar.append(0.6 * ar[-1] + e)
    cases = {
        "white": g.normal(100, 2, 60),
        "ar": 100 + np.array(ar),
        "rising": 100 + 0.2 * np.arange(80) + g.normal(0, 3, 80),
        "warm_up": np.concatenate([np.linspace(60, 99, 20), g.normal(100, 1, 80)]),
        "short": np.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.5, 5.5, 8.0]),
    }
    rows = []
    for name, x in cases.items():
        lags = 3
        constant = sm.OLS(x, np.ones(len(x))).fit(cov_type="HAC", cov_kwds={"maxlags": lags})
        design = sm.add_constant(np.arange(len(x), dtype=float))
        line = sm.OLS(x, design).fit(cov_type="HAC", cov_kwds={"maxlags": lags, "use_correction": True}, use_t=True)
        rows.append({"name": name, "values": x.tolist(), "lags": lags,
                     "acf": [float(v) for v in acf(x, nlags=5, fft=False)],
                     "long_run_variance": float(constant.cov_params()[0][0]) * len(x),
                     "slope": float(line.params[1]), "slope_se": float(line.bse[1]),
                     "slope_p": float(line.pvalues[1]), "thirds": thirds(x), "mser_5": mser(x) if len(x) >= 20 else None})
    return rows


def thirds(x):
    n = len(x) // 3
    lags = min(int(4 * (n / 100) ** (2 / 9)), n - 1)
    parts = [sm.OLS(p, np.ones(n)).fit(cov_type="HAC", cov_kwds={"maxlags": lags}) for p in (x[:n], x[-n:])]
    z = (parts[1].params[0] - parts[0].params[0]) / math.hypot(parts[0].bse[0], parts[1].bse[0])
    return [float(parts[1].params[0] / parts[0].params[0] - 1), float(2 * stats.norm.sf(abs(z)))]


def mser(x):
    means = [np.mean(x[i:i + 5]) for i in range(0, len(x) - 4, 5)]
    cost = [np.sum((means[d:] - np.mean(means[d:])) ** 2) / (len(means) - d) ** 2 for d in range(max(0, len(means) - 5) + 1)]
    best = int(np.argmin(cost))
    return best * 5 if best <= len(means) // 2 else None


def partitions():
    """The cheapest of all cuts, by trying each."""
    g = np.random.default_rng(5)
    rows = []
    cases = [([0, 0.1, -0.1, 0, 5, 5.1, 4.9, 5], 1), (list(g.normal(0, 1, 10)), 1), (list(g.normal(0, 1, 10)), 2),
             (list(np.concatenate([g.normal(0, 1, 4), g.normal(4, 1, 4), g.normal(1, 1, 4)])), 2), ([1.0], 1),
             ([2.0, 2.0, 2.0], 1)]
    for values, least in cases:
        weights = [float(w) for w in g.integers(1, 6, len(values))]
        sd, penalty = 1.3, 4.0
        x, w = np.array(values, float), np.array(weights)
        best = None
        for cuts in itertools.chain.from_iterable(
                itertools.combinations(range(1, len(x)), k) for k in range(len(x))):
            edges = [0, *cuts, len(x)]
            if any(b - a < least for a, b in zip(edges, edges[1:])):
                continue
            cost = penalty * len(cuts)
            for a, b in zip(edges, edges[1:]):
                m = np.average(x[a:b], weights=w[a:b])
                cost += np.sum(w[a:b] * (x[a:b] - m) ** 2) / sd**2
            if best is None or cost < best[0] - 1e-12:
                best = (cost, edges)
        rows.append({"values": [float(v) for v in x], "weights": weights, "sd": sd, "penalty": penalty,
                     "least": least, "edges": best[1]})
    return rows


def offsets():
    g = np.random.default_rng(13)
    table = -0.01 + g.normal(0, 0.03, (7, 1)) + g.normal(0, 0.01, (1, 6)) + g.normal(0, 0.004, (7, 6))
    table[2][3] = np.nan
    complete = table[~np.isnan(table).any(axis=1)]
    clean = lambda t: [[None if np.isnan(v) else float(v) for v in row] for row in t]
    return {"table": clean(table), "blocks": np.median(complete, axis=0).tolist()}


def histograms():
    g = np.random.default_rng(17)
    values = [int(v) for v in np.exp(g.normal(11, 1, 3000))] + [3_000_000, 40_000_000]
    plain = HdrHistogram(1, 3_600_000_000_000, 3)
    for v in values:
        plain.record_value(v)
    qs = [50, 90, 99, 99.9]
    return {"values": values, "plain": [[q / 100, plain.get_value_at_percentile(q)] for q in qs]}


def noise():
    x = [float(v) for v in np.random.default_rng(19).standard_t(4, 50) / 50]
    a = np.sort(np.abs(x))
    rank = lambda q: float(a[math.ceil(q * len(a)) - 1])
    return {"values": x, "median": float(np.median(a)), "p90": rank(0.9), "p95": rank(0.95), "max": float(a[-1]),
            "beyond": float(np.mean(np.abs(np.exp(x) - 1) >= 0.05))}


def single():
    return [[v, sd, n, level, *[float(e) for e in stats.t.interval(level, n - 1, loc=v, scale=sd)]]
            for v, sd, n, level in [(0.02, 0.01, 12, 0.95), (-0.3, 0.05, 2, 0.9)]]


def tails():
    return {"t": [[level, df, float(stats.t.ppf(0.5 + level / 2, df))]
                  for df in (1, 2, 3, 5, 10, 30, 200.5) for level in (0.5, 0.9, 0.95, 0.99, 0.9999)],
            "t_p": [[t, df, float(2 * stats.t.sf(t, df))] for df in (1, 4, 19) for t in (0.1, 2.0, 8.0, 40.0)],
            "f_p": [[f, a, b, float(stats.f.sf(f, a, b))] for f, a, b in [(0.5, 1, 10), (4.2, 1, 30), (20.0, 3, 8)]]}


golden = {
    "versions": {"numpy": np.__version__, "scipy": scipy.__version__, "statsmodels": statsmodels.__version__,
                 "hdrhistogram": metadata.version("hdrhistogram")},
    "rng": [Rng(seed).next() for seed in (0, 1, 42)],
    "paired": paired(), "two_samples": two_samples(), "multiple": multiple(), "rates": rates(),
    "series": series(), "partitions": partitions(), "offsets": offsets(), "histograms": histograms(), "noise": noise(),
    "single": single(), "tails": tails(),
}
# One line per section: differences between two versions of the libraries stay readable.
print("{\n" + ",\n".join(f'"{key}": {json.dumps(value)}' for key, value in golden.items()) + "\n}")
