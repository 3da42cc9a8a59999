// One Session with a server, by a script that comes line by line on stdin, for interop.py:
//
//   session_talk POLICY COMMAND [ARG...]      in the workspace
//
//   call METHOD [PARAMS]   notify METHOD [PARAMS]   subscribe FILTER   unsubscribe
//
// Each is answered with a line: {"ready":ERA}, {"result":...}, {"error":CODE}, {"failed":WHY}, {"notified":true}. What
// the server says by itself comes as {"notification":METHOD,"params":...}. Its requests are answered from a table. The
// end of stdin ends the session.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/posix/stream_descriptor.hpp"
#include "asio/read_until.hpp"
#include "asio/streambuf.hpp"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/mcp/session.h"
#include "bulkhead/policy/load.h"

namespace bulkhead::mcp {
namespace {

const std::map<std::string, std::string>& Answers() {
  static const auto& answers = *new std::map<std::string, std::string>{
      {"roots/list", R"({"roots":[{"uri":"file:///srv","name":"srv"}]})"},
      {"sampling/createMessage",
       R"({"role":"assistant","content":{"type":"text","text":"sampled"},"model":"none","stopReason":"endTurn"})"},
      {"elicitation/create", R"({"action":"accept","content":{"name":"the crew"}})"}};
  return answers;
}

void Say(const std::string& line) { std::cout << line << std::endl; }

class Talker {
 public:
  Talker(policy::Policy policy, policy::CommandRequest request) : input_(io_, STDIN_FILENO) {
    SessionOptions options;
    options.restart = false;
    options.client = {"bulkhead-interop", "1.0.0",
                      R"({"roots":{"listChanged":true},"sampling":{},"elicitation":{"form":{}}})"};
    options.on_notification = [](absl::string_view method, absl::string_view params) {
      Say(absl::StrCat("{\"notification\":", jsonrpc::QuoteJson(method),
                       ",\"params\":", params.empty() ? "null" : params, "}"));
    };
    options.on_request = [](const ServerRequest& asked, Responder respond) {
      const auto answer = Answers().find(std::string(asked.method));
      if (answer == Answers().end()) return respond(jsonrpc::ErrorObject{-32601, "Method not found", ""});
      respond(answer->second);
    };
    session_ = std::make_unique<Session>(io_.get_executor(), std::move(policy), std::move(request), std::move(options));
  }

  int Run() {
    session_->AsyncConnect([this](const absl::Status& status) {
      if (!status.ok()) return Fail(status);
      Say(session_->era() == Era::kModern ? R"({"ready":"modern"})" : R"({"ready":"legacy"})");
      NextLine();
    });
    io_.run();
    return exit_code_;
  }

 private:
  void NextLine() {
    asio::async_read_until(input_, buffer_, '\n', [this](asio::error_code error, std::size_t) {
      if (error) return session_->AsyncClose([](const ServerEnd&) {});
      std::istream stream(&buffer_);
      std::string line;
      std::getline(stream, line);
      const std::size_t space = line.find(' ');
      Obey(line.substr(0, space), space == std::string::npos ? "" : line.substr(space + 1));
      NextLine();
    });
  }

  void Obey(const std::string& verb, const std::string& rest) {
    const std::size_t space = rest.find(' ');
    const std::string method = rest.substr(0, space);
    const std::string params = space == std::string::npos ? "" : rest.substr(space + 1);
    if (verb == "subscribe") {
      subscription_ = session_->Subscribe(rest);
    } else if (verb == "unsubscribe") {
      session_->Unsubscribe(subscription_);
    } else if (verb == "notify") {
      session_->AsyncNotify(method, params, [this](const absl::Status& status) {
        if (!status.ok()) return Fail(status);
        Say(R"({"notified":true})");
      });
    } else if (verb == "call") {
      session_->AsyncCall(method, params, {}, [this](const absl::StatusOr<Reply>& reply) {
        if (!reply.ok()) return Fail(reply.status());
        Say(reply->error ? absl::StrCat("{\"error\":", reply->error->code, "}")
                         : absl::StrCat("{\"result\":", reply->result, "}"));
      });
    }
  }

  void Fail(const absl::Status& status) {
    Say(absl::StrCat("{\"failed\":", jsonrpc::QuoteJson(status.message()), "}"));
    exit_code_ = 1;
    io_.stop();
  }

  asio::io_context io_;
  asio::posix::stream_descriptor input_;
  asio::streambuf buffer_;
  std::unique_ptr<Session> session_;
  Session::SubscriptionId subscription_ = 0;
  int exit_code_ = 0;
};

}  // namespace
}  // namespace bulkhead::mcp

int main(int argc, char** argv) {
  using namespace bulkhead;  // NOLINT: a program of its own
  if (argc < 3) return 64;
  policy::ParseOptions options;
  options.variables.workspace = std::filesystem::current_path();
  if (const char* const home = std::getenv("HOME")) {
    options.variables.home = home;
    options.variables.cache_root = absl::StrCat(home, "/.cache/bulkhead");
  }
  auto policy = policy::LoadPolicy(argv[1], options);
  if (!policy.ok()) {
    std::cerr << policy.status() << "\n";
    return 125;
  }
  policy::CommandRequest request;
  request.argv.assign(argv + 2, argv + argc);
  request.host_cwd = "/";
  for (const char* const name : {"HOME", "PATH", "LOGNAME", "USER"}) {
    if (const char* const value = std::getenv(name)) request.host_env.emplace(name, value);
  }
  return mcp::Talker(*std::move(policy), std::move(request)).Run();
}
