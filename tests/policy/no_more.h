// What "only what both grant" means, field by field, said once more and in another way than policy/ceiling.cc does.
#ifndef BULKHEAD_TESTS_POLICY_NO_MORE_H_
#define BULKHEAD_TESTS_POLICY_NO_MORE_H_

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bulkhead/policy/env_names.h"
#include "bulkhead/policy/glob.h"
#include "bulkhead/policy/paths.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::policy {

// Compares what is left under a ceiling with the policy, or with the ceiling, by itself.
class NoMore {
 public:
  // `of` with its origins when it is a ceiling, since what that doesn't say limits nothing.
  NoMore(const PolicyFields& left, const PolicyFields& of, bool of_is_ceiling)
      : left_(left), of_(of), of_is_ceiling_(of_is_ceiling) {}

  // The JSON pointer of a field of which more is left than `of` grants; empty if there is none.
  std::string What() {
    Command();
    Environment();
    Files();
    Expect(left_.require <= of_.require, "/require");
    Expect(left_.user == "auto" || left_.user == of_.user, "/user");
    Expect(left_.network <= of_.network, "/network/mode");
    Expect(left_.network != NetworkMode::kAllowlist || of_.network != NetworkMode::kAllowlist ||
               Within(left_.network_allow, of_.network_allow),
           "/network/allow");
    Expect(left_.syscall_profile >= of_.syscall_profile, "/syscalls/profile");
    Expect(Within(left_.syscalls_allow, of_.syscalls_allow), "/syscalls/allow");
    Expect(Within(of_.syscalls_deny, left_.syscalls_deny), "/syscalls/deny");
    PureLimits();
    return what_;
  }

 private:
  void Expect(bool holds, const char* pointer) {
    if (!holds && what_.empty()) what_ = pointer;
  }
  template <typename T>
  static bool Within(const std::vector<T>& some, const std::vector<T>& all) {
    return std::all_of(some.begin(), some.end(),
                       [&all](const T& entry) { return std::find(all.begin(), all.end(), entry) != all.end(); });
  }

  void Command() {
    const CommandRules &less = left_.command, &more = of_.command;
    Expect(!more.allow.has_value() || (less.allow.has_value() && Within(*less.allow, *more.allow)), "/command/allow");
    for (const auto& [path, digest] : more.sha256) {
      const auto pin = less.sha256.find(path);
      Expect(pin != less.sha256.end() && pin->second == digest, "/command/sha256");
    }
    AtMost(less.args_max, more.args_max, "/command/args/max");
    Expect(Within(more.args_deny, less.args_deny), "/command/args/deny");
    for (const char* argument : {"", "a", "ab", "--inspect", "--inspect=0", "-e", "x y"}) {
      Expect(!AnyGlobMatches(less.args_allow, argument) || AnyGlobMatches(more.args_allow, argument),
             "/command/args/allow");
    }
    Expect(less.batch_files <= more.batch_files, "/command/batch_files");
    const auto may_be_in = [this](const std::string& folder) {
      return std::any_of(of_.cwd_allow.begin(), of_.cwd_allow.end(),
                         [&folder](const std::string& allowed) { return IsWithin(folder, allowed); });
    };
    Expect(of_.cwd_allow.empty() ||
               (!left_.cwd_allow.empty() && std::all_of(left_.cwd_allow.begin(), left_.cwd_allow.end(), may_be_in)),
           "/cwd/allow");
  }

  bool Passes(const std::string& name) const {
    return AnyGlobMatches(of_.env.inherit, name) && WhyNeverInherited(name, /*ignore_case=*/false).empty();
  }

  void Environment() {
    for (const char* name : {"HOME", "PATH", "A", "AB", "AC", "B", "BC", "PLACE", "WORD", "TOKEN", "X"}) {
      Expect(!AnyGlobMatches(left_.env.inherit, name) || AnyGlobMatches(of_.env.inherit, name), "/env/inherit");
    }
    for (const auto& [name, value] : left_.env.set) {
      const auto same = of_.env.set.find(name);
      Expect((same != of_.env.set.end() && same->second == value) || (of_is_ceiling_ && Passes(name)), "/env/set");
    }
    for (const auto& [name, source] : left_.env.secret) {
      const auto found = of_.env.secret.find(name);
      const bool same = found != of_.env.secret.end() && found->second.env == source.env &&
                        found->second.file == source.file && found->second.fd == source.fd;
      const bool granted =
          source.env.has_value() ? Passes(*source.env) : source.file.has_value() && IsReadable(*source.file);
      Expect(same || (of_is_ceiling_ && Passes(name) && granted), "/env/secret");
      Expect(!of_is_ceiling_ || !source.follow_links, "/env/secret");
    }
  }

  static bool Holds(const std::vector<PathGrant>& grants, const std::string& path) {
    return std::any_of(grants.begin(), grants.end(), [&path](const PathGrant& grant) {
      return grant.path == path || IsWithin(path, grant.path) || (path == ":runtime" && grant.path == "/");
    });
  }
  bool IsReadable(const std::string& path) const {
    const FilesystemRules& more = of_.filesystem;
    return Holds(more.ro, path) || Holds(more.rw, path) || Holds(more.rx, path);
  }

  static int Rank(HomeMode mode) {
    switch (mode) {
      case HomeMode::kNone:
        return 0;
      case HomeMode::kPrivate:
        return 1;
      case HomeMode::kReadOnly:
        return 2;
      case HomeMode::kReadWrite:
        return 3;
    }
    return 4;
  }

  void Files() {
    const FilesystemRules &less = left_.filesystem, &more = of_.filesystem;
    for (const PathGrant& grant : less.rx) Expect(Holds(more.rx, grant.path), "/filesystem/rx");
    for (const PathGrant& grant : less.ro) Expect(IsReadable(grant.path), "/filesystem/ro");
    for (const PathGrant& grant : less.rw) Expect(Holds(more.rw, grant.path), "/filesystem/rw");
    for (const PathGrant& mask : more.protect) Expect(HasPath(less.protect, mask.path), "/filesystem/protect");
    for (const PathGrant& mask : more.hide) Expect(HasPath(less.hide, mask.path), "/filesystem/hide");
    Expect(Rank(less.home) <= Rank(more.home), "/filesystem/home");
    Expect(less.tmp <= more.tmp, "/filesystem/tmp");
    const StderrRules &ours = left_.stderr_rules, &theirs = of_.stderr_rules;
    const bool is_its_file = theirs.mode == StderrMode::kFile && theirs.file == ours.file;
    Expect(ours.mode != StderrMode::kFile || is_its_file || (of_is_ceiling_ && Holds(more.rw, ours.file)), "/stderr");
    Expect(theirs.mode != StderrMode::kDiscard || ours.mode == StderrMode::kDiscard, "/stderr");
  }
  static bool HasPath(const std::vector<PathGrant>& grants, const std::string& path) {
    return std::any_of(grants.begin(), grants.end(), [&path](const PathGrant& grant) { return grant.path == path; });
  }

  // A policy's defaults count as said.
  bool Said(const char* pointer) const { return !of_is_ceiling_ || of_.origins.count(pointer) > 0; }

  // Zero is no limit.
  template <typename T>
  void Limit(const T& less, const T& more, const char* pointer) {
    Expect(!Said(pointer) || more == T() || (less != T() && less <= more), pointer);
  }
  template <typename T>
  void AtMost(const T& less, const T& more, const char* pointer) {
    Expect(!Said(pointer) || less <= more, pointer);
  }

  void PureLimits() {
    const Limits &less = left_.limits, &more = of_.limits;
    Limit(less.memory_bytes, more.memory_bytes, "/limits/memory");
    Limit(less.processes, more.processes, "/limits/processes");
    Limit(less.open_files, more.open_files, "/limits/open_files");
    Limit(less.file_size_bytes, more.file_size_bytes, "/limits/file_size");
    Limit(less.cpu_time, more.cpu_time, "/limits/cpu_time");
    const MessageLimits &held = left_.messages, &may_hold = of_.messages;
    AtMost(held.max_message_bytes, may_hold.max_message_bytes, "/messages/max_message_bytes");
    AtMost(held.max_junk_lines, may_hold.max_junk_lines, "/messages/max_junk_lines");
    AtMost(held.max_queued_bytes, may_hold.max_queued_bytes, "/messages/max_queued_bytes");
    const Timeouts &waits = left_.timeouts, &may_wait = of_.timeouts;
    AtMost(waits.probe, may_wait.probe, "/timeouts/probe");
    AtMost(waits.start, may_wait.start, "/timeouts/start");
    AtMost(waits.request, may_wait.request, "/timeouts/request");
    AtMost(waits.stdin_grace, may_wait.stdin_grace, "/timeouts/stdin_grace");
    AtMost(waits.term_grace, may_wait.term_grace, "/timeouts/term_grace");
    const RestartRules &restarts = left_.restart, &may_restart = of_.restart;
    AtMost(restarts.max_in_a_row, may_restart.max_in_a_row, "/restart/max_in_a_row");
    AtMost(may_restart.backoff_initial, restarts.backoff_initial, "/restart/backoff_initial");
    AtMost(may_restart.backoff_max, restarts.backoff_max, "/restart/backoff_max");
    AtMost(may_restart.healthy_after, restarts.healthy_after, "/restart/healthy_after");
  }

  const PolicyFields& left_;
  const PolicyFields& of_;
  const bool of_is_ceiling_;
  std::string what_;
};

}  // namespace bulkhead::policy

#endif  // BULKHEAD_TESTS_POLICY_NO_MORE_H_
