// Keeps every line that this process writes to a server, for schema/, which checks it against the specification.
//
// Takes the place of the C library's pwritev2 and writev, through which jsonrpc/ writes and nothing else here does: so
// a line counts also when nobody read it. Does nothing more than they do unless BULKHEAD_MCP_LINES names a folder.
// Linked into a test, or preloaded into a program, whose lines belong to the test that BULKHEAD_MCP_TEST names.
#ifndef BULKHEAD_TESTS_MCP_WRITTEN_LINES_H_
#define BULKHEAD_TESTS_MCP_WRITTEN_LINES_H_

#include <string>

namespace bulkhead::mcp {

// What the servers that follow answer to `initialize`; 2025-11-25 until it is called. Any thread.
void SetSettledVersion(const std::string& version);
// What the lines that follow belong to. Any thread.
void SetTestName(const std::string& name);

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_TESTS_MCP_WRITTEN_LINES_H_
