"""The official OpenAI client, its retries as they come, before the gateway."""

import asyncio
import json

import openai
import pydantic

from story import play, raises

ASK = [{"role": "user", "content": "Say something."}]
TOOLS = [{
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}]


def client(url):
    return openai.OpenAI(base_url=url + "/v1", api_key="callers-own")


def text(url, model, said, provider, action="direct"):
    raw = client(url).chat.completions.with_raw_response.create(model=model, messages=ASK)
    answer = raw.parse()
    assert answer.choices[0].message.content == said, answer
    assert answer.choices[0].message.role == "assistant", answer
    assert answer.choices[0].finish_reason == "stop", answer
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert raw.headers["x-backstop-provider"] == provider, raw.headers
    assert raw.headers["x-backstop-action"] == action, raw.headers
    extra = answer.model_extra["extra_fields"]
    assert extra["provider"] == provider, extra
    assert extra["model_requested"] == model, extra
    assert extra["model_served"] == raw.headers["x-backstop-model"], extra
    assert answer._request_id == raw.headers["x-request-id"], raw.headers


def stream(url, model, said, provider, action="direct"):
    made = client(url).chat.completions.create(
        model=model, messages=ASK, stream=True, stream_options={"include_usage": True}
    )
    assert made.response.headers["x-backstop-provider"] == provider, made.response.headers
    assert made.response.headers["x-backstop-action"] == action, made.response.headers
    chunks = list(made)
    deltas = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(deltas) == said, chunks
    finishes = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert [finish for finish in finishes if finish] == ["stop"], chunks
    usages = [chunk.usage for chunk in chunks if chunk.usage]
    assert len(usages) == 1 and usages[0].completion_tokens > 0, chunks


def stream_without_usage(url, model, said):
    made = client(url).chat.completions.create(model=model, messages=ASK, stream=True)
    chunks = list(made)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == said, chunks
    assert not any(chunk.usage for chunk in chunks), chunks


def stream_async(url, model, said):
    async def go():
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="callers-own") as asked:
            made = await asked.chat.completions.create(model=model, messages=ASK, stream=True)
            return "".join([chunk.choices[0].delta.content or "" async for chunk in made])

    heard = asyncio.run(go())
    assert heard == said, heard


def tools(url, model):
    answer = client(url).chat.completions.create(
        model=model, messages=ASK, tools=TOOLS, tool_choice="auto", parallel_tool_calls=False
    )
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls", answer
    (call,) = choice.message.tool_calls
    assert call.function.name == "weather", call
    assert json.loads(call.function.arguments) == {"city": "Bern"}, call
    # What the model asked for and what came of it, as the next turn.
    turns = ASK + [
        choice.message,
        {"role": "tool", "tool_call_id": call.id, "content": "rain"},
    ]
    answer = client(url).chat.completions.create(model=model, messages=turns, tools=TOOLS)
    assert answer.choices[0].message.content == "It rains.", answer


def stream_tools(url, model):
    with client(url).chat.completions.stream(model=model, messages=ASK, tools=TOOLS) as events:
        for _ in events:
            pass
        answer = events.get_final_completion()
    choice = answer.choices[0]
    assert choice.finish_reason == "tool_calls", answer
    (call,) = choice.message.tool_calls
    assert call.id and call.function.name == "weather", call
    assert json.loads(call.function.arguments) == {"city": "Bern"}, call


def parsed(url, model):
    class Weather(pydantic.BaseModel):
        city: str

    answer = client(url).chat.completions.parse(
        model=model, messages=ASK, response_format=Weather
    )
    assert answer.choices[0].message.parsed == Weather(city="Bern"), answer


def models(url, *names):
    listed = {model.id: model for model in client(url).models.list()}
    for name in names:
        assert listed[name].object == "model", listed


ERRORS = {
    "400": openai.BadRequestError,
    "401": openai.AuthenticationError,
    "403": openai.PermissionDeniedError,
    "404": openai.NotFoundError,
    "413": openai.APIStatusError,
    "429": openai.RateLimitError,
    "500": openai.InternalServerError,
    "502": openai.InternalServerError,
    "503": openai.InternalServerError,
    "504": openai.InternalServerError,
}


def error(url, model, status, code, streamed=""):
    error = raises(ERRORS[status], lambda: client(url).chat.completions.create(
        model=model, messages=ASK, stream=bool(streamed)
    ))
    assert error.status_code == int(status), error
    assert error.code == (code or None), (error.code, code)
    assert error.request_id, error
    assert error.response.headers["x-request-id"] == error.request_id
    assert error.body["message"], error.body


def stream_breaks(url, model, said):
    heard = []

    def listen():
        for chunk in client(url).chat.completions.create(model=model, messages=ASK, stream=True):
            heard.append(chunk.choices[0].delta.content or "")
            assert not chunk.choices[0].finish_reason, chunk

    error = raises(openai.APIError, listen)
    assert "".join(heard) == said, heard
    assert error.message, error


def unreadable(url, model):
    raises(openai.BadRequestError, lambda: client(url).chat.completions.create(
        model=model, messages=ASK, extra_body={"fallbacks": ["no-slash"]}
    ))
    raises(openai.NotFoundError, lambda: client(url).chat.completions.create(
        model="nobody/knows", messages=ASK
    ))


RESPONSE_TOOLS = [{"type": "function", **TOOLS[0]["function"], "strict": False}]


def response(url, model, said, provider):
    raw = client(url).responses.with_raw_response.create(
        model=model, input="Say something.", instructions="Be brief.", max_output_tokens=64
    )
    answer = raw.parse()
    assert isinstance(answer, openai.types.responses.Response), answer
    assert answer.status == "completed" and answer.error is None, answer
    assert answer.output_text == said, answer
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens
    assert answer.usage.input_tokens_details.cached_tokens >= 0, answer
    assert raw.headers["x-backstop-provider"] == provider, raw.headers
    assert answer.model_extra["extra_fields"]["provider"] == provider, answer


def response_stream(url, model, said):
    made = client(url).responses.create(model=model, input="Say something.", stream=True)
    events = list(made)
    heard = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(heard) == said, events
    assert events[0].type == "response.created", events
    assert events[-1].type == "response.completed", events
    assert events[-1].response.output_text == said, events
    assert events[-1].response.usage.output_tokens > 0, events
    # The helper puts the pieces together on its own and checks their order.
    with client(url).responses.stream(model=model, input="Say something.") as events:
        kinds = [event.type for event in events]
        answer = events.get_final_response()
    assert answer.output_text == said, (kinds, answer)


def response_tools(url, model):
    asked = {"model": model, "tools": RESPONSE_TOOLS, "tool_choice": "auto", "store": False}
    turns = [{"role": "user", "content": "Weather in Bern?"}]
    answer = client(url).responses.create(input=turns, **asked)
    (call,) = [item for item in answer.output if item.type == "function_call"]
    assert call.name == "weather" and call.call_id, call
    assert json.loads(call.arguments) == {"city": "Bern"}, call
    # What the model asked for and what came of it, as the next turn.
    turns += [item.to_dict() for item in answer.output]
    turns.append({"type": "function_call_output", "call_id": call.call_id, "output": "rain"})
    answer = client(url).responses.create(input=turns, **asked)
    assert answer.output_text == "It rains.", answer
    with client(url).responses.stream(input="Weather in Bern?", **asked) as events:
        for _ in events:
            pass
        answer = events.get_final_response()
    (call,) = [item for item in answer.output if item.type == "function_call"]
    assert json.loads(call.arguments) == {"city": "Bern"}, call


def response_parsed(url, model):
    class Weather(pydantic.BaseModel):
        city: str

    answer = client(url).responses.parse(
        model=model, input="Weather?", text_format=Weather, store=False
    )
    assert answer.output_parsed == Weather(city="Bern"), answer


def response_error(url, model, status, streamed=""):
    error = raises(ERRORS[status], lambda: client(url).responses.create(
        model=model, input="Say something.", stream=bool(streamed)
    ))
    assert error.status_code == int(status), error
    assert error.request_id and error.body["message"], error.body


def response_breaks(url, model, said):
    heard = []

    def listen():
        made = client(url).responses.create(model=model, input="Say something.", stream=True)
        for event in made:
            assert event.type not in ("response.completed", "response.failed"), event
            if event.type == "response.output_text.delta":
                heard.append(event.delta)

    error = raises(openai.APIError, listen)
    assert "".join(heard) == said, heard
    assert error.message, error


def embeddings(url, model, provider):
    texts = ["Bern", "Zürich"]
    asked = client(url).embeddings
    # Without a word about it, this client asks for bytes and unpacks them.
    raw = asked.with_raw_response.create(model=model, input=texts)
    assert raw.headers["x-backstop-provider"] == provider, raw.headers
    packed = raw.parse()
    plain = asked.create(model=model, input=texts, encoding_format="float")
    assert [entry.index for entry in packed.data] == [0, 1], packed
    for one, other in zip(packed.data, plain.data, strict=True):
        assert one.embedding == other.embedding and len(one.embedding) == 8, (one, other)
    assert packed.data[0].embedding != packed.data[1].embedding, packed
    assert packed.usage.prompt_tokens == packed.usage.total_tokens > 0, packed
    short = asked.create(model=model, input="Bern", dimensions=3)
    assert len(short.data[0].embedding) == 3, short
    assert short.data[0].embedding == packed.data[0].embedding[:3], short
    type(packed).model_validate(packed.model_dump(), strict=True)


def embeddings_azure(url, model):
    asked = openai.AzureOpenAI(
        azure_endpoint=url, api_key="callers-own", api_version="2024-10-21"
    )
    answer = asked.embeddings.create(model=model, input="Bern")
    assert len(answer.data[0].embedding) == 8, answer
    assert answer.model_extra["extra_fields"]["model_requested"] == model, answer


def embeddings_refused(url, model):
    error = raises(
        openai.BadRequestError,
        lambda: client(url).embeddings.create(model=model, input="Bern"),
    )
    assert error.code == "contract_not_served" and "embeddings" in error.message, error


def model_retrieved(url, name):
    model = client(url).models.retrieve(name)
    assert model.id == name and model.object == "model", model
    error = raises(openai.NotFoundError, lambda: client(url).models.retrieve("nobody/m"))
    assert error.code == "model_not_found", error


play({
    "embeddings": embeddings,
    "embeddings_azure": embeddings_azure,
    "embeddings_refused": embeddings_refused,
    "model_retrieved": model_retrieved,
    "text": text,
    "stream": stream,
    "stream_without_usage": stream_without_usage,
    "stream_async": stream_async,
    "tools": tools,
    "stream_tools": stream_tools,
    "parsed": parsed,
    "models": models,
    "error": error,
    "stream_breaks": stream_breaks,
    "unreadable": unreadable,
    "response": response,
    "response_stream": response_stream,
    "response_tools": response_tools,
    "response_parsed": response_parsed,
    "response_error": response_error,
    "response_breaks": response_breaks,
})
