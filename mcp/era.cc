#include "bulkhead/mcp/era.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/protocol.h"

namespace bulkhead::mcp {
namespace {

using Kind = ProbeVerdict::Kind;

// The code that release candidates of 2026-07-28 used; accepted only together with data that leaves no doubt.
constexpr int kUnsupportedProtocolVersionRc = -32004;

// Our most preferred version that is in `theirs`; empty if there is none.
template <typename Ours>
std::string Mutual(const Ours& ours, const std::vector<std::string>& theirs) {
  const auto found = std::find_if(std::begin(ours), std::end(ours), [&theirs](absl::string_view version) {
    return std::find(theirs.begin(), theirs.end(), version) != theirs.end();
  });
  return found == std::end(ours) ? "" : std::string(*found);
}

bool IsModern(absl::string_view version) { return version >= kModernVersions[std::size(kModernVersions) - 1]; }

ProbeVerdict Legacy() { return {Kind::kLegacy, std::string(kLegacyVersions[0]), {}}; }

ProbeVerdict Fail(absl::string_view why) { return {Kind::kFail, "", absl::FailedPreconditionError(why)}; }

// The server knows the modern protocol, which forbids falling back to initialize by ourselves.
ProbeVerdict NoCommonModernVersion(const std::vector<std::string>& theirs) {
  const std::string legacy = Mutual(kLegacyVersions, theirs);
  return Fail(absl::StrCat("no common version of the modern protocol: the server speaks ", absl::StrJoin(theirs, ", "),
                           "; this client speaks ", absl::StrJoin(kModernVersions, ", "),
                           legacy.empty() ? "" : absl::StrCat("; to use ", legacy, ", ask for the legacy era")));
}

ProbeVerdict NoCommonVersion(const std::vector<std::string>& theirs) {
  return Fail(absl::StrCat("no common protocol version: the server speaks ", absl::StrJoin(theirs, ", "),
                           "; this client speaks ", absl::StrJoin(kModernVersions, ", "), ", ",
                           absl::StrJoin(kLegacyVersions, ", ")));
}

bool IsObject(absl::string_view text) { return !text.empty() && text.front() == '{'; }

}  // namespace

ProbeVerdict JudgeProbeSilence() { return Legacy(); }

ProbeVerdict JudgeProbeResult(absl::string_view result) {
  const auto supported = StringArray(jsonrpc::FindMember(result, "supportedVersions").value_or(""));
  // Some legacy servers answer anything with a result of some shape.
  if (supported.empty() || !IsObject(jsonrpc::FindMember(result, "capabilities").value_or(""))) return Legacy();
  if (std::string version = Mutual(kModernVersions, supported); !version.empty()) {
    return {Kind::kModern, std::move(version), {}};
  }
  if (std::string version = Mutual(kLegacyVersions, supported); !version.empty()) {
    return {Kind::kLegacy, std::move(version), {}};
  }
  return NoCommonVersion(supported);
}

ProbeVerdict JudgeProbeError(const jsonrpc::ErrorObject& error, bool is_second) {
  const std::string data = error.data.empty() ? "null" : error.data;
  if (error.code == kMissingRequiredClientCapability &&
      IsObject(jsonrpc::FindMember(data, "requiredCapabilities").value_or(""))) {
    return Fail(absl::StrCat("the server needs capabilities that this client does not have: ",
                             *jsonrpc::FindMember(data, "requiredCapabilities")));
  }
  if (error.code != kUnsupportedProtocolVersion && error.code != kUnsupportedProtocolVersionRc) return Legacy();
  const auto supported = StringArray(jsonrpc::FindMember(data, "supported").value_or(""));
  if (std::none_of(supported.begin(), supported.end(), IsModern)) return Legacy();
  std::string version = Mutual(kModernVersions, supported);
  if (version.empty()) return NoCommonModernVersion(supported);
  if (is_second) {
    return Fail(absl::StrCat("the server offers protocol version ", version, " and refuses it when it is asked for"));
  }
  return {Kind::kProbeAgain, std::move(version), {}};
}

ProbeVerdict JudgeInitializeResult(absl::string_view result) {
  const std::string version =
      jsonrpc::StringValue(jsonrpc::FindMember(result, "protocolVersion").value_or("")).value_or("");
  if (IsKnown(version, Era::kLegacy)) return {Kind::kLegacy, version, {}};
  if (version.empty()) return Fail("the server's answer to initialize has no protocolVersion");
  return NoCommonVersion({version});
}

ProbeVerdict JudgeInitializeError(const jsonrpc::ErrorObject& error, bool was_probed_twice) {
  ProbeVerdict verdict = JudgeProbeError(error, was_probed_twice);
  if (verdict.kind != Kind::kLegacy) return verdict;
  return Fail(absl::StrCat("the server refused initialize: ", error.message, " (code ", error.code, ")",
                           error.data.empty() ? "" : absl::StrCat(", ", error.data)));
}

}  // namespace bulkhead::mcp
