// The one pass over JSON text that json_text.h and message.h are made of: iterative, without allocation, never past
// `end`. Each Scan function begins at `at`, and returns where what it read ends, or why it is none.
#ifndef BULKHEAD_JSONRPC_JSON_SCAN_H_
#define BULKHEAD_JSONRPC_JSON_SCAN_H_

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "bulkhead/jsonrpc/json_text.h"

namespace bulkhead::jsonrpc::internal {

struct Scanned {
  const char* end;  // null if there is an error
  JsonError error;
};

// RFC 8259, section 2: nothing else is white space.
inline const char* SkipSpace(const char* at, const char* end) {
  while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
  return at;
}

// NUL, which is no token, at the end.
inline char CharAt(const char* at, const char* end) { return at == end ? '\0' : *at; }

// Behind the bytes that mean themselves inside a string: ASCII without controls, quote and backslash.
const char* SkipPlain(const char* at, const char* end);
// The length of the UTF-8 sequence at `at`, which must not be the end; 0 if there is none (RFC 3629).
int Utf8Length(const char* at, const char* end);

// A string, from its quote on.
Scanned ScanString(const char* at, const char* end);
// A number, from its sign or first digit on.
Scanned ScanNumber(const char* at, const char* end);
// Any value, from its first byte on, with at most `nesting_max` objects and arrays inside one another.
Scanned ScanValue(const char* at, const char* end, int nesting_max);
// An object or array, from its bracket on. `scan_value` is called with each key, as written (empty in an array), and
// where its value begins; it must say where that ends.
Scanned ScanMembers(const char* at, const char* end,
                    absl::FunctionRef<Scanned(absl::string_view key, const char* at)> scan_value);

bool IsUtf8(absl::string_view text);

}  // namespace bulkhead::jsonrpc::internal

#endif  // BULKHEAD_JSONRPC_JSON_SCAN_H_
