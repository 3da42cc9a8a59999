// For every field of the policy language: a real `bulkhead run` with it and without it, and the difference that the
// server sees. The list of fields comes from the JSON Schema, so that a new one without a case fails.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/bulkhead_process.h"
#include "tests/cli/policy_fixture.h"

namespace bulkhead::cli {
namespace {

using ::testing::HasSubstr;

// What can't change what the jail allows, and why.
const std::map<std::string, std::string> kNoDifference = {
    {"/version", "a policy without it is none"},
    {"/command/batch_files", "only Windows has batch files: tests/policy/windows_command_test.cc"},
    {"/messages/max_message_bytes", "run passes stdio straight through: tests/mcp/session"},
    {"/messages/max_junk_lines", "as above"},
    {"/messages/max_queued_bytes", "as above"},
    {"/timeouts/probe", "for programs that speak MCP: tests/mcp/session"},
    {"/timeouts/start", "as above"},
    {"/timeouts/request", "as above"},
    {"/timeouts/stdin_grace", "how long the end takes, not what is allowed: tests/launcher/run_test.cc"},
    {"/timeouts/term_grace", "as above"},
    {"/restart/max_in_a_row", "run starts a server once: tests/mcp/backoff_test.cc"},
    {"/restart/backoff_initial", "as above"},
    {"/restart/backoff_max", "as above"},
    {"/restart/healthy_after", "as above"},
};

// The fields below `node`, which is the value of `pointer`: everything with a name that is more than a group of others.
// `*` stands for what a policy's author names, or for an entry of a list.
void Collect(const Json& node, const std::string& pointer, std::set<std::string>* fields) {
  if (!node.is_object()) return;
  for (const char* several : {"anyOf", "allOf"}) {
    if (!node.contains(several)) continue;
    for (const Json& one : node[several]) Collect(one, pointer, fields);
  }
  if (node.contains("items")) Collect(node["items"], pointer + "/*", fields);
  if (node.contains("additionalProperties")) Collect(node["additionalProperties"], pointer + "/*", fields);
  if (!node.contains("properties")) return;
  for (const auto& [key, value] : node["properties"].items()) {
    const std::string below = pointer + "/" + key;
    const bool is_group = value.is_object() && value.contains("properties");
    if (!is_group) fields->insert(below);
    Collect(value, below, fields);
  }
}

std::set<std::string> FieldsOfTheSchema() {
  const Json schema = Json::parse(ReadRunfile("policy/schema/policy.schema.json"));
  std::set<std::string> fields;
  Collect(schema["definitions"]["fields"], "", &fields);
  // The root repeats the sections as `true`.
  for (const auto& [key, value] : schema["properties"].items()) {
    if (value.is_object()) fields.insert("/" + key);
  }
  return fields;
}

struct Case {
  std::string field;  // as Collect gives it
  Json without;       // merged into the least policy (RFC 7396)
  std::string pointer;
  Json value;
  Words words;                     // flags, then the command
  std::string seen, seen_without;  // in what is printed
  std::map<std::string, std::string> env = {};
  bool without_namespaces = false;  // as in many a container
};

class FieldsTest : public PolicyFixture {
 protected:
  FieldsTest() {
    bulkhead_ = Program("bulkhead", ReadRunfile("cli/bulkhead"));
    deny_ = Program("deny", ReadRunfile("tests/programs/deny"));
  }

  std::string Run(const Json& policy, const Case& one) const {
    Invocation invocation;
    const Words run = {"run", "--workspace", project_, "--policy", Write("policy.json", policy.dump())};
    if (one.without_namespaces) {
      invocation.program = deny_;
      invocation.words = {"--userns", bulkhead_};
    }
    invocation.words.insert(invocation.words.end(), run.begin(), run.end());
    invocation.words.insert(invocation.words.end(), one.words.begin(), one.words.end());
    invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}};
    for (const auto& [name, value] : one.env) invocation.env[name] = value;
    const Result result = RunBulkhead(invocation);
    return result.out + result.err;
  }

  std::vector<Case> Cases() const;
  std::vector<Case> FileCases() const;
  std::vector<Case> MachineCases() const;

  std::string bulkhead_, deny_;
};

std::vector<Case> FieldsTest::Cases() const {
  const std::string digest(64, '0');
  const std::string grants = Write("grants.json", R"({"version": 1, "filesystem": {"ro": [")" + note_ + R"("]}})");
  const std::string secret = Write("token", "of a file");
  const bool is_root = geteuid() == 0;
  const Words read_note = {probe_, "read", note_}, cwd = {probe_, "cwd"};
  const Words two = {probe_, "argv", "--one", "--two"};
  return {
      {"/extends", {}, "/extends", List({grants}), read_note, "the note", "ENOENT"},
      {"/without",
       {{"extends", List({grants})}},
       "/without/filesystem/ro",
       List({note_}),
       read_note,
       "ENOENT",
       "the note"},
      {"/require", {}, "/require", "C", cwd, "ok", "tier A", {}, true},
      {"/user",
       {},
       "/user",
       is_root ? "root" : "nobody",
       {probe_, "ids"},
       is_root ? "Uid=0," : "only root can run",
       "ok"},
      {"/command/allow", {}, "/command/allow", List({"/bin/true"}), cwd, "is not allowed", "ok"},
      {"/command/sha256", {}, "/command/sha256", {{probe_, digest}}, cwd, "is not what /command/sha256 has", "ok"},
      {"/command/args/max", {}, "/command/args/max", 2, two, "/command/args", "[--two]"},
      {"/command/args/deny", {}, "/command/args/deny", List({"--two"}), two, "is denied by", "[--two]"},
      {"/command/args/allow",
       {},
       "/command/args/allow",
       List({"argv", "--one"}),
       two,
       "/command/args/allow",
       "[--two]"},
      {"/cwd/default",
       {{"filesystem", {{"ro", List({project_})}}}},
       "/cwd/default",
       "/usr/bin",
       cwd,
       "ok /usr/bin",
       home_.path()},
      {"/cwd/allow",
       {},
       "/cwd/allow",
       List({"/usr"}),
       {"--cwd", "/etc/ssl", probe_, "cwd"},
       "is not allowed",
       "/etc/ssl"},
      {"/env/inherit",
       {},
       "/env/inherit",
       List({"NOTES"}),
       {probe_, "env", "NOTES"},
       "ok theirs",
       "ENOENT",
       {{"NOTES", "theirs"}}},
      {"/env/set", {}, "/env/set", {{"NOTES", "ours"}}, {probe_, "env", "NOTES"}, "ok ours", "ENOENT"},
      {"/env/secret",
       {},
       "/env/secret",
       {{"KEY", {{"env", "NOTES"}}}},
       {probe_, "env", "KEY"},
       "ok theirs",
       "ENOENT",
       {{"NOTES", "theirs"}}},
      {"/env/secret/*/env",
       {},
       "/env/secret/KEY/env",
       "NOTES",
       {probe_, "env", "KEY"},
       "ok theirs",
       "ENOENT",
       {{"NOTES", "theirs"}}},
      {"/env/secret/*/file", {}, "/env/secret/KEY/file", secret, {probe_, "env", "KEY"}, "ok of a file", "ENOENT"},
      // The number is asked for; nothing is open there.
      {"/env/secret/*/fd", {}, "/env/secret/KEY/fd", 99, {probe_, "env", "KEY"}, "descriptor 99", "ENOENT"},
      {"/network/mode",
       {},
       "/network/mode",
       "host",
       {probe_, "connect-tcp", "127.0.0.1", listener_.port()},
       "ok",
       "ECONNREFUSED"},
      {"/network/allow", {}, "/network/allow", List({"127.0.0.1:1"}), cwd, "is not enforced yet", "ok"},
      {"/syscalls/profile",
       {},
       "/syscalls/profile",
       "strict",
       {probe_, "syscall", std::to_string(SYS_setfsuid), "-1"},
       "ENOSYS",
       "ok"},
      {"/syscalls/allow",
       {},
       "/syscalls/allow",
       List({"keyctl"}),
       {probe_, "syscall", std::to_string(SYS_keyctl), "0", "-3", "1"},
       "ok",
       "ENOSYS"},
      {"/syscalls/deny",
       {},
       "/syscalls/deny",
       List({"socket"}),
       {probe_, "syscall", std::to_string(SYS_socket), std::to_string(AF_INET), std::to_string(SOCK_STREAM), "0"},
       "EPERM",
       "ok"},
  };
}

// An entry of a list, as a path or with "optional", and the list.
std::vector<Case> FieldsTest::FileCases() const {
  const std::string plain = Write("plain", "in the home"), missing = home_.path() + "/missing";
  const std::string script = Write("more/script", "#!/bin/sh\necho script ran\n");
  chmod(script.c_str(), 0755);
  const Words read_note = {probe_, "read", note_}, write_note = {probe_, "write", note_, "new"};
  const Json writable = {{"filesystem", {{"rw", List({project_})}}}};
  std::vector<Case> cases = {
      {"/filesystem/protect", writable, "/filesystem/protect", List({note_}), write_note, "EROFS", "ok"},
      {"/filesystem/hide", writable, "/filesystem/hide", List({note_}), read_note, "error", "ok"},
      {"/filesystem/home", {}, "/filesystem/home", "ro", {probe_, "read", plain}, "in the home", "ENOENT"},
      {"/filesystem/tmp",
       {},
       "/filesystem/tmp",
       "host",
       {probe_, "read", plain},
       "in the home",
       "ENOENT",
       {{"HOME", "/opt"}}},
  };
  struct Grants {
    std::string name, path;
    Words words;
    std::string seen, seen_without;
  };
  const Grants lists[] = {
      {"rx", home_.path() + "/more", {probe_, "exec", script}, "script ran", "ENOENT"},
      {"ro", note_, read_note, "the note", "ENOENT"},
      {"rw", project_, write_note, "ok", "error"},
  };
  for (const Grants& list : lists) {
    const std::string field = "/filesystem/" + list.name;
    // The probe's folder is the first of rx.
    const std::string entry = field + (list.name == "rx" ? "/2" : "/0");
    if (list.name == "rx") {
      cases.push_back({field,
                       {{"filesystem", {{"rx", nullptr}}}},
                       field,
                       List({":runtime", home_.path() + "/more"}),
                       {script},
                       list.seen,
                       "not granted"});
    } else {
      cases.push_back({field, {}, field, List({list.path}), list.words, list.seen, list.seen_without});
    }
    cases.push_back({field + "/*/path", {}, entry, {{"path", list.path}}, list.words, list.seen, list.seen_without});
    const Json not_there = {{"path", missing}, {"optional", false}};
    Json without = {{"filesystem", {{list.name, Json::array({not_there})}}}};
    if (list.name == "rx") without["filesystem"]["rx"] = Json::array({":runtime", home_.path() + "/tools", not_there});
    cases.push_back(
        {field + "/*/optional", without, entry + "/optional", true, {probe_, "cwd"}, "ok", "does not exist"});
  }
  return cases;
}

std::vector<Case> FieldsTest::MachineCases() const {
  const std::string log = Write("log", "");
  const Words say = {"/bin/sh", "-c", "echo a word >&2"};
  return {
      {"/limits/memory", {}, "/limits/memory", "64MiB", {probe_, "memory", std::to_string(64 << 20)}, "ENOMEM", "ok"},
      {"/limits/processes", {}, "/limits/processes", 17, {probe_, "forkbomb", "17"}, "EAGAIN", "ok"},
      {"/limits/open_files", {}, "/limits/open_files", 20, {probe_, "openfiles", "30"}, "EMFILE", "ok 30"},
      {"/limits/file_size",
       {{"filesystem", {{"rw", List({project_})}}}},
       "/limits/file_size",
       "1KiB",
       {probe_, "filesize", project_ + "/large", "1025"},
       "EFBIG",
       "ok"},
      {"/limits/cpu_time", {}, "/limits/cpu_time", "7s", {probe_, "limit", "CPU"}, "7", "ok"},
      {"/stderr", {}, "/stderr", "discard", say, "", "a word"},
      {"/stderr/file", {}, "/stderr/file", log, say, "", "a word"},
  };
}

// Where a person's home lies below /tmp, as here, it is private inside the host's /tmp, and what is granted in it is
// mounted over that.
TEST_F(FieldsTest, APrivateHomeMayLieInTheHostsTmp) {
  const TemporaryFolder beside;
  chmod(beside.path().c_str(), 0755);
  const std::string seen = beside.Write("file", "beside the home"), unseen = Write("plain", "in the home");
  ASSERT_THAT(unseen, ::testing::StartsWith("/tmp/"));
  Json policy = LeastPolicy();
  policy["filesystem"]["tmp"] = "host";
  policy["filesystem"]["ro"] = List({note_});
  Case one;
  for (const auto& [path, answer] :
       std::map<std::string, std::string>{{seen, "beside the home"}, {note_, "the note"}, {unseen, "ENOENT"}}) {
    one.words = {probe_, "read", path};
    EXPECT_THAT(Run(policy, one), HasSubstr(answer)) << path;
  }
  policy["filesystem"]["home"] = "ro";
  one.words = {probe_, "read", unseen};
  EXPECT_THAT(Run(policy, one), HasSubstr("in the home"));
}

TEST_F(FieldsTest, EachOneMakesADifference) {
  std::vector<Case> cases = Cases();
  for (std::vector<Case>& more : std::vector<std::vector<Case>>{FileCases(), MachineCases()}) {
    cases.insert(cases.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  std::set<std::string> tried;
  for (const Case& one : cases) {
    SCOPED_TRACE(one.field + " at " + one.pointer);
    tried.insert(one.field);
    Json policy = LeastPolicy();
    if (!one.without.is_null()) policy.merge_patch(one.without);
    Write("project/note", "the note");
    const std::string without = Run(policy, one);
    EXPECT_THAT(without, HasSubstr(one.seen_without));
    policy[Json::json_pointer(one.pointer)] = one.value;
    const std::string with = Run(policy, one);
    EXPECT_THAT(with, HasSubstr(one.seen));
    EXPECT_NE(with, without);
  }
  for (const auto& [field, why] : kNoDifference) {
    EXPECT_TRUE(tried.insert(field).second) << field << " has a case, and is said to make no difference";
  }
  EXPECT_EQ(tried, FieldsOfTheSchema());
}

}  // namespace
}  // namespace bulkhead::cli
