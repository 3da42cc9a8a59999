"""An MCP server that reads tables in CSV files: csv_server.py. Python's standard library only.

It opens any path that it is sent: what that may reach is left to the jail.
"""

import csv

from stdio_server import serve, tool

LINES_MAX = 20


def head(path):
    """The first 20 lines of a file."""
    with open(path, encoding="utf-8") as file:
        return "".join(line for _, line in zip(range(LINES_MAX), file))


def total(path, column):
    """The sum of a column, which the first line names."""
    with open(path, encoding="utf-8", newline="") as file:
        return format(sum(float(row[column]) for row in csv.DictReader(file)), "g")


if __name__ == "__main__":
    where = "the full path of a CSV file"
    serve("bulkhead-csv-example", tool(head, path=where), tool(total, path=where, column="the column's name"))
