#include "bulkhead/policy/variables.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bulkhead/policy/command.h"
#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/text.h"

namespace bulkhead::policy {
namespace {

constexpr absl::string_view kOpen = "${";

std::optional<std::string> Find(const std::map<std::string, std::string>& map, absl::string_view name) {
  const auto found = map.find(std::string(name));
  if (found == map.end()) return std::nullopt;
  return found->second;
}

// What the variable named `name`, without "${" and "}", stands for.
std::optional<std::string> ValueOf(absl::string_view name, const Variables& variables,
                                   const std::optional<std::string>& cache) {
  if (name == "workspace") return variables.workspace;
  if (name == "home") return variables.home;
  if (name == "tmp") return variables.tmp;
  if (name == "cache") return cache;
  if (absl::ConsumePrefix(&name, "env:")) return Find(variables.env, name);
  if (absl::ConsumePrefix(&name, "var:")) return Find(variables.var, name);
  return std::nullopt;
}

std::string CheckName(absl::string_view name) {
  const std::vector<absl::string_view> plain = {"workspace", "home", "tmp", "cache"};
  for (const absl::string_view known : plain) {
    if (name == known) return "";
  }
  absl::string_view rest = name;
  if ((absl::ConsumePrefix(&rest, "env:") || absl::ConsumePrefix(&rest, "var:")) && IsEnvName(rest)) return "";
  const std::string wrong = absl::StrCat(Quote(absl::StrCat("${", name, "}")), " is not a variable; ");
  const std::string near_miss = NearMiss(name, plain);
  if (!near_miss.empty()) return absl::StrCat(wrong, "did you mean \"${", near_miss, "}\"?");
  if (IsEnvName(name)) return absl::StrCat(wrong, "did you mean ", Quote(absl::StrCat("${env:", name, "}")), "?");
  return absl::StrCat(wrong, "there are ${workspace}, ${home}, ${tmp}, ${cache}, ${env:NAME} and ${var:NAME}");
}

}  // namespace

bool HasVariable(absl::string_view text) { return absl::StrContains(text, kOpen); }

std::string CheckVariables(absl::string_view text) {
  for (std::size_t at = text.find(kOpen); at != absl::string_view::npos; at = text.find(kOpen, at)) {
    const std::size_t end = text.find('}', at);
    if (end == absl::string_view::npos) return "has a \"${\" without its \"}\"; close it";
    std::string wrong = CheckName(text.substr(at + kOpen.size(), end - at - kOpen.size()));
    if (!wrong.empty()) return wrong;
    at = end;
  }
  return "";
}

Expanded Expand(absl::string_view text, const Variables& variables, const std::optional<std::string>& cache,
                bool empty_is_unset) {
  Expanded expanded;
  std::size_t copied = 0;
  for (std::size_t at = text.find(kOpen); at != absl::string_view::npos; at = text.find(kOpen, copied)) {
    const std::size_t end = text.find('}', at);
    if (end == absl::string_view::npos) break;
    const absl::string_view name = text.substr(at + kOpen.size(), end - at - kOpen.size());
    const std::optional<std::string> value = ValueOf(name, variables, cache);
    if (!value.has_value() || (empty_is_unset && value->empty())) {
      expanded.unset = std::string(text.substr(at, end + 1 - at));
      return expanded;
    }
    std::vector<std::string>& names = expanded.env_names;
    if (absl::StartsWith(name, "env:") && std::find(names.begin(), names.end(), name.substr(4)) == names.end()) {
      names.emplace_back(name.substr(4));
    }
    if (expanded.text.size() + (at - copied) + value->size() > kArgumentBytesMax) {
      expanded.too_long = true;
      return expanded;
    }
    if (at == 0) expanded.leading_value = value;
    absl::StrAppend(&expanded.text, text.substr(copied, at - copied), *value);
    copied = end + 1;
  }
  absl::StrAppend(&expanded.text, text.substr(copied));
  return expanded;
}

std::string HowToSet(absl::string_view variable) {
  if (variable == "${workspace}") return "start with --workspace DIR";
  if (variable == "${home}") return "set HOME to an absolute path";
  if (variable == "${tmp}") return "set TMPDIR to an absolute path";
  if (variable == "${cache}") return "set HOME or XDG_CACHE_HOME to an absolute path";
  absl::string_view name = variable;
  absl::ConsumeSuffix(&name, "}");
  if (absl::ConsumePrefix(&name, "${var:")) return absl::StrCat("start with --var ", name, "=VALUE");
  absl::ConsumePrefix(&name, "${env:");
  return absl::StrCat("set ", name, " in the environment that bulkhead is started with");
}

}  // namespace bulkhead::policy
