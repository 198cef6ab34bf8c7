"""Whether a share is larger than another beyond chance: Fisher's exact test, one side."""

import math


def chance_of_more(hits: int, count: int, other_hits: int, other_count: int) -> float:
    """Chance of at least so many hits on this side, were both sides' shares the same.

    Exact, given all hits of both sides (R. A. Fisher, "The Logic of Inductive Inference", 1935);
    takes each of the counted as independent of the others. 1 where a side counts nothing.
    Raises ValueError unless hits are within their counts.
    """
    if not (0 <= hits <= count and 0 <= other_hits <= other_count):
        raise ValueError(f"want hits within counts, got {hits}/{count}, {other_hits}/{other_count}")
    if hits == 0 or other_count == 0:
        return 1.0
    if hits * (count + other_count) > (hits + other_hits) * count:
        return _tail(hits, count, other_hits, other_count)
    # Below the mean the sum would begin far from its largest terms: take the other end's.
    if other_hits == other_count:
        return 1.0
    return 1.0 - _tail(other_hits + 1, other_count, hits - 1, count)


def _tail(hits: int, count: int, other_hits: int, other_count: int) -> float:
    """The hypergeometric's sum from `hits` up; every term is smaller than the one before."""
    total, all_hits = count + other_count, hits + other_hits
    log_first = (
        _log_choose(all_hits, hits)
        + _log_choose(total - all_hits, count - hits)
        - _log_choose(total, count)
    )
    term = found = math.exp(log_first)
    for k in range(hits, min(count, all_hits)):
        term *= (all_hits - k) * (count - k) / ((k + 1) * (total - all_hits - count + k + 1))
        found += term
        if term < found * 1e-16:
            break
    return min(found, 1.0)


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
