"""BubbleRank's states as records of the statistic schema, written plainly."""

import numpy as np


def statistic_record(ranker, query, run, items, state, log_inverse_delta):
    """BubbleRank's state as a record of the statistic schema."""
    uppers, lowers = np.nonzero(np.triu(state.trials, 1))
    pairs = zip(
        uppers.tolist(),
        lowers.tolist(),
        state.wins[uppers, lowers].tolist(),
        state.trials[uppers, lowers].tolist(),
        strict=True,
    )
    return {
        "ranker": ranker,
        "query": query,
        "run": run,
        "step": state.step,
        "horizon": state.horizon,
        "log_inverse_delta": log_inverse_delta,
        "initial": list(items),
        "base": [items[item] for item in state.base],
        "pairs": [
            {"upper": items[i], "lower": items[j], "wins": wins, "trials": trials}
            for i, j, wins, trials in pairs
        ],
    }
