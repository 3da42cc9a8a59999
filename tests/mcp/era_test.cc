// Which era a server speaks: each row of the decision table, and what initialize is answered with.
#include "bulkhead/mcp/era.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace bulkhead::mcp {
namespace {

using jsonrpc::ErrorObject;
using testing::AllOf;
using testing::HasSubstr;
using Kind = ProbeVerdict::Kind;

constexpr int kUnsupportedVersion = -32022;
constexpr int kMissingCapability = -32021;

MATCHER_P(IsModernWith, version, "") { return arg.kind == Kind::kModern && arg.version == version; }
MATCHER_P(InitializesWith, version, "") { return arg.kind == Kind::kLegacy && arg.version == version; }
MATCHER_P(ProbesAgainWith, version, "") { return arg.kind == Kind::kProbeAgain && arg.version == version; }
MATCHER_P(FailsSaying, what, "") {
  if (arg.kind != Kind::kFail || arg.error.code() != absl::StatusCode::kFailedPrecondition) return false;
  *result_listener << arg.error;
  return testing::Matches(what)(std::string(arg.error.message()));
}

ErrorObject Error(int code, std::string data = "") { return {code, "no", std::move(data)}; }

// What is not said otherwise: the version that is preferred.
auto Initializes() { return InitializesWith("2025-11-25"); }

// --- Results ---

TEST(ProbeResult, AModernVersionInCommonIsModern) {
  EXPECT_THAT(JudgeProbeResult(R"({"supportedVersions":["2026-07-28"],"capabilities":{}})"),
              IsModernWith("2026-07-28"));
  EXPECT_THAT(JudgeProbeResult(R"({"supportedVersions":["2025-11-25","2099-01-01","2026-07-28"],"capabilities":{}})"),
              IsModernWith("2026-07-28"));
}

TEST(ProbeResult, OnlyLegacyVersionsInCommonInitializesWithTheHighest) {
  EXPECT_THAT(JudgeProbeResult(R"({"supportedVersions":["2024-11-05","2025-06-18"],"capabilities":{}})"),
              InitializesWith("2025-06-18"));
  EXPECT_THAT(JudgeProbeResult(R"({"supportedVersions":["2099-01-01","2024-11-05"],"capabilities":{}})"),
              InitializesWith("2024-11-05"));
}

TEST(ProbeResult, NoVersionInCommonFailsAndNamesBothSides) {
  EXPECT_THAT(JudgeProbeResult(R"({"supportedVersions":["2099-01-01"],"capabilities":{}})"),
              FailsSaying(AllOf(HasSubstr("2099-01-01"), HasSubstr("2026-07-28"), HasSubstr("2024-11-05"))));
}

TEST(ProbeResult, AnotherShapeIsLegacy) {
  for (const char* result : {
           R"({"tools":[]})", "{}", "null", "[]", "7",
           R"({"supportedVersions":["2026-07-28"]})",                        // no capabilities
           R"({"supportedVersions":["2026-07-28"],"capabilities":[]})",      // no object
           R"({"supportedVersions":[],"capabilities":{}})",                  // none
           R"({"supportedVersions":"2026-07-28","capabilities":{}})",        // no array
           R"({"supportedVersions":["2026-07-28",1],"capabilities":{}})",    // not all are strings
           R"({"supportedVersions":{"0":"2026-07-28"},"capabilities":{}})",  // no array either
       }) {
    EXPECT_THAT(JudgeProbeResult(result), Initializes()) << result;
  }
}

TEST(ProbeResult, HowAStringIsWrittenDoesNotMatter) {
  EXPECT_THAT(JudgeProbeResult(R"({"supported\u0056ersions":["2026-07\u002d28"],"capabilities":{}})"),
              IsModernWith("2026-07-28"));
}

// --- Errors ---

TEST(ProbeError, UnsupportedVersionWithAModernOneInCommonProbesAgainWithIt) {
  EXPECT_THAT(JudgeProbeError(Error(kUnsupportedVersion, R"({"supported":["2025-11-25","2026-07-28"]})"), false),
              ProbesAgainWith("2026-07-28"));
}

TEST(ProbeError, UnsupportedVersionASecondTimeFails) {
  EXPECT_THAT(JudgeProbeError(Error(kUnsupportedVersion, R"({"supported":["2026-07-28"]})"), true),
              FailsSaying(HasSubstr("2026-07-28")));
}

TEST(ProbeError, UnsupportedVersionWithModernOnesButNoneInCommonFails) {
  const std::string data = R"({"supported":["2099-01-01","2025-11-25"]})";
  EXPECT_THAT(
      JudgeProbeError(Error(kUnsupportedVersion, data), false),
      FailsSaying(HasSubstr("no common version of the modern protocol: the server speaks 2099-01-01, 2025-11-25; "
                            "this client speaks 2026-07-28; to use 2025-11-25, ask for the legacy era")));
  EXPECT_THAT(JudgeProbeError(Error(kUnsupportedVersion, R"({"supported":["2099-01-01"]})"), false),
              FailsSaying(testing::EndsWith("this client speaks 2026-07-28")));
}

TEST(ProbeError, UnsupportedVersionWithOnlyLegacyOnesIsLegacy) {
  EXPECT_THAT(JudgeProbeError(Error(kUnsupportedVersion, R"({"supported":["2025-11-25","2024-11-05"]})"), false),
              Initializes());
}

TEST(ProbeError, UnsupportedVersionWithoutUsableDataIsLegacy) {
  for (const char* data : {"", "null", "{}", "[]", R"({"supported":"2026-07-28"})", R"({"supported":[]})",
                           R"({"supported":["2026-07-28",null]})", R"("2026-07-28")"}) {
    EXPECT_THAT(JudgeProbeError(Error(kUnsupportedVersion, data), false), Initializes()) << data;
  }
}

TEST(ProbeError, TheReleaseCandidatesCodeCountsWithDataOnly) {
  EXPECT_THAT(JudgeProbeError(Error(-32004, R"({"supported":["2026-07-28"]})"), false), ProbesAgainWith("2026-07-28"));
  EXPECT_THAT(JudgeProbeError(Error(-32004), false), Initializes());
  EXPECT_THAT(JudgeProbeError(Error(-32003, R"({"requiredCapabilities":{"roots":{}}})"), false), Initializes());
}

TEST(ProbeError, AMissingCapabilityFailsAndNamesIt) {
  EXPECT_THAT(JudgeProbeError(Error(kMissingCapability, R"({"requiredCapabilities":{"elicitation":{}}})"), false),
              FailsSaying(HasSubstr("elicitation")));
}

TEST(ProbeError, AMissingCapabilityThatIsNotNamedIsLegacy) {
  EXPECT_THAT(JudgeProbeError(Error(kMissingCapability), false), Initializes());
  EXPECT_THAT(JudgeProbeError(Error(kMissingCapability, R"({"requiredCapabilities":["elicitation"]})"), false),
              Initializes());
}

TEST(ProbeError, AHeaderMismatchIsLegacy) {
  EXPECT_THAT(JudgeProbeError(Error(-32020, R"({"supported":["2026-07-28"]})"), false), Initializes());
}

TEST(ProbeError, AnyOtherCodeIsLegacy) {
  for (const int code : {0, 1, -1, -32000, -32001, -32002, -32042, -32600, -32601, -32602, -32603, -32700}) {
    EXPECT_THAT(JudgeProbeError(Error(code, R"({"supported":["2026-07-28"]})"), false), Initializes()) << code;
    EXPECT_THAT(JudgeProbeError(Error(code), true), Initializes()) << code;
  }
}

TEST(ProbeSilence, IsLegacy) { EXPECT_THAT(JudgeProbeSilence(), Initializes()); }

// --- Initialize ---

TEST(InitializeResult, EachVersionThatIsKnownIsSpoken) {
  for (const char* version : {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"}) {
    EXPECT_THAT(JudgeInitializeResult(R"({"protocolVersion":")" + std::string(version) + R"(","capabilities":{}})"),
                InitializesWith(version));
  }
}

TEST(InitializeResult, AnUnknownVersionFailsAndNamesBothSides) {
  for (const std::string version : {"1999-01-01", "2024-10-07", "2026-07-28", "2099-01-01", "1.0.0"}) {
    EXPECT_THAT(JudgeInitializeResult(R"({"protocolVersion":")" + version + R"("})"),
                FailsSaying(AllOf(HasSubstr(version), HasSubstr("2025-11-25"))));
  }
}

TEST(InitializeResult, NoVersionFails) {
  for (const char* result : {"{}", "null", "[]", R"({"protocolVersion":20251125})", R"({"protocolVersion":""})"}) {
    EXPECT_THAT(JudgeInitializeResult(result), FailsSaying(HasSubstr("protocolVersion"))) << result;
  }
}

TEST(InitializeError, FailsWithTheServersWords) {
  EXPECT_THAT(JudgeInitializeError({-32602, "Unsupported protocol version", R"({"supported":["1.0"]})"}, false),
              FailsSaying(AllOf(HasSubstr("Unsupported protocol version"), HasSubstr("-32602"), HasSubstr("1.0"))));
  EXPECT_THAT(JudgeInitializeError({-32000, "go away", ""}, true), FailsSaying(HasSubstr("go away")));
}

TEST(InitializeError, UnsupportedVersionWithAModernOneProbesOnceMore) {
  const ErrorObject error = Error(kUnsupportedVersion, R"({"supported":["2026-07-28"],"requested":"2025-11-25"})");
  EXPECT_THAT(JudgeInitializeError(error, /*was_probed_twice=*/false), ProbesAgainWith("2026-07-28"));
  EXPECT_THAT(JudgeInitializeError(error, /*was_probed_twice=*/true), FailsSaying(HasSubstr("2026-07-28")));
}

TEST(InitializeError, UnsupportedVersionWithoutAModernOneFails) {
  EXPECT_THAT(JudgeInitializeError(Error(kUnsupportedVersion), false), FailsSaying(HasSubstr("refused initialize")));
  EXPECT_THAT(JudgeInitializeError(Error(kUnsupportedVersion, R"({"supported":["2099-01-01"]})"), false),
              FailsSaying(HasSubstr("2099-01-01")));
}

TEST(InitializeError, AMissingCapabilityFailsAndNamesIt) {
  EXPECT_THAT(JudgeInitializeError(Error(kMissingCapability, R"({"requiredCapabilities":{"roots":{}}})"), false),
              FailsSaying(HasSubstr("roots")));
}

}  // namespace
}  // namespace bulkhead::mcp
