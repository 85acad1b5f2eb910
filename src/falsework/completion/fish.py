"""The script for fish."""

from __future__ import annotations

from collections.abc import Iterator

from falsework.completion.words import Kind, Level, Option, Value

_MACHINES = "(__falsework_machines)"


def script(root: Level, program: str) -> str:
    levels = list(root.everything())
    known = " ".join(_quoted(" ".join(level.path)) for level in levels if level.path)
    lines = [
        f"# fish completion of {program}: {program} completion fish | source",
        "function __falsework_path",
        "    set -l path",
        "    for word in (commandline -opc)[2..-1]",
        f'        contains -- (string join -- " " $path $word) {known}; and set path $path $word',
        "    end",
        '    string join -- " " $path',
        "end",
        "function __falsework_at",
        "    set -l path (__falsework_path)",
        '    test "$path" = "$argv"',
        "end",
        "function __falsework_machines",
        "    set -l words (commandline -opc)",
        "    set -l folder",
        "    if set -l place (contains -i -- --dir $words)",
        "        set folder --dir $words[(math $place + 1)]",
        "    end",
        "    $words[1] completion machines $folder 2>/dev/null",
        "end",
        f"complete -c {program} -f",
        *(line for level in levels for line in _level(level, program)),
    ]
    return "\n".join(lines) + "\n"


def _level(level: Level, program: str) -> Iterator[str]:
    at = f"complete -c {program} -n {_quoted('__falsework_at ' + ' '.join(level.path))}"
    for action in level.actions:
        yield f"{at} -a {action.path[-1]} -d {_quoted(action.about)}"
    for option in level.options:
        yield f"{at} {_flags(option)}{_taken(option.value)} -d {_quoted(option.about)}"
    if level.argument is not None:
        yield from (f"{at}{words}" for words in [_given(level.argument)] if words)


def _flags(option: Option) -> str:
    return " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)


def _taken(value: Value | None) -> str:
    """`-r`: it takes a value; `-F`: a file; `-x`: nothing but what is offered."""
    match value and value.kind:
        case None:
            return ""
        case Kind.FOLDERS:
            return ' -xa "(__fish_complete_directories)"'
        case Kind.FILES:
            return " -rF"
        case _:
            assert value is not None
            return f" -x{_given(value)}"


def _given(value: Value) -> str:
    match value.kind:
        case Kind.CHOICES:
            return f" -a {_quoted(' '.join(value.choices))}"
        case Kind.MACHINES:
            return f" -a {_quoted(_MACHINES)}"
        case Kind.FOLDERS:
            return ' -a "(__fish_complete_directories)"'
        case Kind.FILES:
            return " -F"
        case Kind.NOTHING:
            return ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
