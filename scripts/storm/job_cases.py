"""Cases of the job: one run in some way, with faults, and what must come out of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from scripts.storm import faults, jobs
from scripts.storm.answers import Expected, Refused, expected
from scripts.storm.case import Case, shown_edges, shown_question
from scripts.storm.edges import EdgeList, closed_in_part, draw_edges
from scripts.storm.jobs import Ended, Run
from scripts.storm.oracle import Network
from scripts.storm.questions import OF_LIBRARY_ALONE, QUESTIONS, Question, draw_question

KINDS = [kind for kind in QUESTIONS if kind not in OF_LIBRARY_ALONE]
_CODES_OF_ERRORS = {
    "NegativeCycleError": (4,),
    "PrecisionError": (2, 3),
    "InputError": (2,),
    "CapacityError": (2, 3),
}
NOT_VERIFIED = 5
INTERRUPTED = 130


@dataclass
class Task:
    """A run, the question that it answers, and what must come out."""

    run: Run
    question: Question
    wanted: Expected
    words: str


def _draw_task(case: Case, kinds: list[str], largest: int = 10**9) -> Task:
    draw = case.draw
    edges = replace(closed_in_part(draw, draw_edges(draw, largest)), back=None)
    network = Network(edges)
    question = jobs.for_job(draw_question(draw, network, kinds))
    if edges.closed:
        question.options.pop("direction", None)  # such jobs search outwards only
    return _task_of(case, edges, network, question)


def _task_of(case: Case, edges: EdgeList, network: Network, question: Question) -> Task:
    draw = case.draw
    run = jobs.make_run(edges, question, case.folder, draw, case.settings.device)
    if question.kind not in jobs.NO_SHARDS:
        run.settings["batch_size"] = draw.choice([1, 2, 3, 7, 50])
    run.settings["certify"] = draw.choice(["all", "all", "sample", "none"])
    if draw.random() < 0.2 and question.kind not in jobs.NO_SHARDS:
        run.settings["hierarchy"] = "no"
    words = (
        f"{shown_edges(edges)}; as {run.about}; {shown_question(question)}; settings {run.shown}"
    )
    # the job reads no weights then, by which rows of parallel edges are chosen
    if question.algorithm == "bfs":
        network = Network(edges.without_weights())
    return Task(run, question, expected(question, network), words)


def _check_codes(case: Case, task: Task, ended: Ended, codes: tuple[int, ...]) -> bool:
    """Say whether a command has ended as it may."""
    kind = task.question.kind
    if "Traceback" in ended.err or "unexpected " in ended.err or ended.code == -1:
        case.report(kind, "raw error", f"exit code {ended.code}: {ended.err[-1200:]}", task.words)
        return False
    if "left behind" in ended.err:
        case.report(kind, "left behind", ended.err[-800:], task.words)
    if ended.code not in codes:
        case.report(kind, "exit code", f"{ended.code}, not {codes}: {ended.err[-800:]}", task.words)
        return False
    return True


def _codes(task: Task) -> tuple[int, ...]:
    if not isinstance(task.wanted, Refused):
        return (0,)
    codes = tuple(code for name in task.wanted.errors for code in _CODES_OF_ERRORS[name])
    if task.wanted.may_answer:
        return (*codes, 0)
    return codes


def _check_output(case: Case, task: Task, ended: Ended) -> bool:
    """Compare what a run has written with what must come out; return whether there is a whole output."""
    case.count("calls")
    case.count(f"calls, {task.question.kind}")
    if not _check_codes(case, task, ended, _codes(task)) or isinstance(task.wanted, Refused):
        return False
    wanted = jobs.without_zeros(task.wanted) if task.question.kind in jobs.OF_LOADS else task.wanted
    try:
        tables = jobs.read_output(task.run, task.question)
    except Exception as error:
        case.report(
            task.question.kind, "unreadable", f"{type(error).__name__}: {error}", task.words
        )
        return False
    for found, is_ordered in tables:
        if not found.columns and not wanted.rows:
            continue  # no part was needed
        case.compare(task.question.kind, wanted, found, task.words, is_ordered)
    return True


def _check_verify(case: Case, task: Task, codes: tuple[int, ...], words: str) -> None:
    case.count("verifications")
    ended = jobs.run_verify(task.run)
    _check_codes(
        case,
        Task(task.run, task.question, task.wanted, f"{task.words}; verify, {words}"),
        ended,
        codes,
    )


def _afterwards(case: Case, task: Task) -> None:
    """Verify an output, make it a table, and damage it, each in some cases."""
    draw = case.draw
    if draw.random() < 0.5:
        _check_verify(case, task, (0,), "as it is")
    if (
        draw.random() < 0.15
        and find_spec("deltalake")
        and task.question.kind not in (*jobs.OF_LOADS, "matrix")
    ):
        _make_table(case, task)
    if draw.random() < 0.4:
        parts = jobs.part_files(task.run.output)
        if parts:
            what = faults.damage(draw.choice(parts), draw)
            if what:
                case.count("damaged files")
                _check_verify(case, task, (NOT_VERIFIED,), what)


def _make_table(case: Case, task: Task) -> None:
    import deltalake

    ended = jobs.run_finish(task.run, "delta")
    if ended.code == 2:
        return  # names of columns or folders that Delta does not take
    if not _check_codes(case, task, ended, (0,)):
        return
    rows = sum(jobs.read_part(path).num_rows for path in jobs.part_files(task.run.output))
    seen = deltalake.DeltaTable(str(task.run.output)).to_pyarrow_table().num_rows
    case.count("comparisons")
    if rows != seen:
        case.report(
            task.question.kind,
            "wrong",
            f"the Delta table has {seen} rows, and the parts {rows}",
            task.words,
        )
    _check_verify(case, task, (0,), "with a Delta table")


# Doors.


def run_in_python(case: Case) -> None:
    """``run_job`` in this process."""
    task = _draw_task(case, KINDS)
    ended = jobs.run_python(task.run, case.folder)
    if ended.error is not None and ended.code == -1:
        case.check_error(task.question.kind, ended.error, None, task.words)
        return
    if _check_output(case, task, ended):
        _afterwards(case, task)


def run_in_process(case: Case) -> None:
    """The command line, in this process."""
    task = _draw_task(case, KINDS)
    if _check_output(case, task, jobs.run_main(task.run, case.folder)):
        if case.settings.device == "cuda":
            _compare_with_cpu(case, task)
        _afterwards(case, task)


def _compare_with_cpu(case: Case, task: Task) -> None:
    """Run the same on the CPU: the digests must be equal."""
    case.count("comparisons")
    on_cpu = Run(
        task.run.edges, task.run.settings | {"device": "cpu"}, case.folder / "cpu", task.run.about
    )
    ended = jobs.run_main(on_cpu, case.folder)
    if not _check_codes(case, task, ended, (0,)):
        return
    found, wanted = (jobs.digest(run.output) for run in (task.run, on_cpu))
    if found != wanted:
        case.report(
            task.question.kind,
            "wrong",
            f"the digest is {found}, and on the CPU {wanted}",
            task.words,
        )


def run_in_shards(case: Case) -> None:
    """Several shards one after another, and ``finish``."""
    task = _draw_task(case, [kind for kind in KINDS if kind not in jobs.NO_SHARDS])
    if _check_output(
        case, task, jobs.run_shards(task.run, case.folder, case.draw.choice([1, 2, 3, 5]))
    ):
        _afterwards(case, task)


def run_as_command(case: Case) -> None:
    """The command, in a process of its own, now and then with worker processes."""
    task = _draw_task(case, KINDS)
    if case.draw.random() < 0.15 and task.question.kind not in jobs.NO_SHARDS:
        task.run.settings["workers"] = 2
    if _check_output(
        case, task, faults.run_command(jobs.command(task.run, case.folder), case.folder)
    ):
        _afterwards(case, task)


def _draw_long_task(case: Case) -> Task:
    """Return a task of many small parts."""
    kinds = [kind for kind in KINDS if kind not in (*jobs.NO_SHARDS, "betweenness")]
    draw = case.draw
    while True:
        edges = draw_edges(draw)
        network = Network(edges)
        question = jobs.for_job(draw_question(draw, network, kinds))
        if (
            question.sources is not None
            and "source_weights" not in question.options
            and not isinstance(question.limit, list)
        ):
            question = Question(**question.__dict__ | {"sources": list(network.ids)})
        if not isinstance(expected(question, network), Refused):
            break
    task = _task_of(case, edges, network, question)
    task.run.settings["batch_size"] = draw.choice([1, 1, 2])
    if draw.random() < 0.1:
        task.run.settings["workers"] = 2
    return task


def run_killed(case: Case) -> None:
    """The command is killed or interrupted up to three times, and resumed to its end."""
    task = _draw_long_task(case)
    for _ in range(case.draw.choice([1, 1, 2, 3])):
        blow = faults.draw_blow(case.draw)
        words = f"{task.words}; {blow}"
        command = faults.Command(
            jobs.command(task.run, case.folder, *_resume(task.run)), case.folder
        )
        if command.strike(blow, task.run.output):
            case.count("kills")
            case.count(f"kills, {blow.number.name} to the {blow.to}")
        struck = Task(task.run, task.question, task.wanted, words)
        ended = command.end()
        _check_codes(case, struck, ended, _codes_after(blow, task.run.output))
        wrong = jobs.readable(task.run.output)
        if wrong:
            case.report(task.question.kind, "unreadable", wrong, words)
        task = struck
        if (task.run.output / "_SUCCESS").exists():
            ended = Ended(0, ended.out, ended.err)
            break
    if not (task.run.output / "_SUCCESS").exists():
        _damage_a_part(case, task)
    if not (task.run.output / "_SUCCESS").exists():
        ended = _run_to_the_end(case, task, ended.err)
    if _check_output(case, task, ended):
        _afterwards(case, task)


def _resume(run: Run) -> list[str]:
    has_files = run.output.exists() and any(run.output.iterdir())
    if has_files:
        return ["--resume"]
    return []


def _run_to_the_end(case: Case, task: Task, said: str) -> Ended:
    """Run a command again that has ended early, as it has said, or else as its folder is."""
    advised = "--resume" in said
    words = ["--resume"] if advised else _resume(task.run)
    ended = faults.run_command(jobs.command(task.run, case.folder, *words), case.folder)
    if ended.code == 2 and advised and not _resume(task.run):
        case.report(
            task.question.kind,
            "advice",
            f"it said {said[-300:]!r}, and then {ended.err[-300:]!r}",
            task.words,
        )
        ended = faults.run_command(jobs.command(task.run, case.folder), case.folder)
    return ended


def _codes_after(blow: faults.Blow, output: Path) -> tuple[int, ...]:
    """Return the exit codes that a command may have after a blow, or if it has ended before."""
    is_kill = blow.number == faults.signal.SIGKILL
    if is_kill and blow.to == "child":
        return (0, 1, -9)
    if is_kill:
        return (0, -9)
    if (output / "_SUCCESS").exists():  # it was at its end
        return (0, INTERRUPTED, -blow.number)
    return (0, INTERRUPTED)


def _damage_a_part(case: Case, task: Task) -> None:
    parts = jobs.part_files(task.run.output)
    if parts and case.draw.random() < 0.2:
        what = faults.damage(case.draw.choice(parts), case.draw)
        case.count("damaged files", int(bool(what)))
        task.words += f"; {what}"


def run_on_a_full_disk(case: Case) -> None:
    """The disk is full after some bytes; then there is space again."""
    task = _draw_long_task(case)
    limit = int(10 ** case.draw.uniform(1.5, 4.5))
    words = f"{task.words}; no file beyond {limit} bytes"
    full = faults.run_command(jobs.command(task.run, case.folder), case.folder, limit)
    case.count("full disks", int(full.code != 0))
    if not _check_codes(case, Task(task.run, task.question, task.wanted, words), full, (0, 2)):
        return
    ended = full
    if full.code:
        ended = _run_to_the_end(case, task, full.err)
    task.words = words
    if _check_output(case, task, ended):
        _afterwards(case, task)


def run_on_cut_files(case: Case) -> None:
    """A file of the edge list is damaged: an error, or the answer of what can still be read."""
    task = _draw_task(case, ["distances", "summary", "pairs"])
    path = task.run.edges[0]
    if path.is_dir():
        path = case.draw.choice(sorted(path.iterdir()))
    is_text = path.suffix in (".csv", ".txt")
    what = faults.damage(path, case.draw)
    case.count("damaged files", int(bool(what)))
    ended = jobs.run_main(task.run, case.folder)
    damaged = Task(task.run, task.question, task.wanted, f"{task.words}; {what}")
    # Text without its last lines is another edge list, and Parquet has no checksum of each byte.
    codes = (
        (0, 2, 3, 4)
        if is_text or path.suffix != ".parquet" or "flipped" in what or "zeros" in what
        else (0, 2)
    )
    _check_codes(case, damaged, ended, codes)


DOORS: dict[str, tuple[Callable[[Case], Any], int]] = {
    "run_job": (run_in_python, 3),
    "job": (run_in_process, 4),
    "shards": (run_in_shards, 2),
    "command": (run_as_command, 1),
    "killed": (run_killed, 2),
    "full disk": (run_on_a_full_disk, 1),
    "cut files": (run_on_cut_files, 1),
}
