// A Connection with both ends of its pipes in the test's hands.
#ifndef BULKHEAD_TESTS_JSONRPC_CONNECTION_FIXTURE_H_
#define BULKHEAD_TESTS_JSONRPC_CONNECTION_FIXTURE_H_

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "asio/post.hpp"
#include "bulkhead/jsonrpc/connection.h"
#include "gtest/gtest.h"

namespace bulkhead::jsonrpc {

struct Pipe {
  Pipe() {
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) != 0) ADD_FAILURE() << "pipe2";
    read_end = fds[0];
    write_end = fds[1];
  }
  int read_end, write_end;
};

// The peer's ends block no test: what it writes must fit into a pipe, what it reads is what is there.
class ConnectionTest : public testing::Test {
 protected:
  ~ConnectionTest() override {
    connection.reset();
    PeerClosesItsOutput();
    PeerClosesItsInput();
  }

  void Open(const ConnectionOptions& options = ConnectionOptions()) {
    const Pipe from, to;
    peer_output = from.write_end;
    peer_input = to.read_end;
    fcntl(peer_input, F_SETFL, O_NONBLOCK);
    Connection::Handlers handlers;
    handlers.on_message = [this](const Message& message) {
      lines.emplace_back(message.line());
      if (on_message) on_message(message);
    };
    handlers.on_junk = [this](absl::string_view line, JunkReason reason) {
      junk.emplace_back(std::string(line), reason);
      if (on_junk) on_junk();
    };
    handlers.on_close = [this](CloseReason reason, absl::Status status) {
      EXPECT_FALSE(close_reason.has_value()) << "on_close came twice";
      close_reason = reason;
      detail = std::string(status.message());
      if (on_close) on_close();
    };
    connection = std::make_unique<Connection>(Stream(context, from.read_end), Stream(context, to.write_end), options,
                                              std::move(handlers));
    connection->Start();
  }

  // Runs all that can run without waiting.
  void Run() {
    context.restart();
    while (context.poll() != 0) {
    }
  }

  void PeerSays(absl::string_view text) {
    ASSERT_EQ(write(peer_output, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    Run();
  }
  void PeerClosesItsOutput() { CloseOnce(&peer_output); }
  void PeerClosesItsInput() { CloseOnce(&peer_input); }

  // All that is in the pipe. `*ended` says whether it was closed behind it.
  std::string PeerReads(bool* ended = nullptr) {
    std::string text;
    std::string buffer(1 << 20, '\0');
    ssize_t count;
    while ((count = read(peer_input, &buffer[0], buffer.size())) > 0)
      text.append(buffer, 0, static_cast<std::size_t>(count));
    if (ended != nullptr) *ended = count == 0;
    return text;
  }

  static void CloseOnce(int* fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }

  asio::io_context context;
  std::unique_ptr<Connection> connection;
  int peer_output = -1, peer_input = -1;
  std::vector<std::string> lines;
  std::vector<std::pair<std::string, JunkReason>> junk;
  std::optional<CloseReason> close_reason;
  std::string detail;
  std::function<void(const Message&)> on_message;
  std::function<void()> on_junk, on_close;
};

inline std::string Ping(int id) { return absl::StrCat(R"({"jsonrpc":"2.0","id":)", id, R"(,"method":"ping"})"); }

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_TESTS_JSONRPC_CONNECTION_FIXTURE_H_
