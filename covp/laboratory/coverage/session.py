"""`Coverage` and `collect`: what ran of the code that a session loaded, by source or address."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from pathlib import Path, PurePath

from covp.base.arguments import demand
from covp.base.cache import cache_dir, content_key
from covp.compilers.toolchain import runtime_dir
from covp.device.abilities import TracesCode
from covp.device.timing.trace import Trace
from covp.errors import UsageError, near_misses
from covp.laboratory.coverage.code_map import CodeMap, read_code
from covp.laboratory.coverage.conditions import ConditionCoverage
from covp.laboratory.coverage.data import CoverageData
from covp.laboratory.coverage.debug_lines import Instance
from covp.laboratory.coverage.files import Branch, FileCoverage
from covp.laboratory.coverage.instructions import DecodedInstruction
from covp.laboratory.coverage.measure import NO_COUNTS, Counts, Outcomes, count, measure
from covp.runtime.linking import LoadedImage
from covp.runtime.resident import Resident


class Coverage:
    """The coverage of a session's code, without instrumentation: the code is the one that ships.

    ::

        with Coverage(session) as c:
            kernel(a, b, len(a))
        print(c.report())
        c.write("cov.info")

    A second ``with`` of the same object adds to it. Modules may be loaded and unloaded inside.

    Args:
        session: on a virtual device. Lines are known of code that was compiled with ``-g``, as
            `Session.load_c` does.
        runtime: with the files of covp's own runtime, which programs and modules use.

    Raises:
        UsageError: the device does not count blocks of code.
    """

    def __init__(self, session: Resident, runtime: bool = False) -> None:
        demand("session", session, Resident, "a session")
        self._session = weakref.ref(session)  # `collect` keeps one for each session
        self._runtime = runtime
        self._device = _find_tracer(session)
        self._before: Trace | None = None
        self._conditional: dict[int, int] = {}
        self._data = CoverageData()
        self._counted: dict[Path, tuple[CodeMap, Counts]] = {}

    def __enter__(self) -> Coverage:
        self.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        session = self._session()
        try:
            if kind is None and session is not None and session.is_open:
                session.sync()
        finally:
            self.stop()

    def start(self) -> None:
        """Count from now on; queued calls run first. Nothing where it counts already."""
        session = self._session()
        if self._before is None and session is not None:
            session.sync()
            self._begin(session, self._device.trace())

    def stop(self) -> None:
        """Count no more. Nothing where it does not count."""
        if self._before is not None:
            self._settle()
            self._before = None
            session = self._session()
            if session is not None:
                session.image_watchers.remove(self)

    @property
    def data(self) -> CoverageData:
        """The coverage so far, which can be merged, written and sent to other processes."""
        self._settle()
        return CoverageData().add(self._data)

    def take(self) -> CoverageData:
        """Return the coverage until now and start again at zero."""
        self._settle()
        taken, self._data = self._data, CoverageData()
        return taken

    def lines(self, name: str | Path) -> dict[int, int]:
        """Return line to how often it ran, of the lines that have code, in the file ``name``."""
        return self.data.lines(name)

    def functions(self, name: str | Path) -> dict[str, int]:
        """Return function to how often it was entered, in the file ``name``."""
        return self.data.functions(name)

    def branches(self, name: str | Path) -> list[Branch]:
        """Return the conditional branches of the file ``name`` by line and column."""
        return self.data.branches(name)

    def conditions(self, name: str | Path) -> list[ConditionCoverage]:
        """Return the conditions of ``&&`` and ``||`` of the file ``name``."""
        return self.data.conditions(name)

    def report(self) -> str:
        """Return files with their figures, and the lines and branches that are not covered."""
        return self.data.report()

    def listing(self, function: str) -> str:
        """List the instructions of a function that is loaded, each with how often it ran.

        For assembly, and for functions without source.

        Raises:
            UsageError: nothing that is loaded and was counted has such a function.
        """
        self._settle()
        names: list[str] = []
        for code, counts in reversed(self._counted.values()):
            for one in code.instances:
                names.append(one.name)
                if one.name == function and not one.inlined:
                    return listing(code, counts, one)
        raise UsageError(
            f"no function {function!r} was counted:", hint=near_misses(function, names)
        )

    def write(self, path: str | Path) -> None:
        """Write the coverage into a file, in the format that its suffix names."""
        self.data.write(path)

    def __add__(self, other: Coverage | CoverageData) -> CoverageData:
        return self.data + (other.data if isinstance(other, Coverage) else other)

    # -- counting -----------------------------------------------------------------------------

    def loaded(self, image: LoadedImage) -> None:
        """Prepare to count conditional instructions of an image that was loaded."""
        steps = read_code(image.elf.content).steps.values()
        self._device.count_conditional(step.address for step in steps if step.conditional)

    def leaving(self) -> None:
        """Add the counts until now, before an image leaves the memory."""
        self._settle()

    def _begin(self, session: Resident, before: Trace) -> None:
        for image in session.images[1:]:
            self.loaded(image)
        self._before, self._conditional = before, dict(self._device.conditional_counts())
        session.image_watchers.append(self)

    def _settle(self) -> None:
        """Add what ran since the last time."""
        session = self._session()
        if self._before is None or session is None or not session.is_open:
            return
        now, conditional = self._device.trace(), self._device.conditional_counts()
        ran, self._before = now.since(self._before), now
        known, self._conditional = self._conditional, dict(conditional)
        executed = {at: runs - known.get(at, 0) for at, runs in conditional.items()}
        for image in session.images[1:]:
            code = read_code(image.elf.content)
            counts = count(ran, code.steps, executed)
            self._data.add(_name_files(measure(code, counts), self._runtime))
            known_counts = self._counted.get(image.path, (code, NO_COUNTS))[1]
            self._counted[image.path] = code, known_counts + counts


_NOTHING = Trace(())
_collected: weakref.WeakKeyDictionary[Resident, Coverage] = weakref.WeakKeyDictionary()


def collect(session: Resident) -> CoverageData:
    """Return what ran in a session since the previous call for it, or since its start.

    Call it once at the start, too: modules that are unloaded, and the conditions of Arm's IT
    blocks, are counted from then on.

    Raises:
        UsageError: the device does not count blocks of code.
    """
    coverage = _collected.get(session)
    if coverage is None:
        coverage = _collected[session] = Coverage(session)
        session.sync()
        coverage._begin(session, _NOTHING)
    return coverage.take()


def _find_tracer(session: Resident) -> TracesCode:
    ability = session.device.abilities.code
    if ability is None:
        raise UsageError(
            "coverage counts blocks of code, which only the virtual device does: "
            'use Session(..., device="virtual")'
        )
    return ability


# -- names of files --------------------------------------------------------------------------------


def _name_files(data: CoverageData, runtime: bool) -> CoverageData:
    """Name files that were given as text independently of this machine."""
    generated, own = cache_dir("sources"), runtime_dir().resolve()
    named = CoverageData()
    for path, file in data.files.items():
        if not runtime and Path(path).resolve().is_relative_to(own):
            continue
        name = path
        if Path(path).is_relative_to(generated):
            name, text = _text_of(Path(path))
            named.texts[name] = text
        named.files.setdefault(name, FileCoverage()).add(file)
    return named


def _text_of(path: Path) -> tuple[str, str]:
    """Name code that was given as text by its content; also return the text."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        text = ""  # swept from the cache; the folder is named by the content, too
    key = content_key(text or path.parent.name)[:8]
    return f"{path.stem}-{key}{path.suffix}", text


def listing(code: CodeMap, counts: Counts, function: Instance) -> str:
    """List the instructions of a function with how often each ran, and which way branches went.

    Args:
        code: of the ELF file.
        counts: of its code.
        function: of the ELF file.
    """
    steps = [
        code.steps[at] for start, end in function.ranges for at in range(start, end, 2)
        if at in code.steps
    ]  # fmt: skip
    ran = sum(counts.executed.get(step.address, 0) > 0 for step in steps)
    head = f"{function.name}: {ran} of {len(steps)} instructions ran"
    return "\n".join([head, *_lines(code, counts, steps)])


def _lines(code: CodeMap, counts: Counts, steps: list[DecodedInstruction]) -> Iterator[str]:
    was = ""
    for step in steps:
        file, line, _ = code.places.get(step.address, ("", 0, 0))
        source = f"{PurePath(file).name}:{line}" if line else ""
        runs = counts.executed.get(step.address, 0)
        bits = f"{step.bits:0{2 * step.size}x}"
        note = _note(step, counts.sites.get(step.address, (0, 0)))
        text = f"{runs:>10}  0x{step.address:08x}  {bits:8}  {note:44}"
        yield f"{text}  {source if source != was else ''}".rstrip()
        was = source or was


def _note(step: DecodedInstruction, outcomes: Outcomes) -> str:
    where = "" if step.target is None else f" 0x{step.target:08x}"
    if step.kind != "branch" and not step.guards:
        return f"{step.kind}{where}" if step.kind in ("jump", "call") else ""
    taken, untaken = outcomes
    if taken is None or untaken is None:
        return step.name
    words = ("executed", "skipped") if step.guards else ("taken", "not taken")
    return f"{step.name}{where}: {taken} {words[0]}, {untaken} {words[1]}"
