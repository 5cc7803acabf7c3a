"""Object storage between the driver of a sweep and its workers, by fsspec: `s3://BUCKET/PREFIX` and what else
fsspec knows.

    plan.tar             the plan's folder
    sweep.json           how the repetitions are divided
    parts/FIRST-LAST.tar the folder of a task that is done

An object is there whole or not at all, so a task whose worker died left nothing, and its repetitions run again.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any


class Store:
    """A storage and the folder of the driver that it is copied to and from."""

    def __init__(self, url: str, options: Mapping[str, Any], into: Path) -> None:
        # By its name: a type checker must not need what few have.
        fsspec: Any = import_module("fsspec")
        self._files, self._root = fsspec.core.url_to_fs(url, **options)
        self._into = into
        self.task = {"url": url, "options": dict(options)}
        """What a worker needs to know."""

    def has_other_plan(self) -> bool:
        """Puts the plan there; true if another one is there already."""
        ours = _packed(self._into / "plan")
        there = self._read("plan.tar")
        if there is None:
            self._write("plan.tar", ours)
        return there is not None and there != ours

    def share(self, name: str) -> None:
        """Makes `name` the same on both sides. What is in the store counts: another driver may have begun."""
        there, file = self._read(name), self._into / name
        if there is not None:
            file.write_bytes(there)
        elif file.is_file():
            self._write(name, file.read_bytes())

    def fetch(self) -> list[str]:
        """Copies finished parts to the driver's folder; the names of all that are there then.

        A worker of a driver that has gone may leave a part that overlaps those of the next driver. It is left
        where it is: its repetitions are in the others.
        """
        self._files.invalidate_cache()
        folder = f"{self._root}/parts"
        found: list[str] = self._files.find(folder) if self._files.exists(folder) else []
        parts = self._into / "parts"
        held = [it.name for it in parts.iterdir() if it.is_dir()]
        there = {Path(it).stem for it in found if it.endswith(".tar")}
        for name in sorted(there):
            part = parts / name
            if not any(_overlap(name, other) for other in held):
                held.append(name)
                draft = self._into / f".part-{os.getpid()}"
                shutil.rmtree(draft, ignore_errors=True)
                with self._files.open(f"{folder}/{name}.tar", "rb") as file, tarfile.open(fileobj=file) as packed:
                    packed.extractall(draft, filter="data")
                draft.replace(part)
        return sorted(there.intersection(held))

    def _read(self, name: str) -> bytes | None:
        self._files.invalidate_cache()
        path = f"{self._root}/{name}"
        return self._files.cat_file(path) if self._files.exists(path) else None

    def _write(self, name: str, content: bytes) -> None:
        self._files.pipe_file(f"{self._root}/{name}", content)


def part_range(name: str) -> tuple[int, int]:
    """The first and the last part of a folder `FIRST-LAST`."""
    first, last = name.split("-")
    return int(first), int(last)


def _overlap(one: str, other: str) -> bool:
    (first, last), (other_first, other_last) = part_range(one), part_range(other)
    return first <= other_last and other_first <= last


def _packed(folder: Path) -> bytes:
    """The files of a folder as a tar; the same files give the same bytes."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for file in sorted(it for it in folder.rglob("*") if it.is_file()):
            entry = tarfile.TarInfo(str(file.relative_to(folder)))
            entry.size = file.stat().st_size
            with file.open("rb") as content:
                tar.addfile(entry, content)
    return packed.getvalue()
