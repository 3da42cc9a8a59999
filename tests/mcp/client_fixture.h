// A Client whose server is the test: it holds both ends of the pipes, and one thread runs everything. All that the
// Client writes is kept for schema/, which checks it against the specification.
#ifndef BULKHEAD_TESTS_MCP_CLIENT_FIXTURE_H_
#define BULKHEAD_TESTS_MCP_CLIENT_FIXTURE_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "asio/io_context.hpp"
#include "bulkhead/mcp/client.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace bulkhead::mcp {

using Json = nlohmann::json;

// How a call ended, and how often.
struct Outcome {
  int count = 0;
  absl::StatusOr<Reply> reply = absl::UnknownError("not called");

  absl::StatusCode code() const { return reply.status().code(); }
  std::string message() const { return std::string(reply.status().message()); }
  std::string result() const { return reply.ok() ? reply->result : "(none)"; }
  std::int64_t error_code() const { return reply.ok() && reply->error ? reply->error->code : 0; }
};

class ClientTest : public testing::Test {
 protected:
  ClientTest();
  ~ClientTest() override;

  // Opens the conversation and begins the handshake. `options` and `handlers` may be filled in before.
  void Start(EraChoice era = EraChoice::kAuto);
  void Open();
  void StartLegacy(absl::string_view version = "2025-11-25");  // to the end of the handshake
  void StartModern();

  // --- The client's side ---
  std::shared_ptr<Outcome> Call(absl::string_view method, absl::string_view params = "",
                                const CallOptions& call_options = {});
  Client::CallRef last_call;
  bool IsConnected() const { return connected.has_value() && connected->ok(); }
  // Until `is_done`, for at most ten seconds.
  void RunUntil(const std::function<bool()>& is_done);
  void RunUntilEnded(const std::shared_ptr<Outcome>& call) {
    RunUntil([&] { return call->count != 0; });
  }
  // Runs all that can run without waiting.
  void Run();
  // Lets time pass, as the client sees it.
  void RunFor(absl::Duration time);

  // --- The server's side ---
  std::string HearLine();               // the next line that the client writes, waiting for it
  Json Hear();                          // the same
  Json Hear(absl::string_view method);  // the same, which must be this request or notification
  bool HearsNothing();                  // that nothing was written, nor is about to be
  void Say(absl::string_view line);
  void Answer(const Json& request, absl::string_view result);
  void Refuse(const Json& request, int code, absl::string_view data = "");
  void Ask(absl::string_view id, absl::string_view method, absl::string_view params = "");
  void HangUp();  // closes the server's stdout

  asio::io_context context;
  ClientOptions options;
  Client::Handlers handlers;
  std::unique_ptr<Client> client;
  std::optional<absl::Status> connected;
  int connected_count = 0;
  std::vector<std::string> dropped, notified;  // lines; methods
  std::vector<jsonrpc::CloseReason> closed;

 private:
  void Listen();
  void KeepVersion();
  void RecordLines();

  int peer_output_ = -1, peer_input_ = -1;
  std::string partial_;
  std::deque<std::string> unheard_;
  std::vector<std::string> heard_;
  std::map<std::string, std::string> asked_;  // method of each request of the server, by its id
  std::string version_;
};

// What a server that speaks 2026-07-28 says to server/discover.
inline constexpr char kDiscoverResult[] =
    R"({"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},)"
    R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"modern server","version":"7"}},"ttlMs":0,)"
    R"("cacheScope":"private","instructions":"be kind"})";
std::string InitializeResult(absl::string_view version);

}  // namespace bulkhead::mcp

#endif  // BULKHEAD_TESTS_MCP_CLIENT_FIXTURE_H_
