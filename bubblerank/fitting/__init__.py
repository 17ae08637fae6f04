"""Click models from a log: counts of what was shown and clicked, estimates, and how good they are.

`list_counts` turns sessions into sufficient statistics, which add up in any order; `estimate`
makes a `FittedModel` of them; `evaluate` tells its log-likelihood and perplexity.
"""
