// A variant of a plan while it is being made: its three lists of steps, with what each says when it fails and how it is
// described to people.
#ifndef BULKHEAD_LAUNCHER_STEPS_H_
#define BULKHEAD_LAUNCHER_STEPS_H_

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/launcher/plan.h"
#include "bulkhead/launcher/plan_format.h"
#include "bulkhead/launcher/plan_writer.h"

namespace bulkhead::launcher {

// What to say for one error of a step; error 0: for every other one, and then the kernel's word for it follows.
struct FailureText {
  int error;
  int exit_code;
  std::string text;
  std::string subject = {}, rest = {};  // follow the text; what many sentences share is stored once
};

class StepsMaker {
 public:
  // `tier_remedy`: what helps when the steps that make namespaces fail. `describe`: whether Finish gives anything.
  StepsMaker(PlanWriter& writer, std::string tier_remedy, bool describe)
      : writer_(writer), tier_remedy_(std::move(tier_remedy)), describe_(describe) {}

  struct About {
    std::string kind, text, origin;
    std::vector<FailureText> failures;  // the one with error 0 last; empty: "cannot <text>"
    bool needs_namespaces = false;
  };
  void Keeper(wire::Step step, About about) { Add(keeper_, "keeper", step, std::move(about)); }
  void Init(wire::Step step, About about) { Add(init_, "init", step, std::move(about)); }
  void Server(wire::Step step, About about) { Add(server_, "server", step, std::move(about)); }

  wire::Offset Failures(const std::vector<FailureText>& failures);
  // Fills in the lists of `variant` and gives the descriptions, in the order in which the steps happen.
  std::vector<StepDescription> Finish(wire::Variant& variant);

  PlanWriter& writer() { return writer_; }

 private:
  struct List {
    std::vector<wire::Step> steps;
    std::vector<StepDescription> descriptions;
  };
  void Add(List& list, const char* phase, wire::Step step, About about);

  PlanWriter& writer_;
  std::string tier_remedy_;
  bool describe_;
  List keeper_, init_, server_;
};

inline wire::Step MakeStep(wire::StepKind kind) {
  wire::Step step = {};
  step.kind = kind;
  return step;
}

}  // namespace bulkhead::launcher

#endif  // BULKHEAD_LAUNCHER_STEPS_H_
