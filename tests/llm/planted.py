"""Plants faults into what is expected, one at a time: the comparison has to find each of them.

planted.py <folder of cases>
"""

import copy
import sys

import cases
from comparison import unexpected


def faults(value):
    """Copies of a value, each with one fault: a changed, missing, new or moved part."""
    if isinstance(value, dict):
        yield {**value, "planted": 1}
        for key in value:
            yield {name: each for name, each in value.items() if name != key}
            yield from ({**value, key: each} for each in faults(value[key]))
    elif isinstance(value, list):
        yield [*value, {"planted": 1}]
        for index in range(len(value)):
            yield value[:index] + value[index + 1:]
            yield from ([*value[:index], each, *value[index + 1:]] for each in faults(value[index]))
            if index and value[index] != value[index - 1]:
                yield [*value[:index - 1], value[index], value[index - 1], *value[index + 1:]]
    else:
        yield {str: f"{value} ", bool: not value, int: str(value), float: str(value)}.get(type(value), "planted")


def main(folder):
    planted = 0
    for case in cases.load(folder).values():
        expected = [case.expected.calls, case.expected.http]
        if unexpected(expected, copy.deepcopy(expected)):
            raise SystemExit(f"{case.name}: is not equal to itself")
        for fault in faults(expected):
            planted += 1
            if not unexpected(expected, fault):
                raise SystemExit(f"{case.name}: not found: {fault}")
    print(f"{planted} faults found")
    return 0 if planted else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
