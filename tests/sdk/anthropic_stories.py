"""The official Anthropic client, its retries as they come, before the gateway."""

import asyncio

import anthropic

from story import play, raises

ASK = [{"role": "user", "content": "Say something."}]
TOOLS = [{
    "name": "weather",
    "description": "The weather in a city.",
    "input_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
    },
}]


def client(url):
    return anthropic.Anthropic(base_url=url, api_key="callers-own")


def ask(model, **more):
    return {"model": model, "max_tokens": 64, "messages": ASK, **more}


def text(url, model, said, provider, action="direct"):
    raw = client(url).messages.with_raw_response.create(**ask(model, system="Be brief."))
    answer = raw.parse()
    assert answer.type == "message" and answer.role == "assistant", answer
    assert [block.text for block in answer.content] == [said], answer
    assert answer.stop_reason == "end_turn", answer
    assert answer.usage.output_tokens > 0, answer
    assert raw.headers["x-backstop-provider"] == provider, raw.headers
    assert raw.headers["x-backstop-action"] == action, raw.headers


def stream(url, model, said, provider, action="direct"):
    with client(url).messages.stream(**ask(model)) as events:
        assert events.response.headers["x-backstop-provider"] == provider
        assert events.response.headers["x-backstop-action"] == action
        heard = "".join(events.text_stream)
        answer = events.get_final_message()
    assert heard == said, heard
    assert [block.text for block in answer.content] == [said], answer
    assert answer.stop_reason == "end_turn", answer
    assert answer.usage.output_tokens > 0, answer


def stream_events(url, model):
    kinds = [event.type for event in client(url).messages.create(**ask(model, stream=True))]
    kinds = [kind for kind in kinds if kind != "ping"]
    assert kinds[:2] == ["message_start", "content_block_start"], kinds
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"], kinds


def stream_async(url, model, said):
    async def go():
        async with anthropic.AsyncAnthropic(base_url=url, api_key="callers-own") as asked:
            async with asked.messages.stream(**ask(model)) as events:
                return "".join([text async for text in events.text_stream])

    heard = asyncio.run(go())
    assert heard == said, heard


def tools(url, model):
    answer = client(url).messages.create(**ask(model, tools=TOOLS, tool_choice={"type": "auto"}))
    assert answer.stop_reason == "tool_use", answer
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    assert (call.name, call.input) == ("weather", {"city": "Bern"}), call
    turns = ASK + [
        {"role": "assistant", "content": answer.content},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": call.id, "content": "rain"},
        ]},
    ]
    answer = client(url).messages.create(**ask(model, tools=TOOLS) | {"messages": turns})
    assert answer.content[0].text == "It rains.", answer


def stream_tools(url, model):
    with client(url).messages.stream(**ask(model, tools=TOOLS)) as events:
        answer = events.get_final_message()
    assert answer.stop_reason == "tool_use", answer
    (call,) = [block for block in answer.content if block.type == "tool_use"]
    assert call.id and (call.name, call.input) == ("weather", {"city": "Bern"}), call


def models(url, *names):
    listed = {model.id: model for model in client(url).models.list()}
    for name in names:
        assert listed[name].type == "model" and listed[name].display_name, listed


ERRORS = {
    "400": anthropic.BadRequestError,
    "401": anthropic.AuthenticationError,
    "403": anthropic.PermissionDeniedError,
    "404": anthropic.NotFoundError,
    "429": anthropic.RateLimitError,
    "500": anthropic.InternalServerError,
    "502": anthropic.InternalServerError,
    "503": anthropic.ServiceUnavailableError,
    "529": anthropic.OverloadedError,
}


def error(url, model, status, kind, streamed=""):
    error = raises(ERRORS[status], lambda: client(url).messages.create(
        **ask(model, stream=bool(streamed))
    ))
    assert error.status_code == int(status), error
    assert error.body["type"] == "error", error.body
    assert error.body["error"]["type"] == kind, error.body
    assert error.body["error"]["message"], error.body
    assert error.response.headers["x-request-id"] == error.body["request_id"], error.body


def stream_breaks(url, model, said):
    heard = []

    def listen():
        with client(url).messages.stream(**ask(model)) as events:
            for piece in events.text_stream:
                heard.append(piece)

    try:
        listen()
    except anthropic.APIStatusError as error:
        assert error.body["error"]["message"], error.body
    else:
        raise AssertionError(f"the stream ended as if it were whole: {heard}")
    assert "".join(heard) == said, heard


def unreadable(url, model):
    raises(anthropic.BadRequestError, lambda: client(url).messages.create(
        **ask(model), extra_body={"fallbacks": ["no-slash"]}
    ))
    raises(anthropic.NotFoundError, lambda: client(url).messages.create(**ask("nobody/knows")))


def count(url, model, other):
    for name in [model, other]:
        counted = client(url).messages.count_tokens(
            model=name, messages=ASK, system="Be brief.", tools=TOOLS
        )
        assert counted.input_tokens > 0, counted
    told = client(url).models.retrieve(model)
    assert told.id == model and told.type == "model", told


def count_refused(url, model):
    raises(anthropic.BadRequestError, lambda: client(url).messages.count_tokens(
        model=model, messages=ASK
    ))


play({
    "count": count,
    "count_refused": count_refused,
    "text": text,
    "stream": stream,
    "stream_events": stream_events,
    "stream_async": stream_async,
    "tools": tools,
    "stream_tools": stream_tools,
    "models": models,
    "error": error,
    "stream_breaks": stream_breaks,
    "unreadable": unreadable,
})
