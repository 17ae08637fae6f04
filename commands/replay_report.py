"""What `bubblerank replay` shows at its end: the books, and whether the log may be trusted."""

import argparse
import shlex
from collections.abc import Iterator
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
    from bubblerank.effective_sample import effective_sample
    from bubblerank.fairness import Fairness
    from bubblerank.run_folder import RunFolder

    counters = manifest["counters"]
    books = Books.from_counters(counters)
    fairness = Fairness(counters.get("exchange_chances", 0), counters.get("exchanges", 0))
    sample = effective_sample(RunFolder(args.out))
    warning = fairness.warning if args.feedback == "logged" else sample.warning
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
                "consumed": {"least": sample.least, "median": sample.median},
                "exchanged": fairness.share,
                "fair_coins": fairness.warning is None,
                "trusted": warning is None,
            }
        )
    else:
        title = f"Replay of {books.read:,} sessions, {counters.get('queries', 0):,} queries"
        lines = list(_lines(books, reasons, fairness, args.feedback))
        show_rows(lines, form="table", title=title, right=("sessions", "share"))
    remark(
        f"sessions consumed by a query: {sample.median:,g} in the median, {sample.least:,} at least"
        f"\n{books.read:,} sessions in {manifest['seconds']:.1f} s; rows are in {args.out}",
        quiet=args.quiet,
    )
    if not books.read:
        remark("the log holds no sessions: nothing was learned")
    elif warning:
        remark(warning)
    if sample.example is not None:
        words = shlex.join(["inspect", str(args.out), "--query", sample.example])
        remark(f"next: bubblerank {words}", quiet=args.quiet)
    if books.reject_rate > args.max_reject_rate:
        remark(
            f"{books.reject_rate:.2%} of the log was rejected, --max-reject-rate is "
            f"{args.max_reject_rate:.2%}: see {args.out}/rejects"
        )
        return TOO_MANY_REJECTS
    return 0


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
