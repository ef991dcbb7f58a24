"""`Bench`: a session that serves many tests, and is put back between them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from covp.errors import CapacityError, UsageError
from covp.laboratory.coverage import Coverage
from covp.laboratory.target import Target
from covp.runtime.linking import RAM_SECTIONS, LoadedImage, write_image
from covp.runtime.module import Module
from covp.runtime.session import Session

_M = TypeVar("_M", bound=Module)
SourceKey = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Path or C text, flags, include folders."""


class TestSession(Session):
    """A session that knows its modules, so that those which a test loads can be unloaded."""

    __test__ = False  # not a class of tests

    @cached_property
    def modules(self) -> list[Module]:
        """The modules that tests and fixtures loaded themselves, in order."""
        return []

    def _add(self, module: _M) -> _M:
        self.modules.append(super()._add(module))
        return module

    def close(self) -> None:
        """Refuse, as other tests use the session too. Raises UsageError."""
        __tracebackhide__ = True
        raise UsageError("covp_session is closed by pytest; open a covp.Session(...) of your own")


@dataclass
class _Mark:
    """A state that the bench can return to: what was loaded, on the bus, and the device's state.

    ``use`` tells whether the bench has been used since it was in that state.
    """

    images: tuple[LoadedImage, ...]
    peripherals: frozenset[str]
    timeout: float | None
    state: object
    use: object


class Bench:
    """A session with its kernels.

    Modules that kernels come from stay loaded. What a test does else - memory, modules,
    peripherals on the bus - is undone by `back`. Devices that cannot save their state have the
    variables of the C modules initialised anew instead.

    Args:
        target: where it runs.
        covered: count which code runs.
        checks: further arguments of `covp.Session`: ``sanitize``, ``ubsan``.

    Raises:
        CovpError: the device cannot be opened, or cannot do what was requested.
    """

    def __init__(self, target: Target, covered: bool = False, **checks: bool) -> None:
        self.target = target
        on: dict[str, Any] = {name: True for name, value in checks.items() if value}
        self.session = TestSession(target.platform, device=target.device, **on)
        self.coverage = Coverage(self.session) if covered else None
        if self.coverage is not None:
            self.coverage.start()
        self._kernels: dict[SourceKey, Module] = {}
        self._idle: set[SourceKey] = set()
        self._marks: dict[object, _Mark] = {}
        self._opened = self._take_mark()

    # -- kernels ------------------------------------------------------------------------------

    def module(self, key: SourceKey) -> Module:
        """Return the module of a C file or text, compiled and loaded once.

        Raises:
            ToolchainError: it does not compile.
            CapacityError: it does not fit beside what is in use.
        """
        self._idle.discard(key)
        if key not in self._kernels:
            self._kernels[key] = self._load(key)
            self.session.modules.remove(self._kernels[key])  # it stays
        return self._kernels[key]

    def leave(self, keys: set[SourceKey]) -> None:
        """Mark these modules as unused: they are unloaded where others do not fit."""
        self._idle |= keys

    def _load(self, key: SourceKey) -> Module:
        source, flags, include = key
        is_text = "\n" in source or "{" in source
        what: str | Path = source if is_text else Path(source)
        try:
            return self.session.load_c(what, flags=flags, include=include)
        except CapacityError:
            if not self._idle:
                raise
            self._unload_idle()
            return self.session.load_c(what, flags=flags, include=include)

    def _unload_idle(self) -> None:
        for key in self._idle & self._kernels.keys():
            self._kernels.pop(key).unload()
        self._idle.clear()

    # -- going back ---------------------------------------------------------------------------

    def mark(self, level: object) -> None:
        """Save the present state for `back` to a level: a file, a test, its examples."""
        now = self._use()
        same = [mark for mark in (self._opened, *self._marks.values()) if mark.use == now]
        self._marks[level] = same[-1] if same else self._take_mark()

    def forget(self, level: object) -> None:
        """Drop the state that `mark` saved."""
        self._marks.pop(level, None)

    def back(self, level: object) -> None:
        """Undo what happened since `mark`, or since it was opened, but for modules of kernels."""
        mark = self._marks.get(level, self._opened)
        if mark.use == self._use():
            return
        self.session.queue.drop_all()
        self.session.timeout = mark.timeout
        self._drop(mark)
        ability = self.session.device.abilities.state
        if ability is None:
            self._initialise_variables()
        else:
            ability.load_state(mark.state)
            if mark.images != tuple(self.session.images):
                self._keep_kernels(mark)
        mark.use = self._use()

    def _take_mark(self) -> _Mark:
        self.session.sync()
        ability = self.session.device.abilities.state
        state = None if ability is None else ability.save_state()
        images, peripherals = tuple(self.session.images), self._peripherals()
        return _Mark(images, peripherals, self.session.timeout, state, self._use())

    def _use(self) -> object:
        """Return a value that is another one after each use of the device."""
        return self.session.io.transfers, len(self.session.images), self._peripherals()

    def _peripherals(self) -> frozenset[str]:
        hardware = self.session.device.abilities.hardware
        return frozenset() if hardware is None else frozenset(hardware.peripherals)

    def _drop(self, mark: _Mark) -> None:
        """Unload what a test loaded, and take its peripherals off the bus."""
        for module in list(self.session.modules):
            if not (module.is_loaded and module.image in mark.images):
                self.session.modules.remove(module)
                module.unload()
        hardware = self.session.device.abilities.hardware
        if hardware is not None:
            for name in hardware.peripherals.keys() - mark.peripherals:
                hardware.detach(name)

    def _keep_kernels(self, mark: _Mark) -> None:
        """Add modules of kernels loaded since the mark to it, in the state as loaded."""
        new = [image for image in self.session.images if image not in mark.images]
        for image in new:
            write_image(self.session.io, image.elf)
        if new and (ability := self.session.device.abilities.state) is not None:
            mark.images, mark.state = tuple(self.session.images), ability.save_state()

    def _initialise_variables(self) -> None:
        for image in self.session.images[1:]:  # without the runtime
            for section in image.elf.sections:
                if section.name in RAM_SECTIONS:
                    content = bytes(section.size) if section.zero else section.data
                    self.session.io.write(section.address, content)

    def close(self) -> None:
        """Refuse, as other tests use the session too. Raises UsageError."""
        Session.close(self.session)
