import pytest

from bubblerank.model_verdict import judge


def rows(query, rewards, baselines, violations=0):
    for ranker, values in (("bubblerank", rewards), ("baseline", baselines)):
        for run, value in enumerate(values):
            for step, share in ((50, 0.4), (100, 1.0)):
                yield {
                    "query": query,
                    "ranker": ranker,
                    "run": run,
                    "step": step,
                    "reward": share * value,
                    "ndcg": 0.9 if ranker == "bubblerank" else 0.8,
                    "violations": violations if ranker == "bubblerank" else 7,
                }


def test_gain_is_over_runs_and_queries_at_the_last_step():
    metrics = [
        row
        for number in range(12)
        for row in rows(f"q{number}", [110, 130], [100, 100], violations=number == 3)
    ]
    evidence = {f"q{number}": (500 + number, 50) for number in range(12)}
    verdict = judge(metrics, 100, evidence)
    assert verdict.gain.value == pytest.approx(0.2)
    assert verdict.gain.low == pytest.approx(0.2)
    assert verdict.gain_by_traffic.value == pytest.approx(0.2)
    assert verdict.ndcg_gain.value == pytest.approx(0.1)
    assert verdict.violations == 2
    assert verdict.losing == 0
    assert verdict.queries[0].reward == pytest.approx(1.2)
    assert verdict.queries[0].gain == pytest.approx(0.2)


def test_traffic_weighs_queries():
    metrics = [*rows("often", [200], [100])]
    evidence = {"often": (11_000, 9)}
    for number in range(11):
        metrics += rows(f"q{number}", [90], [100])
        evidence[f"q{number}"] = (1000, 9)
    verdict = judge(metrics, 100, evidence)
    assert verdict.gain.value == pytest.approx((100 - 110) / 1200)
    assert verdict.gain_by_traffic.value == pytest.approx((11 * 100 - 110) / 2200)
    assert verdict.losing == 11


def test_few_queries_are_not_enough_evidence():
    verdict = judge(rows("q", [110], [100]), 100, {"q": (5, 5)})
    assert not verdict.gain.enough
    assert verdict.queries[0].gain == pytest.approx(0.1)
