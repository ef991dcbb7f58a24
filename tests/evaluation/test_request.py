"""The options of builds and runs: one field each, from which all else is read."""

from typing import Any, get_args, get_type_hints

import click
import pytest

import covp
from covp.base.request import (
    BuildChanges,
    BuildOptions,
    RunChanges,
    RunOptions,
    change_options,
    key_options,
    list_options,
)
from covp.cli import options
from covp.cli.groups import HEADINGS, HeadedOption

STRUCTURES: tuple[tuple[type[BuildOptions | RunOptions], Any], ...] = (
    (BuildOptions, BuildChanges),
    (RunOptions, RunChanges),
)


@pytest.mark.parametrize(("kind", "changes"), STRUCTURES)
def test_keywords_are_the_fields(kind: type[BuildOptions | RunOptions], changes: Any) -> None:
    assert get_type_hints(changes) == {name: hint for name, hint, _ in list_options(kind)}


def asked(words: str) -> tuple[click.Command, BuildOptions, RunOptions]:
    """A command with all options, and what it makes of these words."""
    made: list[tuple[BuildOptions, RunOptions]] = []

    @click.command()
    @options.build_options()
    @options.run_options()
    def command(build_options: BuildOptions, run_options: RunOptions) -> int:
        made.append((build_options, run_options))
        return 0

    command.main(words.split(), standalone_mode=False)
    return command, *made[0]


def test_commands_have_each_option_with_its_default() -> None:
    command, *made = asked("")
    assert made == [BuildOptions(), RunOptions()]
    by_name = {parameter.name: parameter for parameter in command.params}
    for kind, _ in STRUCTURES:
        for name, _, option in list_options(kind):
            parameter = by_name.get(name)
            assert isinstance(parameter, HeadedOption) == bool(option.heading), name
            if isinstance(parameter, HeadedOption):
                assert parameter.heading == option.heading and option.heading in HEADINGS
                assert parameter.help == option.text


def test_the_command_line_makes_the_options() -> None:
    words = "--overlap --shape x=1,2 --state a=b --streaming --untuned --flash-trade 7 --seed 3"
    _, build, run = asked(f"{words} --require-offload CONV_2D --check none")
    assert build == BuildOptions(
        overlap=True,
        shapes={"x": (1, 2)},
        states={"a": "b"},
        streaming=1,
        tuned=False,
        flash_trade=7,
        require_offload=("CONV_2D",),
    )
    assert run == RunOptions(seed=3, check="none")


def test_a_key_changes_with_what_figures_depend_on() -> None:
    other: dict[str, Any] = {
        "toolchain": "gcc", "shapes": {"x": (1,)}, "states": {"a": "b"}, "optimize": "size",
        "patches": "auto",
        "require_offload": ("CONV_2D",), "device": "host", "check": "none",
    }  # fmt: skip
    for kind, _ in STRUCTURES:
        before = key_options(kind())
        for name, hint, option in list_options(kind):
            if name in other:
                value = other[name]
            elif hint is bool:
                value = not getattr(kind(), name)
            else:
                assert int in (hint, *get_args(hint))
                value = 9
            after: Any = change_options(kind(), {name: value})  # type: ignore[type-var]
            assert (key_options(after) != before) == option.keyed, name
            assert after != kind() and hash(after) is not None


def test_a_wrong_keyword_is_refused() -> None:
    with pytest.raises(TypeError, match="overlapp"):
        covp.compile("toycar", "riscv32", overlapp=True)  # type: ignore[call-arg]
