"""The MCP side of the small servers beside it: tools over stdin and stdout. Python's standard library only."""

import json
import sys

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


def tool(function, **arguments):
    """A tool named like `function`, described by its docstring; `arguments` are names and what each is, all texts."""
    schema = {
        "type": "object",
        "properties": {name: {"type": "string", "description": what} for name, what in arguments.items()},
        "required": list(arguments),
    }
    return function, {"name": function.__name__, "description": function.__doc__, "inputSchema": schema}


def call(tools, params):
    """What a tool says; what goes wrong in it is an answer, too, for the model to read."""
    function, description = tools[params["name"]]
    given = params.get("arguments", {})
    missing = [name for name in description["inputSchema"]["required"] if not isinstance(given.get(name), str)]
    try:
        if missing:
            raise ValueError(f"{missing[0]} must be a text")
        text, is_error = function(**{name: given[name] for name in description["inputSchema"]["required"]}), False
    except Exception as error:
        text, is_error = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def result_of(name, tools, method, params):
    """The result of a request, or None where there is none."""
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": name, "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [description for _, description in tools.values()]}
    if method == "tools/call" and params.get("name") in tools:
        return call(tools, params)
    return None


def serve(name, *all_tools):
    """Answers until stdin ends."""
    tools = {description["name"]: (function, description) for function, description in all_tools}
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        result = result_of(name, tools, message["method"], message.get("params", {}))
        error = {"code": -32601, "message": "no such method or tool"}
        reply = {"error": error} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
