"""docs/guarantees.md is up to date with scripts/evidence, and the audit of packages reports a missing database."""

import json

import pytest

from scripts.ci import audit
from scripts.evidence import __main__ as trust
from scripts.evidence import fuzz_readers, page

# scripts/ci/gpu.py finds these
OF_GPU_CHECK = {"sanitizers", "gpu_check_1", "gpu_check_2"}


def test_a_stale_page_is_noticed(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(trust, "MEASURED", tmp_path / "guarantees.json")
    monkeypatch.setattr(trust, "PAGE", tmp_path / "guarantees.md")
    assert trust.main(["check"]) == 1
    assert "stale" in capsys.readouterr().err
    assert trust.main(["write"]) == 0
    assert trust.main(["check"]) == 0
    every = {*trust.MEASURES, *trust.GPU_MEASURES, "sanitizers", "gpu_check"}
    assert (tmp_path / "guarantees.md").read_text().count("Not measured yet.") == len(every)
    (tmp_path / "guarantees.json").write_text(
        json.dumps({"kills": record({"cases": {"ran": 9, "failed": 1, "skipped": 0}})})
    )
    assert trust.main(["check"]) == 1
    trust.main(["write"])
    assert "8 of 9 cases." in (tmp_path / "guarantees.md").read_text()


def record(figures):
    return {"date": "2026-01-01", "commit": "abc", "machine": "a machine", "figures": figures}


def test_every_promise_has_its_figures_or_says_that_it_was_not_measured():
    measured = json.loads(trust.MEASURED.read_text())
    text = page.page(measured)
    assert set(measured) <= set(trust.MEASURES | trust.GPU_MEASURES) | OF_GPU_CHECK
    assert "`bash scripts/check.sh --gpu sanitize`" in text
    assert "`bash scripts/check.sh --gpu`" in text
    for key in [*trust.MEASURES, *(set(measured) - OF_GPU_CHECK)]:
        assert f"python -m scripts.evidence measure --only {key}" in text
    missing = {*trust.MEASURES, *trust.GPU_MEASURES} - set(measured)
    assert text.count("Not measured yet.") == len(missing)


def test_recorded_study_has_no_missed_fault_and_no_false_alarm():
    study = json.loads(trust.MEASURED.read_text())["faults"]["figures"]
    assert study["alarms"] == 0
    assert study["answers"] >= 10_000
    for of in study["classes"].values():
        assert of["certify"][0] > 0
        assert all(made == noticed for made, noticed in of.values())


@pytest.mark.parametrize(
    ("found", "why", "code", "says"),
    [
        (None, "no route", 0, "NOT CHECKED"),
        ({"dependencies": [{"name": "a", "skip_reason": "unknown"}]}, "", 0, "NOT CHECKED"),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}, "", 0, "0 known"),
        ({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1", "fix_versions": ["2"]}]}]}, "", 1,
         "a 1: CVE-1, fixed in 2"),
    ],
)  # fmt: skip
def test_audit_fails_on_a_known_vulnerability_and_reports_a_missing_database(
    found, why, code, says
):
    assert audit.verdict(found, why)[0] == code
    assert says in audit.verdict(found, why)[1]


def test_the_fuzzer_takes_whole_files_and_notices_one_that_is_cut_and_read(tmp_path, monkeypatch):
    for name, whole in fuzz_readers.whole_files().items():
        (tmp_path / name).write_bytes(whole)
        kind, what = fuzz_readers.outcome_of(tmp_path / name)
        assert kind == "read", what
    (tmp_path / "plain.gr").write_text("p sp 3 2\na 1 2 3\n")
    assert fuzz_readers.outcome_of(tmp_path / "plain.gr")[0] == "refused"
    monkeypatch.setattr(fuzz_readers, "read_graph", lambda *_, **__: 1 / 0)
    kind, what = fuzz_readers.outcome_of(tmp_path / "plain.gr")
    assert kind == "fault"
    assert "ZeroDivisionError" in what
