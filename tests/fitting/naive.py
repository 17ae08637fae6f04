"""Click models fitted session by session with dictionaries, as PyClick does it."""

import math
from collections import defaultdict

FLOOR = 1e-6


def ratio(part, whole, prior):
    clicks, views = prior
    return (part + clicks) / (whole + views) if whole + views else 0.5


def fit_cm(sessions, prior):
    clicked, examined = defaultdict(int), defaultdict(int)
    for query, items, clicks in sessions:
        for item, click in zip(items, clicks, strict=True):
            examined[query, item] += 1
            clicked[query, item] += click
            if click:
                break
    return {pair: ratio(clicked[pair], examined[pair], prior) for pair in examined}


def fit_dcm(sessions, prior):
    clicked, examined = defaultdict(int), defaultdict(int)
    clicks_at, last_at = defaultdict(int), defaultdict(int)
    for query, items, clicks in sessions:
        places = [place for place, click in enumerate(clicks) if click]
        last = places[-1] if places else len(items)
        for place, item in enumerate(items[: last + 1]):
            examined[query, item] += 1
            clicked[query, item] += clicks[place]
        for place in places:
            clicks_at[place] += 1
            last_at[place] += place == last
    attraction = {pair: ratio(clicked[pair], examined[pair], prior) for pair in examined}
    longest = max(len(items) for _, items, _ in sessions)
    mirrored = (prior[1] - prior[0], prior[1])
    return attraction, [ratio(last_at[k], clicks_at[k], mirrored) for k in range(longest)]


def em_pbm(sessions, prior, iterations):
    """(attraction, examination) after plain EM, and the log-likelihood before each iteration."""
    start = ratio(0, 0, prior)
    longest = max(len(items) for _, items, _ in sessions)
    alpha = {(query, item): start for query, items, _ in sessions for item in items}
    chi = [start] * longest
    trace = []
    for _ in range(iterations):
        trace.append(pbm_likelihood(sessions, alpha, chi))
        attractive, shown = defaultdict(float), defaultdict(int)
        examined, reached = [0.0] * longest, [0] * longest
        for query, items, clicks in sessions:
            for place, (item, click) in enumerate(zip(items, clicks, strict=True)):
                a, x = alpha[query, item], chi[place]
                attractive[query, item] += 1 if click else a * (1 - x) / (1 - a * x)
                examined[place] += 1 if click else x * (1 - a) / (1 - a * x)
                shown[query, item] += 1
                reached[place] += 1
        alpha = {pair: ratio(attractive[pair], shown[pair], prior) for pair in shown}
        chi = [ratio(examined[k], reached[k], prior) for k in range(longest)]
    return alpha, chi, trace


def pbm_likelihood(sessions, alpha, chi):
    total = 0.0
    for query, items, clicks in sessions:
        for place, (item, click) in enumerate(zip(items, clicks, strict=True)):
            p = alpha[query, item] * chi[place]
            total += math.log(p if click else 1 - p)
    return total


def click_probabilities(model, query, items, attraction, unseen, by_position):
    """P(click) at each position, whatever else was clicked."""
    looks, found = 1.0, []
    for place, item in enumerate(items):
        a = attraction.get((query, item), unseen)
        if model == "PBM":
            found.append(a * by_position[place])
        else:
            found.append(a * looks)
            looks *= 1 - a * (1.0 if model == "CM" else by_position[place])
    return found


def perplexity(model, sessions, attraction, unseen, by_position):
    bits, reached = defaultdict(float), defaultdict(int)
    for query, items, clicks in sessions:
        predicted = click_probabilities(model, query, items, attraction, unseen, by_position)
        for rank, (p, click) in enumerate(zip(predicted, clicks, strict=True)):
            bits[rank] += math.log2(max(FLOOR, p if click else 1 - p))
            reached[rank] += 1
    by_rank = [2 ** (-bits[rank] / reached[rank]) for rank in sorted(reached)]
    return sum(by_rank) / len(by_rank), by_rank


def log_likelihood(model, sessions, attraction, unseen, by_position):
    """The sum of log P(c_r | c_1 .. c_(r-1)), by Bayes' rule on whether the user still looks."""
    total = 0.0
    for query, items, clicks in sessions:
        looks = 1.0
        for place, (item, click) in enumerate(zip(items, clicks, strict=True)):
            a = attraction.get((query, item), unseen)
            if model == "PBM":
                p = a * by_position[place]
                total += math.log(p if click else 1 - p)
                continue
            p = a * looks
            total += math.log(max(FLOOR, p if click else 1 - p))
            if click:
                looks = 0.0 if model == "CM" else 1 - by_position[place]
            else:
                looks = looks * (1 - a) / (1 - p)
    return total
