"""How this service ends a call to a provider: which answers are failures, which are tried again, and the error it sends."""

import dataclasses

import contract
from cases import Message

MAX_ATTEMPTS = 3
# Codes that the existing service does not have, and what its clients get in their place.
OLD_CODES = {
    "empty_response": "max_retries",
    "rate_limited": "max_retries",
    "unavailable": "max_retries",
    "deadline_exceeded": "max_retries",
    "malformed_tool_call": "max_retries",
    "invalid_request": "provider_error",
    "credentials": "provider_error",
    "context_window_exceeded": "provider_error",
    "blocked": "provider_error",
    "thought_signature": "provider_error",
    "model_not_found": "provider_error",
    "max_tokens": "provider_error",
}


@dataclasses.dataclass
class Failure:
    kind: str  # a name in the table of differences
    code: str
    text: str  # how the message begins after the words about attempts
    part: str = ""  # what else it contains
    is_retryable: bool = False
    retry_after: str | None = None
    status: str | None = None


def attempts_of(case):
    """For each call, the answers of the provider that its attempts get; the last one repeats."""
    found, number = [], 0
    for _ in case.requests:
        tried = []
        while case.steps:
            tried.append(case.steps[min(number, len(case.steps) - 1)])
            number += 1
            while tried[-1].finish_reason == "CONTINUATION" and number < len(case.steps):
                tried[-1] = continued(tried[-1], case.steps[number])
                number += 1
            failure = failure_of(case, tried[-1])
            if failure is None or not failure.is_retryable or sent_by(case, tried[-1]) or len(tried) == MAX_ATTEMPTS:
                break
        found.append(tried)
    return found


def sent_by(case, step):
    """The responses to what came before a failure."""
    return [] if is_late(case, step) else [each for part in step.parts for each in contract.responses_of(part)]


def continued(step, other):
    """A long answer that the provider gives in several."""
    return dataclasses.replace(other, events=step.events + other.events)


def is_cut(step):
    return "drop_after" in step.raw or "drop_before_headers" in step.raw


def is_late(case, step):
    return bool(case.timeout_s) and step.raw.get("delay_ms", 0) / 1000 > case.timeout_s


def failure_of(case, step):
    """`None` for a whole answer."""
    if case.backend != "google-native":
        return failure_of_response(step) if step.status >= 400 else None
    if is_late(case, step):
        text = "Generation timed out"
        return Failure("the_deadline_of_the_caller_is_kept", "deadline_exceeded", text)
    if step.block_reason:
        reason = step.block_reason
        text = f"The prompt was blocked: {reason}"
        return Failure("blocked_prompts_are_not_retried", "blocked", text, status=reason)
    if step.error is not None:
        return failure_of_error(step.error)
    if step.malformed:
        text = "Failed to parse response as JSON: "
        return Failure("malformed_json_is_retried", "provider_error", text, is_retryable=True)
    if step.finish_reason is None:
        if is_cut(step):
            return Failure("a_lost_connection_is_not_final", "unavailable", "connection failed: ", is_retryable=True)
        text = "the stream of the provider ended without a finish reason"
        return Failure("an_answer_without_finish_reason_is_broken", "unavailable", text, is_retryable=True)
    return None if sent_by(case, step) else failure_of_empty(step)


def failure_of_error(error):
    code, message = error.get("code", 0), error.get("message", "")
    status = f"{code} {error.get('status', '')}".strip()
    details = error.get("details", [])
    delay = next((each["retryDelay"] for each in details if "retryDelay" in each), None)
    shared = {"part": message[:80], "status": status, "retry_after": delay}
    if code == 429:
        quotas = [quota.get("quotaId", "") for each in details for quota in each.get("violations", [])]
        passes = not any("PerDay" in quota for quota in quotas)
        return Failure("rate_limits_are_retried", "rate_limited", f"{status}. ", is_retryable=passes, **shared)
    if code == 408 or code >= 500:
        text = f"{'Google API server error: ' if code >= 500 else ''}{status}. "
        return Failure("errors_say_what_a_caller_can_do", "unavailable", text, is_retryable=True, **shared)
    kinds = [
        ("thought_signature", "thought_signature", "signature_errors_have_a_code"),
        ("thought signature", "thought_signature", "signature_errors_have_a_code"),
        ("maximum number of tokens", "context_window_exceeded", "errors_say_what_a_caller_can_do"),
        ("API key not valid", "credentials", "errors_say_what_a_caller_can_do"),
    ]
    for words, name, kind in kinds:
        if code == 400 and words in message:
            return Failure(kind, name, f"{status}. ", **shared)
    name = {401: "credentials", 403: "credentials", 404: "model_not_found"}.get(code, "invalid_request")
    return Failure("errors_say_what_a_caller_can_do", name, f"{status}. ", **shared)


def failure_of_response(step):
    """Of a provider other than Gemini."""
    word = step.error.get("code") or step.error["type"]
    seconds = step.raw.get("headers", {}).get("retry-after")
    return Failure(
        "rate_limits_are_retried",
        "rate_limited" if step.status == 429 else "unavailable" if step.status >= 500 else "invalid_request",
        f"Error code: {step.status} - {word}. ",
        part=step.error["message"],
        is_retryable=step.status == 429 or step.status >= 500,
        retry_after=seconds and f"{seconds}s",
        status=f"{step.status} {word}",
    )


def failure_of_empty(step):
    reason = step.finish_reason
    kinds = {
        "STOP": ("empty_response", "Empty response from LLM (no content generated)", True),
        "MAX_TOKENS": ("max_tokens", "The output limit was reached before the first word of the answer", False),
        "MALFORMED_FUNCTION_CALL": ("malformed_tool_call", "The model wrote a tool call that cannot be read: ", True),
    }
    code, text, is_retryable = kinds.get(reason, ("blocked", f"The answer was blocked: {reason}", False))
    kind = "errors_say_what_a_caller_can_do" if code == "empty_response" else "empty_answers_say_why"
    return Failure(kind, code, text, is_retryable=is_retryable, status=reason)


def error_of(case, failure, tried, has_new_codes):
    """The last response of a call that failed."""
    sent = len(sent_by(case, tried[-1]))
    if sent:
        start, code = f"Stream failed after partial output ({sent} chunks): [$REQ] ", "partial_stream_error"
    elif failure.is_retryable and len(tried) == MAX_ATTEMPTS:
        start, code = f"Generation failed after {MAX_ATTEMPTS} attempts: [$REQ] ", failure.code
    else:
        start, code = "Generation failed: ", failure.code
    error = {
        "message": Message(start + failure.text, failure.part),
        "code": code if has_new_codes else OLD_CODES.get(code, code),
        "retryable": failure.is_retryable,
        "retry_after": failure.retry_after,
        "provider_status": failure.status,
        "attempts": len(tried),
    }
    return {"error": {key: value for key, value in error.items() if value}, "is_final": True}


def is_own(error):
    """Whether the service finds the fault before it sends a request."""
    return error["code"] in ("credentials", "invalid_request", "invalid_backend")
