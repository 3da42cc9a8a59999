#ifndef BULKHEAD_CLI_VERSION_H_
#define BULKHEAD_CLI_VERSION_H_

namespace bulkhead::cli {

// Keep in step with MODULE.bazel.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace bulkhead::cli

#endif  // BULKHEAD_CLI_VERSION_H_
