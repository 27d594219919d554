"""Launches of kernels from Python: argument checks, grids, compiler options. No GPU is needed."""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kepler_traverse import cuda
from kepler_traverse.cuda import compiler
from kepler_traverse.cuda import launch as launching
from kepler_traverse.cuda.kernel_spec import WARP, Argument, Entry, chosen_types, struct_layout
from kepler_traverse.errors import DeviceError
from tests.support.processes import ran

EXAMPLE = """
struct ExampleArgs {
  const offset_t* offsets;
  KT_NULLABLE vertex_t* parent;  // one per vertex
  // A comment alone; with a semicolon.
  kt::int32 level;
  weight_t limit;
  hop_t* hops;
};

extern "C" __global__ void __launch_bounds__(BLOCK) example_struct(const ExampleArgs<short> args) {}

extern "C" __global__ void __launch_bounds__(BLOCK)
    example_walk_warp(const offset_t* __restrict__ offsets, vertex_t* parent, kt::ordered_t* keys, kt::int64 n_edges,
                      weight_t limit) {}
""".replace("struct ExampleArgs", "template <typename hop_t>\nstruct ExampleArgs")


def example(folder, text=EXAMPLE, name="example_struct", **more):
    """Return an entry of a kernel file with this text."""
    file = folder / "example.cu"
    file.write_text(text)
    return Entry(name, file, 128, **more)


def compiled(entry):
    """Return a kernel that notes its calls."""
    calls, types = [], chosen_types(np.int32, np.float64)
    dtypes = tuple(argument.dtype(types) for argument in entry.arguments)
    return SimpleNamespace(
        entry=entry,
        function=lambda *call: calls.append(call),
        dtypes=dtypes,
        layout=entry.layout(types),
        calls=calls,
    )


class DeviceArray(np.ndarray):
    """Stands in for a CuPy array."""

    __cuda_array_interface__ = property(lambda self: self.__array_interface__)
    data = property(lambda self: SimpleNamespace(ptr=self.ctypes.data))


def device(*shape, dtype):
    return np.zeros(shape, dtype).view(DeviceArray)


@pytest.fixture
def kernel(tmp_path):
    return compiled(
        example(tmp_path, name="example_walk_warp", optional="parent", item_threads=WARP)
    )


def good():
    return [
        device(4, dtype=np.int64),
        device(4, dtype=np.int32),
        device(4, dtype=np.int64),
        np.int64(3),
        np.float64(1.5),
    ]


def test_right_arguments_arrive_as_they_are(kernel, monkeypatch):
    monkeypatch.setattr(launching, "max_grid", lambda _block: 1000)
    args = good()
    launching.launch(kernel, 100, tuple(args))
    [(grid, block, values)] = kernel.calls
    assert grid == (100 * WARP // 128,)
    assert block == (128,)
    assert all(value is arg for value, arg in zip(values, args, strict=True))


def test_an_array_that_may_be_missing_becomes_a_null_pointer(kernel):
    args = good()
    args[1] = None
    pointer = launching.check_arguments(kernel, tuple(args))[1]
    assert pointer == 0
    assert pointer.dtype.itemsize == 8


@pytest.mark.parametrize(
    ("place", "value", "complaint"),
    [
        (
            0,
            np.zeros(4, np.int64),
            "offsets of example_walk_warp must be a CuPy array, not ndarray",
        ),
        (0, None, "offsets of example_walk_warp must be a CuPy array, not NoneType"),
        (
            0,
            device(4, dtype=np.int32),
            "offsets of example_walk_warp must be of type int64, not int32",
        ),
        (0, device(4, 2, dtype=np.int64)[:, 0], "offsets of example_walk_warp must be contiguous"),
        (
            1,
            device(4, dtype=np.int64),
            "parent of example_walk_warp must be of type int32, not int64",
        ),
        (
            2,
            device(4, dtype=np.int32),
            "keys of example_walk_warp must be of type int64, not int32",
        ),
        (3, 3, "n_edges of example_walk_warp must be a NumPy scalar, not int"),
        (3, np.int32(3), "n_edges of example_walk_warp must be of type int64, not int32"),
        (4, 1.5, "limit of example_walk_warp must be a NumPy scalar, not float"),
        (4, np.float32(1.5), "limit of example_walk_warp must be of type float64, not float32"),
    ],
)
def test_a_wrong_argument_is_refused_by_name(kernel, place, value, complaint):
    args = good()
    args[place] = value
    with pytest.raises(TypeError) as caught:
        launching.launch(kernel, 1, tuple(args))
    assert str(caught.value) == complaint
    assert not kernel.calls


def test_a_missing_argument_is_refused(kernel):
    with pytest.raises(TypeError, match="takes 5 arguments, not 4"):
        launching.launch(kernel, 1, tuple(good()[:4]))


@pytest.fixture
def struct_kernel(tmp_path):
    """A kernel that takes a struct, and the calls of it."""
    return compiled(example(tmp_path))


def good_by_name():
    return {
        "offsets": device(4, dtype=np.int64),
        "parent": None,
        "level": np.int32(3),
        "limit": np.float64(1.5),
        "hops": device(4, dtype=np.int16),
    }


def test_arguments_are_the_parameters_of_a_kernel(kernel):
    assert kernel.entry.argument_struct == ""
    assert kernel.entry.arguments == (
        Argument("offsets", "offset_t", True, False),
        Argument("parent", "vertex_t", True, True),
        Argument("keys", "ordered_t", True, False),
        Argument("n_edges", "int64", False, False),
        Argument("limit", "weight_t", False, False),
    )


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"name": "example"}, "example.cu has no kernel example"),
        (
            {"text": EXAMPLE.replace("kt::int64 n_edges", "int64 n[3]")},
            "that the host can read: int64 n[3]",
        ),
        (
            {"text": EXAMPLE.replace("kt::int64 n_edges", "Outcome found")},
            "that the host can read: Outcome found",
        ),
        ({"optional": "n_edges"}, "example_walk_warp has no pointer n_edges"),
    ],
)
def test_arguments_that_the_host_cannot_read_are_refused(tmp_path, change, complaint):
    entry = example(tmp_path, **{"name": "example_walk_warp", **change})
    with pytest.raises(ValueError, match=f"{re.escape(complaint)}$"):
        len(entry.arguments)


def test_arguments_are_the_fields_of_a_struct(struct_kernel):
    assert struct_kernel.entry.argument_struct == "ExampleArgs<short>"
    assert tuple(struct_kernel.entry.arguments) == (
        Argument("offsets", "offset_t", True, False),
        Argument("parent", "vertex_t", True, True),
        Argument("level", "int32", False, False),
        Argument("limit", "weight_t", False, False),
        Argument("hops", "int16", True, False),
    )


@pytest.mark.parametrize(
    "line",
    [
        "int32 a, b;",
        "int32 a[3];",
        "offset_t* const* all;",
        "static int32 a;",
        "int32 a = 1;",
        "int32 a() const;",
    ],
)
def test_arguments_reject_what_is_not_one_field(tmp_path, line):
    entry = example(tmp_path, EXAMPLE.replace("kt::int32 level;", line))
    with pytest.raises(
        ValueError, match=re.escape(f"not a field of ExampleArgs that the host can read: {line}")
    ):
        len(entry.arguments)
    missing = example(tmp_path, EXAMPLE.replace("struct ExampleArgs", "struct OtherArgs"))
    with pytest.raises(ValueError, match=r"example\.cu has no struct ExampleArgs$"):
        len(missing.arguments)


def test_a_pointer_to_a_struct_is_an_int64_array(tmp_path):
    changed = EXAMPLE.replace("kt::int32 level;", "kt::LoopState* states;").replace(
        "hop_t* hops", "const Outcome* hops"
    )
    fields = example(tmp_path, changed).arguments
    assert [(field.name, field.kind, field.is_array) for field in fields[2:]] == [
        ("states", "int64", True),
        ("limit", "weight_t", False),
        ("hops", "int64", True),
    ]


def test_struct_layout_reads_the_numbers_before_the_functions(tmp_path):
    file = tmp_path / "example.cuh"
    file.write_text(
        "struct State {\n  int32 level;\n  kt::int64 edges;  // of all\n\n  KT_DEVICE bool is_over() const;\n};\n"
    )
    layout = struct_layout(file, "State")
    assert layout == np.dtype([("level", np.int32), ("edges", np.int64)], align=True)
    assert layout.itemsize == 16
    file = tmp_path / "other.cuh"
    file.write_text("struct State {\n  int32* level;\n};\n")
    with pytest.raises(ValueError, match=r"other\.cuh: State has a pointer"):
        struct_layout(file, "State")


def test_launch_passes_named_arguments_as_one_struct(struct_kernel):
    args = good_by_name()
    launching.launch_blocks(struct_kernel, 2, args)
    [(_, _, (struct,))] = struct_kernel.calls
    assert struct.shape == (1,), "CuPy passes arrays of one element by value"
    assert struct.dtype.names is None, "CuPy describes the fields of a dtype at each launch"
    layout = struct.fields.dtype
    assert [layout.fields[name][1] for name in layout.names] == [0, 8, 16, 24, 32]
    assert struct.dtype.itemsize == layout.itemsize == 40
    assert struct.tobytes() == struct.fields.tobytes()
    assert struct.fields[0].tolist() == (
        args["offsets"].ctypes.data,
        0,
        3,
        1.5,
        args["hops"].ctypes.data,
    )
    assert [
        (i, array is args[name])
        for (i, array), name in zip(struct.arrays, ("offsets", "hops"), strict=True)
    ] == [
        (0, True),
        (4, True),
    ]


def test_prepare_changes_fields_of_the_struct_between_launches(struct_kernel):
    struct_kernel.function = lambda _grid, _block, values: struct_kernel.calls.append(
        values[0].fields[0].tolist()
    )
    run = launching.prepare(struct_kernel, 2, good_by_name())
    run(level=np.int32(7))
    run(limit=np.float64(0.5))
    assert [call[2:4] for call in struct_kernel.calls] == [(7, 1.5), (7, 0.5)]
    with pytest.raises(TypeError, match="level of example_struct must be of type int32, not int64"):
        run(level=np.int64(7))


def test_packed_launches_pack_once_per_key_and_check_what_changes(struct_kernel, monkeypatch):
    monkeypatch.setattr(launching, "max_grid", lambda _block: 1000)
    struct_kernel.function = lambda grid, _block, values: struct_kernel.calls.append(
        (grid, values[0].fields[0].tolist()[1:4])
    )
    packed, levels = [], launching.PackedLaunches(struct_kernel)

    def pack():
        args = good_by_name()
        packed.append(args)
        del args["level"]
        return args

    levels.launch(128, "a", pack, level=np.int32(7))
    levels.launch(0, "a", pack, level=np.int32(8))
    levels.launch(129, "a", pack, level=np.int32(9))
    levels.launch(1, "b", pack, level=np.int32(1))
    assert struct_kernel.calls == [((1,), (0, 7, 1.5)), ((2,), (0, 9, 1.5)), ((1,), (0, 1, 1.5))]
    assert len(packed) == 2
    with pytest.raises(TypeError, match="level of example_struct must be of type int32, not int64"):
        levels.launch(1, "a", pack, level=np.int64(7))


def test_packed_launches_pack_once_per_set_of_arrays(struct_kernel):
    struct_kernel.function = lambda _grid, _block, values: struct_kernel.calls.append(
        values[0].fields[0].tolist()
    )
    launches, packed = launching.PackedLaunches(struct_kernel), []
    sets = {key: good_by_name() for key in ("even", "odd")}

    def pack(key):
        packed.append(key)
        return {name: value for name, value in sets[key].items() if name != "level"}

    for level in range(4):
        key = ("even", "odd")[level % 2]
        launches.launch_blocks(2, key, lambda key=key: pack(key), level=np.int32(level))
    assert packed == ["even", "odd"]
    assert [call[2] for call in struct_kernel.calls] == [0, 1, 2, 3]
    offsets = [sets[key]["offsets"].ctypes.data for key in ("even", "odd")]
    assert [call[0] for call in struct_kernel.calls] == 2 * offsets
    with pytest.raises(TypeError, match="level of example_struct must be of type int32, not int64"):
        launches.launch_blocks(2, "even", dict, level=np.int64(7))
    with pytest.raises(TypeError, match="example_struct lacks level"):
        launches.launch_blocks(2, "third", lambda: pack("even"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"level": np.int64(3)}, "level of example_struct must be of type int32, not int64"),
        ({"offsets": None}, "offsets of example_struct must be a CuPy array, not NoneType"),
        ({"round": np.int32(3)}, "example_struct has no argument round"),
    ],
)
def test_launch_rejects_wrong_named_arguments(struct_kernel, change, complaint):
    with pytest.raises(TypeError) as caught:
        launching.launch_blocks(struct_kernel, 1, good_by_name() | change)
    assert str(caught.value) == complaint
    args = good_by_name()
    del args["level"]
    with pytest.raises(TypeError, match="example_struct lacks level"):
        launching.launch_blocks(struct_kernel, 1, args)
    assert not struct_kernel.calls


@pytest.mark.parametrize(
    ("n_threads", "blocks"),
    [(0, 0), (1, 1), (255, 1), (256, 1), (257, 2), (2560, 10), (2561, 10), (2**40, 10)],
)
def test_a_grid_is_large_enough_and_no_larger_than_the_largest(n_threads, blocks):
    assert launching.n_blocks(n_threads, 256, 10) == blocks


def test_empty_work_is_not_launched(kernel, monkeypatch):
    monkeypatch.setattr(launching, "max_grid", lambda _block: 1000)
    launching.launch(kernel, 0, tuple(good()))
    assert not kernel.calls


def test_the_largest_grid_fills_the_device_a_few_times(monkeypatch):
    monkeypatch.setattr(launching, "_device_size", lambda _device: (132, 2048))
    runtime = SimpleNamespace(getDevice=lambda: 0)
    monkeypatch.setattr(launching, "cp", SimpleNamespace(cuda=SimpleNamespace(runtime=runtime)))
    assert launching.max_grid(256) == launching.WAVES * 132 * 8


def test_options_name_every_type_the_block_and_the_headers():
    entry = Entry("example_walk_warp", Path("example.cu"), 128)
    options = compiler.options(entry, chosen_types(np.int64, np.float32))
    assert {
        "-std=c++17",
        "-DBLOCK=128",
        "-Dvertex_t=long long",
        "-Doffset_t=long long",
        "-Dweight_t=float",
    } <= set(options)
    folders = compiler.header_folders(entry.file)
    assert f"-DKT_HEADERS=0x{compiler.header_digest(folders)}" in options
    assert [f"-I{folder}" for folder in folders] == [
        option for option in options if option.startswith("-I")
    ]
    assert (compiler.include_directory() / "kt" / "cuda_api.cuh").is_file()


@pytest.mark.parametrize("place", ["include/kt", "kernels"])
def test_a_changed_header_changes_the_options(monkeypatch, tmp_path, place):
    def digest():
        compiler.header_folders.cache_clear()
        compiler.header_digest.cache_clear()
        return compiler.header_digest(compiler.header_folders(tmp_path / "kernels" / "example.cu"))

    (tmp_path / place).mkdir(parents=True)
    header = tmp_path / place / "one.cuh"
    with monkeypatch.context() as patch:
        patch.setattr(compiler, "include_directory", lambda: tmp_path / "include")
        without = digest()
        header.write_text("int a;")
        first = digest()
        assert digest() == first
        header.write_text("int b;")
        second = digest()
        header.rename(tmp_path / place / "two.cuh")
        assert len({without, first, second, digest()}) == 4
    compiler.header_folders.cache_clear()
    compiler.header_digest.cache_clear()


def test_a_header_in_an_archive_is_a_clear_error(monkeypatch, tmp_path):
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        monkeypatch.setattr(compiler.resources, "files", lambda _package: zipfile.Path(archive))
        with pytest.raises(DeviceError, match="zip archive"):
            compiler.include_directory()


def test_launch_without_a_gpu_is_an_error_that_names_what_is_missing(monkeypatch):
    monkeypatch.setattr(cuda, "cp", None)
    with pytest.raises(DeviceError, match="needs CuPy"):
        compiler.kernel(Entry("example_walk_warp", Path("example.cu"), 128), np.int32)


def test_import_opens_no_kernel_file():
    program = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import kepler_traverse
from kepler_traverse.bfs import persistent, registry
from kepler_traverse.sssp import near_far_gpu, registry
assert any(name.endswith("near_far_gpu.py") or "near_far_gpu" in name for name in opened), "the hook sees no files"
print([name for name in opened if name.endswith((".cu", ".cuh"))])
len(near_far_gpu.ENTRIES[0].arguments)
print([name.rpartition("/")[2] for name in opened if name.endswith((".cu", ".cuh"))])
"""
    finished = ran([sys.executable, "-c", program])
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.split() == ["[]", "['near_far.cu']"]


@pytest.mark.exhaustive  # where CuPy is absent, each other test does so
def test_the_package_imports_and_traverses_without_cupy():
    program = """
import sys
sys.modules["cupy"] = None
import numpy as np
import kepler_traverse as kt
from kepler_traverse import cuda
from kepler_traverse.certificate import certify
from kepler_traverse.errors import DeviceError
graph = kt.graph_from_edges(np.array([0, 1]), np.array([1, 2]), np.array([1.0, 2.0]))
assert not cuda.available()
assert certify(graph, kt.sssp(graph, 0)).valid
try:
    graph.to("cuda")
except DeviceError as error:
    print(error)
"""
    finished = ran([sys.executable, "-c", program])
    assert finished.returncode == 0, finished.stderr
    assert "[cuda13]" in finished.stdout
