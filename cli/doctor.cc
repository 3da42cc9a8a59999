#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "bulkhead/cli/commands.h"
#include "bulkhead/cli/output.h"
#include "bulkhead/launcher/features.h"
#include "bulkhead/policy/text.h"
#include "nlohmann/json.hpp"

namespace bulkhead::cli {
namespace {

std::string AsJson(const launcher::DoctorReport& report) {
  nlohmann::ordered_json json;
  json["doctor_version"] = 1;
  if (report.any_tier) {
    json["tier"] = std::string(policy::TierName(report.tier));
  } else {
    json["tier"] = nullptr;
  }
  json["checks"] = nlohmann::ordered_json::array();
  for (const launcher::FeatureCheck& check : report.checks) {
    nlohmann::ordered_json item;
    item["name"] = check.name;
    item["available"] = check.available;
    item["detail"] = check.detail;
    item["remedy"] = check.remedy;
    json["checks"].push_back(std::move(item));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::string AsText(const launcher::DoctorReport& report, const Style& style) {
  std::size_t columns = 0;
  for (const launcher::FeatureCheck& check : report.checks) columns = std::max(columns, check.name.size());
  std::string out;
  for (const launcher::FeatureCheck& check : report.checks) {
    absl::StrAppend(&out, check.available ? style.Good("yes") : style.Weak("no "), "  ", check.name,
                    std::string(columns - check.name.size() + 2, ' '), policy::Visible(check.detail), "\n");
    if (!check.remedy.empty())
      absl::StrAppend(&out, std::string(columns + 7, ' '), "-> ", policy::Visible(check.remedy), "\n");
  }
  absl::StrAppend(&out, "\n");
  if (!report.any_tier) {
    absl::StrAppend(&out, style.Bad("No tier can be reached here."), " Nothing can be started.\n");
    return out;
  }
  absl::StrAppend(&out, style.Bold(absl::StrCat("Tier ", policy::TierName(report.tier))), " is reached here.");
  if (report.tier != policy::Tier::kA) {
    absl::StrAppend(&out, " A policy that asks for more is refused; --require ", policy::TierName(report.tier),
                    " accepts this tier.");
  }
  absl::StrAppend(&out, "\n");
  return out;
}

}  // namespace

int DoctorCommand(const Flags& flags) {
  const launcher::DoctorReport report = launcher::RunDoctor();
  const int printed = PrintResult(flags.json ? AsJson(report) : AsText(report, Style::ForStdout()));
  return printed != 0 ? printed : report.any_tier ? 0 : kExitCheckFailed;
}

}  // namespace bulkhead::cli
