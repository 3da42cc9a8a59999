// Plans with next to nothing in them, of both backends, written by hand: so that what Launch, Process and BecomeKeeper
// do is tested apart from what the plan builder decides. A test with this header must not link //launcher:plan, which
// has a PlanMaker too.
#ifndef BULKHEAD_TESTS_LAUNCHER_BARE_PLAN_H_
#define BULKHEAD_TESTS_LAUNCHER_BARE_PLAN_H_

#include <sched.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/launcher/plan_writer.h"
#include "bulkhead/launcher/posix/plan.h"

namespace bulkhead::launcher {

class PlanMaker {
 public:
  static LaunchPlan Make(std::string bytes, policy::Tier tier, policy::StderrRules stderr_rules,
                         std::vector<std::string> folders) {
    LaunchPlan plan;
    plan.bytes_ = std::move(bytes);
    plan.variants_.resize(1);
    plan.variants_[0].report.tier = tier;
    plan.stderr_rules_ = std::move(stderr_rules);
    for (std::string& folder : folders) plan.folders_to_make_.push_back({std::move(folder)});
    return plan;
  }
  static LaunchPlan MakePortable(const std::vector<std::string>& argv, PosixPlan posix,
                                 policy::StderrRules stderr_rules, std::vector<std::string> folders) {
    LaunchPlan plan = Make("", policy::Tier::kC, std::move(stderr_rules), std::move(folders));
    plan.backend_ = BackendName::kPosix;
    plan.program_ = argv[0];
    plan.command_.argv = argv;
    plan.posix_ = std::make_shared<PosixPlan>(std::move(posix));
    return plan;
  }
};

struct BarePlanOptions {
  // 0: two child subreapers, as in tier B; kPidNamespace: the jail init is PID 1, as in tier A.
  uint32_t namespaces = 0;
  uint32_t stdin_grace_ms = 60000, term_grace_ms = 60000;
  policy::StderrRules stderr_rules = {};
  std::vector<std::string> folders = {};
  bool run_mode = false;
  bool portable = false;  // the portable backend's plan, without any of the above namespaces
};
inline constexpr uint32_t kPidNamespace = CLONE_NEWUSER | CLONE_NEWPID;

inline LaunchPlan MakeBarePlan(const std::vector<std::string>& argv, const BarePlanOptions& options = {}) {
  if (options.portable) {
    PosixPlan posix;
    posix.stdin_grace = absl::Milliseconds(options.stdin_grace_ms);
    posix.term_grace = absl::Milliseconds(options.term_grace_ms);
    posix.run_mode = options.run_mode;
    return PlanMaker::MakePortable(argv, std::move(posix), options.stderr_rules, options.folders);
  }
  PlanWriter writer;
  const auto failures = [&writer](const std::vector<wire::Failure>& list) { return writer.Array(list); };
  const wire::Failure other = {0, 125, 1, writer.Text("cannot run a step")};
  std::vector<wire::Step> steps;
  const auto add = [&](wire::StepKind kind, wire::Offset failure_list) {
    wire::Step step = {};
    step.kind = kind;
    step.failures = failure_list;
    steps.push_back(step);
  };
  const wire::Offset plain = failures({other});
  add(wire::StepKind::kSession, plain);
  if (options.run_mode && options.stderr_rules.mode != policy::StderrMode::kInherit) {
    add(wire::StepKind::kStderr, plain);
  }
  add(wire::StepKind::kNoNewPrivs, plain);
  add(wire::StepKind::kCloseDescriptors, plain);
  add(wire::StepKind::kExec, failures({{ENOENT, 127, 0, writer.Text("there is no such program")},
                                       {EACCES, 126, 1, writer.Text("cannot execute the program")},
                                       other}));
  steps.back().path_text.path = writer.Text(argv[0]);

  wire::Variant variant = {};
  variant.tier = options.namespaces == 0 ? 'B' : 'A';
  variant.namespaces = options.namespaces;
  variant.clone_failures = failures({{0, 125, 1, writer.Text("cannot make the namespaces")}});
  variant.server = {writer.Array(steps), static_cast<uint32_t>(steps.size())};
  variant.argv = writer.Pointers(argv);
  variant.envp = writer.Pointers({});
  const std::string report = "{\"tier\":\"test\"";
  variant.report = writer.Text(report);
  variant.report_bytes = static_cast<uint32_t>(report.size());

  wire::Plan plan = {};
  if (options.run_mode) plan.flags = wire::kRunMode;
  plan.stdin_grace_ms = options.stdin_grace_ms;
  plan.term_grace_ms = options.term_grace_ms;
  plan.run_as = wire::RunAs::kCaller;
  plan.variant_count = 1;
  plan.variants = writer.Array(std::vector<wire::Variant>{variant});
  return PlanMaker::Make(writer.Finish(plan), options.namespaces == 0 ? policy::Tier::kB : policy::Tier::kA,
                         options.stderr_rules, options.folders);
}

// A program that the tests start: given to Bazel as data, or in the folder that $BULKHEAD_TEST_PROGRAMS names.
inline std::string TestProgram(const std::string& label_path) {
  const char* const folder = getenv("BULKHEAD_TEST_PROGRAMS");
  const char* const source = getenv("TEST_SRCDIR");
  const char* const workspace = getenv("TEST_WORKSPACE");
  std::string path;
  if (folder != nullptr) {
    path = std::string(folder) + label_path.substr(label_path.rfind('/'));
  } else if (source != nullptr && workspace != nullptr) {
    path = std::string(source) + "/" + workspace + "/" + label_path;
  }
  char* const real = realpath(path.c_str(), nullptr);
  if (real == nullptr) {
    fprintf(stderr, "no program \"%s\": run this by bazel test, or set BULKHEAD_TEST_PROGRAMS\n", path.c_str());
    exit(2);
  }
  path = real;
  free(real);
  return path;
}

inline std::string Probe() { return TestProgram("tests/programs/probe"); }

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_TESTS_LAUNCHER_BARE_PLAN_H_
