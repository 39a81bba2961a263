"""What the stories of both SDKs share: they come as JSON on the command line, and the exit status
tells the truth."""

import json
import sys
import traceback


def raises(kind, call):
    """The exception that `call` raises, which must be exactly of `kind`."""
    try:
        result = call()
    except kind as error:
        assert type(error) is kind, f"{type(error).__name__} instead of {kind.__name__}"
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of {kind.__name__}: {error}")
    raise AssertionError(f"no {kind.__name__}, but {result!r}")


def play(stories):
    """Plays `[[name, url, argument, ...], ...]`: `stories[name](url, argument, ...)`, one after the
    other, up to the first that fails."""
    for name, url, *arguments in json.loads(sys.argv[1]):
        try:
            stories[name](url, *arguments)
        except Exception as error:
            traceback.print_exc()
            told = f"{name} {arguments}: {type(error).__name__}: {error}"
            print(f"story failed: {told}", file=sys.stderr)
            sys.exit(1)
