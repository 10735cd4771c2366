"""One conversation through two processes of the service: the parts of the first answer have to return byte for byte.

round_trip.py <address of the first> <address of the second> <address of the provider> <folder of cases> <case>
"""

import json
import sys

import cases
from answers import blocks_of, items_of
from differences import WORKER
from differential import Run
from service import Provider, Service


def parts_of(step):
    """The text of every part in the stream of a provider, exactly as it is there or would be without pieces."""
    if whole := blocks_of(step) + items_of(step):
        return [json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in whole]
    raw = step.raw["raw"]
    decoder, found = json.JSONDecoder(), []
    for line in raw.splitlines():
        at = line.find('"parts":')
        if at < 0:
            continue
        at = line.index("[", at) + 1
        while line[at] != "]":
            _, end = decoder.raw_decode(line, at)
            found.append(line[at:end])
            at = end + (line[end] == ",")
    return found


def main(first, second, provider, folder, name):
    case, provider = cases.load(folder)[name], Provider(provider)
    provider.reset(name)
    run = Run(case, WORKER)
    for address, request in zip((first, second), case.requests, strict=True):
        run.answers.append(Service(address).generate(run.continued(request)))
    requests = provider.requests(name)
    print(f"{len(requests)} requests, answers: {json.dumps(run.answers, ensure_ascii=False)}")
    if len(requests) != 2:
        return 1
    at = 0
    for part in parts_of(case.steps[0]):
        found = requests[1]["text"].find(part, at)
        print(f"{'ok' if found >= 0 else 'MISSING'}  {part}")
        if found < 0:
            print(f"the second request is {requests[1]['text']}")
            return 1
        at = found + len(part)
    ended = run.answers[1][-1] == {"is_final": True}
    return 0 if ended else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
