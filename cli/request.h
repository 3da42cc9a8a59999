// From flags and host to what the libraries take: which policy, with which variables, additions and ceilings, for which
// command. Paths on the command line are made absolute against the current folder here.
#ifndef BULKHEAD_CLI_REQUEST_H_
#define BULKHEAD_CLI_REQUEST_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bulkhead/cli/flags.h"
#include "bulkhead/cli/host.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::cli {

struct Request {
  std::string policy_path;  // absolute; empty: `preset`
  std::string preset;       // a known name, when policy_path is empty
  std::vector<std::string> ceiling_paths;
  policy::ParseOptions options;  // its ceilings are read later
  policy::CommandRequest command;
  std::string report_path;  // absolute, or empty
};

// `path` made absolute against `host`'s current folder and lexically normal ("a/../b" is "b", as in a shell's cd).
// `flag` is named in errors: an empty path, or one that begins with "~", which only a shell would expand.
absl::StatusOr<std::string> AbsolutePath(absl::string_view flag, absl::string_view path, const Host& host);

policy::Variables MakeVariables(const Flags& flags, const Host& host);

// For run and explain. Errors: InvalidArgument for wrong usage; FailedPrecondition when the current folder is gone.
absl::StatusOr<Request> MakeRequest(const Flags& flags, const Host& host);

// The exit code for an error of MakeRequest.
int ExitCodeForRequestError(const absl::Status& status);

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_REQUEST_H_
