"""Explain a plan for many sources: ``MultiSourcePlan.explain`` and ``why``.

Each ``plan`` is a ``MultiSourcePlan``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import several
from ..graph.integer_weights import find_decimal_unit, suggest_unit
from ..runtime.display import in_units, limit_text, seconds_text, text_table
from ..search.answering import answering_labels

_CHOSEN = "*"
_OTHER = " "


def explain_plan(plan: Any) -> str:
    """Return a text of several lines that states the strategy of a plan, the reason, the
    alternatives, and the memory of one group.
    """
    shape = plan.shape
    n_sources = plan.n_sources
    ranked = plan.ranked(n_sources)
    graph_bytes = in_units(plan.graph.derived.nbytes_on_device)
    if plan.graph.derived.edges_on_host:
        graph_bytes += f", and its edges in host memory: {in_units(plan.graph.nbytes)}"
    lines = [
        f"{plan.algorithm} from {n_sources:,} source{'s' if n_sources > 1 else ''}"
        f"{limit_text(plan.query.limit)}, on {plan.graph!r}",
        f"strategy: {plan.strategy.name}: {plan.strategy.rationale}",
        f"memory: {in_units(plan.nbytes)} per group of {plan.group:,}, in addition to the graph "
        f"({graph_bytes})",
        f"why: {_reason(plan, len(ranked))}",
    ]

    # Facts that not all plans have.
    about_labels = describe_labels(plan)
    if about_labels:
        lines.append(f"labels: {about_labels}")
    if shape.depth:
        lines.append(
            f"survey: {shape.depth:,} levels; a search reaches {shape.reach:.0%} of the vertices"
        )
    if not plan.is_named:
        about_hierarchy = explain_hierarchy(plan)
        if about_hierarchy:
            lines.append(f"hierarchy: {about_hierarchy}")
    if plan.algorithm == "sssp":
        lines.append(f"sums: {_describe_sums(plan)}")

    # A table of the strategies that fit, those that do not, and the times measured so far.
    lines.append("")
    rows = [
        (
            f"{_CHOSEN if candidate.name == plan.strategy.name else _OTHER} {candidate.name}",
            seconds_text(candidate.seconds),
            f"{candidate.group:,}",
            in_units(candidate.nbytes),
        )
        for candidate in ranked
    ]
    lines += text_table(("  strategy", "estimated", "sources per group", "memory per group"), rows)
    lines += [f"left out: {name}: {reason}" for name, reason in plan.left_out.items()]
    lines += [f"measured: {text}" for text in plan.measurements()]
    return "\n".join(lines)


def explain_hierarchy(plan: Any) -> str:
    """Return a text that says how long building a hierarchy of the graph would take, and from how
    many sources on it pays; ``""`` if there is no estimate.

    A hierarchy needs integer weights. For float weights the text says how to get integers, and only
    where a hierarchy of these would pay.
    """
    # None for float weights, for a graph that has a hierarchy, or that is not likely to have a
    # small one.
    estimate = plan.estimate_hierarchy()
    if estimate is not None:
        return str(estimate)
    # As if the weights were integers.
    estimate = plan.estimate_hierarchy(rounded=True)
    if estimate is None or estimate.seconds_saved(plan.n_sources) <= 0:
        return ""
    # A power of ten that all weights are multiples of, or None; else one that is small beside the
    # weights, to which these are rounded.
    unit = find_decimal_unit(plan.graph)
    if unit is not None:
        how = f"integer_weights(graph) counts the weights in units of {unit:g}, none rounded"
    else:
        unit = suggest_unit(plan.graph)
        if unit is None:
            return ""
        how = (
            f"integer_weights(graph, {unit:g}) rounds the weights by at most {unit / 2:g} each to "
            f"integers"
        )
    return f"{how}; of its graph {estimate}"


def _reason(plan: Any, n_candidates: int) -> str:
    """Return why the strategy of a plan was chosen, in a few words. ``n_candidates`` is the number
    of strategies that fit.
    """
    if plan.is_named:
        return "strategy= names it"
    if plan.n_sources == 1:
        return "one source has no group to share a search with"
    if n_candidates == 1 and describe_labels(plan):
        return "hub labels answer"
    if n_candidates == 1:
        return "no other strategy fits"
    by_time = " and by the measured time of earlier groups" if plan.history else ""
    return f"the fastest of {n_candidates} that fit, by estimate{by_time}"


def describe_choice(plan: Any, ranked: Sequence[Any]) -> str:
    """Return one line that says why a plan has chosen its strategy: facts, joined by semicolons.

    ``ranked`` are the ``Candidate``s of the plan, fastest first; none if there was no choice.
    """
    facts = [repr(plan.graph), *_describe_shape(plan)]
    if ranked:
        estimated = ", ".join(f"{each.name} {each.seconds:.3g} s" for each in ranked)
        facts.append(f"estimated for {several(plan.n_sources, 'source')}: {estimated}")
    facts.append(
        f"{plan.strategy.name}, {plan.group} sources at once, {plan.nbytes / 2**20:,.0f} MiB"
    )

    # Facts that not all plans have.
    if plan.query.output == "paths" and plan.strategy.finds_paths:
        facts.append(f"paths are looked up, {plan.query.targets_per_source:.3g} per source")
    about_labels = describe_labels(plan)
    if about_labels:
        facts.append(about_labels)
    if not plan.is_named:
        about_hierarchy = explain_hierarchy(plan)
        if about_hierarchy:
            facts.append(about_hierarchy)
    if plan.algorithm == "sssp":
        facts.append(f"sums in {_describe_sums(plan)}")
    return "; ".join(facts)


def describe_labels(plan: Any) -> str:
    """Return a text about the hub labels that answer the targets of a plan; ``""`` if none do.

    A hub label is the list of distances of one vertex to some others, from which distances are
    looked up without a search.
    """
    if "hierarchy" not in plan.strategy.needs:
        return ""
    labels = answering_labels(plan.graph, plan.query, plan.strategy.metric)
    if labels is None:
        return ""
    if plan.query.output == "paths":
        what = "hub labels answer the distances along paths"
    else:
        what = "hub labels answer the targets"
    return (
        f"{what}, with {labels.hubs_per_vertex:,.0f} hubs per vertex in {in_units(labels.nbytes)}"
    )


def _describe_shape(plan: Any) -> list[str]:
    """Return what the survey, a few searches before the choice, has found, as texts: the levels of
    a search, and how much of the graph it reaches.
    """
    shape = plan.shape
    facts = []
    if shape.depth:
        facts.append(f"{shape.depth} levels")
    if shape.is_short:
        n_reached = shape.reach * shape.n_vertices
        facts.append(f"vertices that a search reaches: {n_reached:,.3g}")
    elif shape.reach < 1:
        facts.append(f"a search reaches {shape.reach:.0%}")
    return facts


def _describe_sums(plan: Any) -> str:
    """Return a text with the type in which distances are summed, and whether it may widen."""
    text = str(plan.sums.dtype)
    if plan.sums.may_widen:
        text += ", wider where these could round"
    return text
