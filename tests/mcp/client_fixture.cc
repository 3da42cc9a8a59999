#include "tests/mcp/client_fixture.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "asio/steady_timer.hpp"

namespace bulkhead::mcp {
namespace {

constexpr auto kPatience = std::chrono::seconds(10);
constexpr char kMetaVersion[] = "io.modelcontextprotocol/protocolVersion";

// Where the lines are kept: in the folder that schema/run.sh names, if it is there.
std::string LinesFile() {
  const char* folder = std::getenv("BULKHEAD_MCP_LINES");
  return folder == nullptr ? "" : absl::StrCat(folder, "/", getpid(), ".jsonl");
}

}  // namespace

std::string InitializeResult(absl::string_view version) {
  return absl::StrCat(R"({"protocolVersion":")", version,
                      R"(","capabilities":{"tools":{}},"serverInfo":{"name":"legacy server","version":"1"}})");
}

ClientTest::ClientTest() {
  options.info = {"tester", "1.0", R"({"roots":{"listChanged":true},"sampling":{}})"};
  handlers.on_dropped = [this](absl::string_view line, absl::string_view) { dropped.emplace_back(line); };
  handlers.on_notification = [this](absl::string_view method, absl::string_view) { notified.emplace_back(method); };
  handlers.on_close = [this](jsonrpc::CloseReason reason, const absl::Status&) { closed.push_back(reason); };
}

ClientTest::~ClientTest() {
  if (peer_input_ >= 0) {
    Run();
    Listen();
    KeepVersion();
    RecordLines();
  }
  client.reset();
  Run();
  HangUp();
  if (peer_input_ >= 0) close(peer_input_);
}

void ClientTest::Open() {
  int from[2], to[2];
  ASSERT_EQ(pipe2(from, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(to, O_CLOEXEC), 0);
  peer_output_ = from[1];
  peer_input_ = to[0];
  fcntl(peer_input_, F_SETFL, O_NONBLOCK);
  client = std::make_unique<Client>(jsonrpc::Stream(context, from[0]), jsonrpc::Stream(context, to[1]), options,
                                    std::move(handlers));
}

void ClientTest::Start(EraChoice era) {
  options.era = era;
  Open();
  client->Connect([this](absl::Status status) {
    connected = std::move(status);
    ++connected_count;
  });
}

void ClientTest::StartLegacy(absl::string_view version) {
  Start(EraChoice::kLegacy);
  Answer(Hear("initialize"), InitializeResult(version));
  Hear("notifications/initialized");
  ASSERT_TRUE(IsConnected());
  ASSERT_EQ(client->era(), Era::kLegacy);
}

void ClientTest::StartModern() {
  Start();
  Answer(Hear("server/discover"), kDiscoverResult);
  ASSERT_TRUE(IsConnected());
  ASSERT_EQ(client->era(), Era::kModern);
}

std::shared_ptr<Outcome> ClientTest::Call(absl::string_view method, absl::string_view params,
                                          const CallOptions& call_options) {
  auto outcome = std::make_shared<Outcome>();
  last_call = client->Call(method, std::string(params), call_options, [outcome](absl::StatusOr<Reply> reply) {
    ++outcome->count;
    outcome->reply = std::move(reply);
  });
  EXPECT_EQ(outcome->count, 0) << "no handler is called inside a call";
  return outcome;
}

void ClientTest::Run() {
  context.restart();
  while (context.poll() != 0) {
  }
  KeepVersion();
}

void ClientTest::RunUntil(const std::function<bool()>& is_done) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  Run();
  while (!is_done()) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "waited in vain";
    context.restart();
    context.run_one_until(deadline);
    Run();
  }
}

void ClientTest::RunFor(absl::Duration time) {
  asio::steady_timer timer(context, absl::ToChronoNanoseconds(time));
  bool is_over = false;
  timer.async_wait([&is_over](asio::error_code) { is_over = true; });
  RunUntil([&is_over] { return is_over; });
}

void ClientTest::Listen() {
  char buffer[65536];
  ssize_t count;
  while ((count = read(peer_input_, buffer, sizeof(buffer))) > 0) {
    partial_.append(buffer, static_cast<std::size_t>(count));
    std::size_t end;
    while ((end = partial_.find('\n')) != std::string::npos) {
      heard_.push_back(partial_.substr(0, end));
      unheard_.push_back(heard_.back());
      partial_.erase(0, end + 1);
    }
  }
}

std::string ClientTest::HearLine() {
  RunUntil([this] {
    Listen();
    return !unheard_.empty();
  });
  if (unheard_.empty()) return "null";
  std::string line = unheard_.front();
  unheard_.pop_front();
  return line;
}

Json ClientTest::Hear() {
  const std::string line = HearLine();
  Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  EXPECT_TRUE(message.is_object()) << line;
  return message.is_object() ? message : Json::object();
}

Json ClientTest::Hear(absl::string_view method) {
  Json message = Hear();
  EXPECT_EQ(message.value("method", ""), method) << message;
  return message;
}

bool ClientTest::HearsNothing() {
  Run();
  Listen();
  for (const std::string& line : unheard_) ADD_FAILURE() << "the client wrote " << line;
  return unheard_.empty() && partial_.empty();
}

void ClientTest::Say(absl::string_view line) {
  const std::string text = absl::StrCat(line, "\n");
  ASSERT_EQ(write(peer_output_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  Run();
}

void ClientTest::Answer(const Json& request, absl::string_view result) {
  Say(absl::StrCat(R"({"jsonrpc":"2.0","id":)", request.value("id", Json()).dump(), R"(,"result":)", result, "}"));
}

void ClientTest::Refuse(const Json& request, int code, absl::string_view data) {
  Say(absl::StrCat(R"({"jsonrpc":"2.0","id":)", request.value("id", Json()).dump(), R"(,"error":{"code":)", code,
                   R"(,"message":"refused")", data.empty() ? "" : R"(,"data":)", data, "}}"));
}

void ClientTest::Ask(absl::string_view id, absl::string_view method, absl::string_view params) {
  asked_[Json::parse(std::string(id)).dump()] = std::string(method);
  Say(absl::StrCat(R"({"jsonrpc":"2.0","id":)", id, R"(,"method":")", method, "\"",
                   params.empty() ? "" : ",\"params\":", params, "}"));
}

void ClientTest::HangUp() {
  if (peer_output_ >= 0) close(peer_output_);
  peer_output_ = -1;
}

void ClientTest::KeepVersion() {
  if (client && IsConnected()) version_ = client->server_info().protocol_version;
}

// One line for each: {"test", "version", "line", "answers"}, where "answers" is the method of the server's request.
void ClientTest::RecordLines() {
  const std::string path = LinesFile();
  if (path.empty()) return;
  const auto* info = testing::UnitTest::GetInstance()->current_test_info();
  const std::string test = absl::StrCat(info->test_suite_name(), ".", info->name());
  std::ofstream file(path, std::ios::app);
  const auto record = [&](const std::string& version, const std::string& line, const std::string& answers) {
    file << Json{{"test", test}, {"version", version}, {"line", line}, {"answers", answers}} << '\n';
  };
  for (const std::string& line : heard_) {
    const Json message = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    const Json params = message.is_object() ? message.value("params", Json::object()) : Json::object();
    const std::string of_request =
        params.value("_meta", Json::object()).value(kMetaVersion, params.value("protocolVersion", ""));
    const std::string settled = version_.empty() ? std::string(kLegacyVersions[0]) : version_;
    std::string answers;
    if (message.is_object() && !message.contains("method")) answers = asked_[message.value("id", Json()).dump()];
    record(of_request.empty() ? settled : of_request, line, answers);
    // What was offered has to make sense to who speaks an older version only.
    if (message.value("method", "") == "initialize" && IsKnown(settled, Era::kLegacy)) record(settled, line, answers);
  }
}

}  // namespace bulkhead::mcp
