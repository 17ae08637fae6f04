"""What `bubblerank replay` shows at its end: the books, and whether the log may be trusted."""

import argparse
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from commands.output import remark, show_json, show_rows

if TYPE_CHECKING:
    from bubblerank.books import Books
    from bubblerank.fairness import Fairness

TOO_MANY_REJECTS = 4


def report(args: argparse.Namespace, manifest: dict[str, Any]) -> int:
    """Print the books, what they mean and what to do next; give the exit code."""
    from dataclasses import asdict

    from bubblerank.books import Books
    from bubblerank.fairness import Fairness

    counters = manifest["counters"]
    books = Books.from_counters(counters)
    fairness = Fairness(counters.get("exchange_chances", 0), counters.get("exchanges", 0))
    usage = manifest.get("usage") or {}
    warning = fairness.warning if args.feedback == "logged" else _too_few_matches(usage)
    reasons = _reject_reasons(args.out) if books.rejected else {}
    if args.format == "json":
        rankable = books.ranked + books.off_policy
        show_json(
            {
                "run": str(args.out),
                **asdict(books),
                "reasons": reasons,
                "used": books.ranked / rankable if rankable else 0.0,
                "queries": counters.get("queries", 0),
                "consumed": usage.get("effective_sample"),
                "exchanged": fairness.share,
                "fair_coins": fairness.warning is None,
                "trusted": warning is None,
                "usage": manifest.get("usage"),
            }
        )
    else:
        queries = counters.get("queries", 0)
        title = (
            f"Replay of {books.read:,} {'session' if books.read == 1 else 'sessions'}, "
            f"{queries:,} {'query' if queries == 1 else 'queries'}"
        )
        lines = list(_lines(books, reasons, fairness, args.feedback))
        show_rows(lines, form="table", title=title, right=("sessions", "share"))
    remark(
        f"{books.read:,} sessions in {manifest['seconds']:.1f} s; rows are in {args.out}",
        quiet=args.quiet,
    )
    if not books.ranked:
        remark(_nothing_learned(books))
    elif warning:
        remark(warning)
    if usage.get("by_query"):
        example = usage["by_query"][0]["query"]
        words = shlex.join(["inspect", str(args.out), "--query", example])
        remark(f"next: bubblerank {words}", quiet=args.quiet)
    if books.reject_rate > args.max_reject_rate:
        remark(
            f"{books.reject_rate:.2%} of the log was rejected, --max-reject-rate is "
            f"{args.max_reject_rate:.2%}: see {args.out}/rejects"
        )
        return TOO_MANY_REJECTS
    return 0


def _too_few_matches(usage: Mapping[str, Any]) -> str | None:
    """What to tell of a rejection replay that accepted too little for a verdict."""
    if not usage or usage["effective_sample"]["median"] >= usage["enough_sessions"]:
        return None
    return (
        f"WARNING: no verdict: half of the queries matched {usage['effective_sample']['median']:g} "
        f"sessions or fewer, at least {usage['enough_sessions']} are needed. The log shows too few "
        "of the lists that the ranker draws: take a longer log, or --feedback logged if a ranker "
        "like this one made it."
    )


def _nothing_learned(books: "Books") -> str:
    """Why no session could be ranked, and what to try."""
    if not books.read:
        return "the log holds no sessions: nothing was learned"
    worst = max(("off_policy", "no_base_list", "rejected"), key=lambda name: getattr(books, name))
    remedy = {
        "off_policy": "the ranker could not have displayed any list of the log: are --base-lists "
        "and --positions those of the ranker that made it?",
        "no_base_list": "no query of the log has a base list: check --base-lists",
        "rejected": "every record was rejected: the column reason of rejects/ tells why, and "
        "--map renames columns",
    }
    return f"WARNING: nothing was learned: {remedy[worst]}"


def _lines(
    books: "Books", reasons: dict[str, int], fairness: "Fairness", mode: str
) -> Iterator[dict[str, Any]]:
    """The books as people read them: what became of the sessions, their share, and why."""
    learned = f"learned from; of {fairness.chances:,} open pairs {fairness.share:.1%} exchanged"
    why = {
        "ranked": learned if fairness.chances else "learned from",
        "rejected": ", ".join(f"{reason} {count:,}" for reason, count in reasons.items()),
        "duplicate": "session_id was there before",
        "off_policy": "the ranker could not have displayed the list"
        if mode == "logged"
        else "the ranker's coins draw another list",
        "no_base_list": "the query has no base list",
    }
    for name, meaning in why.items():
        count = getattr(books, name)
        share = f"{count / books.read:.1%}" if books.read else None
        yield {
            "became": name,
            "sessions": f"{count:,}",
            "share": share,
            "because": meaning if count else "",
        }


def _reject_reasons(out: Path) -> dict[str, int]:
    """How many records were rejected for each reason, the most frequent first."""
    import pyarrow.parquet as pq

    reasons = pq.read_table(out / "rejects", columns=["reason"]).column("reason").value_counts()
    counts = {str(pair["values"]): int(pair["counts"]) for pair in reasons.to_pylist()}
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
