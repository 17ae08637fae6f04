"""What `bubblerank replay` could use of each query, and whether that is evidence."""

import argparse
from collections.abc import Callable
from typing import Any

from commands.output import remark, show_rows

_SHOWN_QUERIES = 10


def usage_conclusion(args: argparse.Namespace) -> Callable[[], dict[str, Any]]:
    """What run.json is to say of the usage, to be asked when all rows have been written."""

    def conclude() -> dict[str, Any]:
        from bubblerank.run_folder import RunFolder
        from bubblerank.usage import usage_of
        from pipelines.tally_queries import read_tallies

        tallies = read_tallies(str(args.out))
        usage = usage_of(RunFolder(args.out), tallies, with_clicks=args.feedback == "match")
        return {"usage": usage.to_record(args.seed)}

    return conclude


def show_usage(args: argparse.Namespace, manifest: dict[str, Any]) -> None:
    """A table of the most frequent queries, and for `match` the clicks against the log's."""
    from bubblerank.bootstrap import Estimate

    usage = manifest.get("usage")
    if not usage or not usage["queries"]:
        return
    if args.format == "table":
        rows = [
            {
                "query": query["query"],
                "read": query["read"],
                "consumed": query["consumed"],
                "unused": query["unused"],
                "acceptance": f"{query['acceptance']:.1%}",
                "evidence": "enough" if query["enough"] else "not enough",
            }
            for query in usage["by_query"][:_SHOWN_QUERIES]
        ]
        shown = f"the {len(rows)} most frequent of {usage['queries']:,} queries"
        show_rows(rows, form="table", title=f"Use of the log, {shown}")
    remark(
        f"{usage['queries_with_enough_evidence']:,} of {usage['queries']:,} queries consumed at "
        f"least {usage['enough_sessions']} sessions; all are in run.json, usage",
        quiet=args.quiet,
    )
    if args.feedback == "match":
        gain = Estimate(**usage["click_gain"])
        remark(
            "clicks per session of the ranker's lists against the log's, 95 % by bootstrap over "
            f"queries: {gain.text('+.2%')}",
            quiet=args.quiet,
        )
