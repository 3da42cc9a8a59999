#include "bulkhead/jsonrpc/connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "asio/post.hpp"
#include "bulkhead/jsonrpc/call_out.h"
#include "bulkhead/jsonrpc/line_framer.h"
#include "bulkhead/jsonrpc/write_queue.h"

namespace bulkhead::jsonrpc {
namespace {

// What one connection may read, and write, before the others have their turn.
constexpr std::size_t kBytesPerTurn = 1u << 20;
constexpr int kReadsPerTurn = 64;

// A backlog from here on, or a read of a whole pipe, is large: a larger pipe then means fewer switches between us and
// the peer.
constexpr std::size_t kLargeBytes = 128u << 10;
constexpr std::size_t kDefaultPipeBytes = 64u << 10;

constexpr std::size_t kDiscardedAtOnce = 16u << 10;

bool IsBlank(absl::string_view line) { return line.find_first_not_of(" \t\r\v\f") == absl::string_view::npos; }

// A failure of close(2) leaves the descriptor closed, and tells nothing of what was said.
void CloseStream(Stream* stream) {
  asio::error_code ignored;
  stream->close(ignored);
}

}  // namespace

// Kept alive by the operations that are under way. After each call of a handler, everything may have changed: the
// handler may have called any function of Connection or destroyed it.
class Connection::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(Stream from_peer, Stream to_peer, const ConnectionOptions& options, Handlers handlers)
      : from_(std::move(from_peer)),
        to_(std::move(to_peer)),
        options_(options),
        handlers_(std::move(handlers)),
        framer_(options.message_bytes_max),
        queue_(options.queued_bytes_max) {
    MakeNonBlocking(&from_);
    MakeNonBlocking(&to_);
  }

  void Start() {
    if (reading_ != Reading::kNotYet) return;
    reading_ = Reading::kLines;
    ContinueReading(Next::kWait);
    WatchPeersInput();
  }
  bool Send(std::string line);
  bool Send(const LargeRequest& request);
  std::string MoveOut(absl::string_view part) { return framer_.MoveOut(part); }
  void CloseInput(bool at_once);
  void Drain() {
    if (!from_.is_open()) return;
    reading_ = Reading::kDiscard;
    ContinueReading(Next::kWait);
  }
  void Close();

  void set_accepts_batches(bool accepts) { options_.accepts_batches = accepts; }
  const JunkReport& junk() const { return junk_; }
  std::size_t queued_bytes() const { return queue_.bytes(); }

 private:
  enum class Reading { kNotYet, kLines, kDiscard, kStopped };
  enum class Next { kWait, kAgain };

  void ContinueReading(Next next);
  void ReadTurn();
  Next ReadSome();
  void ReadForTheLastTime();
  void DeliverTail();
  void DeliverLines();
  void HandleLine(absl::string_view line);
  void HandleBatch(absl::string_view line);
  void HandleElement(absl::string_view text);
  void HandleMessage(const Message& message);
  void HandleJunk(absl::string_view line, JunkReason reason);

  bool AfterPush(bool is_taken);
  void FlushSoon();
  void Flush();
  void WaitToWrite();
  void WatchPeersInput();
  void OnWriteFailed(int error);

  void Finish(CloseReason reason, absl::Status detail);
  void ReleaseHandlers();

  Stream from_;
  Stream to_;
  ConnectionOptions options_;
  Handlers handlers_;
  LineFramer framer_;
  WriteQueue queue_;
  JunkReport junk_;
  std::uint64_t junk_in_a_row_ = 0;
  Reading reading_ = Reading::kNotYet;
  bool read_is_pending_ = false;  // a wait or a turn will come
  bool in_read_turn_ = false;     // which flushes at its end
  bool in_handler_ = false;
  bool flush_is_pending_ = false;  // a wait or a flush will come
  bool takes_lines_ = true;        // to write
  bool closes_when_flushed_ = false;
  bool is_finished_ = false;  // no handler is called any more
  PipeSize from_size_;
  PipeSize to_size_;
};

// ---- Reading

void Connection::Impl::ContinueReading(Next next) {
  if (read_is_pending_ || in_read_turn_ || !from_.is_open()) return;
  if (reading_ != Reading::kLines && reading_ != Reading::kDiscard) return;
  read_is_pending_ = true;
  if (next == Next::kAgain) {
    asio::post(from_.get_executor(), [self = shared_from_this()] { self->ReadTurn(); });
    return;
  }
  from_.async_wait(Stream::wait_read, [self = shared_from_this()](asio::error_code) { self->ReadTurn(); });
}

void Connection::Impl::ReadTurn() {
  read_is_pending_ = false;
  in_read_turn_ = true;
  const Next next = ReadSome();
  in_read_turn_ = false;
  if (reading_ != Reading::kLines) framer_ = LineFramer(0);  // gives its memory back
  ContinueReading(next);
}

// Straight into the framer: while there is nothing to read, there is no buffer.
Connection::Impl::Next Connection::Impl::ReadSome() {
  std::size_t bytes = 0;
  for (int reads = 0; reads != kReadsPerTurn && bytes < kBytesPerTurn; ++reads) {
    if (!from_.is_open() || (reading_ != Reading::kLines && reading_ != Reading::kDiscard)) return Next::kWait;
    std::array<char, kDiscardedAtOnce> discarded;
    const absl::Span<char> space = reading_ == Reading::kDiscard ? absl::MakeSpan(discarded) : framer_.Space();
    const std::ptrdiff_t count = jsonrpc::ReadSome(&from_, space);
    if (count == -EAGAIN) return Next::kWait;
    if (count < 0) {
      CloseStream(&from_);
      Finish(CloseReason::kReadFailed, absl::UnavailableError(absl::StrCat("can't read from the peer: ",
                                                                           std::strerror(static_cast<int>(-count)))));
      return Next::kWait;
    }
    if (count == 0) {
      DeliverTail();
      Flush();
      Finish(CloseReason::kEndOfInput, absl::UnavailableError("the peer closed its output"));
      return Next::kWait;
    }
    bytes += static_cast<std::size_t>(count);
    if (reading_ == Reading::kLines) {
      if (static_cast<std::size_t>(count) >= kDefaultPipeBytes) from_size_.Enlarge(&from_);
      framer_.Commit(static_cast<std::size_t>(count));
      DeliverLines();
      Flush();
    }
    if (static_cast<std::size_t>(count) < space.size()) {
      if (from_size_.is_tried() && framer_.empty() && from_.is_open()) from_size_.Restore(&from_);
      return Next::kWait;
    }
  }
  return Next::kAgain;
}

// The stream has ended. A last line without newline is delivered if it is whole; part of a line is not junk.
void Connection::Impl::DeliverTail() {
  CloseStream(&from_);
  if (reading_ != Reading::kLines) return;
  const std::optional<absl::string_view> tail = framer_.Tail();
  if (!tail) return;
  const auto parsed = Message::Parse(*tail);
  if (const Message* const message = std::get_if<Message>(&parsed)) return HandleMessage(*message);
  if (std::get<JunkReason>(parsed) == JunkReason::kBatch && options_.accepts_batches) HandleBatch(*tail);
}

// Nothing can be written any more, but what the peer said before it went may be in the pipe still. At most a pipe full:
// a peer that goes on talking must not put off its end.
void Connection::Impl::ReadForTheLastTime() {
  std::size_t bytes = 0;
  while (reading_ == Reading::kLines && from_.is_open() && bytes < kBytesPerTurn) {
    const absl::Span<char> space = framer_.Space();
    const std::ptrdiff_t count = jsonrpc::ReadSome(&from_, space);
    if (count < 0) return;
    if (count == 0) return DeliverTail();
    bytes += static_cast<std::size_t>(count);
    framer_.Commit(static_cast<std::size_t>(count));
    DeliverLines();
  }
}

void Connection::Impl::DeliverLines() {
  absl::string_view line;
  while (reading_ == Reading::kLines && from_.is_open()) {
    switch (framer_.Next(&line)) {
      case LineFramer::Event::kLine:
        HandleLine(line);
        break;
      case LineFramer::Event::kNeedsMore:
        return;
      case LineFramer::Event::kTooLong:
        Finish(CloseReason::kMessageTooLarge, absl::ResourceExhaustedError(absl::StrCat(
                                                  "the peer wrote a line of more than ", options_.message_bytes_max,
                                                  " bytes; raise max_message_bytes if it may")));
        return;
    }
  }
}

void Connection::Impl::HandleLine(absl::string_view line) {
  if (IsBlank(line)) return;
  const auto parsed = Message::Parse(line);
  if (const Message* const message = std::get_if<Message>(&parsed)) return HandleMessage(*message);
  const auto reason = std::get<JunkReason>(parsed);
  if (reason == JunkReason::kBatch && options_.accepts_batches) return HandleBatch(line);
  HandleJunk(line, reason);
}

void Connection::Impl::HandleBatch(absl::string_view line) {
  const absl::Status split = SplitBatch(line, [this](absl::string_view element) { HandleElement(element); });
  if (!split.ok()) HandleJunk(line, JunkReason::kNotAMessage);  // []
}

void Connection::Impl::HandleElement(absl::string_view text) {
  if (reading_ != Reading::kLines) return;
  const auto parsed = Message::Parse(text);
  if (const Message* const message = std::get_if<Message>(&parsed)) return HandleMessage(*message);
  const auto reason = std::get<JunkReason>(parsed);
  // A batch in a batch is none.
  HandleJunk(text, reason == JunkReason::kBatch ? JunkReason::kNotAMessage : reason);
}

void Connection::Impl::HandleMessage(const Message& message) {
  junk_in_a_row_ = 0;
  if (!handlers_.on_message) return;
  in_handler_ = true;
  CallOut(from_.get_executor(), handlers_.on_message, message);
  in_handler_ = false;
  if (is_finished_) ReleaseHandlers();
}

void Connection::Impl::HandleJunk(absl::string_view line, JunkReason reason) {
  if (junk_.lines++ == 0) {
    junk_.first_bytes = std::string(line.substr(0, kJunkBytesKept));
    junk_.first_reason = reason;
  }
  ++junk_in_a_row_;
  if (handlers_.on_junk) {
    in_handler_ = true;
    CallOut(from_.get_executor(), handlers_.on_junk, line, reason);
    in_handler_ = false;
    if (is_finished_) return ReleaseHandlers();
  }
  if (reading_ != Reading::kLines || junk_in_a_row_ <= options_.junk_lines_max) return;
  Finish(CloseReason::kJunkOutput,
         absl::DataLossError(
             absl::StrCat("the peer wrote ", junk_in_a_row_, " lines in a row that are no messages, the last of which ",
                          JunkReasonText(reason), "; the first of all was \"", absl::CHexEscape(junk_.first_bytes),
                          "\"; what is not a message belongs on its standard error")));
}

// ---- Writing

bool Connection::Impl::Send(std::string line) {
  if (!takes_lines_ || !to_.is_open()) return false;
  if (line.empty() || line.find('\n') != line.size() - 1) return false;
  return AfterPush(queue_.Push(std::move(line)));
}

bool Connection::Impl::Send(const LargeRequest& request) {
  if (!takes_lines_ || !to_.is_open()) return false;
  return AfterPush(queue_.Push(request.head(), request.params(), request.tail()));
}

bool Connection::Impl::AfterPush(bool is_taken) {
  if (!is_taken) {
    takes_lines_ = false;
    reading_ = Reading::kStopped;
    asio::post(to_.get_executor(), [self = shared_from_this(), waiting = queue_.bytes()] {
      self->Finish(CloseReason::kWriteQueueFull,
                   absl::ResourceExhaustedError(absl::StrCat("the peer does not read: ", waiting,
                                                             " bytes wait, and no more than ",
                                                             self->options_.queued_bytes_max, " may")));
    });
    return false;
  }
  if (!in_read_turn_) FlushSoon();
  return true;
}

void Connection::Impl::FlushSoon() {
  if (flush_is_pending_) return;
  flush_is_pending_ = true;
  asio::post(to_.get_executor(), [self = shared_from_this()] {
    self->flush_is_pending_ = false;
    self->Flush();
  });
}

void Connection::Impl::WaitToWrite() {
  flush_is_pending_ = true;
  to_.async_wait(Stream::wait_write, [self = shared_from_this()](asio::error_code) {
    self->flush_is_pending_ = false;
    self->Flush();
  });
}

void Connection::Impl::Flush() {
  if (flush_is_pending_) return;
  std::size_t bytes = 0;
  while (to_.is_open() && queue_.bytes() != 0) {
    if (bytes >= kBytesPerTurn) return FlushSoon();
    std::array<absl::string_view, kPiecesMax> pieces;
    const std::size_t count = queue_.Front(absl::MakeSpan(pieces));
    std::size_t offered = 0;
    for (std::size_t i = 0; i != count; ++i) offered += pieces[i].size();
    const std::ptrdiff_t written = WriteSome(&to_, pieces.data(), count);
    if (written < 0 && written != -EAGAIN) return OnWriteFailed(static_cast<int>(-written));
    if (written > 0) {
      queue_.Consume(static_cast<std::size_t>(written));
      bytes += static_cast<std::size_t>(written);
      if (static_cast<std::size_t>(written) == offered) continue;
    }
    // The pipe is full.
    if (queue_.bytes() < kLargeBytes || to_size_.is_tried()) return WaitToWrite();
    to_size_.Enlarge(&to_);
  }
  if (to_size_.is_tried() && to_.is_open()) to_size_.Restore(&to_);
  if (closes_when_flushed_) CloseStream(&to_);
}

// A peer that closes its input and goes on running would otherwise be noticed by the next write only, which may never
// come: what was written before waits in a pipe that nobody will read.
void Connection::Impl::WatchPeersInput() {
  if (!to_.is_open()) return;
  to_.async_wait(Stream::wait_error, [self = shared_from_this()](asio::error_code cancelled) {
    if (cancelled || !self->to_.is_open()) return;
    if (PeerIsGone(&self->to_)) return self->OnWriteFailed(EPIPE);
    self->WatchPeersInput();  // an event that was meant for another descriptor
  });
}

void Connection::Impl::OnWriteFailed(int error) {
  CloseStream(&to_);
  queue_.Clear();
  takes_lines_ = false;
  if (closes_when_flushed_) return;  // nobody waits for more than the rest of what the peer says
  ReadForTheLastTime();
  Finish(CloseReason::kWriteFailed,
         absl::UnavailableError(absl::StrCat("can't write to the peer: ", std::strerror(error))));
}

void Connection::Impl::CloseInput(bool at_once) {
  takes_lines_ = false;
  closes_when_flushed_ = true;
  if (at_once) queue_.Clear();
  if (queue_.bytes() != 0) return;
  CloseStream(&to_);
}

// ---- Both

void Connection::Impl::Close() {
  CloseStream(&from_);
  CloseStream(&to_);
  queue_.Clear();
  takes_lines_ = false;
  reading_ = Reading::kStopped;
  is_finished_ = true;
  ReleaseHandlers();
}

void Connection::Impl::Finish(CloseReason reason, absl::Status detail) {
  if (is_finished_) return;
  is_finished_ = true;
  takes_lines_ = false;
  if (reading_ != Reading::kDiscard) reading_ = Reading::kStopped;
  const auto on_close = std::move(handlers_.on_close);
  ReleaseHandlers();
  if (on_close) CallOut(from_.get_executor(), on_close, reason, std::move(detail));
}

// What the handlers hold may hold the Connection's owner.
void Connection::Impl::ReleaseHandlers() {
  if (!in_handler_) handlers_ = Handlers();
}

// ---- The public class

Connection::Connection(Stream from_peer, Stream to_peer, const ConnectionOptions& options, Handlers handlers)
    : impl_(std::make_shared<Impl>(std::move(from_peer), std::move(to_peer), options, std::move(handlers))) {}
Connection::~Connection() { impl_->Close(); }
void Connection::Start() { impl_->Start(); }
bool Connection::Send(std::string line) { return impl_->Send(std::move(line)); }
bool Connection::Send(const LargeRequest& request) { return impl_->Send(request); }
std::string Connection::MoveOut(absl::string_view part) { return impl_->MoveOut(part); }
void Connection::CloseInput(bool at_once) { impl_->CloseInput(at_once); }
void Connection::Drain() { impl_->Drain(); }
void Connection::Close() { impl_->Close(); }
void Connection::set_accepts_batches(bool accepts) { impl_->set_accepts_batches(accepts); }
const JunkReport& Connection::junk() const { return impl_->junk(); }
std::size_t Connection::queued_bytes() const { return impl_->queued_bytes(); }

}  // namespace bulkhead::jsonrpc
