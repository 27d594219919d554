"""Mutants of kernels and of Python: their places, the tests that run on them, and a record of the current files."""

from __future__ import annotations

import json
import signal
from collections import Counter

import pytest

from scripts.mutation import __main__ as mutate_kernels
from scripts.mutation import mutators
from scripts.mutation import record as mutation_record
from scripts.mutation.mutators import ROOT, Mutant, kernel_files, mutants_of, sample
from scripts.mutation.record import Outcome, page, record_of, recorded

FILE = "kepler_traverse/bfs/kernels/push.cu"


def mutant(
    line: int,
    before: str = "    if (a < b) return;",
    after: str = "    if (a <= b) return;",
    file: str = FILE,
) -> Mutant:
    return Mutant(file, line, before, after)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Mutants of a kernel file of this text."""
    monkeypatch.setattr(mutators, "ROOT", tmp_path)

    def of(text: str) -> list[Mutant]:
        (tmp_path / "kernel.cu").write_text(text)
        return mutants_of(tmp_path / "kernel.cu")

    return of


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("if (u < n) return;", {"if (u <= n) return;", "if (true) return;", "if (false) return;", "if (u < n) ;"}),
        ("kt::block_barrier();", {";"}),
        ("kt::atomic_add(sums + 2, 5);", {"kt::racy_store(sums + 2, racy_load(sums + 2) + 5);", ";"}),
        ("kt::int64 first = offsets[v];", {"kt::int32 first = offsets[v];"}),
        ("if (kt::any(kt::ALL_LANES, u)) ++u;", {"if (kt::any((kt::ALL_LANES >> 1), u)) ++u;", "if (kt::any(1u, u)) ++u;"}),
        ("// if (u < n) return;", set()),
    ],
)  # fmt: skip
def test_line_is_mutated_in_each_possible_way(kernel, line, expected):
    found = {mutant.after for mutant in kernel(f"{line}\n")}
    assert expected <= found
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "return a < b and not c",
            {"return a <= b and not c", "return (a < b or not c)", "return a < b and (c)"},
        ),
        ("raise ValueError(f'{1 + 2}')", {"pass"}),
        (
            "x: list[0] = put(a, b) + 1",
            {"x: list[0] = put(b, a) + 1", "x: list[0] = put(a, b) + 2"},
        ),
        ("assert 1 < 2", set()),
    ],
)
def test_python_is_mutated_inside_functions(tmp_path, monkeypatch, line, expected):
    monkeypatch.setattr(mutators, "ROOT", tmp_path)
    file = tmp_path / "module.py"
    file.write_text(f"{line.replace('return', 'y =')}\ndef f(a=1) -> int | None:\n    {line}\n")
    found = mutants_of(file)
    assert {m.line for m in found} == ({3} if expected else set())
    assert expected <= {m.after.strip() for m in found}
    assert len(found) < 10


def test_a_probe_names_each_line_before_it_runs():
    text = "def f(a):\n    if a > 1:\n        return 2\n    elif a:\n        a = [\n            7]\n    return 3\n"
    names: dict = {"seen": []}
    exec(mutators.probed(text, {2, 3, 4, 6, 7}, "seen.append({line})"), names)
    assert [(names["seen"].clear(), names["f"](a), names["seen"][:])[1:] for a in (2, 1, 0)] == [
        (2, [2, 3]), (3, [2, 4, 6, 7]), (3, [2, 4, 7])
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("#ifdef __CUDACC__\n{0}#else\n{1}#endif\n", [1]),
        ("#if !defined(__CUDACC__)\n{0}#elif CLUSTER == 1\n{1}#else\n{2}#endif\n", [0]),
        ("#ifndef __CUDACC__\n{0}#endif\n{1}", [0, 1]),
        ("#if HEAVY == 2\n{0}#else\n{1}#endif\n", [0, 1]),
        ("#if defined(__CUDACC__) && CLUSTER > 1\n#if HEAVY\n{0}#endif\n#endif\n{1}", [1]),
    ],
)
def test_code_for_cuda_compilers_is_not_mutated(kernel, text, read):
    found = kernel(text.format(*(f"a{i} = b < c;\n" for i in range(3))))
    assert {m.before for m in found} == {f"a{i} = b < c;" for i in read}


def test_sample_is_repeatable_and_takes_its_fraction_of_each_file():
    mutants = [m for path in kernel_files() for m in mutants_of(path)]
    taken = sample(mutants, 0.02, 8, seed=3)
    assert taken == sample(mutants, 0.02, 8, seed=3) != sample(mutants, 0.02, 8, seed=4)
    of_file, there = Counter(m.file for m in taken), Counter(m.file for m in mutants)
    for file, n in there.items():
        assert of_file[file] == min(n, max(8, -(-n // 50)))
    lines = {(m.file, m.line) for m in mutants}
    lines_taken = {(m.file, m.line) for m in taken}
    for file in there:
        assert sum(f == file for f, _ in lines_taken) == min(
            of_file[file], sum(f == file for f, _ in lines)
        )


# --- the record --------------------------------------------------------------------------------------------------------


def test_a_record_is_read_as_it_was_written():
    survivor = mutant(9, after="    if (a | b) return;")
    outcomes = {
        mutant(3): Outcome("killed", "races", "tests/a.py::test_b", "fast"),
        survivor: Outcome("survived"),
        mutant(7): Outcome("no mutant", "does not compile"),
    }
    reasons = {survivor: "the same: a | b"}
    record = record_of([mutant(3), mutant(7), survivor], outcomes, reasons)
    text = page(record)
    assert "2 mutants ran. 1 were killed (50.0 %), 0 of them by the compiler. 1 survived." in text
    assert "1 of the survivors compute the same" in text
    assert "other 1 mutants 100.0 % were killed" in text
    assert "1 further mutants" in text
    del outcomes[mutant(7)]
    assert recorded([mutant(3), survivor], json.loads(json.dumps(record))) == (outcomes, reasons, 0)


@pytest.mark.parametrize(
    ("lines_of_the_record", "lines_of_today", "kept", "lost"),
    [
        ([3], [3], [3], 0),
        ([3], [5], [5], 0),
        ([3, 5, 9], [13, 15, 19], [13, 15, 19], 0),
        ([3, 5], [5, 7, 9], [5], 1),
        ([3], [5, 7], [], 1),
        ([3, 5], [5], [5], 1),
        ([3], [], [], 1),
    ],
)
def test_a_mutant_is_known_by_the_text_of_its_line_and_dropped_where_that_is_gone_or_in_doubt(
    lines_of_the_record, lines_of_today, kept, lost
):
    written = [mutant(line) for line in lines_of_the_record]
    record = record_of(written, {m: Outcome("killed", f"test of {m.line}") for m in written}, {})
    # The same line elsewhere is another mutant.
    today = [mutant(line) for line in lines_of_today] + [
        mutant(3, file="kepler_traverse/sssp/kernels/relax.cu")
    ]
    outcomes, _, dropped = recorded(today, record)
    assert [m.line for m in outcomes] == kept
    assert dropped == lost


def test_the_explanation_of_a_survivor_moves_with_its_line():
    record = record_of(
        [mutant(3)], {mutant(3): Outcome("survived")}, {mutant(3): "the same result"}
    )
    assert recorded([mutant(30)], record) == (
        {mutant(30): Outcome("survived")},
        {mutant(30): "the same result"},
        0,
    )
    unexplained = record_of([mutant(3)], {mutant(3): Outcome("survived")}, {})
    assert recorded([mutant(30)], unexplained)[1] == {}


def test_the_page_of_mutants_is_current_and_explains_every_survivor():
    record = mutation_record.read_record()
    assert record["mutants"]
    assert mutation_record.PAGE.read_text() == page(record)
    assert mutation_record.UNEXPLAINED not in page(record)


# --- the tests of a file -----------------------------------------------------------------------------------------------


def test_names_in_tests_match_kernels_and_existing_tests():
    files = [path.relative_to(ROOT).as_posix() for path in kernel_files()]
    for end, tests in mutate_kernels.TESTS.items():
        assert any(file.endswith(f"/{end}") for file in files), end
        assert all((ROOT / chosen[0]).exists() for chosen in tests)


def test_kernels_that_the_contract_does_not_launch_have_tests_of_their_own():
    for path in kernel_files():
        if "published" in path.parts or path.name.startswith("many_"):
            assert mutate_kernels.tests_for(path.as_posix()) != mutate_kernels.tests_for("none"), (
                path
            )


@pytest.mark.parametrize(
    ("status", "said", "expected"),
    [
        (0, "3 passed", ["survived"]),
        (1, "FAILED tests/a.py::test_hops[x y] - assert", ["killed", "hops", "tests/a.py::test_hops[x y]"]),
        (1, "E SimtError: kernel bfs: races <pc\nFAILED tests/a.py::test_b - s", ["killed", "races", "tests/a.py::test_b"]),
        (1, "SimtError: g++ -O\nerror: [-Werror=unused]\nFAILED tests/a.py::test_b", ["killed", "compiler: unused"]),
        (1, "SimtError: g++ -O\nerror: no ;\nFAILED tests/a.py::test_b", ["no mutant", "does not compile"]),
        (2, "_ ERROR collecting tests/a.py _\nERROR tests/a.py - NameError", ["killed", "import"]),
        (-signal.SIGXCPU, "", ["killed", "does not end"]),
        (-signal.SIGSEGV, "", ["killed", "crashes: SIGSEGV"]),
    ],
)  # fmt: skip
def test_output_of_pytest_decides_the_verdict_of_a_mutant(status, said, expected):
    assert mutate_kernels.verdict(status, said) == Outcome(*expected)


def test_tests_that_did_not_run_are_no_verdict():
    with pytest.raises(RuntimeError, match="did not run"):
        mutate_kernels.verdict(4, "ERROR: file not found")
