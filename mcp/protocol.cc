#include "bulkhead/mcp/protocol.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/jsonrpc/message.h"

namespace bulkhead::mcp {
namespace {

using jsonrpc::FindMember;
using jsonrpc::QuoteJson;

constexpr absl::string_view kMetaPrefix = "io.modelcontextprotocol/";
constexpr absl::string_view kOwnVersion = "0.1.0";

absl::string_view VersionOf(const ClientInfo& client) { return client.version.empty() ? kOwnVersion : client.version; }

std::string Implementation(const ClientInfo& client) {
  return absl::StrCat("{\"name\":", QuoteJson(client.name), ",\"version\":", QuoteJson(VersionOf(client)), "}");
}

bool IsObject(absl::string_view text) { return !text.empty() && text.front() == '{'; }

absl::string_view Trimmed(absl::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

absl::Status NotAnObject() { return absl::InvalidArgumentError("the params of a request must be a JSON object"); }

// The _meta of params, if there is one and it is an object, with one member set.
std::string WithMeta(std::optional<absl::string_view> meta, absl::string_view key, absl::string_view value) {
  return WithMember(IsObject(meta.value_or("")) ? *meta : "", key, value);
}

std::string ModernMeta(std::optional<absl::string_view> own, const ClientInfo& client, absl::string_view version,
                       std::int64_t progress_token) {
  std::string meta = WithMeta(own, absl::StrCat(kMetaPrefix, "clientCapabilities"), client.capabilities);
  meta = WithMember(meta, absl::StrCat(kMetaPrefix, "clientInfo"), Implementation(client));
  meta = WithMember(meta, absl::StrCat(kMetaPrefix, "protocolVersion"), QuoteJson(version));
  if (progress_token >= 0) meta = WithMember(meta, "progressToken", absl::StrCat(progress_token));
  return meta;
}

// A line with `params` and `meta` as their only _meta. Whether params are valid is found out here, at the latest.
absl::StatusOr<std::string> LineWithMeta(std::int64_t id, absl::string_view method, absl::string_view params,
                                         bool has_meta, absl::string_view meta) {
  if (!has_meta) return jsonrpc::RequestLine(id, method, params, absl::StrCat("\"_meta\":", meta));
  if (!IsJsonObject(params)) return NotAnObject();
  return jsonrpc::RequestLine(id, method, WithMember(params, "_meta", meta));
}

absl::StatusOr<jsonrpc::LargeRequest> LargeWithMeta(std::int64_t id, absl::string_view method, std::string params,
                                                    bool has_meta, absl::string_view meta) {
  if (!has_meta) return jsonrpc::LargeRequest::Make(id, method, std::move(params), absl::StrCat("\"_meta\":", meta));
  if (!IsJsonObject(params)) return NotAnObject();
  return jsonrpc::LargeRequest::Make(id, method, WithMember(params, "_meta", meta));
}

std::string StringMember(absl::string_view object, absl::string_view key) {
  const auto value = FindMember(object, key);
  return value ? jsonrpc::StringValue(*value).value_or("") : "";
}

}  // namespace

absl::string_view EraName(Era era) { return era == Era::kModern ? "modern" : "legacy"; }

bool IsJsonObject(absl::string_view text) {
  return IsObject(Trimmed(text)) && jsonrpc::ValidateJson(text) == jsonrpc::JsonError::kNone;
}

bool IsKnown(absl::string_view version, Era era) {
  const auto is_in = [version](const auto& list) {
    return std::find(std::begin(list), std::end(list), version) != std::end(list);
  };
  return era == Era::kModern ? is_in(kModernVersions) : is_in(kLegacyVersions);
}

std::string InitializeParams(const ClientInfo& client, absl::string_view version) {
  return absl::StrCat("{\"protocolVersion\":", QuoteJson(version), ",\"capabilities\":", client.capabilities,
                      ",\"clientInfo\":", Implementation(client), "}");
}

std::string DiscoverParams(const ClientInfo& client, absl::string_view version) {
  return *ModernParams("", client, version, -1);
}

std::string WithMember(absl::string_view object, absl::string_view key, absl::string_view value) {
  std::string text = absl::StrCat("{", QuoteJson(key), ":", value);
  jsonrpc::ForEachMember(object.empty() ? "{}" : object, [&](const jsonrpc::JsonMember& member) {
    if (!jsonrpc::JsonStringIs(member.key, key)) absl::StrAppend(&text, ",\"", member.key, "\":", member.value);
    return true;
  });
  text += '}';
  return text;
}

absl::StatusOr<std::string> ModernParams(absl::string_view params, const ClientInfo& client, absl::string_view version,
                                         std::int64_t progress_token) {
  params = Trimmed(params);
  if (!params.empty() && !IsJsonObject(params)) return NotAnObject();
  return WithMember(params, "_meta", ModernMeta(FindMember(params, "_meta"), client, version, progress_token));
}

absl::StatusOr<std::string> ModernRequestLine(std::int64_t id, absl::string_view method, absl::string_view params,
                                              const ClientInfo& client, absl::string_view version,
                                              std::int64_t progress_token) {
  params = Trimmed(params);
  if (!params.empty() && !IsObject(params)) return NotAnObject();
  const auto meta = FindMember(params, "_meta");
  return LineWithMeta(id, method, params, meta.has_value(), ModernMeta(meta, client, version, progress_token));
}

absl::StatusOr<std::string> LegacyRequestLine(std::int64_t id, absl::string_view method, absl::string_view params,
                                              std::int64_t progress_token) {
  params = Trimmed(params);
  if (!params.empty() && !IsObject(params)) return NotAnObject();
  if (progress_token < 0) return jsonrpc::RequestLine(id, method, params);
  const auto meta = FindMember(params, "_meta");
  return LineWithMeta(id, method, params, meta.has_value(),
                      WithMeta(meta, "progressToken", absl::StrCat(progress_token)));
}

absl::StatusOr<jsonrpc::LargeRequest> ModernLargeRequest(std::int64_t id, absl::string_view method, std::string params,
                                                         const ClientInfo& client, absl::string_view version,
                                                         std::int64_t progress_token) {
  if (!IsObject(Trimmed(params))) return NotAnObject();
  const auto own = FindMember(params, "_meta");
  const std::string meta = ModernMeta(own, client, version, progress_token);
  return LargeWithMeta(id, method, std::move(params), own.has_value(), meta);
}

absl::StatusOr<jsonrpc::LargeRequest> LegacyLargeRequest(std::int64_t id, absl::string_view method, std::string params,
                                                         std::int64_t progress_token) {
  if (!IsObject(Trimmed(params))) return NotAnObject();
  if (progress_token < 0) return jsonrpc::LargeRequest::Make(id, method, std::move(params));
  const auto own = FindMember(params, "_meta");
  const std::string meta = WithMeta(own, "progressToken", absl::StrCat(progress_token));
  return LargeWithMeta(id, method, std::move(params), own.has_value(), meta);
}

ServerInfo ReadServerInfo(absl::string_view result) {
  ServerInfo info;
  absl::string_view server = FindMember(result, "serverInfo").value_or("");
  if (server.empty()) {  // the modern era
    const absl::string_view meta = FindMember(result, "_meta").value_or("");
    server = FindMember(meta, absl::StrCat(kMetaPrefix, "serverInfo")).value_or("");
  }
  info.name = StringMember(server, "name");
  info.version = StringMember(server, "version");
  info.protocol_version = StringMember(result, "protocolVersion");
  info.capabilities = std::string(FindMember(result, "capabilities").value_or(""));
  info.instructions = StringMember(result, "instructions");
  return info;
}

std::vector<std::string> StringArray(absl::string_view text) {
  std::vector<std::string> strings;
  if (text.empty() || text.front() != '[') return strings;
  bool are_strings = true;
  const bool is_array = jsonrpc::ForEachMember(text, [&](const jsonrpc::JsonMember& element) {
    const auto value = jsonrpc::StringValue(element.value);
    if (value) strings.push_back(*value);
    are_strings = value.has_value();
    return are_strings;
  });
  if (!is_array || !are_strings) strings.clear();
  return strings;
}

}  // namespace bulkhead::mcp
