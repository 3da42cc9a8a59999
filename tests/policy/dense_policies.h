// Texts that hold as many values as their bytes can: what takes the most memory for its size.
#ifndef BULKHEAD_TESTS_POLICY_DENSE_POLICIES_H_
#define BULKHEAD_TESTS_POLICY_DENSE_POLICIES_H_

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "bulkhead/policy/grammar.h"
#include "bulkhead/policy/json.h"

namespace bulkhead::policy {

// The i-th of the shortest different names, from "A": one letter for the first 52, two for the next 2704 …
inline std::string ShortName(std::size_t i) {
  constexpr absl::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string name;
  for (std::size_t rest = i + 1; rest > 0; rest = (rest - 1) / kLetters.size()) {
    name.push_back(kLetters[(rest - 1) % kLetters.size()]);
  }
  return name;
}

// A text with one thing in it over and over.
struct Dense {
  std::string name;
  std::string before;                             // what opens the list or the map
  std::function<std::string(std::size_t)> entry;  // the i-th
  std::string after;
  bool is_policy;  // with no more than entries_max of them
  std::size_t values_of_entry = 1;
  std::size_t entries_max = 0;

  std::string Text(std::size_t entries) const {
    std::string text = before;
    for (std::size_t i = 0; i < entries; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", entry(i));
    return text + after;
  }
  // With as many entries as `bytes` can hold.
  std::string TextOf(std::size_t bytes) const {
    std::string text = before;
    for (std::size_t i = 0; text.size() + after.size() < bytes; ++i)
      absl::StrAppend(&text, i == 0 ? "" : ",", entry(i));
    return text + after;
  }
};

inline Dense Inside(const std::vector<std::string>& keys, char open, std::function<std::string(std::size_t)> entry,
                    bool is_policy = true) {
  Dense dense{"", "{\"version\":1", std::move(entry), "", is_policy};
  // An item is a value, and so is each member.
  dense.values_of_entry = open == '[' ? 1 : 0;
  const std::string first = dense.entry(0);
  for (std::size_t at = first.find("\":"); at != std::string::npos; at = first.find("\":", at + 1))
    ++dense.values_of_entry;
  dense.entries_max = std::min(kEntriesMax, (kPolicyValuesMax - 2 - keys.size()) / dense.values_of_entry);
  std::string separator = ",";
  for (const std::string& key : keys) {
    absl::StrAppend(&dense.name, "/", key);
    absl::StrAppend(&dense.before, separator, "\"", key, "\":", &key == &keys.back() ? std::string(1, open) : "{");
    separator.clear();
    dense.after.insert(0, &key == &keys.back() ? (open == '[' ? "]" : "}") : "}");
  }
  dense.name += " of " + dense.entry(0);
  dense.after += "}";
  return dense;
}

// Every list and map of the grammar with the shortest entries there are, different ones and one over and over.
inline std::vector<Dense> DensePolicies() {
  const auto quoted = [](const std::string& before, const std::string& after = "") {
    return [=](std::size_t i) { return absl::StrCat("\"", before, ShortName(i), after, "\""); };
  };
  const auto always = [](const std::string& entry) { return [=](std::size_t) { return entry; }; };
  const auto named = [](const std::string& before, const std::string& value) {
    return [=](std::size_t i) { return absl::StrCat("\"", before, ShortName(i), "\":", value); };
  };
  std::vector<Dense> all;
  for (const char* list : {"rx", "ro", "rw", "protect", "hide"}) {
    all.push_back(Inside({"filesystem", list}, '[', quoted("/")));
    all.push_back(Inside({"filesystem", list}, '[', always("\"/\"")));
  }
  for (const char* list : {"rx", "ro", "rw"}) {
    all.push_back(Inside({"filesystem", list}, '[',
                         [](std::size_t i) { return absl::StrCat("{\"path\":\"/", ShortName(i), "\"}"); }));
    all.push_back(Inside({"filesystem", list}, '[', [](std::size_t i) {
      return absl::StrCat("{\"path\":\"${tmp}/", ShortName(i), "\",\"optional\":true}");
    }));
    all.push_back(Inside({"filesystem", list}, '[', always(R"({"path":"${var:Z}","optional":true})")));
    all.push_back(Inside({"filesystem", list}, '[', quoted("${env:PLACE}/")));
  }
  all.push_back(Inside({"env", "inherit"}, '[', quoted("")));
  all.push_back(Inside({"env", "inherit"}, '[', always("\"A\"")));
  all.push_back(Inside({"env", "inherit"}, '[', always("\"*\"")));
  all.push_back(Inside({"env", "set"}, '{', named("", "\"\"")));
  all.push_back(Inside({"env", "set"}, '{', named("", "\"${env:WORD}\"")));
  all.push_back(Inside({"env", "secret"}, '{', named("", "{\"fd\":3}")));
  all.push_back(Inside({"env", "secret"}, '{', named("", "{\"env\":\"A\"}")));
  all.push_back(Inside({"env", "secret"}, '{', named("", "{\"file\":\"/\"}")));
  all.push_back(Inside({"command", "allow"}, '[', quoted("")));
  all.push_back(Inside({"command", "allow"}, '[', quoted("/")));
  all.push_back(Inside({"command", "sha256"}, '{', named("/", "\"" + std::string(64, '0') + "\"")));
  all.push_back(Inside({"command", "args", "deny"}, '[', quoted("")));
  all.push_back(Inside({"command", "args", "allow"}, '[', quoted("")));
  all.push_back(Inside({"cwd", "allow"}, '[', quoted("/")));
  all.push_back(Inside({"cwd", "allow"}, '[', always("\"/\"")));
  all.push_back(Inside({"syscalls", "allow"}, '[', always("\"bpf\"")));
  all.push_back(Inside({"syscalls", "deny"}, '[', always("\"bpf\"")));
  // The last word on this field is "not enforced yet", after all else.
  all.push_back(Inside({"network", "allow"}, '[', quoted("", ":1"), false));
  return all;
}

// What is no policy, by each kind of mistake.
inline std::vector<Dense> DenseMistakes() {
  const auto always = [](const std::string& entry) { return [=](std::size_t) { return entry; }; };
  const auto named = [](const std::string& value) {
    return [=](std::size_t i) { return absl::StrCat("\"", ShortName(i), "\":", value); };
  };
  std::vector<Dense> all;
  for (const char* entry : {"1", "true", "null", "\"\"", "[]", "{}", "[[1]]", R"("\u0000")", R"({"":1})", "\"a\""}) {
    all.push_back(Inside({"filesystem", "ro"}, '[', always(entry), false));
    all.push_back(Inside({"nothing"}, '[', always(entry), false));
    all.push_back({absl::StrCat("only ", entry), "[", always(entry), "]", false});
  }
  for (const char* value : {"1", "\"\"", "[]", "{}"}) {
    all.push_back({absl::StrCat("unknown fields of ", value), "{", named(value), "}", false});
    all.push_back(Inside({"env", "secret"}, '{', named(value), false));
    all.push_back(Inside({"limits"}, '{', named(value), false));
    all.push_back(Inside({"without", "env", "set"}, '{', named(value), false));
  }
  all.push_back({"one name over and over", "{", always("\"\":1"), "}", false});
  all.push_back(Inside({"version"}, '{', always("\"version\":1"), false));
  all.push_back(Inside({"extends"}, '[', always("\"preset:nod\""), false));
  all.push_back(Inside({"extends"}, '[', always("\"a\""), false));
  all.push_back(Inside({"extends"}, '[', always("\"preset:npx\""), false));
  // Mistakes that say much: names that are shown as escapes, and the same name before each of many.
  std::string unseen;
  while (unseen.size() < 512) unseen += "\U000E0001";
  all.push_back(Inside({"filesystem", "ro"}, '[', always("\"" + unseen + "\""), false));
  all.push_back(Inside({"env", "secret", unseen}, '{', named("1"), false));
  all.push_back(Inside({unseen, unseen, unseen, unseen, unseen}, '{', always("\"\":1"), false));
  // What ends too early, after all of it was read.
  for (Dense dense : DensePolicies()) {
    dense.name += ", cut off";
    dense.after.clear();
    dense.is_policy = false;
    all.push_back(std::move(dense));
  }
  return all;
}

}  // namespace bulkhead::policy

#endif  // BULKHEAD_TESTS_POLICY_DENSE_POLICIES_H_
