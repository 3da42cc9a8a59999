#include "bulkhead/launcher/steps.h"

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::launcher {

wire::Offset StepsMaker::Failures(const std::vector<FailureText>& failures) {
  std::vector<wire::Failure> entries;
  entries.reserve(failures.size());
  for (const FailureText& failure : failures) {
    wire::Failure entry = {};
    entry.error = failure.error;
    entry.exit_code = static_cast<std::uint16_t>(failure.exit_code);
    entry.show_error = failure.error == 0;
    entry.text = writer_.Text(policy::Visible(failure.text));
    if (!failure.subject.empty()) entry.subject = writer_.Text(policy::Visible(failure.subject));
    if (!failure.rest.empty()) entry.rest = writer_.Text(policy::Visible(failure.rest));
    entries.push_back(entry);
  }
  return writer_.Array(entries);
}

void StepsMaker::Add(List& list, const char* phase, wire::Step step, About about) {
  if (about.failures.empty()) {
    if (about.needs_namespaces) {
      about.failures = {{EPERM, 125, "cannot ", about.text,
                         absl::StrCat(", which tier A needs (EPERM): user namespaces are forbidden or restricted here, "
                                      "by the distribution's hardening or by the container's; \"bulkhead doctor\" "
                                      "says which; ",
                                      tier_remedy_)},
                        {0, 125, absl::StrCat("no tier A here (", tier_remedy_, "): cannot "), about.text}};
    } else {
      about.failures = {{0, 125, "cannot ", about.text}};
    }
  }
  step.failures = Failures(about.failures);
  if (about.needs_namespaces) step.flags |= wire::kNeedsNamespaces;
  list.steps.push_back(step);
  if (!describe_) return;
  list.descriptions.push_back({phase, std::move(about.kind), std::move(about.text), std::move(about.origin)});
}

std::vector<StepDescription> StepsMaker::Finish(wire::Variant& variant) {
  std::vector<StepDescription> all;
  const auto put = [&](List& list, wire::StepList& target) {
    target.steps = writer_.Array(list.steps);
    target.count = static_cast<std::uint32_t>(list.steps.size());
    all.insert(all.end(), list.descriptions.begin(), list.descriptions.end());
  };
  put(keeper_, variant.keeper);
  put(init_, variant.init);
  put(server_, variant.server);
  return all;
}

}  // namespace bulkhead::launcher
