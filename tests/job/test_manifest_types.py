"""The types of a manifest have the fields of the schema that is checked."""

import json

import pytest

from pipelines.batch_sources import main
from pipelines.output import manifest_schema, manifest_types

NOT_CHECKED = {  # written for people, or of a later step than the schema
    "PartEntry": set(),
    "Failure": set(),
    "Retry": set(),
    "Identity": set(),
    "Histogram": set(),
    "GraphFacts": {"reused"},
    "Candidate": set(),
    "Measurement": set(),
    "Switch": set(),
    "StrategyChoice": set(),
    "Manifest": {"ended_by"},
    "Footer": {"version"},
}


@pytest.mark.parametrize("name", NOT_CHECKED)
def test_manifest_types_have_the_fields_of_the_schema(name):
    kind, schema = getattr(manifest_types, name), getattr(manifest_schema, name)
    assert set(kind.__annotations__) == set(schema.model_fields) | NOT_CHECKED[name]
    required = {field for field, info in schema.model_fields.items() if info.is_required()}
    assert kind.__required_keys__ == required


def test_manifest_types_have_every_key_that_a_run_writes(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n2,3\n")
    argv = [
        str(tmp_path / "e.csv"),
        "--sources",
        "1,2",
        "--device",
        "cpu",
        "--workers",
        "1",
        "--output",
        str(tmp_path / "out"),
    ]
    assert main(argv) == 0
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert set(manifest) <= set(manifest_types.Manifest.__annotations__)
    assert manifest_types.Manifest.__required_keys__ <= set(manifest)
    of_others = {"pairs", "reduction", "k", "groups", "limits", "along", "unconnected", "unreached"}
    assert set(manifest["identity"]) == set(manifest_types.Identity.__annotations__) - of_others
    assert set(manifest["graph"]) == set(manifest_types.GraphFacts.__annotations__)
    for part in manifest["parts"]:
        assert set(part) == set(manifest_types.PartEntry.__annotations__)
