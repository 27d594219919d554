"""The folder of compiled kernels is refused when others can write to it."""

from __future__ import annotations

import os

import pytest

from kepler_traverse.cuda import kernel_cache
from kepler_traverse.errors import DeviceError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "kernels"))
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    return tmp_path / "kernels"


def test_a_cache_is_made_for_its_owner_alone_and_then_accepted(folder):
    kernel_cache.require_private_cache()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o755)
    kernel_cache.require_private_cache()


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o707, 0o777, 0o1777])
def test_a_cache_that_others_can_write_to_is_refused(folder, mode):
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(DeviceError, match="others can write") as caught:
        kernel_cache.require_private_cache()
    assert str(folder) in str(caught.value)


def test_a_cache_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir()
    folder.chmod(0o700)
    owner = folder.stat().st_uid or 7
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    if folder.stat().st_uid == 0:  # root's folders are anybody's to trust
        kernel_cache.require_private_cache()
    else:
        with pytest.raises(DeviceError, match="others can write"):
            kernel_cache.require_private_cache()


def test_a_cache_that_cannot_be_made_is_an_error_and_one_in_memory_needs_no_folder(
    folder, monkeypatch
):
    folder.write_text("a file")
    with pytest.raises(DeviceError, match="cannot be used"):
        kernel_cache.require_private_cache()
    monkeypatch.setenv("CUPY_CACHE_IN_MEMORY", "1")
    kernel_cache.require_private_cache()


def test_folder_without_a_variable_is_cupys_default(monkeypatch, tmp_path):
    monkeypatch.delenv("CUPY_CACHE_DIR", raising=False)
    monkeypatch.delenv("CUPY_CACHE_IN_MEMORY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert kernel_cache.cache_folder() == tmp_path / ".cupy" / "kernel_cache"
