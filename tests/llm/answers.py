"""What is read of the provider's answers to the calls of a case."""

import cases
import contract
from failures import attempts_of, failure_of, is_own

FORMATS = {"google": "gemini.contents.v1", "anthropic": "anthropic.blocks.v1", "openai": "openai.items.v1"}


def numbered(answer):
    """With the ids of a recording."""
    number = 0
    for response in answer:
        if "tool_call" in response:
            number += 1
            response["tool_call"]["call_id"] = f"$CALL_{number}"
    return answer


def last_step(case, number):
    """The answer of the provider that decides a call."""
    tried = attempts_of(case)[number]
    return tried[-1] if tried else None


def ids_of(case, number):
    """The ids that the provider gave to its calls in an answer, in order."""
    step = last_step(case, number)
    if step is None:
        return []
    found = [part["functionCall"].get("id") for part in step.parts if "functionCall" in part]
    found += [each["id"] for each in blocks_of(step) if each["type"] == "tool_use"]
    found += [each["call_id"] for each in items_of(step) if each["type"] == "function_call"]
    choices = [choice for event in step.events for choice in event.get("choices", [])]
    pieces = [piece for choice in choices for piece in choice["delta"].get("tool_calls", [])]
    return found + [piece["id"] for piece in pieces if piece.get("id")]


def blocks_of(step):
    """The whole content blocks of an answer of Anthropic."""
    blocks, inputs = {}, {}
    for event in step.events:
        if event.get("type") == "content_block_start":
            blocks[event["index"]] = cases.copied(event["content_block"])
        elif event.get("type") == "content_block_delta":
            index, delta = event["index"], event["delta"]
            if delta["type"] == "input_json_delta":
                inputs[index] = inputs.get(index, "") + delta["partial_json"]
            else:
                field = delta["type"].removesuffix("_delta")
                blocks[index][field] += delta[field]
    for index, text in inputs.items():
        blocks[index]["input"] = contract.parsed(text, {})
    return list(blocks.values())


def items_of(step):
    """The whole items of an answer of OpenAI."""
    return [event["item"] for event in step.events if event.get("type") == "response.output_item.done"]


def added(case, expected):
    """What a client that accepts added messages gets besides: each retry, the reason of the end, and data to return."""
    found = []
    for tried, answer in zip(attempts_of(case), expected.calls):
        has_end = "error" not in answer[-1]
        is_sent = has_end or not is_own(answer[-1]["error"])
        found.append({
            "retry": [failure_of(case, step).code for step in tried[:-1]] if is_sent else [],
            "finish": [finish_of(tried[-1])] if has_end else [],
            "provider_data": [FORMATS.get(case.provider)] if has_end else [],
        })
    return found


def finish_of(step):
    if blocks := blocks_of(step):
        return "tool_calls" if any(each["type"] == "tool_use" for each in blocks) else "stop"
    if items := items_of(step):
        return "tool_calls" if any(each["type"] == "function_call" for each in items) else "stop"
    reason = step.finish_reason
    if any("functionCall" in part for part in step.parts) and reason == "STOP":
        return "tool_calls"
    words = {"STOP": "stop", "MAX_TOKENS": "max_tokens", "SAFETY": "safety", "RECITATION": "recitation"}
    return words.get(reason, "other")


def grounding_of(case, number, field):
    """A list of the last grounding of an answer."""
    step = last_step(case, number)
    found = [each["groundingMetadata"] for each in (step.candidates if step else []) if "groundingMetadata" in each]
    return found[-1].get(field, []) if found else []


def joined(parts):
    """Text without a signature goes on in the next part of its kind."""
    found = []
    for part in cases.copied(parts):
        is_plain = [set(each) <= {"text", "thought"} for each in (part, *found[-1:])]
        if is_plain == [True, True] and part.get("thought", False) == found[-1].get("thought", False):
            found[-1]["text"] += part["text"]
        else:
            found.append(part)
    return found
