"""The pages of docs/published, rendered from docs/published/measured.json: claims first, then the tables behind them.

python -m scripts.papers.page add out/measure.jsonl   add the lines of a run of the suite papers
python -m scripts.papers.page write                   render anew
python -m scripts.papers.page check                   exit 1 if a page or a plot is stale
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from scripts.measure.record import lines_of
from scripts.pages import filled, put
from scripts.papers import claims, experiments, said, tables
from scripts.papers.claims import FAILS, HOLDS, IN_PART, MODES, TIE, UNKNOWN, Claim, Result
from scripts.papers.record import (
    FOLDER,
    MEASURED,
    MalformedError,
    NotMeasuredError,
    Record,
    added,
    read,
    texts_of,
)

VERDICTS = (HOLDS, IN_PART, FAILS, TIE, UNKNOWN)


def verdict_of(claim: Claim, results: list[Result]) -> str:
    """Return the verdict; two, if those of both ways to choose knobs differ."""
    verdicts = list(dict.fromkeys(result.verdict for result in results))
    if len(verdicts) == 1:
        return verdicts[0]
    return f"{verdicts[0]}; {claim.other}: {verdicts[1]}"


def claim_rows(record: Record, claim: Claim) -> list[str]:
    results = claim.results(record)
    first, second = (result.text for result in results)
    if first == second != UNKNOWN:
        second = "the same"
    elif claim.other != "by the rule" and second != UNKNOWN:
        second = f"{claim.other}: {second}"
    verdict = f"**{verdict_of(claim, results)}**"
    return [claim.said, claim.figure, first + results[0].paper, second, verdict]


def likely_reasons(record: Record, name: str) -> dict[str, list[str]]:
    """Return the likely reason of each verdict against a claim, with the claims that it is of."""
    said_of = {}
    for claim in claims.CLAIMS[name]:
        verdicts = {result.verdict for result in claim.results(record)}
        if claim.reason and verdicts & {IN_PART, FAILS}:
            try:
                said_of.setdefault(claim.reason(record), []).append(claim.said)
            except NotMeasuredError:
                continue
    return said_of


def details(record: Record, name: str) -> dict[str, str]:
    """Return the results of claims graph by graph, where the table has only the extremes."""
    lines = {}
    for claim in claims.CLAIMS[name]:
        found = {}
        results = claim.results(record)
        for result, words in zip(results, ("as published", claim.other), strict=True):
            if result.detail and result.detail not in found.values():
                found[words] = result.detail
        if len(found) == 1:
            lines[claim.said] = ": " + next(iter(found.values()))
        elif found:
            both = (f"{words[0].upper()}{words[1:]}: {text}" for words, text in found.items())
            lines[claim.said] = ". " + ". ".join(both)
    return lines


def counted_verdicts(results: Iterable[Result]) -> list[int]:
    verdicts = [result.verdict for result in results]
    return [verdicts.count(verdict) for verdict in VERDICTS]


def conclusions(record: Record) -> Iterable[tuple[str, str, list[int], Result]]:
    """Yield of each paper and way to choose knobs how many claims hold, and the result of the first."""
    for name in said.PAPERS:
        for mode in MODES:
            results = [claim.result(record, mode) for claim in claims.CLAIMS[name]]
            yield name, mode, counted_verdicts(results), results[0]


def linked(text: str) -> str:
    """Return a text with links to the sections of the page whose titles stand in [[ ]]."""

    def link(found: re.Match) -> str:
        title = found.group(1)
        words = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        return f"[{title}](#{words})"

    return re.sub(r"\[\[(.*?)\]\]", link, text)


def pages(record: Record) -> dict[Path, str]:
    """Return the overview, a page per paper, the page of all strategies, and the plots."""
    of_record = tables.Tables(record)
    given = {
        "record": record,
        "tables": of_record,
        "claims": claims,
        "said": said,
        "experiments": experiments,
        "systems": tables.SYSTEMS,
        "stands_for": tables.stands_for(),
        "by_rule": tables.BY_RULE,
        "verdicts": VERDICTS,
        "claim_rows": claim_rows,
        "conclusions": conclusions,
        "details": details,
        "likely_reasons": likely_reasons,
    }
    texts = {}
    for name in ("README", *said.PAPERS, "all-strategies"):
        given |= {"name": name, "paper": said.PAPERS.get(name)}
        text = filled(f"published/{name}.md", tables.FILTERS, **given)
        texts[FOLDER / f"{name}.md"] = linked(text)
    return texts | {FOLDER / "plots" / file: plot for file, plot in of_record.plots.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=["write", "check", "add"])
    parser.add_argument("files", nargs="*", type=Path, help="for add: files of the suite papers")
    options = parser.parse_args(arguments)
    if (options.action == "add") is not bool(options.files):
        parser.error("add takes files, and only add does")
    try:
        record = read(MEASURED)
        for file in options.files:
            record = added(record, lines_of(file))
    except (MalformedError, OSError) as error:
        print(f"scripts.papers.page: {error}", file=sys.stderr)
        return 2
    if options.action == "add":
        put(texts_of(record, MEASURED), "scripts.papers.page")
    check = options.action == "check"
    return put(pages(record), "scripts.papers.page write", check, FOLDER / "plots")


if __name__ == "__main__":
    sys.exit(main())
