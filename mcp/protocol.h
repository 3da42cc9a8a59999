// The Model Context Protocol's fixed words: versions, eras, and the texts of the messages that open a conversation.
// Pure. Everything that goes out is JSON text, as ../jsonrpc takes it.
#ifndef BULKHEAD_MCP_PROTOCOL_H_
#define BULKHEAD_MCP_PROTOCOL_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/jsonrpc/message.h"

namespace bulkhead::mcp {

// Which handshake a server speaks: legacy is `initialize` (up to 2025-11-25), modern is `server/discover` and metadata
// with every request (from 2026-07-28).
enum class Era { kLegacy, kModern };
absl::string_view EraName(Era era);  // "legacy", "modern"

// The versions we speak, preferred first. They are ISO dates, so that they sort as text.
inline constexpr absl::string_view kModernVersions[] = {"2026-07-28"};
inline constexpr absl::string_view kLegacyVersions[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
inline constexpr absl::string_view kBatchVersion = "2025-03-26";  // the only one in which messages may come as arrays
bool IsKnown(absl::string_view version, Era era);

// The specification's error codes that mean something to a client.
inline constexpr int kMethodNotFound = -32601;
inline constexpr int kInvalidParams = -32602;
inline constexpr int kInternalError = -32603;
inline constexpr int kMissingRequiredClientCapability = -32021;
inline constexpr int kUnsupportedProtocolVersion = -32022;

// Who we say we are.
struct ClientInfo {
  std::string name = "bulkhead";
  std::string version;              // of the host; empty: Bulkhead's own
  std::string capabilities = "{}";  // ClientCapabilities of the specification, as a JSON object
};

// Params of `initialize`, and of `server/discover` (2026-07-28, basic/versioning).
std::string InitializeParams(const ClientInfo& client, absl::string_view version);
std::string DiscoverParams(const ClientInfo& client, absl::string_view version);

// `params` (a JSON object, or empty) with what each modern request must carry added to its _meta; what else is in there
// stays, except for the keys that are ours. A progress token of -1 adds none. InvalidArgument if params is not a JSON
// object.
absl::StatusOr<std::string> ModernParams(absl::string_view params, const ClientInfo& client, absl::string_view version,
                                         std::int64_t progress_token);
// A request as a line. In the modern era with such params; in the legacy era only a progress token is added to them.
// They are copied once, into the line.
absl::StatusOr<std::string> ModernRequestLine(std::int64_t id, absl::string_view method, absl::string_view params,
                                              const ClientInfo& client, absl::string_view version,
                                              std::int64_t progress_token);
absl::StatusOr<std::string> LegacyRequestLine(std::int64_t id, absl::string_view method, absl::string_view params,
                                              std::int64_t progress_token);
// The same for large params, which are not copied unless they have a _meta of their own.
absl::StatusOr<jsonrpc::LargeRequest> ModernLargeRequest(std::int64_t id, absl::string_view method, std::string params,
                                                         const ClientInfo& client, absl::string_view version,
                                                         std::int64_t progress_token);
absl::StatusOr<jsonrpc::LargeRequest> LegacyLargeRequest(std::int64_t id, absl::string_view method, std::string params,
                                                         std::int64_t progress_token);

// Whether `text` is one valid JSON object, which is what params and results have to be.
bool IsJsonObject(absl::string_view text);

// `object` (valid JSON object text, or empty for {}) with member `key` set to `value`, both JSON text.
std::string WithMember(absl::string_view object, absl::string_view key, absl::string_view value);

// What a server says of itself in either handshake. JSON text is as it came; empty where it said nothing.
struct ServerInfo {
  std::string name, version;  // for display only; never decide anything by them (2026-07-28, basic/index)
  std::string protocol_version;
  std::string capabilities;  // JSON object
  std::string instructions;
};
// From the result of `initialize` or `server/discover`.
ServerInfo ReadServerInfo(absl::string_view result);

// The strings of the JSON array `text`; absent strings make it empty, as does text that is no array of strings only.
std::vector<std::string> StringArray(absl::string_view text);

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_PROTOCOL_H_
