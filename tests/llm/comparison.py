"""Compares values that come from JSON and names each place where they differ."""

from cases import Message

# Messages of the stream that only a client gets that accepts them.
ADDED = {"retry", "finish", "provider_data"}


def unexpected(expected, got, path=""):
    """Each place where two values differ."""
    if isinstance(expected, Message):
        return [] if expected.matches(got) else [f"{path}: {got!r} is not {expected}"]
    if isinstance(expected, dict) and isinstance(got, dict):
        found = []
        for key in [*expected, *(key for key in got if key not in expected)]:
            if key not in got:
                found.append(f"{path}.{key}: is missing: {expected[key]!r}")
            elif key not in expected:
                found.append(f"{path}.{key}: is new: {got[key]!r}")
            else:
                found += unexpected(expected[key], got[key], f"{path}.{key}")
        return found
    if isinstance(expected, list) and isinstance(got, list):
        found = []
        for number in range(max(len(expected), len(got))):
            if number >= len(got):
                found.append(f"{path}[{number}]: is missing: {expected[number]!r}")
            elif number >= len(expected):
                found.append(f"{path}[{number}]: is new: {got[number]!r}")
            else:
                found += unexpected(expected[number], got[number], f"{path}[{number}]")
        return found
    same = expected == got and type(expected) is type(got)
    return [] if same else [f"{path}: {got!r} is not {expected!r}"]
