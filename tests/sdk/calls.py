"""Calls made with the official Python clients. Each prints one line of JSON; what they must say stands in main.rs.

    python calls.py CLIENT CALL BASE_URL
"""

import json
import sys
import time

CLIENT, CALL, BASE = sys.argv[1:4]

if CLIENT == "openai":
    import openai as sdk

    def client(retries):
        return sdk.OpenAI(base_url=BASE + "/v1", api_key="none", max_retries=retries, timeout=20)

    def ask(client, tokens=5, text="a b c", **more):
        messages = [{"role": "user", "content": text}]
        return client.chat.completions.create(
            model="m", messages=messages, max_completion_tokens=tokens, **more
        )

    def read(answer):
        return answer.choices[0].message.content, answer.usage.total_tokens

    def stream(client, tokens=5, **more):
        """Words, tokens used, and why it ended."""
        words, used, why = [], None, None
        for chunk in ask(client, tokens, stream=True, stream_options={"include_usage": True}, **more):
            for choice in chunk.choices:
                words += [choice.delta.content] if choice.delta.content else []
                why = choice.finish_reason or why
            used = chunk.usage.total_tokens if chunk.usage else used
        return words, used, why

else:
    import anthropic as sdk

    def client(retries):
        return sdk.Anthropic(base_url=BASE, api_key="none", max_retries=retries, timeout=20)

    def ask(client, tokens=5, text="a b c", **more):
        messages = [{"role": "user", "content": text}]
        return client.messages.create(model="m", messages=messages, max_tokens=tokens, **more)

    def read(answer):
        return answer.content[0].text, answer.usage.input_tokens + answer.usage.output_tokens

    def stream(client, tokens=5, **more):
        """Words, tokens used, and why it ended."""
        words = []
        messages = [{"role": "user", "content": "a b c"}]
        with client.messages.stream(model="m", messages=messages, max_tokens=tokens, **more) as events:
            for text in events.text_stream:
                words.append(text)
            last = events.get_final_message()
        return words, last.usage.input_tokens + last.usage.output_tokens, last.stop_reason


def error(call):
    """What the client raises."""
    try:
        call()
    except sdk.APIError as raised:
        response = getattr(raised, "response", None)
        headers = response.headers if response is not None else {}
        return {
            "kind": type(raised).__name__,
            "status": getattr(raised, "status_code", None),
            "message": str(raised.message),
            "type": getattr(raised, "type", None),
            "param": getattr(raised, "param", None),
            "retry_after": headers.get("retry-after"),
        }
    return {"kind": None}


def whole():
    text, used = read(ask(client(0)))
    return {"words": len(text.split()), "used": used}


def streamed():
    begun = time.monotonic()
    words, used, why = stream(client(0), 20)
    return {"words": len(words), "used": used, "why": why, "took": time.monotonic() - begun}


def retried():
    """One call takes all there is; the other comes back when it is told."""
    ask(client(2))
    refused = error(lambda: ask(client(0)))
    begun = time.monotonic()
    text, _ = read(ask(client(2)))
    return {"refused": refused, "words": len(text.split()), "took": time.monotonic() - begun}


def retried_stream():
    """The same for a stream."""
    ask(client(2))
    begun = time.monotonic()
    words, _, _ = stream(client(2))
    return {"words": len(words), "took": time.monotonic() - begun}


def bad():
    return {"zero": error(lambda: ask(client(2), 0)), "large": error(lambda: ask(client(0), 20_000))}


def timed_out():
    """A stream that the gateway ends at its deadline."""
    headers = {"x-request-timeout-ms": "600"}
    return error(lambda: stream(client(2), 200, extra_headers=headers))


def broken():
    """A stream with an error inside it."""
    return error(lambda: stream(client(2)))


calls = [whole, streamed, retried, retried_stream, bad, timed_out, broken]
print(json.dumps({call.__name__: call for call in calls}[CALL]()))
