"""Bookkeeping of convergence: iterations and rounds of communication to a number of samples, and what papers prove.

Nothing learns here. What is counted is how often workers compute and communicate until they have gone through so many
samples; whether they are then as far as with one large batch is what the results in `ROUNDS` are about.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ROUNDS", "RoundsResult", "communication_rounds", "iterations_to_target"]


def iterations_to_target(samples: float, samples_per_iteration: float) -> int:
    """Return the iterations until so many samples have been gone through, the last of them perhaps not needed whole.

    Parameters
    ----------
    samples : float
        Of the whole training: epochs times those of the data set.
    samples_per_iteration : float
        Of all workers together.

    Examples
    --------
    >>> [iterations_to_target(100 * 1.28e6, batch) for batch in (512, 1024, 8192)]
    [250000, 125000, 15625]
    """
    return math.ceil(samples / samples_per_iteration)


def communication_rounds(iterations: int, period: int = 1, warmup: int = 0) -> int:
    """Return how often workers communicate if they do it after each `period` iterations, and at the end.

    Parameters
    ----------
    iterations : int
        After the warm-up.
    period : int
        1: in each iteration; as many as there are iterations: once, at the end (one-shot averaging).
    warmup : int
        Iterations before, in each of which workers communicate.

    Examples
    --------
    >>> communication_rounds(1000), communication_rounds(1000, 8), communication_rounds(1000, 1000)
    (1000, 125, 1)
    """
    return warmup + math.ceil(iterations / period)


@dataclass(frozen=True)
class RoundsResult:
    """What a paper proves about rounds of communication that keep linear speed-up.

    N workers reach in T iterations each what one reaches in N T, to leading order, with no fewer rounds than this.

    Parameters
    ----------
    algorithm : str
    formula : str
        Order of the rounds, in N and T.
    rounds : callable or None
        Returns the rounds of so many workers and iterations with every constant 1, not more than there are iterations;
        None where none keep linear speed-up in general.
    assumes : str
        Of the objective, and of the data of workers.
    paper : str
    checked : str
        Where the formula was found stated; empty where it is from memory of the paper only.
    """

    algorithm: str
    formula: str
    rounds: Callable[[float, float], float] | None
    assumes: str
    paper: str
    checked: str = ""


def _power(workers_exponent: float, iterations_exponent: float) -> Callable[[float, float], float]:
    def rounds(workers: float, iterations: float) -> float:
        return min(math.pow(workers, workers_exponent) * math.pow(iterations, iterations_exponent), iterations)

    return rounds


_STRONGLY_CONVEX, _NON_CONVEX = "strongly convex, data alike", "non-convex"

ROUNDS: tuple[RoundsResult, ...] = (
    RoundsResult(
        "parallel mini-batch SGD",
        "T",
        _power(0.0, 1.0),
        "convex",
        "O. Dekel et al., Optimal distributed online prediction using mini-batches, JMLR 13, 2012",
        "Shen et al., AAAI 2021, introduction: communicates in each iteration",
    ),
    RoundsResult(
        "local SGD",
        "N^(1/2) T^(1/2)",
        _power(0.5, 0.5),
        _STRONGLY_CONVEX,
        "S. U. Stich, Local SGD converges fast and communicates little, ICLR 2019",
        "abstract: T^(1/2) times fewer; the factor in N is from memory",
    ),
    RoundsResult(
        "local SGD (parallel restarted SGD)",
        "N^(3/4) T^(3/4)",
        _power(0.75, 0.75),
        f"{_NON_CONVEX}, data may differ, bounded gradients",
        "H. Yu, S. Yang, S. Zhu, Parallel restarted SGD with faster convergence and less communication, AAAI 2019",
        "order for data that differ: abstract of Shen et al., AAAI 2021, which names no paper",
    ),
    RoundsResult(
        "local SGD (cooperative SGD)",
        "N^(3/2) T^(1/2)",
        _power(1.5, 0.5),
        f"{_NON_CONVEX}, data alike",
        "J. Wang, G. Joshi, Cooperative SGD, arXiv:1808.07576, 2018",
        "order for data alike: abstract of Shen et al., AAAI 2021, which names no paper",
    ),
    RoundsResult(
        "local SGD, periodic averaging",
        "N^(1/3) T^(1/3)",
        _power(1 / 3, 1 / 3),
        "Polyak-Lojasiewicz condition, data alike",
        "F. Haddadpour et al., Local SGD with periodic averaging, NeurIPS 2019",
        "abstract",
    ),
    RoundsResult(
        "local SGD with momentum",
        "N^(3/2) T^(1/2)",
        _power(1.5, 0.5),
        f"{_NON_CONVEX}, data alike; N^(3/4) T^(3/4) where data differ",
        "H. Yu, R. Jin, S. Yang, On the linear speedup analysis of communication efficient momentum SGD, ICML 2019",
    ),
    RoundsResult(
        "local SGD (K-AVG)",
        "T",
        _power(0.0, 1.0),
        f"{_NON_CONVEX}; a constant period",
        "F. Zhou, G. Cong, On the convergence properties of a K-step averaging SGD algorithm, IJCAI 2018",
    ),
    RoundsResult(
        "local SGD, quantised and sparse",
        "N^(3/4) T^(3/4)",
        _power(0.75, 0.75),
        f"{_NON_CONVEX}, data may differ",
        "P. Jiang, G. Agrawal, A linear speedup analysis of distributed deep learning with sparse and quantized "
        "communication, NeurIPS 2018",
    ),
    RoundsResult(
        "one-shot averaging",
        "1",
        None,
        "convex; no linear speed-up in general",
        "M. Zinkevich et al., Parallelized stochastic gradient descent, NIPS 2010",
    ),
    RoundsResult(
        "one-shot averaging of maximum-entropy models",
        "1",
        None,
        "convex, regularised; no linear speed-up in general",
        "G. Mann, R. McDonald et al., Efficient large-scale distributed training of conditional maximum entropy "
        "models, NIPS 2009",
    ),
)
"""What is proven for each algorithm: an order, not a number of rounds for a given model."""
