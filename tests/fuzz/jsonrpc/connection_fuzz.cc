// Whatever a peer writes, and whatever handlers do about it: no crash, no handler after the end, no loop that does not
// end. The first bytes say what the handlers do, and when; the rest is what the peer writes.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "asio/io_context.hpp"
#include "bulkhead/jsonrpc/connection.h"
#include "tests/fuzz/jsonrpc/check.h"

namespace bulkhead::jsonrpc {
namespace {

class Conversation {
 public:
  explicit Conversation(const std::uint8_t* settings)
      : action_(settings[0] % 8), action_at_(settings[1] % 16), pieces_(settings[2]) {
    int from[2], to[2];
    FUZZ_CHECK(pipe2(from, O_CLOEXEC) == 0 && pipe2(to, O_CLOEXEC) == 0);
    peer_output_ = from[1];
    peer_input_ = to[0];
    fcntl(peer_input_, F_SETFL, O_NONBLOCK);
    fcntl(peer_output_, F_SETFL, O_NONBLOCK);
    ConnectionOptions options;
    options.accepts_batches = settings[3] % 2 != 0;
    options.junk_lines_max = settings[3] / 2 % 8;
    options.message_bytes_max = settings[3] >= 128 ? 64 : 1 << 20;
    options.queued_bytes_max = 1000;
    Connection::Handlers handlers;
    handlers.on_message = [this](const Message& message) {
      FUZZ_CHECK(!message.line().empty());
      Act();
    };
    handlers.on_junk = [this](absl::string_view, JunkReason) { Act(); };
    handlers.on_close = [this](CloseReason reason, const absl::Status& detail) {
      FUZZ_CHECK(!is_over_ && reason != CloseReason::kClosed && !detail.ok());
      Act();
      is_over_ = true;
    };
    connection_ =
        std::make_unique<Connection>(Stream(context_, from[0]), Stream(context_, to[1]), options, std::move(handlers));
    connection_->Start();
  }
  ~Conversation() {
    connection_.reset();
    Run();
    close(peer_input_);
    if (peer_output_ >= 0) close(peer_output_);
  }

  void PeerWrites(const std::uint8_t* data, std::size_t size) {
    for (std::size_t done = 0; done != size;) {
      const std::size_t count = std::min(size - done, std::size_t{1} + pieces_ * pieces_);
      const absl::string_view piece(reinterpret_cast<const char*>(data) + done, count);
      const std::ptrdiff_t written = WriteWithoutSigpipe(peer_output_, &piece, 1);
      if (written <= 0) break;  // nobody reads: the connection is over
      done += static_cast<std::size_t>(written);
      Run();
    }
    close(peer_output_);
    peer_output_ = -1;
    Run();
    FUZZ_CHECK(is_over_);
  }

 private:
  void Run() {
    context_.restart();
    while (context_.poll() != 0) {
    }
  }

  void Act() {
    FUZZ_CHECK(!is_over_);
    char buffer[4096];
    while (read(peer_input_, buffer, sizeof buffer) > 0) {
    }
    if (calls_++ != action_at_) {
      if (action_ == 7) connection_->Send("{}\n");
      return;
    }
    switch (action_) {
      case 0:
        return;
      case 1:
        is_over_ = true;
        return connection_->Close();
      case 2:
        is_over_ = true;
        return connection_.reset();
      case 3:
        connection_->Drain();
        connection_->CloseInput(false);
        return;
      case 4:
        connection_->CloseInput(true);
        return;
      case 5:
        while (connection_->Send("{\"a\":\"0123456789\"}\n")) {  // until the queue is full
        }
        return;
      case 6:
        connection_->Send("{}\n");
        close(peer_input_);
        peer_input_ = open("/dev/null", O_RDONLY | O_CLOEXEC);
        return;
      default:
        return;
    }
  }

  const int action_, action_at_;
  const std::size_t pieces_;
  asio::io_context context_;
  std::unique_ptr<Connection> connection_;
  int peer_output_ = -1, peer_input_ = -1;
  int calls_ = 0;
  bool is_over_ = false;
};

}  // namespace
}  // namespace bulkhead::jsonrpc

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr std::size_t kSettings = 4;
  if (size < kSettings) return 0;
  bulkhead::jsonrpc::Conversation(data).PeerWrites(data + kSettings, size - kSettings);
  return 0;
}
