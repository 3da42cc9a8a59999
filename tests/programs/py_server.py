#!/usr/bin/env python3
"""An MCP server for the tests: Python's standard library only, the `initialize` handshake, one tool.

    py_server.py [NOTES_FOLDER]

The tool `note` appends a line to notes.txt in NOTES_FOLDER (the working folder if none is given) and answers with the
whole file. Ends at the end of stdin, with exit code 0.
"""

import json
import os
import sys

VERSIONS = ("2025-11-25", "2025-06-18", "2024-11-05")

NOTE_TOOL = {
    "name": "note",
    "description": "Writes a note down and shows all of them.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
}


def text_result(text, is_error=False):
    return {"content": [{"type": "text", "text": text}], "isError": is_error}


def note(folder, arguments):
    path = os.path.join(folder, "notes.txt")
    try:
        with open(path, "a+", encoding="utf-8") as file:
            file.write(str(arguments.get("text", "")) + "\n")
            file.seek(0)
            return text_result(file.read())
    except OSError as error:
        return text_result(f"{path}: {error.strerror}", is_error=True)


def answer(folder, method, params):
    """The result of a request, or None for a method that is not known."""
    if method == "initialize":
        asked = params.get("protocolVersion")
        return {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "bulkhead-py-server", "version": "1.0.0"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [NOTE_TOOL]}
    if method == "tools/call" and params.get("name") == "note":
        return note(folder, params.get("arguments", {}))
    return None


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.getcwd()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        result = answer(folder, message.get("method"), message.get("params", {}))
        if result is None:
            reply["error"] = {"code": -32601, "message": "Method not found"}
        else:
            reply["result"] = result
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
