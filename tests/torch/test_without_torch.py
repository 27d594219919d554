"""Without torch and PyTorch Geometric everything imports, and the transform says what to install."""

import sys

from kepler_traverse.errors import how_to_install
from tests.support.processes import ran

CODE = """
import sys
sys.modules.update(torch=None, torch_geometric=None)
import kepler_traverse.pyg, kepler_traverse.tensors
try:
    kepler_traverse.pyg.AddShortestPathEncoding(3)
except ImportError as error:
    print(error)
"""


def test_modules_import_and_the_transform_names_the_extra():
    done = ran([sys.executable, "-c", CODE])
    assert done.stderr == ""
    assert (
        done.stdout
        == f"AddShortestPathEncoding needs PyTorch Geometric: {how_to_install('torch')}\n"
    )


def test_the_library_does_not_import_torch():
    code = "import sys, kepler_traverse\nprint({'torch', 'torch_geometric'} & set(sys.modules))"
    done = ran([sys.executable, "-c", code])
    assert done.stdout == "set()\n", done.stderr
