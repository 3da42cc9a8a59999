// Whatever the text, there is a policy that keeps every rule, or an error of the promised form; and no crash. The
// mutations are made by a generator with fixed seeds: a failure names the seed that shows it again.
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/policy.h"
#include "bulkhead/policy/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/policy/testing.h"

namespace bulkhead::policy {
namespace {

constexpr char kEverything[] = R"({
  "version": 1,
  "extends": ["preset:npx", "base.json"], // both
  "without": { "env": { "inherit": ["SHELL"] }, "filesystem": {"ro": ["/etc/npmrc"]} },
  "require": "B",
  "user": "nobody",
  "command": { "allow": ["npx", "/usr/bin/node"], "args": { "max": 10, "deny": ["--inspect*"], "allow": ["a*", "*"] } },
  "cwd": { "default": "${workspace}", "allow": ["${workspace}", "/srv"] },
  "env": { "inherit": ["FOO", "LC_*"], "set": { "TZ": "UTC", "CACHE": "${cache}/x", "W": "${env:WORD}\u00e9" } },
  "filesystem": {
    "rx": ["/opt/x", ":runtime"],
    "ro": ["/srv/ro", {"path": "${var:NOPE}/x", "optional": true}],
    "rw": ["${workspace}/out", { "path": "${home}/.cache/x", "optional": true }],
    "home": "ro", "tmp": "host" },
  "network": { "mode": "host", "allow": [] },
  "syscalls": { "profile": "strict", "allow": ["bpf"], "deny": ["mount"] },
  "limits": { "memory": "1GiB", "processes": 256, "open_files": 100, "file_size": "2GiB", "cpu_time": "1h" },
  "messages": { "max_message_bytes": "1MiB", "max_junk_lines": 1 },
  "timeouts": { "probe": "1s", "term_grace": "5s" },
  "restart": { "max_in_a_row": 1, "backoff_initial": "1ms", "backoff_max": "2ms", "healthy_after": "3ms" },
  "stderr": { "file": "/var/log/x" } /* end */
})";

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string Mutate(std::string text) {
    for (std::size_t i = 1 + Below(Below(3) == 0 ? 4 : 1); i > 0; --i) MutateOnce(text);
    return text;
  }

 private:
  std::size_t Below(std::size_t n) {
    return n == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, n - 1)(random_);
  }

  void MutateOnce(std::string& text) {
    static const auto* const kPieces = new std::vector<std::string>{"\"",
                                                                    "{",
                                                                    "}",
                                                                    "[",
                                                                    "]",
                                                                    ",",
                                                                    ":",
                                                                    "null",
                                                                    "true",
                                                                    "-1",
                                                                    "1e400",
                                                                    "99999999999999999999",
                                                                    "\"\"",
                                                                    "{}",
                                                                    "[]",
                                                                    "//",
                                                                    "/*",
                                                                    "*/",
                                                                    "\n",
                                                                    "\\u0000",
                                                                    "\\ud800",
                                                                    "\\u001b",
                                                                    "${",
                                                                    "${env:",
                                                                    "}",
                                                                    "..",
                                                                    "/../",
                                                                    "~",
                                                                    ":runtime",
                                                                    "*",
                                                                    "?",
                                                                    "()",
                                                                    "=",
                                                                    "\"version\": 1,",
                                                                    "\"extends\": [\"self.json\"],",
                                                                    "\"optional\": true",
                                                                    "\"without\": {},",
                                                                    "LD_PRELOAD",
                                                                    "0B",
                                                                    "999999999999999999GiB",
                                                                    std::string(200, 'x'),
                                                                    std::string(40, '['),
                                                                    std::string("\0", 1),
                                                                    "\xFF",
                                                                    "\xED\xA0\x80"};
    const std::size_t at = Below(text.size());
    switch (Below(10)) {
      case 0:
        text[at] = static_cast<char>(Below(256));
        break;
      case 1:
        text.erase(at, 1 + Below(8));
        break;
      case 2:
        text.insert(at, (*kPieces)[Below(kPieces->size())]);
        break;
      case 3:
        text.insert(at, text.substr(Below(text.size()), Below(60)));
        break;
      case 4:
        text.resize(at);
        break;
      default: {  // one quoted word takes the place of another: still JSON
        const std::vector<std::string> parts = absl::StrSplit(text, '"');
        const std::string one = absl::StrCat("\"", parts[Below(parts.size() / 2) * 2 + 1], "\"");
        const std::size_t there = text.find(one);
        const std::string other = absl::StrCat("\"", parts[Below(parts.size() / 2) * 2 + 1], "\"");
        if (there != std::string::npos) text.replace(there, one.size(), other);
        break;
      }
    }
    if (absl::StrContains(text, '"')) return;
    text += "\"";  // never without a word
  }

  std::mt19937 random_;
};

void ExpectGoodError(const absl::Status& status) {
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n')) {
    if (absl::StartsWith(line, "(")) continue;  // how many more there are
    EXPECT_THAT(std::string(line), ::testing::ContainsRegex("^[a-z:./]+:[0-9]+:[0-9]+: /.*: [^ ]")) << status;
    EXPECT_EQ(line, Visible(line));
    EXPECT_LT(line.size(), 2000u);
  }
}

void ExpectGoodPath(const std::string& path) {
  std::string normal;
  EXPECT_EQ(NormalisePath(path, &normal), PathProblem::kNone) << path;
  EXPECT_EQ(path, normal);
}

// What holding a Policy proves.
void ExpectGoodPolicy(const PolicyFields& fields) {
  for (const auto* list : {&fields.filesystem.rx, &fields.filesystem.ro, &fields.filesystem.rw}) {
    for (const PathGrant& grant : *list) {
      EXPECT_FALSE(grant.origin.empty());
      if (list == &fields.filesystem.rx && grant.path == ":runtime") continue;
      ExpectGoodPath(grant.path);
      if (!grant.beneath.empty()) {
        ExpectGoodPath(grant.beneath);
        EXPECT_TRUE(IsWithin(grant.path, grant.beneath)) << grant.path << " " << grant.beneath;
      }
      for (const std::string& folder : grant.also_beneath) EXPECT_TRUE(IsWithin(grant.path, folder));
    }
  }
  for (const std::string& folder : fields.cwd_allow) ExpectGoodPath(folder);
  if (!fields.cwd_default.empty()) ExpectGoodPath(fields.cwd_default);
  if (fields.stderr_rules.mode == StderrMode::kFile) ExpectGoodPath(fields.stderr_rules.file);
  for (const auto& [name, value] : fields.env.set) {
    EXPECT_TRUE(IsEnvName(name)) << name;
    EXPECT_FALSE(IsFunctionValue(value));
    EXPECT_EQ(value.find('\0'), std::string::npos);
  }
  EXPECT_FALSE(fields.user.empty());
  EXPECT_LE(fields.restart.backoff_initial, fields.restart.backoff_max);
  // Nothing that is not enforced.
  EXPECT_TRUE(fields.network_allow.empty());
  EXPECT_NE(fields.network, NetworkMode::kAllowlist);
}

ParseOptions Files(const std::string& self) {
  return HostWithFiles({{"/p/base.json", R"({"version": 1, "user": "base"})"}, {"/p/self.json", self}});
}

TEST(RobustnessTest, TheTextThatIsMutatedIsAPolicy) {
  const absl::StatusOr<Policy> policy = ParsePolicy({"self.json", kEverything}, Files(kEverything));
  ASSERT_TRUE(policy.ok()) << policy.status();
  ExpectGoodPolicy(**policy);
}

TEST(RobustnessTest, AMutatedPolicyIsGoodOrAGoodError) {
  int good = 0, bad = 0;
  for (unsigned seed = 0; seed < 1500 && !::testing::Test::HasFailure(); ++seed) {
    const std::string text = Mutator(seed).Mutate(seed % 4 == 0 ? *PresetText("uvx") : kEverything);
    SCOPED_TRACE(absl::StrCat("seed ", seed, ":\n", text));
    ParseOptions options = Files(text);
    if (seed % 3 == 0) options.ceilings.push_back({"ceiling.json", Mutator(~seed).Mutate(kEverything)});
    const absl::StatusOr<Policy> policy = ParsePolicy({"self.json", text}, options);
    if (!policy.ok()) {
      ExpectGoodError(policy.status());
      ++bad;
      continue;
    }
    ExpectGoodPolicy(**policy);
    ++good;
    CommandRequest request;
    request.argv = {"npx", "-y"};
    request.host_cwd = "/srv";
    request.host_env = {{"PATH", "/bin"}, {"LD_PRELOAD", "x"}, {"BASH_FUNC_x%%", "() {}"}};
    const absl::StatusOr<ValidatedCommand> command = ValidateCommand(*policy, request);
    if (!command.ok()) continue;
    for (const EnvEntry& entry : command->env) {
      EXPECT_TRUE(entry.source == EnvEntry::Source::kSet || entry.name != "LD_PRELOAD");
      EXPECT_FALSE(IsFunctionName(entry.name));
    }
  }
  EXPECT_GT(good, 100);  // else only one half was tried
  EXPECT_GT(bad, 700);
}

TEST(RobustnessTest, NoBytesAtAllAreTooMuch) {
  std::mt19937 random(1);
  for (int i = 0; i < 500 && !::testing::Test::HasFailure(); ++i) {
    std::string text(std::uniform_int_distribution<std::size_t>(0, 80)(random), '\0');
    for (char& c : text) c = "{}[]\",:/*\\u0dn1-e \n"[random() % 19];
    const absl::StatusOr<Policy> policy = ParsePolicy({"self.json", text}, Host());
    ASSERT_FALSE(policy.ok());
    ExpectGoodError(policy.status());
  }
}

}  // namespace
}  // namespace bulkhead::policy
