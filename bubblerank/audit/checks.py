"""The checks by name: what each proves, and what it needs."""

from typing import NamedTuple


class Check(NamedTuple):
    """One check, in words."""

    name: str
    proves: str
    needs: str


CHECKS = {
    check.name: check
    for check in (
        Check(
            "structure",
            "lists hold the right items, each once; BubbleRank only exchanged open neighbours of "
            "the step's parity, and changed its base list only on evidence",
            "displays; for bubblerank the horizon or delta, and the seed where lists are longer "
            "than what is shown",
        ),
        Check(
            "safety",
            "|V(R_t)| <= |V(R_0)| + K/2 at every step, the paper's safety constraint",
            "attractions: --problems",
        ),
        Check("completeness", "every step is there, once", "displays"),
        Check(
            "books",
            "what was read is accounted for, and the files hold the rows that run.json tells",
            "run.json",
        ),
        Check(
            "statistics",
            "statistics/ follows from the displays and their clicks",
            "statistics/, and what structure needs",
        ),
        Check(
            "recompute",
            "every display is the one that the seed draws; with the true problems of a "
            "simulation, every click too",
            "the seed; for other rankers than bubblerank also --problems",
        ),
    )
}
CHECK_NAMES = tuple(CHECKS)
