"""The headers that kernels share define nothing that only the published systems use: that belongs beside their kernels."""

import re
from pathlib import Path

import pytest

import kepler_traverse

PACKAGE = Path(kepler_traverse.__file__).parent
SHARED = PACKAGE / "cuda" / "include" / "kt"
# They wrap what a GPU can do, for kernels of any kind; the host harness replaces and tests the whole of it.
PLATFORM = {"cuda_api.cuh", "memory_access.cuh", "cluster.cuh"}
# A function, a struct, a constant or a macro; also the members of a struct.
_DEFINITION = re.compile(
    r"^[ ]*(?:KT_DEVICE (?:static |explicit )?[\w:<>*& ]*?(?P<function>\w+)\(|struct (?P<struct>\w+)|"
    r"(?:static )?constexpr [\w:<>]+ (?P<constant>\w+) =|#define (?P<macro>\w+))",
    re.MULTILINE,
)


def without_comments(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text(encoding="utf-8"))


def definitions(headers: list[str]) -> dict[str, str]:
    """The names that headers define, each with the text up to the next definition."""
    found: dict[str, str] = {}
    for text in headers:
        matches = list(_DEFINITION.finditer(text))
        ends = [match.start() for match in matches[1:]] + [len(text)]
        for match, end in zip(matches, ends, strict=True):
            name = next(group for group in match.groups() if group)
            found[name] = found.get(name, "") + text[match.end() : end]
    return found


def used(texts: list[str], defined: dict[str, str]) -> set[str]:
    """The defined names that occur in the texts, or in the text of a name that does."""
    reached, unread = set(), list(texts)
    while unread:
        words = set(re.findall(r"\w+", unread.pop()))
        new = (words & defined.keys()) - reached
        reached |= new
        unread += [defined[name] for name in new]
    return reached


def used_by_published_alone(
    headers: list[str], product: list[str], published: list[str]
) -> set[str]:
    defined = definitions(headers)
    return used(published, defined) - used(product, defined)


def kernel_texts(*, published: bool) -> list[str]:
    files = [*PACKAGE.rglob("*.cu"), *PACKAGE.rglob("*.cuh")]
    own = [file for file in files if not file.is_relative_to(SHARED)]
    return [without_comments(file) for file in own if ("published" in file.parts) == published]


def test_shared_headers_define_nothing_that_only_published_kernels_use():
    headers = [
        without_comments(file) for file in sorted(SHARED.glob("*.cuh")) if file.name not in PLATFORM
    ]
    product, published = kernel_texts(published=False), kernel_texts(published=True)
    assert {
        "edges_by_thread",
        "Reach",
        "claim",
        "LocalQueue",
        "LOCAL_QUEUE",
        "KT_BOUNDS",
    } <= definitions(headers).keys()
    assert product
    assert published
    assert used_by_published_alone(headers, product, published) == set()


def test_product_kernels_include_no_header_of_published_systems():
    for text in kernel_texts(published=False):
        assert not re.search(r"#include .*published", text)


HEADER = """
struct Queue {
  KT_DEVICE void append(vertex_t v) const { helper(v); }
  KT_DEVICE void append_twice(vertex_t v) const { again(v); }
};
template <typename T>
KT_DEVICE T helper(T value) { return value; }
KT_DEVICE int64 again(int64 value) { return LIMIT; }
constexpr int32 LIMIT = 16;
"""


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("Queue queue; queue.append(v);", {"append_twice", "again", "LIMIT"}),
        ("Queue queue; queue.append(v); helper(v); LIMIT", {"append_twice", "again"}),
        ("Queue queue; queue.append_twice(v);", set()),
        ("", {"Queue", "append_twice", "again", "LIMIT"}),
    ],
)
def test_used_by_published_alone_finds_members_and_what_only_they_use(product, expected):
    assert (
        used_by_published_alone([HEADER], [product], ["Queue queue; queue.append_twice(v);"])
        == expected
    )
