// Which era a server speaks, from how it took the probe `server/discover` (2026-07-28, basic/transports/stdio,
// "Backward Compatibility"). The table is in DESIGN.md. Pure.
#ifndef BULKHEAD_MCP_ERA_H_
#define BULKHEAD_MCP_ERA_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bulkhead/jsonrpc/message.h"

namespace bulkhead::mcp {

struct ProbeVerdict {
  enum class Kind {
    kModern,      // with `version`
    kLegacy,      // initialize with `version`
    kProbeAgain,  // with `version`, once
    kFail,        // `error` says why; initialize must not be tried
  };
  Kind kind = Kind::kLegacy;
  std::string version;
  absl::Status error;
};

// The server answered with a result.
ProbeVerdict JudgeProbeResult(absl::string_view result);
// The server answered with an error. `is_second`: to the probe after a kProbeAgain.
ProbeVerdict JudgeProbeError(const jsonrpc::ErrorObject& error, bool is_second);
// The server did not answer in time, or ended instead (in which case it has to be started again for initialize).
ProbeVerdict JudgeProbeSilence();

// What `initialize` was answered with: kLegacy with the version both speak, or kFail.
ProbeVerdict JudgeInitializeResult(absl::string_view result);
// kProbeAgain when the error shows that the server is modern after all, else kFail.
ProbeVerdict JudgeInitializeError(const jsonrpc::ErrorObject& error, bool was_probed_twice);

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_MCP_ERA_H_
