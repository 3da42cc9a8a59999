// Connection is a JSON-RPC conversation over two byte streams: it reads lines, drops junk within limits, hands on
// messages, and writes without ever blocking. It knows nothing of processes, ids in flight or MCP: see ../mcp.
#ifndef BULKHEAD_JSONRPC_CONNECTION_H_
#define BULKHEAD_JSONRPC_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "bulkhead/jsonrpc/message.h"
#include "bulkhead/jsonrpc/stream.h"

namespace bulkhead::jsonrpc {

struct ConnectionOptions {
  std::size_t message_bytes_max = 8u << 20;  // of a line that is read, without its newline
  std::uint64_t junk_lines_max = 10;         // in a row that are tolerated; one more closes
  std::size_t queued_bytes_max = 16u << 20;  // that wait to be written; more closes
  bool accepts_batches = false;              // protocol version 2025-03-26: the messages of a batch come one by one
};

enum class CloseReason {
  kEndOfInput,       // the peer closed its side; all that it sent was delivered
  kReadFailed,       // read(2) failed
  kWriteFailed,      // the peer closed its input, which is noticed at once, or write(2) failed; what it had said is
                     // delivered first
  kWriteQueueFull,   // more than queued_bytes_max waited
  kMessageTooLarge,  // after all that came before was delivered
  kJunkOutput,       // more than junk_lines_max in a row
  kClosed,           // Close() was called; never given to on_close
};

// What was dropped so far, for reports.
struct JunkReport {
  std::uint64_t lines = 0;  // in all
  std::string first_bytes;  // of the first one, at most kJunkBytesKept
  JunkReason first_reason = JunkReason::kNotJson;
};
inline constexpr std::size_t kJunkBytesKept = 200;

// Threads: everything, handlers included, on one thread at a time: that of the streams' executor (a strand, if several
// threads run it). No handler is called from inside Send() or Start(). What a handler throws leaves the executor's
// run(), and the conversation goes on with the next line.
class Connection {
 public:
  struct Handlers {
    // The message is valid during the call only. May call anything here, and destroy the Connection.
    std::function<void(const Message&)> on_message;
    // Each dropped line. Optional.
    std::function<void(absl::string_view line, JunkReason reason)> on_junk;
    // Once, the last call; `detail` says what failed, for people. Nothing more is delivered, nor read unless Drain() is
    // called; what was queued is still written where that is possible. Not called for Close() and destruction.
    std::function<void(CloseReason reason, absl::Status detail)> on_close;
  };

  // `from_peer` and `to_peer` are made non-blocking.
  Connection(Stream from_peer, Stream to_peer, const ConnectionOptions& options, Handlers handlers);
  ~Connection();  // closes both streams; what waits is lost
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Start();

  // Queues one line (message.h makes them). Written as soon as the handler that is running has returned, together with
  // what else was queued by then. False when nothing is written any more, when the line closes the connection
  // (kWriteQueueFull: then on_close follows), or when its newline is not its last byte and its only one.
  bool Send(std::string line);
  bool Send(const LargeRequest& request);
  // From inside on_message only: a part of that message, for keeping. A large one does not take its memory twice: the
  // message is not valid any more then.
  std::string MoveOut(absl::string_view part);
  // Stops writing once what is queued is written, then closes to_peer. Reading goes on, and a failing write no longer
  // closes the connection. With `at_once`, what is queued is lost.
  void CloseInput(bool at_once);
  // Reads on, also after on_close, but what comes is thrown away unparsed: a server that is ending must not block on a
  // full pipe. Its end of input is still told, if no other end was.
  void Drain();
  void Close();  // both directions

  void set_accepts_batches(bool accepts);
  const JunkReport& junk() const;
  std::size_t queued_bytes() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace bulkhead::jsonrpc

#endif  // BULKHEAD_JSONRPC_CONNECTION_H_
