// How fast messages go through jsonrpc::Connection, beside raw pipes with the same peers in the same run.
//
//   message_bench ECHO [ROUNDS]
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "bench/measure.h"
#include "bulkhead/jsonrpc/connection.h"
#include "bulkhead/jsonrpc/json_text.h"
#include "bulkhead/jsonrpc/message.h"

namespace {

using bulkhead::bench::Clock;
using bulkhead::bench::Die;
using bulkhead::bench::Median;
using bulkhead::bench::Microseconds;
using bulkhead::bench::Peer;
using bulkhead::bench::RawExchange;
using bulkhead::jsonrpc::Connection;
using bulkhead::jsonrpc::ConnectionOptions;
using bulkhead::jsonrpc::Message;
using bulkhead::jsonrpc::Stream;

std::string echo_path;

std::vector<std::string> Echo(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), echo_path);
  return arguments;
}

// ---- Connection

class Client {
 public:
  Client(asio::io_context& context, Peer& peer, std::function<void(const Message&)> on_message)
      : connection_(Stream(context, peer.TakeFrom()), Stream(context, peer.TakeTo()), Options(),
                    {std::move(on_message), nullptr, [](auto, const auto& detail) { Die(detail.ToString()); }}) {
    connection_.Start();
  }
  static ConnectionOptions Options() {
    ConnectionOptions options;
    options.message_bytes_max = 128u << 20;
    return options;
  }
  void Send(std::string line) {
    if (!connection_.Send(std::move(line))) Die("not sent");
  }

 private:
  Connection connection_;
};

std::string Ping(std::int64_t id) { return *bulkhead::jsonrpc::RequestLine(id, "ping", ""); }

// Microseconds of one exchange: `make` is called for each line to send, of which `window` are under way at once.
double ConnectionExchange(Client*& client, asio::io_context& context, int& left,
                          const std::function<std::string()>& make, int count) {
  left = count;
  const auto begin = Clock::now();
  client->Send(make());
  context.restart();
  context.run();
  return Microseconds(begin) / count;
}

struct Ratio {
  std::vector<double> raw, large, ours;
};

void PrintRatio(const char* what, const Ratio& ratio, double bytes, const char* goal) {
  const double raw = Median(ratio.raw), large = Median(ratio.large), ours = Median(ratio.ours);
  if (bytes == 0) {
    std::printf("%-26s %8.2f us %23.2f us   %5.2f x   (goal %s)\n", what, raw, ours, ours / raw, goal);
  } else {
    std::printf("%-26s %6.0f MB/s %6.0f MB/s %6.0f MB/s   %5.2f x   (goal %s)\n", what, bytes / raw, bytes / large,
                bytes / ours, raw / ours, goal);
  }
  std::fflush(stdout);
}

// One message out and one back, one after the other, `rounds` times `count`; raw pipes and Connection in turn.
void Exchange(const char* what, const std::vector<std::string>& peer_arguments,
              const std::function<std::string()>& make, std::size_t answer_bytes, double bytes, int count, int rounds,
              const char* goal) {
  Peer raw(Echo(peer_arguments)), ours(Echo(peer_arguments));
  const std::string request = make();
  if (answer_bytes == 0) answer_bytes = request.size();
  Peer large_pipes(Echo(peer_arguments));
  fcntl(large_pipes.to(), F_SETPIPE_SZ, 1 << 20);
  fcntl(large_pipes.from(), F_SETPIPE_SZ, 1 << 20);
  asio::io_context context(1);
  int left = 0;
  Client* client = nullptr;
  const auto owner = std::make_unique<Client>(context, ours, [&](const Message&) {
    if (--left > 0) {
      client->Send(make());
    } else {
      context.stop();
    }
  });
  client = owner.get();
  Ratio ratio;
  for (int round = 0; round <= rounds; ++round) {
    const double raw_time = RawExchange(raw, request, answer_bytes, count);
    const double large_time = RawExchange(large_pipes, request, answer_bytes, count);
    const double our_time = ConnectionExchange(client, context, left, make, count);
    if (round == 0) continue;  // both warm
    ratio.raw.push_back(raw_time);
    ratio.large.push_back(large_time);
    ratio.ours.push_back(our_time);
  }
  PrintRatio(what, ratio, bytes, goal);
}

void Pipelined(int rounds) {
  constexpr int kCount = 10'000;
  Peer peer(Echo({}));
  asio::io_context context(1);
  int left = 0;
  Client client(context, peer, [&](const Message&) {
    if (--left == 0) context.stop();
  });
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    left = kCount;
    const auto begin = Clock::now();
    for (int i = 0; i != kCount; ++i) client.Send(Ping(i));
    context.restart();
    context.run();
    if (round != 0) times.push_back(Microseconds(begin) / kCount);
  }
  std::printf("%-28s %25.2f us              (goal <= 1.6 us)\n", "10,000 pipelined pings, each", Median(times));
}

void ManyPeers(int peer_count, int window, int rounds) {
  asio::io_context context(1);
  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<std::unique_ptr<Client>> clients;
  int left = 0, to_send = 0;
  for (int i = 0; i != peer_count; ++i) {
    peers.push_back(std::make_unique<Peer>(Echo({})));
    clients.push_back(std::make_unique<Client>(context, *peers.back(), [&, i](const Message&) {
      if (to_send > 0) {
        --to_send;
        clients[static_cast<std::size_t>(i)]->Send(Ping(i));
      }
      if (--left == 0) context.stop();
    }));
  }
  std::vector<double> rates;
  for (int round = 0; round <= rounds; ++round) {
    left = 100'000;
    to_send = left - peer_count * window;
    const auto begin = Clock::now();
    for (const auto& client : clients) {
      for (int i = 0; i != window; ++i) client->Send(Ping(i));
    }
    context.restart();
    context.run();
    if (round != 0) rates.push_back(100'000 / Microseconds(begin) * 1e6);
  }
  std::printf("%d peers, window %-2d %27.0f round trips/s   (goal >= %s)\n", peer_count, window, Median(rates),
              window == 8 ? "200000" : "-");
}

std::size_t HeapBytes() {
  const struct mallinfo2 heap = mallinfo2();
  return heap.uordblks + heap.hblkhd;
}

void Idle() {
  constexpr int kCount = 1000;
  const rlimit files = {8192, 8192};
  setrlimit(RLIMIT_NOFILE, &files);
  asio::io_context context(1);
  std::vector<std::unique_ptr<Connection>> connections;
  connections.reserve(kCount);
  std::vector<int> peer_fds;
  const std::string ping = Ping(1);
  const std::size_t before = HeapBytes();
  for (int i = 0; i != kCount; ++i) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) Die("pipe2");
    connections.push_back(std::make_unique<Connection>(Stream(context, out[0]), Stream(context, in[1]),
                                                       ConnectionOptions(), Connection::Handlers()));
    connections.back()->Start();
    // Each has said and heard something.
    connections.back()->Send(ping);
    if (write(out[1], ping.data(), ping.size()) < 0) Die("write");
    context.poll();
    peer_fds.insert(peer_fds.end(), {in[0], out[1]});
  }
  std::printf("%-28s %25zu bytes           (goal < 2048)\n", "idle connection, each", (HeapBytes() - before) / kCount);
  for (const int fd : peer_fds) close(fd);
}

void Parsing() {
  const std::string message =
      R"({"jsonrpc":"2.0","id":42,"result":{"content":[{"type":"text","text":"The weather in New York is sunny, 24 degrees."},)"
      R"({"type":"resource_link","uri":"file:///srv/data/report-2026-07.txt","name":"report","size":18231}],"isError":false,)"
      R"("structuredContent":{"temperature":24.5,"humidity":0.41,"wind":[1,2,3],"conditions":null}}})";
  constexpr int kCount = 200'000;
  std::vector<double> times;
  for (int round = 0; round != 5; ++round) {
    int good = 0;
    const auto begin = Clock::now();
    for (int i = 0; i != kCount; ++i) good += static_cast<int>(Message::Parse(message).index() == 0);
    times.push_back(Microseconds(begin) / kCount * 1000);
    if (good != kCount) Die("not a message");
  }
  std::printf("Message::Parse, %zu bytes %27.0f ns              (goal ~ 200 ns)\n", message.size(), Median(times));
  const std::string ascii = "\"" + std::string(8u << 20, 'x') + "\"";
  std::string mixed = "\"";
  while (mixed.size() < 8u << 20) mixed += "gr\xC3\xBC\xC3\x9F dich \xE6\x97\xA5\xE6\x9C\xAC\xE8\xAA\x9E\\n";
  mixed += "\"";
  for (const auto& [what, text] :
       {std::pair("ASCII", &ascii), std::pair("mixed", static_cast<const std::string*>(&mixed))}) {
    times.clear();
    for (int round = 0; round != 9; ++round) {
      const auto begin = Clock::now();
      if (bulkhead::jsonrpc::ValidateJson(*text) != bulkhead::jsonrpc::JsonError::kNone) Die("not JSON");
      times.push_back(Microseconds(begin));
    }
    std::printf("ValidateJson, 8 MiB %s %26.0f MB/s            (goal %s)\n", what,
                static_cast<double>(text->size()) / Median(times), what[0] == 'A' ? ">= 5000" : "-");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) Die("usage: message_bench ECHO [ROUNDS]");
  echo_path = argv[1];
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 9;
  std::printf("%-26s %11s %11s %11s   %7s\n", "", "raw pipe", "of 1 MiB", "Connection", "ratio");
  {
    const bulkhead::bench::OnOneProcessor pinned;
    Exchange(
        "round trip", {}, [] { return Ping(1); }, 0, 0, 5000, rounds, "<= 2.2");
  }
  Exchange(
      "  on any processors", {}, [] { return Ping(1); }, 0, 0, 5000, rounds, "-");
  for (const std::size_t mib : {std::size_t{1}, std::size_t{8}, std::size_t{64}}) {
    const std::size_t size = mib << 20;
    const int count = mib == 64 ? 1 : 8;
    // Made anew for each, as a caller does.
    const std::string params = absl::StrCat("{\"x\":\"", std::string(size, 'x'), "\"}");
    const std::string text = std::to_string(mib) + " MiB";
    Exchange((text + " to the peer").c_str(), {"sink"}, [&] { return *bulkhead::jsonrpc::RequestLine(1, "x", params); },
             37, static_cast<double>(size), count, rounds, ">= 0.35");
    Exchange((text + " from the peer").c_str(), {"source", std::to_string(size)}, [] { return Ping(1); }, size,
             static_cast<double>(size), count, rounds, ">= 0.35");
  }
  Pipelined(rounds);
  for (const int window : {1, 8, 64}) ManyPeers(200, window, rounds / 2);
  Parsing();
  Idle();
}
