"""The script for zsh."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from falsework.completion.words import Kind, Level, Value

_MACHINES = '${(f)"$($words[1] completion machines ${folder:+--dir} $folder 2>/dev/null)"}'


def script(root: Level, program: str) -> str:
    levels = list(root.everything())
    known = "|".join(_pattern(" ".join(level.path)) for level in levels if level.path)
    lines = [
        f"#compdef {program}",
        f"# zsh completion of {program}: source <({program} completion zsh), or a file _{program} in $fpath",
        "_falsework() {",
        '  local current=${words[CURRENT]} previous=${words[CURRENT-1]} where="" folder="" word index',
        "  local -a found",
        "  for ((index = 2; index < CURRENT; index++)); do",
        "    word=${words[index]}",
        "    [[ $word = --dir ]] && folder=${words[index+1]}",
        f'    case "${{where:+$where }}$word" in {known}) where=${{where:+$where }}$word ;; esac',
        "  done",
        '  case "$where:$previous" in',
        *_values(levels),
        "  esac",
        '  case "$where" in',
        *_words(levels),
        "  esac",
        "}",
        "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit -D }",
        f"compdef _falsework {program}",
    ]
    return "\n".join(lines) + "\n"


def _pattern(text: str) -> str:
    return text.replace(" ", "\\ ")


def _values(levels: list[Level]) -> Iterator[str]:
    for level in levels:
        for option in level.options:
            if option.value is not None:
                cases = "|".join(f"{_pattern(' '.join(level.path))}:{flag}" for flag in option.flags)
                yield f"    {cases}) {_offer(option.value)}; return ;;"


def _words(levels: list[Level]) -> Iterator[str]:
    for level in levels:
        flags = [(flag, option.about) for option in level.options for flag in option.flags]
        names = [(action.path[-1], action.about) for action in level.actions]
        other = _described(names) if level.argument is None else _offer(level.argument)
        path = _pattern(" ".join(level.path)) or "''"
        yield f"    {path}) if [[ $current = -* ]]; then {_described(flags)}; else {other}; fi ;;"


def _offer(value: Value) -> str:
    match value.kind:
        case Kind.FOLDERS:
            return "_files -/"
        case Kind.FILES:
            return "_files"
        case Kind.CHOICES:
            return f"compadd -- {shlex.join(value.choices)}"
        case Kind.MACHINES:
            return f"found=({_MACHINES}); compadd -a found"
        case Kind.NOTHING:
            return ":"


def _described(entries: Iterable[tuple[str, str]]) -> str:
    """_describe takes `word:what it is`."""
    rows = [shlex.quote(f"{word.replace(':', chr(92) + ':')}:{about}") for word, about in entries]
    return f"found=({' '.join(rows)}); _describe word found" if rows else ":"
