"""The script for bash."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from falsework.completion.words import Kind, Level, Value

_OFFERS = {
    Kind.MACHINES: '$(_falsework_machines "$dir")',
    Kind.NOTHING: "",
}


def script(root: Level, program: str) -> str:
    levels = list(root.everything())
    known = "|".join(shlex.quote(" ".join(level.path)) for level in levels if level.path)
    lines = [
        f"# bash completion of {program}: source <({program} completion bash)",
        "_falsework_machines() {",
        '    "${COMP_WORDS[0]}" completion machines ${1:+--dir "$1"} 2>/dev/null',
        "}",
        "_falsework() {",
        '    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} path="" dir="" word index',
        "    COMPREPLY=()",
        "    for ((index = 1; index < COMP_CWORD; index++)); do",
        "        word=${COMP_WORDS[index]}",
        '        if [ "$word" = --dir ]; then dir=${COMP_WORDS[index+1]}; fi',
        f'        case "${{path:+$path }}$word" in {known}) path=${{path:+$path }}$word ;; esac',
        "    done",
        '    case "$path:$previous" in',
        *_values(levels),
        "    esac",
        '    case "$path" in',
        *_words(levels),
        "    esac",
        "}",
        f"complete -F _falsework {program}",
    ]
    return "\n".join(lines) + "\n"


def _values(levels: list[Level]) -> Iterator[str]:
    for level in levels:
        for option in level.options:
            if option.value is not None:
                cases = "|".join(shlex.quote(f"{' '.join(level.path)}:{flag}") for flag in option.flags)
                yield f"        {cases}) {_reply(option.value)}; return ;;"


def _words(levels: list[Level]) -> Iterator[str]:
    for level in levels:
        path = shlex.quote(" ".join(level.path))
        flags = [flag for option in level.options for flag in option.flags]
        names = [action.path[-1] for action in level.actions]
        if level.argument is not None and level.argument.kind is not Kind.NOTHING:
            yield f'        {path}) case "$current" in -*) {_from(flags)} ;; *) {_reply(level.argument)} ;; esac ;;'
        else:
            yield f'        {path}) case "$current" in -*) {_from(flags)} ;; *) {_from(names)} ;; esac ;;'


def _reply(value: Value) -> str:
    if value.kind is Kind.FOLDERS:
        return 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$current")'
    if value.kind is Kind.FILES:
        return 'compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$current")'
    if value.kind is Kind.CHOICES:
        return _from(value.choices)
    offered = _OFFERS[value.kind]
    return f'mapfile -t COMPREPLY < <(compgen -W "{offered}" -- "$current")' if offered else ":"


def _from(words: list[str] | tuple[str, ...]) -> str:
    return f'mapfile -t COMPREPLY < <(compgen -W "{" ".join(words)}" -- "$current")' if words else ":"
