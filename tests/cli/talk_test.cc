// tools, resources, prompts, call and request, as people type them.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/cli/bulkhead_process.h"

namespace bulkhead::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

class TalkTest : public ::testing::Test {
 protected:
  TalkTest() {
    // Where every user can reach it: the build's own folder may be closed to others.
    std::ifstream in(Built("examples/demo-server"), std::ios::binary);
    server_ = home_.Write("server", std::string(std::istreambuf_iterator<char>(in), {}));
    chmod(server_.c_str(), 0755);
  }

  static std::string Built(const std::string& path) {
    return std::string(getenv("TEST_SRCDIR")) + "/" + getenv("TEST_WORKSPACE") + "/" + path;
  }

  // `bulkhead WORDS... SERVER`
  Result Ask(Words words) const {
    words.push_back(server_);
    return Start(std::move(words));
  }

  Result Start(Words words) const {
    Invocation invocation;
    // A server that is built with a sanitizer can't trace itself to look for leaks in a jail, and fails at its end.
    words.insert(words.begin() + 1, {"--env", "ASAN_OPTIONS=detect_leaks=0"});
    invocation.words = std::move(words);
    invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}};
    invocation.cwd = "/";
    // What the client writes, for tests/mcp/schema.
    if (const char* const lines = getenv("BULKHEAD_MCP_LINES")) {
      invocation.env["BULKHEAD_MCP_LINES"] = lines;
      invocation.env["BULKHEAD_MCP_TEST"] = "TalkTest";
      invocation.env["LD_PRELOAD"] = Built("tests/mcp/written_lines_preload.so");
    }
    return RunBulkhead(invocation);
  }

  TemporaryFolder home_;
  std::string server_;
};

TEST_F(TalkTest, ToolsAreListedWithTheirArguments) {
  const Result result = Ask({"tools"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(HasSubstr("echo\n    arguments: text\n    Answers with the text"),
                                HasSubstr("background?: boolean, command: array")));
}

TEST_F(TalkTest, ToolsAsJsonAreWhatTheServerSent) {
  const Result result = Ask({"tools", "--json"});
  const auto json = nlohmann::json::parse(result.out);
  ASSERT_EQ(json["tools"].size(), 4u);
  EXPECT_EQ(json["tools"][0]["name"], "echo");
}

TEST_F(TalkTest, WhatAServerDoesNotOfferIsSaid) {
  for (const char* command : {"resources", "prompts"}) {
    const Result result = Ask({command});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, std::string("bulkhead: the server offers no ") + command + "\n");
  }
  EXPECT_EQ(Ask({"resources", "--json"}).out, "{\"resources\":[],\"resourceTemplates\":[]}\n");
}

TEST_F(TalkTest, ACallPrintsTheText) {
  const Result result = Ask({"call", "--tool", "echo", "--arg", "text=a door"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "a door\n");
  EXPECT_EQ(result.err, "");
}

TEST_F(TalkTest, TheSchemaSaysWhatAnArgumentIs) {
  EXPECT_EQ(Ask({"call", "--tool", "echo", "--arg", "text=12"}).out, "12\n");  // text, though it looks like a number
  const Result spawned = Ask({"call", "--tool", "spawn", "--arg", "command=[\"/bin/echo\", \"spawned\"]"});
  EXPECT_THAT(spawned.out, HasSubstr("spawned"));
  EXPECT_EQ(Ask({"call", "--tool", "echo", "--arguments", "{\"text\":\"x\"}"}).out, "x\n");
}

// What `bulkhead WORDS` writes to a terminal that is its stdout.
class TerminalTest : public TalkTest {
 protected:
  std::string OnTerminal(Words words) const {
    const int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (grantpt(master) != 0 || unlockpt(master) != 0) return "no terminal";
    Invocation invocation;
    invocation.stdout_path = ptsname(master);
    // Else what was written is lost when the last one closes it.
    const int kept = open(invocation.stdout_path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    words.insert(words.begin() + 1, {"--env", "ASAN_OPTIONS=detect_leaks=0"});
    words.push_back(server_);
    invocation.words = std::move(words);
    invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}};
    EXPECT_EQ(RunBulkhead(invocation).exit_code, 0);
    char buffer[4096];
    const ssize_t got = read(master, buffer, sizeof buffer);
    close(kept);
    close(master);
    return std::string(buffer, got < 0 ? 0 : static_cast<std::size_t>(got));
  }
};

TEST_F(TerminalTest, ServersTextDoesNotDriveIt) {
  const Words call = {"call", "--tool", "echo", "--arg", "text=a\tb\x1b[31m\u009b31m\u202e"};
  // In a pipe it is what the server sent.
  EXPECT_EQ(Ask(call).out, "a\tb\x1b[31m\u009b31m\u202e\n");
  EXPECT_THAT(OnTerminal(call), HasSubstr("b\\x1b[31m\\u009b31m\\u202e\r\n"));
  // A result that is shown as JSON: there the server may send C1 as it is.
  const std::string params = "{\"name\":\"echo\",\"arguments\":{\"text\":\"\u009b31m\"}}";
  const Words request = {"request", "--method", "tools/call", "--params", params};
  EXPECT_THAT(Ask(request).out, HasSubstr("\u009b31m"));
  EXPECT_THAT(OnTerminal(request), ::testing::AllOf(HasSubstr("\\u009b31m"), ::testing::Not(HasSubstr("\u009b"))));
}

TEST_F(TalkTest, AToolThatFailsIsOne) {
  const Result result = Ask({"call", "--tool", "read_file", "--arg", "path=/nowhere"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.out, HasSubstr("/nowhere"));
}

TEST_F(TalkTest, AToolThatIsNotThereIsNamedWithTheNearest) {
  const Result result = Ask({"call", "--tool", "ehco"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "bulkhead: the server has no tool ehco; did you mean \"echo\"?\n");
}

TEST_F(TalkTest, AnArgumentThatTheToolDoesNotHaveIsNamedAfterAFailure) {
  const Result result = Ask({"call", "--tool", "echo", "--arg", "txet=a door"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("bulkhead: echo declares no argument txet; did you mean \"text\"?\n"),
                                HasSubstr("bulkhead: echo needs the argument text\n")));
  // Not what is right, and nothing when all went well.
  const Result failed = Ask({"call", "--tool", "read_file", "--arg", "path=/nowhere"});
  EXPECT_EQ(failed.exit_code, 1);
  EXPECT_EQ(failed.err, "");
}

TEST_F(TalkTest, JsonMayHaveSpaceAroundIt) {
  EXPECT_EQ(Ask({"call", "--tool", "echo", "--arguments", "\n {\"text\":\"x\"}\n"}).out, "x\n");
  EXPECT_EQ(Ask({"request", "--method", "ping", "--params", " {}\n"}).out, "{}\n");
}

TEST_F(TalkTest, TheServerIsInTheJail) {
  const std::string secret = home_.Write("secret", "the secret");
  const Result inside = Ask({"call", "--tool", "read_file", "--arg", "path=" + secret});
  EXPECT_EQ(inside.exit_code, 1);
  EXPECT_THAT(inside.out, HasSubstr("No such file"));
  const Result granted = Ask({"call", "--ro", secret, "--tool", "read_file", "--arg", "path=" + secret});
  EXPECT_EQ(granted.exit_code, 0);
  EXPECT_THAT(granted.out, StartsWith("the secret"));
}

TEST_F(TalkTest, ARequestPrintsTheResultOrTheWholeExchange) {
  EXPECT_EQ(Ask({"request", "--method", "ping"}).out, "{}\n");
  const auto json = nlohmann::json::parse(Ask({"request", "--json", "--method", "ping"}).out);
  EXPECT_EQ(json["request"]["method"], "ping");
  EXPECT_EQ(json["response"]["result"], nlohmann::json::object());
  EXPECT_EQ(json["request"]["id"], json["response"]["id"]);
  EXPECT_EQ(json["stderr"], nullptr);
  EXPECT_EQ(json["exit"]["code"], 0);
}

TEST_F(TalkTest, AnErrorOfTheServerIsOne) {
  const Result result = Ask({"request", "--method", "no/such"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("the server answered no/such with an error: "));
  EXPECT_THAT(result.err, Not(HasSubstr("did you mean")));
  EXPECT_THAT(Ask({"request", "--method", "tools/lst"}).err, HasSubstr("bulkhead: did you mean tools/list?\n"));
  const auto json = nlohmann::json::parse(Ask({"request", "--json", "--method", "no/such"}).out);
  EXPECT_EQ(json["response"]["error"]["code"], -32601);
}

TEST_F(TalkTest, AServerThatEndsIsNamedWithItsLastWords) {
  const Result result = Start({"tools", "/bin/sh", "-c", "echo no database >&2; exit 3"});
  EXPECT_EQ(result.exit_code, 125);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("exited with code 3"), HasSubstr("bulkhead: no database\n")));
}

TEST_F(TalkTest, AServerThatCannotSeeItsFileIsToldHow) {
  const std::string script = home_.Write("server.sh", "exit 0");
  const Result result = Start({"tools", "/bin/sh", script});
  EXPECT_EQ(result.exit_code, 125);
  EXPECT_THAT(result.err, HasSubstr("add --ro " + script));
}

TEST_F(TalkTest, ExitCodesAreThoseOfRun) {
  EXPECT_EQ(Start({"tools", "/no/such/server"}).exit_code, 127);
  EXPECT_EQ(Start({"call", "--tool", "x", "/etc/passwd"}).exit_code, 126);
  EXPECT_EQ(Start({"request", "--method", "ping", "--policy", "/no/such.json", "/bin/true"}).exit_code, 125);
}

// The server saves, when its stdin has ended, what has come out of us by then; and has to be killed.
TEST_F(TalkTest, A5TheResultIsPrintedBeforeTheServerIsEnded) {
  const std::string out = home_.Write("out", ""), saved = home_.Write("saved", "");
  chmod(saved.c_str(), 0666);
  const std::string policy =
      home_.Write("policy.json", R"({"version":1,"extends":["preset:default"],"filesystem":{"rx":[")" + server_ +
                                     R"("]},"timeouts":{"stdin_grace":"200ms","term_grace":"200ms"}})");
  Invocation invocation;
  const std::string script =
      "\"$0\"; until [ -s \"$1\" ]; do :; done; cat \"$1\" > \"$2\"; trap '' TERM; while :; do sleep 1; done";
  for (const std::string command : {"call", "request"}) {
    invocation.words = {command, "--policy", policy, "--ro", out, "--rw", saved};
    for (const char* word : command == "call" ? std::vector<const char*>{"--tool", "echo", "--arg", "text=a door"}
                                              : std::vector<const char*>{"--method", "ping"}) {
      invocation.words.emplace_back(word);
    }
    for (const std::string& word : {std::string("/bin/sh"), std::string("-c"), script, server_, out, saved}) {
      invocation.words.push_back(word);
    }
    invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}};
    invocation.stdout_path = out;
    home_.Write("out", "");
    const auto begin = std::chrono::steady_clock::now();
    const Result result = RunBulkhead(invocation);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
    std::ifstream file(saved);
    std::string text;
    std::getline(file, text);
    EXPECT_EQ(text, command == "call" ? "a door" : "{}") << command;
  }
}

// With a server that does what its arguments say.
class ScriptedTest : public TalkTest {
 protected:
  ScriptedTest() {
    std::ifstream in(Built("tests/programs/scripted_server"), std::ios::binary);
    scripted_ = home_.Write("scripted", std::string(std::istreambuf_iterator<char>(in), {}));
    chmod(scripted_.c_str(), 0755);
  }

  std::string scripted_;
};

TEST_F(ScriptedTest, OfManyToolsSomeAreNamed) {
  const auto with_tools = [this](int count) {
    std::string tools;
    for (int i = 0; i != count; ++i)
      tools += std::string(i == 0 ? "" : ",") + R"({"name":"tool)" + std::to_string(i) + "\"}";
    return Start({"call", "--tool", "nothing-like-it", scripted_, "legacy",
                  R"(tools/list answer {"tools":[)" + tools + "]}"})
        .err;
  };
  EXPECT_THAT(with_tools(30), testing::EndsWith(", tool28, tool29)\n"));
  EXPECT_THAT(with_tools(31), testing::EndsWith(", tool28, tool29 and 1 more)\n"));
}

// What Ctrl-C does. The server notes down what it sees.
class InterruptTest : public ScriptedTest {
 protected:
  // `command` asks for the tool "slow". Long graces: nothing else would end the server in time. A rule's verb `note` is
  // to append to the notes.
  Result Interrupt(const std::string& command, const std::vector<std::pair<std::string, std::string>>& rules,
                   std::vector<std::pair<std::string, int>> signals, const std::string& stdin_grace = "20s",
                   bool signals_after_output = false) const {
    Invocation invocation;
    invocation.signals_after_output = signals_after_output;
    invocation.signals_file = home_.Write("notes", "");
    chmod(invocation.signals_file.c_str(), 0666);
    const std::string policy = home_.Write(
        "policy.json", R"({"version":1,"extends":["preset:default"],"filesystem":{"rx":[")" + scripted_ +
                           R"("]},"timeouts":{"stdin_grace":")" + stdin_grace + R"(","term_grace":"60s"}})");
    invocation.words = {command, "--policy", policy, "--rw", invocation.signals_file};
    const Words call = {"--tool", "slow"}, request = {"--method", "tools/call", "--params", R"({"name":"slow"})"};
    const Words& asked = command == "call" ? call : request;
    invocation.words.insert(invocation.words.end(), asked.begin(), asked.end());
    for (const char* word : {scripted_.c_str(), "legacy", R"(tools/list answer {"tools":[{"name":"slow"}]})"}) {
      invocation.words.emplace_back(word);
    }
    for (const auto& [when, rest] : rules) {
      const bool is_note = rest.rfind("note ", 0) == 0;
      invocation.words.push_back(when + " " + (is_note ? "append " + invocation.signals_file + rest.substr(4) : rest));
    }
    invocation.env = {{"HOME", home_.path()}, {"PATH", "/usr/bin:/bin"}};
    invocation.signals = std::move(signals);
    return RunBulkhead(invocation);
  }

  std::string Notes() const {
    std::ifstream file(home_.path() + "/notes");
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  // Whether no process is left that was started from the test's folder. Who is killed is there for a moment still.
  bool ServerGoes() const {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (ServerIsThere()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  bool ServerIsThere() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "cmdline");
      std::string words;
      std::getline(file, words);
      if (words.find(scripted_) != std::string::npos) return true;
    }
    return false;
  }
};

TEST_F(InterruptTest, TheFirstCancelsTheCallAndStopsTheServerGently) {
  for (const std::string command : {"call", "request"}) {
    for (const int signal : {SIGINT, SIGTERM}) {
      SCOPED_TRACE(testing::Message() << command << " " << signal);
      const Result result = Interrupt(command,
                                      {{"tools/call", "note it runs"},
                                       {"notifications/cancelled", "note cancelled $line"},
                                       {"eof", "note the end"}},
                                      {{"it runs", signal}});
      EXPECT_EQ(result.exit_code, 128 + signal);
      EXPECT_EQ(result.err.find("bulkhead: server"), std::string::npos) << result.err;
      EXPECT_EQ(result.out, "");
      EXPECT_THAT(Notes(), AllOf(StartsWith("it runs\ncancelled {"), testing::EndsWith("}\nthe end\n")));
      EXPECT_TRUE(ServerGoes());
    }
  }
}

TEST_F(InterruptTest, TheNextKills) {
  for (const std::string command : {"call", "request"}) {
    SCOPED_TRACE(command);
    const Result result =
        Interrupt(command, {{"term", "note I stay"}, {"tools/call", "note it runs"}, {"tools/call", "stay"}},
                  {{"it runs", SIGINT}, {"I stay", SIGINT}}, /*stdin_grace=*/"100ms");
    EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
    EXPECT_TRUE(ServerGoes());
  }
}

// The answer is there, and only the server's end is waited for.
TEST_F(InterruptTest, WhileTheServerIsStoppedTheFirstKills) {
  for (const std::string command : {"call", "request"}) {
    SCOPED_TRACE(command);
    const Result result = Interrupt(
        command,
        {{"tools/call", R"(answer {"content":[{"type":"text","text":"x"}]})"}, {"eof", "note I stay"}, {"eof", "stay"}},
        {{"I stay", SIGINT}}, "20s", /*signals_after_output=*/true);
    EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
    EXPECT_TRUE(ServerGoes());
  }
}

TEST_F(InterruptTest, DuringTheStartItStopsTheServer) {
  for (const std::string command : {"call", "request"}) {
    SCOPED_TRACE(command);
    const Result result =
        Interrupt(command, {{"line", "note it is asked"}, {"line", "stay"}}, {{"it is asked", SIGINT}},
                  /*stdin_grace=*/"100ms");
    EXPECT_EQ(result.exit_code, 128 + SIGINT) << result.err;
    EXPECT_TRUE(ServerGoes());
  }
}

TEST_F(TalkTest, ARequestIsDoneWithinItsTimeout) {
  const Result result = Start({"request", "--timeout", "300ms", "--method", "ping", "/bin/sleep", "100"});
  EXPECT_THAT(result.err, HasSubstr("no answer to ping within 300ms"));
  EXPECT_EQ(result.exit_code, 125);
}

}  // namespace
}  // namespace bulkhead::cli
