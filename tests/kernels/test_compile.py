"""Every kernel file compiles for all architectures, and takes what the Python side declares; no GPU is needed.

All names of cuda_api.cuh compile for each architecture by itself, kernels for one at least on each side of each branch.
"""

import ctypes
import functools
import hashlib
import itertools
import os
import re
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np
import pytest

import kepler_traverse
from kepler_traverse import _arrays
from kepler_traverse.assignment import swept_loads_gpu
from kepler_traverse.bfs import gpu_steps as bfs_gpu
from kepler_traverse.bfs import persistent
from kepler_traverse.bfs.multi_source import bit_parallel_gpu
from kepler_traverse.bfs.multi_source import source_per_block as bfs_source_per_block
from kepler_traverse.certificate import batch
from kepler_traverse.certificate import batch_gpu as certificate_many_gpu
from kepler_traverse.certificate import single_gpu as certificate_gpu
from kepler_traverse.cpu import distance_stats as cpu_distance_stats
from kepler_traverse.cuda import (
    csr_build,
    distance_stats,
    edge_rows,
    edge_weights,
    exact,
    graph_statistics,
    interleaved,
    kernel_spec,
    kernel_trace,
    launch,
    short_search,
    vertex_ids,
)
from kepler_traverse.cuda.compiler import header_folders, options
from kepler_traverse.cuda.kernel_spec import Entry, chosen_types, struct_layout
from kepler_traverse.hierarchy import customizable_gpu
from kepler_traverse.hub_labels import on_gpu as labels_gpu
from kepler_traverse.kinds import betweenness_gpu, flows_gpu, k_nearest_gpu, opportunities_gpu
from kepler_traverse.published.bfs import (
    bfs_4k,
    expand_contract,
    hierarchical_queues,
    hybrid_and_spmv,
)
from kepler_traverse.published.bfs import topology_driven as bfs_scans
from kepler_traverse.published.sssp import bellman_ford_gpu as sssp_papers
from kepler_traverse.published.sssp import h_bf, threshold_methods
from kepler_traverse.sssp import gpu_steps as sssp_gpu
from kepler_traverse.sssp import near_far_gpu as sssp_persistent
from kepler_traverse.sssp.multi_source import hierarchy_sweep_gpu, source_per_lane
from kepler_traverse.sssp.multi_source import source_per_block as sssp_source_per_block
from tests.support import tiers

PACKAGE = Path(kepler_traverse.__file__).parent
MODULES = (
    *(bfs_gpu, bfs_4k, persistent, bit_parallel_gpu, bfs_source_per_block),
    *(
        sssp_gpu,
        h_bf,
        sssp_persistent,
        sssp_source_per_block,
        source_per_lane,
        sssp_papers,
        threshold_methods,
    ),
    *(
        csr_build,
        edge_rows,
        vertex_ids,
        edge_weights,
        graph_statistics,
        exact,
        distance_stats,
        opportunities_gpu,
    ),
    short_search,
    *(
        certificate_gpu,
        certificate_many_gpu,
        hierarchy_sweep_gpu,
        interleaved,
        k_nearest_gpu,
        betweenness_gpu,
        flows_gpu,
        labels_gpu,
        customizable_gpu,
        swept_loads_gpu,
    ),
    *(expand_contract, hybrid_and_spmv, hierarchical_queues, bfs_scans),
)
ENTRIES = tuple(entry for module in MODULES for entry in module.ENTRIES)
FILES = sorted({entry.file for entry in ENTRIES})
# Files that add distances; the machine code of others is not looked at.
OF_SUMS = [
    sssp_gpu._RELAX_FILE,
    sssp_gpu._FINISH_FILE,
    h_bf._FILE,
    sssp_persistent._FILE,
    sssp_source_per_block._FILE,
    source_per_lane._ENTRY.file,
    certificate_gpu._FILE,
    certificate_many_gpu._WEIGHTED_FILE,
    distance_stats._FILE,
    distance_stats._LEVELS_FILE,
    opportunities_gpu._FILE,
    betweenness_gpu._BLOCKS.file,
    flows_gpu._FILE,
    *sorted({entry.file for entry in (*sssp_papers.ENTRIES, *threshold_methods.ENTRIES)}),
]
# PTX of this and later architectures marks which parameters are pointers.
PTX_ARCHITECTURE = "compute_120"
ARCHITECTURES = (75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121)
VOLTA = 70  # the compiler of CUDA 13 has dropped it, that of CUDA 12 still has it
# Whether a file compiles is said without optimizing, too, and in a fifth of the time: names, types, attributes, inline
# assembly and what an architecture lacks are looked at all the same. Those of OF_SUMS, whose code is looked at, are compiled
# to PTX with optimizing; with --all every file, and the library's own to machine code.
IN_HASTE = "--Ofast-compile=max"
TYPES = [
    chosen_types(vertex, weight)
    for vertex in (np.int32, np.int64)
    for weight in (np.float32, np.float64)
]
# layouts and parameters depend on the width of each type alone
OF_BOTH_WIDTHS = [TYPES[0], TYPES[3]]


def of_both_widths(compiled: list) -> list[tuple]:
    """Return each with both widths, or without ``--all`` with one of them, by turns."""
    return tiers.by_turns(compiled, OF_BOTH_WIDTHS)


# Every name of cuda_api.cuh, with what the host harness is tested with.
SIMT = Path(__file__).parent / "simt"
SURFACE = (
    Entry("places", SIMT / "platform.cu", 64),
    Entry("add_child", SIMT / "children.cu", 64, launches_children=True),
    Entry("cluster_places", SIMT / "clusters.cu", 64, constants=(("CLUSTER", 1),)),
)


def find_nvrtc(package: str = "nvidia-cuda-nvrtc") -> ctypes.CDLL:
    try:
        files = distribution(package).files or []
    except PackageNotFoundError:
        pytest.fail(
            f"the kernels cannot be compiled: pip install 'kepler-traverse[test]' brings {package}"
        )
    library = next(
        file for file in files if re.fullmatch(r"libnvrtc\.so\.\d+|nvrtc64_\d+_0\.dll", file.name)
    )
    return ctypes.CDLL(str(library.locate()))


@pytest.fixture(scope="module")
def nvrtc():
    return find_nvrtc()


@pytest.fixture(scope="module")
def architectures(nvrtc):
    """Those of ARCHITECTURES that this compiler still supports."""
    count = ctypes.c_int()
    assert nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
    supported = (ctypes.c_int * count.value)()
    assert nvrtc.nvrtcGetSupportedArchs(supported) == 0
    return [arch for arch in ARCHITECTURES if arch in set(supported)]


@functools.cache
def text_of(file: Path) -> str:
    """A file with all of the headers that it includes, without comments."""
    texts, unread = {}, [file]
    while unread:
        here = unread.pop()
        texts[here] = re.sub(r"//.*", "", here.read_text(encoding="utf-8"))
        included = re.findall(r'^#include [<"]((?:kt/)?\w+\.cuh)[>"]', texts[here], re.MULTILINE)
        found = {folder / header for header in included for folder in header_folders(file)}
        unread += {header for header in found if header.exists()} - texts.keys()
    return "\n".join(texts.values())


def compile_kernels(
    nvrtc, what: Entry | Path, architecture: str, types, product: str, *more: str
) -> bytes:
    """Compile the file of an entry, or of the first entry in a file, with the loader's options, CuPy's and ``more``.

    ``product`` is PTX or CUBIN. What has been compiled is not compiled again: a type that no line names makes no difference.
    """
    entry = (
        what
        if isinstance(what, Entry)
        else next(entry for entry in (*ENTRIES, *SURFACE) if entry.file == what)
    )
    arguments = [
        *options(entry, types),
        f"-arch={architecture}",
        "-ftz=true",
        "--device-as-default-execution-space",
        *more,
    ]
    named = [
        argument
        for argument in arguments
        if argument[2:].split("=")[0] not in types or names_type(entry.file, argument)
    ]
    return kept_or_compiled(nvrtc, entry.file, named, arguments, architecture, product)


# What compiled without an error or a warning. It stays for the next run, as machine code of Numba and of the harness does.
COMPILED = Path(__file__).parents[2] / "out" / "nvrtc"


def kept_or_compiled(
    nvrtc, file: Path, named: list[str], arguments: list[str], architecture: str, product: str
) -> bytes:
    """Return what a file was compiled to with the arguments of ``named``, in this run or in an earlier one."""
    kept = COMPILED / digest_of(nvrtc, file, named, product)
    if not kept.exists():
        made = compiled(nvrtc, file, arguments, architecture, product)
        kept.parent.mkdir(parents=True, exist_ok=True)
        beside = kept.with_suffix(f".{os.getpid()}")  # another process may write the same
        beside.write_bytes(made)
        beside.replace(kept)
    return kept.read_bytes()


def digest_of(nvrtc, file: Path, arguments: list[str], product: str) -> str:
    """Return a name for what this compiler makes of this text with these arguments, of which one is a digest of headers."""
    compiler = Path(nvrtc._name).stat()
    said = [nvrtc._name, compiler.st_size, compiler.st_mtime_ns, file.name, *arguments, product]
    text = "\0".join(map(str, said)).encode() + b"\0" + file.read_bytes()
    return hashlib.sha256(text).hexdigest()


def test_what_is_compiled_once_is_compiled_again_when_anything_changes(nvrtc, tmp_path):
    """A digest that misses something would show the code of yesterday."""
    file = tmp_path / "kernel.cu"
    file.write_text("// one")
    named = options(ENTRIES[0], TYPES[0])
    assert any(argument.startswith("-DKT_HEADERS=") for argument in named)
    digests = {digest_of(nvrtc, file, [*named], "PTX")}
    digests.add(digest_of(nvrtc, file, [*named, IN_HASTE], "PTX"))
    digests.add(digest_of(nvrtc, file, [*named], "CUBIN"))
    file.write_text("// two")
    digests.add(digest_of(nvrtc, file, [*named], "PTX"))
    assert len(digests) == 4


def names_type(file: Path, definition: str) -> bool:
    return re.search(rf"\b{definition[2:].split('=')[0]}\b", text_of(file)) is not None


def compiled(nvrtc, file: Path, arguments: list[str], architecture: str, product: str) -> bytes:
    program = ctypes.c_void_p()
    source = file.read_bytes()
    assert (
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, file.name.encode(), 0, None, None)
        == 0
    )
    try:
        given = (ctypes.c_char_p * len(arguments))(*(argument.encode() for argument in arguments))
        status = nvrtc.nvrtcCompileProgram(program, len(arguments), given)
        log = read(nvrtc, program, "ProgramLog").decode()
        # of Volta, known
        log = re.sub(r"nvrtc: warning: Architectures prior to .* are deprecated.*\n", "", log)
        assert status == 0, f"{file.name} for {architecture}:\n{log}"
        assert not log.strip("\0 \n"), f"{file.name} for {architecture}:\n{log}"
        return read(nvrtc, program, product)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def read(nvrtc, program, what: str) -> bytes:
    size = ctypes.c_size_t()
    assert getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
    text = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{what}")(program, text) == 0
    return text.raw


def entry_points(ptx: str) -> dict[str, tuple[list[tuple[int, bool]], int]]:
    """For each entry point the width of each parameter and whether it is a pointer, and the block it is bound to."""
    found = {}
    pattern = r"\.visible \.entry (\w+)\((.*?)\)\s*(.*?)\{"
    for name, parameters, directives in re.findall(pattern, ptx, re.DOTALL):
        widths = [
            (int(n_bytes) if n_bytes else int(bits) // 8, bool(pointer))
            for n_bytes, bits, pointer in re.findall(
                r"\.param (?:\.align 8 \.b8 \w+\[(\d+)\]|\.[a-z](\d+)( \.ptr)?)", parameters
            )
        ]
        assert len(widths) == parameters.count(".param"), (
            f"unread parameters of {name}: {parameters}"
        )
        found[name] = (widths, int(re.search(r"\.maxntid (\d+)", directives)[1]))
    return found


def declared(file: Path, types) -> dict[str, tuple[list[tuple[int, bool]], int]]:
    return {
        entry.name: (
            (
                [(entry.layout(types).itemsize, False)]
                if entry.argument_struct
                else [
                    (8 if a.is_array else a.dtype(types).itemsize, a.is_array)
                    for a in entry.arguments
                ]
            ),
            entry.block,
        )
        for entry in ENTRIES
        if entry.file == file
    }


def name_of(types) -> str:
    return f"{types['vertex_t']}-{types['weight_t']}"


def test_every_kernel_file_is_declared_and_every_declared_one_exists():
    assert sorted(PACKAGE.rglob("*.cu")) == FILES


def test_entry_points_have_distinct_names():
    names = [entry.name for entry in ENTRIES]
    assert len(set(names)) == len(names)


def test_published_kernels_with_many_arguments_take_a_struct():
    published = [entry for entry in ENTRIES if "published" in entry.file.parts]
    assert published
    assert [
        entry.name for entry in published if len(entry.arguments) > 7 and not entry.argument_struct
    ] == []


@pytest.mark.parametrize(
    ("file", "types"),
    of_both_widths(FILES),
    ids=lambda each: getattr(each, "stem", None) or name_of(each),
)
def test_parameters_and_block_are_those_declared(nvrtc, file, types):
    # Parameters are the same without optimizing.
    there, more = {}, () if types == TYPES[0] and (tiers.ALL or file in OF_SUMS) else (IN_HASTE,)
    for entry in {entry.block: entry for entry in ENTRIES if entry.file == file}.values():
        found = entry_points(
            compile_kernels(nvrtc, entry, PTX_ARCHITECTURE, types, "PTX", *more).decode()
        )
        assert {block for _, block in found.values()} == {entry.block}
        there |= {
            e.name: found.pop(e.name) for e in ENTRIES if e.file == file and e.block == entry.block
        }
        assert found.keys() <= declared(file, types).keys()
    assert there == declared(file, types)


STRUCTS = [
    list(group)
    for _, group in itertools.groupby(
        (entry for entry in ENTRIES if entry.argument_struct),
        lambda entry: (entry.file, entry.constants),
    )
]
OF_STRUCTS = of_both_widths(STRUCTS)


def compiles_with(nvrtc, entry: Entry, types, conditions: list[str], folder: Path) -> None:
    """Compile the file of an entry with these conditions, which the compiler checks."""
    with_checks = folder / entry.file.name
    checks = "".join(f'static_assert({condition}, "");\n' for condition in conditions)
    with_checks.write_text(entry.file.read_text(encoding="utf-8") + checks)
    arguments = [
        *options(entry, types),
        "-arch=compute_90",
        "-ftz=true",
        "--device-as-default-execution-space",
        IN_HASTE,
    ]
    kept_or_compiled(nvrtc, with_checks, arguments, arguments, "compute_90", "PTX")


def layout_in(struct: str, layout: np.dtype) -> list[str]:
    """Conditions that hold if the compiler's layout of a struct is this one."""
    offsets = [
        f"__builtin_offsetof({struct}, {name}) == {layout.fields[name][1]}" for name in layout.names
    ]
    return [f"sizeof({struct}) == {layout.itemsize}", *offsets]


@pytest.mark.parametrize(
    ("entries", "types"),
    OF_STRUCTS,
    ids=lambda value: value[0].name if isinstance(value, list) else name_of(value),
)
def test_layout_of_an_argument_struct_is_that_of_the_compiler(nvrtc, entries, types, tmp_path):
    layouts = {entry.argument_struct: entry.layout(types) for entry in entries}
    for layout in layouts.values():
        assert launch._packer(layout).size == layout.itemsize
    conditions = [
        condition for struct, layout in layouts.items() for condition in layout_in(struct, layout)
    ]
    compiles_with(nvrtc, entries[0], types, conditions, tmp_path)


@pytest.mark.parametrize(
    ("entry", "header", "struct"),
    [
        (persistent._GRID, "bfs_persistent_state.cuh", "LoopState"),
        (persistent._GRID, "persistent_grid.cu", "Outcome"),
        (sssp_persistent._ENTRY, "near_far_state.cuh", "LoopState"),
        (sssp_persistent._ENTRY, "near_far.cu", "Outcome"),
        (bfs_source_per_block.ENTRIES[0], "source_per_block.cu", "Outcome"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_layout_of_a_struct_that_the_host_reads_is_that_of_the_compiler(
    nvrtc, entry, header, struct, tmp_path
):
    layout = struct_layout(entry.file.with_name(header), struct)
    assert layout.itemsize % 8 == 0, "the host allocates 64-bit words"
    name = f"kt::{struct}" if header.endswith(".cuh") else struct
    compiles_with(nvrtc, entry, TYPES[0], layout_in(name, layout), tmp_path)


def test_a_layout_that_is_not_the_compilers_is_noticed(nvrtc, tmp_path):
    entry = next(entry for entry in ENTRIES if entry.argument_struct)
    for wrong in ("sizeof({}) == 4", "__builtin_offsetof({}, {}) == 4"):
        condition = wrong.format(entry.argument_struct, entry.layout(TYPES[0]).names[0])
        with pytest.raises(AssertionError, match="static assertion failed"):
            compiles_with(nvrtc, entry, TYPES[0], [condition], tmp_path)


KNOBS = [
    bfs_4k.MANY_BLOCKS.variant(block=64, launches_children=True, HEAVY=2, DUPLICATES=0, APPEND=0),
    bfs_4k.MANY_BLOCKS.variant(block=256, HEAVY=1, DUPLICATES=2, APPEND=1, COUNTING=1),
    bfs_4k.SINGLE_BLOCK.variant(HEAVY=1, COUNTING=1),
    persistent._CLUSTER.variant(PREDECESSORS=0, CLUSTER=8, TRACE=100),
    persistent._GRID.variant(PREDECESSORS=0, SHARED_LISTS=1, MIN_BLOCKS=1),
    sssp_persistent._ENTRY.variant(
        PREDECESSORS=1, SHARED_LISTS=1, MIN_BLOCKS=1, TAIL=1 << 21, TRACE=100
    ),
    expand_contract._CONTRACT_EXPAND.variant(CULLING=0, COUNTING=0),
    expand_contract._CONTRACT_EXPAND.variant(CULLING=5, COUNTING=1),
    bit_parallel_gpu.PULL.variant(WORDS=1, LANES=1),
    bit_parallel_gpu.PULL.variant(WORDS=32, LANES=32),
    bit_parallel_gpu._WRITE.variant(WORDS=1, LANES=1),
    bfs_source_per_block._ENTRIES[np.dtype(np.int16)].variant(SLOTS=8192, UNDIRECTED=1),
    distance_stats._OF_LEVELS.variant(COUNT_BYTES=4),
    distance_stats._HOPS.variant(HOP_BYTES=4),
    opportunities_gpu._REDUCE.variant(HOP_BYTES=1),
    opportunities_gpu._REDUCE.variant(HOP_BYTES=4, DECAY=1),
    opportunities_gpu._REDUCE.variant(DECAY=2),
    opportunities_gpu._REDUCE.variant(DECAY=3),
    betweenness_gpu._BLOCKS.variant(HOP_BYTES=2),
    flows_gpu._FLOWS.variant(HOP_BYTES=1, EDGE_BYTES=8, DECAY=1),
    flows_gpu._FLOWS.variant(INTEGERS=1, WIDE=0),
    certificate_many_gpu._MANY_HOPS.variant(KEY_BYTES=2),
    certificate_many_gpu._MANY_HOPS.variant(KEY_BYTES=4),
    hierarchy_sweep_gpu._LEVEL.variant(WORDS=1),
    hierarchy_sweep_gpu._LEVEL.variant(WORDS=2),
    interleaved._CHECK.variant(WORDS=2),
    interleaved._TO_ROWS.variant(FLOAT_BYTES=8),
    h_bf.RELAX.variant(launches_children=True, DUPLICATES=2, HEAVY=2),
    h_bf.RELAX.variant(
        DUPLICATES=0, CLASSES=0, STREAM=0, READ_ONLY=0, BYPASS_L1=0, ENQUEUE=0, HEAVY=0, COUNTING=1
    ),
    h_bf.RELAX.variant(DUPLICATES=1, ENQUEUE=1, COUNTING=1),
]


def test_a_tile_of_64_bit_sums_fits_shared_memory(nvrtc):
    wide = next(types for types in TYPES if types["weight_t"] == np.float64)
    assert compile_kernels(
        nvrtc, interleaved._TO_ROWS, "sm_90", wide, "CUBIN", IN_HASTE
    ).startswith(b"\x7fELF")


@pytest.mark.parametrize("entry", KNOBS, ids=lambda entry: f"{entry.name}-{entry.constants}")
def test_kernels_compile_with_other_knobs(nvrtc, entry):
    kind, architecture = ("CUBIN", "sm_90") if tiers.ALL else ("PTX", "compute_90")
    assert entry.name.encode() in compile_kernels(
        nvrtc, entry, architecture, TYPES[0], kind, IN_HASTE
    )


EVERY_FILE = [*FILES, *(entry.file for entry in SURFACE)]


def test_architecture_branches_are_at_80_and_90_alone():
    found = {
        file.name: set(
            map(int, re.findall(r"__CUDA_ARCH__ *[<>=]+ *(\d+)", file.read_text(encoding="utf-8")))
        )
        for file in (*FILES, *PACKAGE.rglob("*.cuh"))
        if "__CUDA_ARCH__" in file.read_text(encoding="utf-8")
    }
    assert found == {"cuda_api.cuh": {800}, "cluster.cuh": {900}}, (
        "the next test is to compile for another one then"
    )


@pytest.mark.parametrize(
    ("architecture", "file"),
    [
        *((architecture, entry.file) for architecture in (75, 80) for entry in SURFACE),
        *((75, file) for file in FILES if "published" not in file.parts),
    ],
    ids=lambda value: getattr(value, "stem", value),
)
def test_kernels_compile_below_each_branch(nvrtc, architecture, file):
    # test_parameters_and_block_are_those_declared compiles each file above both.
    assert b".entry" in compile_kernels(
        nvrtc, file, f"compute_{architecture}", TYPES[0], "PTX", IN_HASTE
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize("file", EVERY_FILE, ids=lambda file: file.stem)
def test_kernels_compile_on_each_side_of_each_branch(nvrtc, architectures, file):
    assert {75, 80, 90, 100, 120} <= set(architectures)
    of_papers = "published" in file.parts
    # Machine code of the oldest, of the first with clusters and of the newest; of one between the branches the front end's.
    # The systems of the papers use nothing that the others do not: machine code of one.
    machine = [90] if of_papers else [75, 90, max(architectures)]
    for architecture in machine:
        more = () if architecture == 90 and not of_papers else (IN_HASTE,)
        assert compile_kernels(
            nvrtc, file, f"sm_{architecture}", TYPES[0], "CUBIN", *more
        ).startswith(b"\x7fELF")
    others = [architecture for architecture in architectures if architecture not in machine]
    # SURFACE has every name of cuda_api.cuh and goes through all; each file takes another one of them
    if file in FILES:
        others = [] if of_papers else [80, others[FILES.index(file) % len(others)]]
    for architecture in others:
        assert b".entry" in compile_kernels(
            nvrtc, file, f"compute_{architecture}", TYPES[0], "PTX", IN_HASTE
        )


@pytest.mark.parametrize("architecture", ["sm_90", "sm_100", "sm_120"])
def test_clusters_of_blocks_compile_where_there_are_any(nvrtc, architecture):
    of_eight = SURFACE[-1].variant(CLUSTER=8)
    assert compile_kernels(nvrtc, of_eight, architecture, TYPES[0], "CUBIN", IN_HASTE).startswith(
        b"\x7fELF"
    )
    ptx = compile_kernels(
        nvrtc, of_eight, architecture.replace("sm", "compute"), TYPES[0], "PTX"
    ).decode()
    assert ptx.count(".reqnctapercluster 8") == 3
    assert "st.volatile" in ptx, "a racy store to another block's memory is one"
    with pytest.raises(AssertionError, match=r"need compute capability 9\.0"):
        compile_kernels(nvrtc, of_eight, "sm_80", TYPES[0], "PTX")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "file",
    [file for file in EVERY_FILE if "published" not in file.parts],
    ids=lambda file: file.stem,
)
def test_kernels_compile_for_volta_with_the_compiler_before(file):
    before = find_nvrtc("nvidia-cuda-nvrtc-cu12")
    assert compile_kernels(before, file, f"sm_{VOLTA}", TYPES[0], "CUBIN", IN_HASTE).startswith(
        b"\x7fELF"
    )


@pytest.mark.parametrize("file", OF_SUMS, ids=lambda file: file.stem)
def test_sums_of_distances_keep_subnormal_numbers(nvrtc, file):
    ptx = compile_kernels(nvrtc, file, PTX_ARCHITECTURE, TYPES[0], "PTX").decode()
    of_64_bits = {distance_stats._FILE: "cvt.f64.f32", distance_stats._LEVELS_FILE: "add.rn.f64"}
    of_64_bits[opportunities_gpu._FILE] = "add.rn.f64"
    assert of_64_bits.get(file, "add.rn.f32") in ptx
    assert ".ftz" not in ptx


def test_a_product_is_rounded_before_it_is_added(nvrtc):
    file = distance_stats._LEVELS_FILE
    for types in TYPES[:2]:
        ptx = compile_kernels(nvrtc, file, PTX_ARCHITECTURE, types, "PTX").decode()
        assert "mul.rn.f64" in ptx or "mul.f64" in ptx
        assert "fma" not in ptx
        assert "add.f64" not in ptx, "one without .rn may be joined with a product"


@pytest.mark.parametrize("decay", [1, 2, 3])
def test_a_decay_is_computed_without_fused_products(nvrtc, decay):
    entry = opportunities_gpu._REDUCE.variant(DECAY=decay)
    ptx = compile_kernels(nvrtc, entry, PTX_ARCHITECTURE, TYPES[0], "PTX").decode()
    assert "mul.rn.f64" in ptx or "mul.f64" in ptx
    assert "fma" not in ptx
    assert ".ftz" not in ptx


def test_the_check_notices_a_wrong_parameter(nvrtc):
    file = csr_build._FILE
    ptx = compile_kernels(nvrtc, file, PTX_ARCHITECTURE, TYPES[0], "PTX").decode()
    assert entry_points(ptx.replace(".param .u32", ".param .u64")) != declared(file, TYPES[0])
    assert entry_points(ptx.replace(".ptr", "")) != declared(file, TYPES[0])


def constant_in(header: str, name: str) -> int:
    """The value of a ``constexpr`` of a header."""
    [file] = PACKAGE.rglob(header)
    return int(
        re.search(
            rf"^constexpr \w+ {name} = (-?\d+);", file.read_text(encoding="utf-8"), re.MULTILINE
        )[1]
    )


@pytest.mark.parametrize(
    ("header", "name", "value"),
    [
        ("cuda_api.cuh", "MAX_CHILDREN", launch.MAX_CHILDREN),
        ("cuda_api.cuh", "WARP", kernel_spec.WARP),
        ("csr.cuh", "UNREACHED", _arrays.UNREACHED),
        ("csr.cuh", "NO_PREDECESSOR", _arrays.NO_PREDECESSOR),
        ("trace.cuh", "TRACE_FIELDS", kernel_trace._FIELDS),
    ],
)
def test_constants_of_headers_are_those_of_python(header, name, value):
    assert constant_in(header, name) == value


@pytest.mark.parametrize(
    ("file", "enumeration", "expected"),
    [
        (
            "certificate_tiles.cuh",
            "Finding",
            {
                "C1": batch.C1,
                "C2": batch.C2,
                "C3": batch.C3,
                "C4": batch.C4,
                "OTHER": certificate_many_gpu._FARTHEST // 2,
            },
        ),
        (
            "trace.cuh",
            "IterationKind",
            {name.upper().replace(" ", "_"): i for i, name in enumerate(kernel_trace.ITERATIONS)}
            | {
                "DRAW": kernel_trace.ITERATIONS.index("draw bitmaps"),
                "LIST": kernel_trace.ITERATIONS.index("list bitmap"),
            },
        ),
    ],
)
def test_numbers_of_enumerations_are_those_of_python(file, enumeration, expected):
    [path] = PACKAGE.rglob(file)
    names = re.search(
        rf"enum {enumeration} \{{(.*?)\}}", path.read_text(encoding="utf-8"), re.DOTALL
    )[1].split(",")
    found = {name.strip(): i for i, name in enumerate(names)}
    assert found.items() <= expected.items()
    assert sorted(found.values()) == sorted(set(expected.values()))


def test_a_reduction_block_has_as_many_values_on_both_devices():
    assert distance_stats.PIECE == opportunities_gpu.PIECE == cpu_distance_stats.PIECE


def test_cuda_is_touched_in_platform_alone():
    for file in [*FILES, *PACKAGE.rglob("*.cuh")]:
        text = re.sub(r"//.*", "", file.read_text(encoding="utf-8"))
        cuda = r"threadIdx|blockIdx|blockDim|gridDim|__\w+_sync|__activemask|__syncthreads|atomic[A-Z]\w*|__ld\w+|\basm\b|<cu"  # noqa: E501
        assert (file.name in ("cuda_api.cuh", "memory_access.cuh")) == bool(re.search(cuda, text))
