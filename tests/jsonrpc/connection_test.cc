// Connection: lines in, junk within limits, lines out, and its ends.
#include "bulkhead/jsonrpc/connection.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/jsonrpc/connection_fixture.h"

namespace bulkhead::jsonrpc {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Reading : public ConnectionTest {};
class Junk : public ConnectionTest {};
class Batches : public ConnectionTest {};
class Writing : public ConnectionTest {};
class Ending : public ConnectionTest {};

TEST_F(Reading, MessagesAreDeliveredInOrderAndOnlyFromTheLoop) {
  Open();
  ASSERT_EQ(write(peer_output, "", 0), 0);
  const std::string text = Ping(1) + "\n" + Ping(2) + "\r\n" + Ping(3) + "\n";
  ASSERT_EQ(write(peer_output, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  EXPECT_THAT(lines, IsEmpty());  // nothing comes before the loop runs
  Run();
  EXPECT_THAT(lines, ElementsAre(Ping(1), Ping(2), Ping(3)));
  EXPECT_THAT(junk, IsEmpty());
}

TEST_F(Reading, OneByteAtATimeGivesTheSameBytes) {
  Open();
  const std::string line = R"({"jsonrpc":"2.0","id":1,"result":"😀 )"
                           "\xE2\x80\xA8 \xE2\x80\xA9 \xC2\x85"
                           R"("})";
  for (const char c : line + "\n") PeerSays(std::string(1, c));
  EXPECT_THAT(lines, ElementsAre(line));
}

TEST_F(Reading, AByteOrderMarkIsDroppedOnce) {
  Open();
  PeerSays("\xEF\xBB\xBF" + Ping(1) + "\n\xEF\xBB\xBF" + Ping(2) + "\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  EXPECT_THAT(junk, SizeIs(1));
}

TEST_F(Reading, ALastLineWithoutNewlineIsDeliveredIfItIsWhole) {
  Open();
  PeerSays(Ping(1) + "\n" + Ping(2));
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  PeerClosesItsOutput();
  Run();
  EXPECT_THAT(lines, ElementsAre(Ping(1), Ping(2)));
  EXPECT_EQ(close_reason, CloseReason::kEndOfInput);
}

TEST_F(Reading, APartOfALastLineIsDroppedAndNotJunk) {
  ConnectionOptions options;
  options.junk_lines_max = 0;
  Open(options);
  PeerSays(Ping(1).substr(0, 20));
  PeerClosesItsOutput();
  Run();
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_EQ(connection->junk().lines, 0u);
  EXPECT_EQ(close_reason, CloseReason::kEndOfInput);
}

TEST_F(Reading, ALineMayHaveMessageBytesMaxAndNoMore) {
  for (const int more : {-1, 0, 1}) {
    SCOPED_TRACE(more);
    ConnectionOptions options;
    options.message_bytes_max = 100'000;
    lines.clear();
    close_reason.reset();
    Open(options);
    const std::string rest = R"({"jsonrpc":"2.0","id":2,"result":""})";
    std::string line = rest;
    line.insert(rest.size() - 2, std::string(100'000 + more - rest.size(), 'x'));
    PeerSays(Ping(1) + "\n" + line.substr(0, 50'000));
    PeerSays(line.substr(50'000) + "\n");
    if (more > 0) {
      EXPECT_THAT(lines, ElementsAre(Ping(1)));  // what came before is delivered
      EXPECT_EQ(close_reason, CloseReason::kMessageTooLarge);
      EXPECT_THAT(detail, HasSubstr("max_message_bytes"));
    } else {
      EXPECT_THAT(lines, ElementsAre(Ping(1), line));
      EXPECT_FALSE(close_reason.has_value());
    }
    connection.reset();
    PeerClosesItsOutput();
    PeerClosesItsInput();
  }
}

TEST_F(Reading, AFloodingPeerLetsOthersHaveTheirTurn) {
  Open();
  // Larger than what one connection may read at once: the peer is a thread's worth ahead all the time.
  ASSERT_GT(fcntl(peer_output, F_SETPIPE_SZ, 1 << 20), 0);
  fcntl(peer_output, F_SETFL, O_NONBLOCK);
  const std::string line = Ping(1) + "\n";
  const auto fill = [&] {
    while (write(peer_output, line.data(), line.size()) > 0) {
    }
  };
  fill();
  std::size_t delivered_before_other = 0;
  bool other_ran = false;
  on_message = [&](const Message&) {
    if (lines.size() % 1000 == 0 && lines.size() * line.size() < 8u << 20) fill();  // it goes on and on
    if (lines.size() == 1) asio::post(context, [&] { other_ran = true, delivered_before_other = lines.size(); });
  };
  while (!other_ran) context.poll_one();
  EXPECT_LT(delivered_before_other * line.size(), 2u << 20);
}

TEST_F(Reading, WhatAHandlerThrowsLeavesTheLoopAndTheNextLineIsDelivered) {
  Open();
  on_message = [](const Message&) { throw std::runtime_error("the host's own"); };
  on_junk = [] { throw std::runtime_error("the host's own"); };
  on_close = [] { throw std::runtime_error("the host's own"); };
  const std::string text =
      absl::StrCat(R"({"jsonrpc":"2.0","method":"a"})", "\njunk\n", R"({"jsonrpc":"2.0","method":"b"})", "\n");
  ASSERT_EQ(write(peer_output, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  PeerClosesItsOutput();
  int thrown = 0;
  for (bool is_quiet = false; !is_quiet;) {
    try {
      Run();
      is_quiet = true;
    } catch (const std::runtime_error&) {
      ASSERT_LT(++thrown, 10);
    }
  }
  EXPECT_EQ(thrown, 4);
  EXPECT_THAT(lines, SizeIs(2));
  EXPECT_THAT(junk, SizeIs(1));
  EXPECT_EQ(close_reason, CloseReason::kEndOfInput);
}

// What is kept of a message that is larger than any of our buffers, and of its neighbours.
TEST_F(Reading, APartOfAMessageIsMovedOut) {
  ConnectionOptions options;
  options.message_bytes_max = 16u << 20;
  Open(options);
  std::vector<std::string> kept;
  on_message = [&](const Message& message) { kept.push_back(connection->MoveOut(message.params())); };
  const std::string params = absl::StrCat(R"({"x":")", std::string(8u << 20, 'y'), "\"}");
  const std::string text =
      absl::StrCat(R"({"jsonrpc":"2.0","method":"a","params":[1]})", "\n", R"({"jsonrpc":"2.0","method":"a","params":)",
                   params, "}\n", R"({"jsonrpc":"2.0","method":"a","params":[2]})", "\n");
  for (std::size_t done = 0; done < text.size(); done += 60'000) {
    PeerSays(absl::string_view(text).substr(done, 60'000));
  }
  ASSERT_THAT(kept, SizeIs(3));
  EXPECT_EQ(kept[0], "[1]");
  EXPECT_TRUE(kept[1] == params);
  EXPECT_EQ(kept[2], "[2]");
}

TEST_F(Junk, IsDroppedCountedAndShown) {
  Open();
  PeerSays("Listening on stdio\n" + Ping(1) + "\n{}\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  EXPECT_THAT(junk, ElementsAre(testing::Pair("Listening on stdio", JunkReason::kNotJson),
                                testing::Pair("{}", JunkReason::kNotAMessage)));
  EXPECT_EQ(connection->junk().lines, 2u);
  EXPECT_EQ(connection->junk().first_bytes, "Listening on stdio");
  EXPECT_EQ(connection->junk().first_reason, JunkReason::kNotJson);
}

TEST_F(Junk, KeepsOnlyTheFirstBytes) {
  Open();
  PeerSays(std::string(kJunkBytesKept + 1, 'x') + "\n");
  EXPECT_EQ(connection->junk().first_bytes, std::string(kJunkBytesKept, 'x'));
}

TEST_F(Junk, ALineMoreThanToleratedCloses) {
  for (const int max : {0, 1, 10}) {
    SCOPED_TRACE(max);
    ConnectionOptions options;
    options.junk_lines_max = static_cast<std::uint64_t>(max);
    close_reason.reset();
    junk.clear();
    Open(options);
    for (int i = 0; i != max; ++i) PeerSays("junk\n");
    ASSERT_FALSE(close_reason.has_value());
    PeerSays("junk\n" + Ping(1) + "\n");
    EXPECT_EQ(close_reason, CloseReason::kJunkOutput);
    EXPECT_THAT(detail, HasSubstr("\"junk\""));
    EXPECT_THAT(junk, SizeIs(static_cast<std::size_t>(max) + 1));
    EXPECT_THAT(lines, IsEmpty());
    connection.reset();
    PeerClosesItsOutput();
    PeerClosesItsInput();
  }
}

TEST_F(Junk, IsCountedInARowAndAMessageEndsTheRow) {
  ConnectionOptions options;
  options.junk_lines_max = 2;
  Open(options);
  for (int i = 0; i != 5; ++i) PeerSays("junk\njunk\n" + Ping(i) + "\n");
  EXPECT_THAT(lines, SizeIs(5));
  EXPECT_FALSE(close_reason.has_value());
}

TEST_F(Junk, BlankLinesNeitherCountNorEndTheRow) {
  ConnectionOptions options;
  options.junk_lines_max = 1;
  Open(options);
  PeerSays("\n \t\r\n\r\n\n\n");
  EXPECT_THAT(junk, IsEmpty());
  PeerSays("junk\n\n \n");
  ASSERT_FALSE(close_reason.has_value());
  PeerSays("junk\n");
  EXPECT_EQ(close_reason, CloseReason::kJunkOutput);
}

TEST_F(Batches, AreJunkUnlessAccepted) {
  Open();
  const std::string batch = "[" + Ping(1) + " ,\t" + Ping(2) + "]";
  PeerSays(batch + "\n");
  EXPECT_THAT(junk, ElementsAre(testing::Pair(batch, JunkReason::kBatch)));
  connection->set_accepts_batches(true);
  PeerSays(batch + "\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1), Ping(2)));
}

TEST_F(Batches, AnElementThatIsNoMessageIsOneLineOfJunk) {
  ConnectionOptions options;
  options.accepts_batches = true;
  options.junk_lines_max = 2;
  Open(options);
  PeerSays("[" + Ping(1) + ",1,[" + Ping(5) + "]," + Ping(2) + "]\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1), Ping(2)));
  EXPECT_THAT(junk, ElementsAre(testing::Pair("1", JunkReason::kNotAMessage),
                                testing::Pair("[" + Ping(5) + "]", JunkReason::kNotAMessage)));
  PeerSays("[1,2,3," + Ping(3) + "]\n");
  EXPECT_EQ(close_reason, CloseReason::kJunkOutput);
  EXPECT_THAT(lines, SizeIs(2));
}

TEST_F(Batches, AnEmptyOneIsJunk) {
  ConnectionOptions options;
  options.accepts_batches = true;
  Open(options);
  PeerSays("[ ]\n");
  EXPECT_THAT(junk, ElementsAre(testing::Pair("[ ]", JunkReason::kNotAMessage)));
}

TEST_F(Writing, LinesAreWrittenFromTheLoopAndTogether) {
  Open();
  EXPECT_TRUE(connection->Send(Ping(1) + "\n"));
  EXPECT_TRUE(connection->Send(Ping(2) + "\n"));
  EXPECT_EQ(PeerReads(), "");
  Run();
  EXPECT_EQ(PeerReads(), Ping(1) + "\n" + Ping(2) + "\n");
  EXPECT_EQ(connection->queued_bytes(), 0u);
}

TEST_F(Writing, WhatIsNotOneLineIsRefused) {
  Open();
  ASSERT_TRUE(connection->Send("{}\n"));
  EXPECT_FALSE(connection->Send(""));
  EXPECT_FALSE(connection->Send("{}"));
  EXPECT_FALSE(connection->Send("{}\n{}\n"));
  EXPECT_FALSE(connection->Send("{\n}\n"));
  Run();
  EXPECT_EQ(PeerReads(), "{}\n");
  EXPECT_FALSE(close_reason.has_value());
}

TEST_F(Writing, APeerThatDoesNotReadBlocksNothingUntilTheQueueIsFull) {
  ConnectionOptions options;
  options.queued_bytes_max = 100'000;
  Open(options);
  std::string line(100'000, 'x');
  line.back() = '\n';
  ASSERT_TRUE(connection->Send(line));
  Run();  // a pipe full is gone
  const std::size_t queued = connection->queued_bytes();
  ASSERT_GT(queued, 0u);
  EXPECT_TRUE(connection->Send(std::string(100'000 - queued - 1, 'y') + "\n"));
  PeerSays(Ping(1) + "\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  ASSERT_EQ(connection->queued_bytes(), 100'000u);
  on_close = [this] { EXPECT_FALSE(connection->Send("z\n")); };
  EXPECT_FALSE(connection->Send("z\n"));
  EXPECT_FALSE(close_reason.has_value());  // not from inside Send
  Run();
  EXPECT_EQ(close_reason, CloseReason::kWriteQueueFull);
}

TEST_F(Writing, GoesOnWhenThePeerReads) {
  Open();
  std::string line(3'000'000, 'x');
  line.back() = '\n';
  ASSERT_TRUE(connection->Send(line));
  ASSERT_TRUE(connection->Send(Ping(1) + "\n"));
  std::string received;
  while (received.size() < line.size() + Ping(1).size() + 1) {
    Run();
    const std::string more = PeerReads();
    ASSERT_NE(more, "");
    received += more;
  }
  EXPECT_TRUE(received == line + Ping(1) + "\n");
}

TEST_F(Writing, AMessageThatIsLargerThanTheQueueMayBeSentAlone) {
  ConnectionOptions options;
  options.queued_bytes_max = 10;
  Open(options);
  EXPECT_TRUE(connection->Send(Ping(1) + "\n"));
  Run();
  EXPECT_TRUE(connection->Send(Ping(2) + "\n"));
  EXPECT_FALSE(connection->Send(Ping(3) + "\n"));
}

// A user's pipes together are limited, so that a session may not keep a large one.
TEST_F(Writing, APipeIsLargeOnlyForALargeMessage) {
  Open();
  const int in_before = fcntl(peer_input, F_GETPIPE_SZ), out_before = fcntl(peer_output, F_GETPIPE_SZ);
  std::string line(3'000'000, ' ');
  line.back() = '\n';
  ASSERT_TRUE(connection->Send(line));
  Run();
  EXPECT_GT(fcntl(peer_input, F_GETPIPE_SZ), in_before);
  for (std::size_t left = line.size(); left != 0; Run()) left -= PeerReads().size();
  ASSERT_TRUE(connection->Send("{}\n"));
  Run();
  EXPECT_EQ(fcntl(peer_input, F_GETPIPE_SZ), in_before);

  for (int i = 0; i != 10; ++i) PeerSays(line.substr(0, 65'536));
  EXPECT_GT(fcntl(peer_output, F_GETPIPE_SZ), out_before);
  PeerSays("\n");
  EXPECT_EQ(fcntl(peer_output, F_GETPIPE_SZ), out_before);
}

TEST_F(Ending, APeerThatClosesItsInputIsNoticedWithoutAWriteAfterItsLastWordsWereDelivered) {
  Open();
  Run();
  EXPECT_FALSE(close_reason.has_value());
  const std::string text = Ping(1) + "\n" + Ping(2) + "\n";
  ASSERT_EQ(write(peer_output, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  PeerClosesItsInput();
  on_close = [this] { EXPECT_THAT(lines, SizeIs(2)); };
  Run();
  EXPECT_EQ(close_reason, CloseReason::kWriteFailed);
}

TEST_F(Ending, APeerWhoseInputIsClosedByUsMayGoOn) {
  Open();
  connection->CloseInput(/*at_once=*/false);
  Run();
  PeerClosesItsInput();
  PeerSays(Ping(1) + "\n");
  EXPECT_FALSE(close_reason.has_value());
  EXPECT_THAT(lines, SizeIs(1));
}

TEST_F(Ending, APeerThatIsGoneFailsTheWriteAfterItsLastWordsWereDelivered) {
  Open();
  const std::string text = Ping(1) + "\n" + Ping(2) + "\n";
  PeerClosesItsInput();
  ASSERT_TRUE(connection->Send("{}\n"));
  ASSERT_EQ(write(peer_output, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  PeerClosesItsOutput();
  on_close = [this] { EXPECT_THAT(lines, SizeIs(2)); };
  context.poll_one();  // the flush comes first: it was posted
  EXPECT_EQ(close_reason, CloseReason::kWriteFailed);
  EXPECT_THAT(detail, HasSubstr("Broken pipe"));
  Run();
}

TEST_F(Ending, CloseInputWritesTheRestThenClosesAndReadsOn) {
  Open();
  std::string line(200'000, 'x');
  line.back() = '\n';
  ASSERT_TRUE(connection->Send(line));
  connection->CloseInput(false);
  EXPECT_FALSE(connection->Send("{}\n"));
  Run();
  bool ended = false;
  std::string received = PeerReads(&ended);
  while (!ended) {
    Run();
    received += PeerReads(&ended);
  }
  EXPECT_TRUE(received == line);
  PeerSays(Ping(1) + "\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  EXPECT_FALSE(close_reason.has_value());
}

TEST_F(Ending, CloseInputAtOnceLosesTheRest) {
  Open();
  ASSERT_TRUE(connection->Send("{}\n"));
  connection->CloseInput(true);
  Run();
  bool ended = false;
  EXPECT_EQ(PeerReads(&ended), "");
  EXPECT_TRUE(ended);
}

TEST_F(Ending, AFailingWriteAfterCloseInputIsNoEnd) {
  Open();
  std::string line(200'000, 'x');
  line.back() = '\n';
  ASSERT_TRUE(connection->Send(line));
  connection->CloseInput(false);
  Run();
  PeerClosesItsInput();
  Run();
  EXPECT_FALSE(close_reason.has_value());
  PeerSays(Ping(1) + "\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
}

TEST_F(Ending, DrainReadsAndDeliversNothing) {
  Open();
  connection->Drain();
  for (int i = 0; i != 50; ++i) PeerSays(std::string(60'000, 'x'));  // would block if nobody read
  PeerSays("\n" + Ping(1) + "\n");
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_THAT(junk, IsEmpty());
  PeerClosesItsOutput();
  Run();
  EXPECT_EQ(close_reason, CloseReason::kEndOfInput);
}

TEST_F(Ending, DrainWorksFromOnCloseToo) {
  ConnectionOptions options;
  options.junk_lines_max = 0;
  Open(options);
  on_close = [this] { connection->Drain(); };
  PeerSays("junk\n" + Ping(1) + "\n");
  ASSERT_EQ(close_reason, CloseReason::kJunkOutput);
  for (int i = 0; i != 50; ++i) PeerSays(std::string(60'000, 'x'));
  PeerClosesItsOutput();
  Run();  // no second on_close: the fixture would say so
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(Ending, CloseAndDestructionAreSilentAndCloseBothStreams) {
  for (const bool destroy : {false, true}) {
    Open();
    ASSERT_TRUE(connection->Send("{}\n"));
    destroy ? connection.reset() : connection->Close();
    Run();
    bool ended = false;
    EXPECT_EQ(PeerReads(&ended), "");
    EXPECT_TRUE(ended);
    EXPECT_FALSE(close_reason.has_value());
    EXPECT_EQ(fcntl(peer_output, F_GETFD), FD_CLOEXEC);
    connection.reset();
    PeerClosesItsOutput();
    PeerClosesItsInput();
  }
}

TEST_F(Ending, ReplyingToTheLastMessageBeforeTheEndIsWritten) {
  Open();
  on_message = [this](const Message&) { EXPECT_TRUE(connection->Send("{}\n")); };
  ASSERT_EQ(write(peer_output, (Ping(1) + "\n").data(), Ping(1).size() + 1), static_cast<ssize_t>(Ping(1).size() + 1));
  PeerClosesItsOutput();
  Run();
  EXPECT_EQ(close_reason, CloseReason::kEndOfInput);
  EXPECT_EQ(PeerReads(), "{}\n");
}

// Whatever a handler does to its Connection, no handler is called after it.
TEST_F(Ending, AHandlerMayDestroyTheConnection) {
  const std::string text = Ping(1) + "\n" + Ping(2) + "\njunk\n";
  Open();
  on_message = [this](const Message&) { connection.reset(); };
  PeerSays(text);
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  EXPECT_THAT(junk, IsEmpty());
  EXPECT_FALSE(close_reason.has_value());
  PeerClosesItsOutput();
  PeerClosesItsInput();

  Open();
  on_message = nullptr;
  on_junk = [this] { connection.reset(); };
  lines.clear();
  PeerSays("junk\n" + text);
  EXPECT_THAT(lines, IsEmpty());
  EXPECT_THAT(junk, SizeIs(1));
  PeerClosesItsOutput();
  PeerClosesItsInput();

  Open();
  on_junk = nullptr;
  on_close = [this] { connection.reset(); };
  PeerClosesItsOutput();
  Run();
  EXPECT_EQ(close_reason, CloseReason::kEndOfInput);
  EXPECT_EQ(connection, nullptr);
}

TEST_F(Ending, AHandlerMayCloseInTheMiddleOfABatch) {
  ConnectionOptions options;
  options.accepts_batches = true;
  Open(options);
  on_message = [this](const Message&) { connection->Close(); };
  PeerSays("[" + Ping(1) + "," + Ping(2) + ",3]\n");
  EXPECT_THAT(lines, ElementsAre(Ping(1)));
  EXPECT_THAT(junk, IsEmpty());
}

// Otherwise an owner that its own handlers keep alive would never go.
TEST_F(Ending, WhatTheHandlersHoldIsLetGo) {
  const Pipe from, to;
  const auto held = std::make_shared<int>(0);
  Connection::Handlers handlers;
  handlers.on_message = [held](const Message&) {};
  Connection other(Stream(context, from.read_end), Stream(context, to.write_end), ConnectionOptions(),
                   std::move(handlers));
  other.Start();
  ASSERT_EQ(held.use_count(), 2);
  other.Close();
  EXPECT_EQ(held.use_count(), 1);
  close(from.write_end);
  close(to.read_end);
}

}  // namespace
}  // namespace bulkhead::jsonrpc
