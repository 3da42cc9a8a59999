// Whatever a server writes: no crash, every handler is called once, and what the client writes is a message that the
// era allows. The first bytes say how the host asks and answers; the rest is what the server writes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "asio/io_context.hpp"
#include "bulkhead/mcp/client.h"
#include "tests/fuzz/jsonrpc/check.h"

namespace bulkhead::mcp {
namespace {

class Host {
 public:
  explicit Host(const std::uint8_t* settings)
      : answers_(settings[1]), pieces_(settings[2]), has_handler_(settings[0] % 8 < 4) {
    int from[2], to[2];
    FUZZ_CHECK(pipe2(from, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC) == 0);
    server_output_ = from[1];
    server_input_ = to[0];
    fcntl(server_input_, F_SETFL, O_NONBLOCK);
    fcntl(server_output_, F_SETFL, O_NONBLOCK);
    ClientOptions options;
    options.era = static_cast<EraChoice>(settings[0] / 8 % 3);
    Client::Handlers handlers;
    handlers.on_notification = [this](absl::string_view method, absl::string_view) {
      FUZZ_CHECK(!is_failed_ && !method.empty());
    };
    handlers.on_dropped = [](absl::string_view, absl::string_view why) { FUZZ_CHECK(!why.empty()); };
    handlers.on_close = [this](jsonrpc::CloseReason, absl::Status detail) {
      FUZZ_CHECK(!is_closed_ && !detail.ok());
      is_closed_ = true;
    };
    if (has_handler_) {
      handlers.on_request = [this](const ServerRequest& request, Responder respond) {
        // A legacy server's method is any string; input that is asked for has one of its own, and an object or nothing.
        FUZZ_CHECK(!is_modern_ || !request.method.empty());
        FUZZ_CHECK(!is_modern_ || request.params.empty() || request.params[0] == '{');
        Answer(std::move(respond));
      };
    }
    client_ = std::make_unique<Client>(jsonrpc::Stream(context_, from[0]), jsonrpc::Stream(context_, to[1]), options,
                                       std::move(handlers));
    client_->Connect([this](const absl::Status& status) {
      FUZZ_CHECK(++connects_ == 1);
      if (status.ok()) Ask();
    });
    Run();
  }

  ~Host() {
    client_.reset();
    Run();
    close(server_input_);
    if (server_output_ >= 0) close(server_output_);
  }

  void ServerWrites(const std::uint8_t* data, std::size_t size) {
    for (std::size_t done = 0; done != size && !is_closed_;) {
      const std::size_t count = std::min(size - done, std::size_t{1} + pieces_ * pieces_);
      const ssize_t written = write(server_output_, data + done, count);
      if (written <= 0) break;
      done += static_cast<std::size_t>(written);
      Run();
    }
    close(server_output_);
    server_output_ = -1;
    Run();
    FUZZ_CHECK(is_closed_);
    later_.clear();
    client_->FailAll(absl::UnavailableError("the server ended"));
    is_failed_ = true;
    Run();
    FUZZ_CHECK(connects_ == 1 && client_->calls_in_flight() == 0);
    for (const int times : answered_) FUZZ_CHECK(times == 1);
  }

 private:
  void Run() {
    context_.restart();
    while (context_.poll() != 0) {
    }
    Read();
  }

  void Ask() {
    is_modern_ = client_->era() == Era::kModern;
    answered_.resize(4);
    CallOptions with_progress;
    with_progress.on_progress = [](const Progress&) {};
    const char* const methods[] = {"tools/call", "prompts/get", "resources/list", "subscriptions/listen"};
    for (std::size_t i = 0; i != answered_.size(); ++i) {
      const auto call =
          client_->Call(methods[i], i == 2 ? "" : R"({"name":"t"})", i % 2 == 0 ? with_progress : CallOptions(),
                        [this, i](const absl::StatusOr<Reply>&) { ++answered_[i]; });
      if (i == 3 && answers_ % 2 != 0) client_->Cancel(call, "not any more");
    }
    (void)client_->Notify("notifications/cancelled", R"({"requestId":1})");
  }

  void Answer(Responder respond) {
    switch ((answers_ >> (2 * (asked_++ % 4))) % 4) {
      case 0:
        return respond(std::string("{\"roots\":[]}"));
      case 1:
        return respond(jsonrpc::ErrorObject{-1, "no", ""});
      case 2:
        return respond(std::string("no JSON"));
      default:
        if (later_.size() < 8) later_.push_back(std::move(respond));  // else dropped
    }
  }

  void Read() {
    char buffer[4096];
    ssize_t count;
    while ((count = read(server_input_, buffer, sizeof buffer)) > 0)
      written_.append(buffer, static_cast<size_t>(count));
    std::size_t end;
    while ((end = written_.find('\n')) != std::string::npos) {
      Check(written_.substr(0, end));
      written_.erase(0, end + 1);
    }
  }

  void Check(const std::string& line) const {
    const auto parsed = jsonrpc::Message::Parse(line);
    const auto* const message = std::get_if<jsonrpc::Message>(&parsed);
    FUZZ_CHECK(message != nullptr);
    const bool is_request = message->kind() == jsonrpc::Message::Kind::kRequest;
    const bool is_notification = message->kind() == jsonrpc::Message::Kind::kNotification;
    if (is_modern_) FUZZ_CHECK(is_request || (is_notification && message->Is("notifications/cancelled")));
    if (connects_ == 0 && is_request) FUZZ_CHECK(message->Is("server/discover") || message->Is("initialize"));
  }

  asio::io_context context_;
  const unsigned answers_;
  const std::size_t pieces_;
  const bool has_handler_;
  int server_output_ = -1, server_input_ = -1;
  std::unique_ptr<Client> client_;
  std::string written_;
  std::vector<Responder> later_;
  std::vector<int> answered_;
  int connects_ = 0;
  unsigned asked_ = 0;
  bool is_modern_ = false, is_closed_ = false, is_failed_ = false;
};

}  // namespace
}  // namespace bulkhead::mcp

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kSettings = 3;
  if (size < kSettings) return 0;
  bulkhead::mcp::Host host(data);
  host.ServerWrites(data + kSettings, size - kSettings);
  return 0;
}
