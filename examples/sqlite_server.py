"""An MCP server for one SQLite database: sqlite_server.py DATABASE. Python's standard library only.

It runs any SQL that it is sent: what that may reach is left to the jail.
"""

import json
import sqlite3
import sys

from stdio_server import serve, tool

ROWS_MAX = 1000


def query(sql):
    """Runs one SQL statement and answers with its rows, at most 1000, as JSON."""
    with sqlite3.connect(sys.argv[1]) as database:
        return json.dumps(database.execute(sql).fetchmany(ROWS_MAX))


def tables():
    """The tables and the statements that made them."""
    return query("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: sqlite_server.py DATABASE")
    serve("bulkhead-sqlite-example", tool(query, sql="one SQL statement"), tool(tables))
