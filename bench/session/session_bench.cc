// How fast a Session is, jail included, beside raw pipes and the TypeScript SDK's client without any jail: all with the
// same server, in turn, round after round.
//
//   session_bench SERVER SDK_CLIENT NODE_MODULES_FOLDER [ROUNDS]
//
// SERVER has to lie where the server's user may go. See README.md.
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "asio/io_context.hpp"
#include "bench/measure.h"
#include "bulkhead/mcp/session.h"
#include "bulkhead/policy/policy.h"

namespace bulkhead::bench {
namespace {

constexpr std::size_t kMiB = 1u << 20;

std::string server_path;

// ---- Session

policy::Policy MakePolicy() {
  const std::string text =
      absl::StrCat(R"({"version": 1, "extends": ["preset:default"], "filesystem": {"rx": [")", server_path,
                   R"("]}, "messages": {"max_message_bytes": "128MiB"}, "timeouts": {"request": "120s"}})");
  policy::ParseOptions options;
  options.variables.home = "/nonexistent";
  auto policy = policy::ParsePolicy({"bench", text}, options);
  if (!policy.ok()) Die(policy.status().ToString());
  return *std::move(policy);
}

policy::CommandRequest Command() {
  policy::CommandRequest command;
  command.argv = {server_path};
  command.host_cwd = "/";
  command.host_env = {{"PATH", "/usr/bin:/bin"}, {"HOME", "/nonexistent"}};
  return command;
}

// Sessions on one loop; everything blocks until it has happened.
class Host {
 public:
  Host() : policy_(MakePolicy()) {}

  std::unique_ptr<mcp::Session> NewSession() {
    return std::make_unique<mcp::Session>(context.get_executor(), policy_, Command(), mcp::SessionOptions());
  }
  void Connect(mcp::Session& session) {
    absl::Status result;
    session.AsyncConnect([&](absl::Status status) {
      result = std::move(status);
      context.stop();
    });
    Run();
    if (!result.ok()) Die(result.ToString());
    if (session.report()->tier != policy::Tier::kA) Die("the jail is not of tier A");
  }
  void Close(mcp::Session& session) {
    session.AsyncClose([&](const mcp::ServerEnd&) { context.stop(); });
    Run();
  }
  // `count` calls, each after the answer to the one before.
  void Call(mcp::Session& session, const std::string& method, const std::function<std::string()>& params, int count) {
    std::function<void()> next = [&] {
      session.AsyncCall(method, params(), {}, [&](const absl::StatusOr<mcp::Reply>& reply) {
        Check(reply);
        if (--count > 0) return next();
        context.stop();
      });
    };
    next();
    Run();
  }
  static void Check(const absl::StatusOr<mcp::Reply>& reply) {
    if (!reply.ok()) Die(reply.status().ToString());
    if (reply->error) Die(reply->error->message);
  }
  void Run() {
    context.restart();
    context.run();
  }

  asio::io_context context{1};

 private:
  policy::Policy policy_;
};

std::string NoParams() { return ""; }

// As large as the SDK's request with a text of as many bytes.
std::string LargeParams(std::size_t bytes) {
  constexpr absl::string_view kHead = R"({"name":"t","arguments":{"text":")", kTail = R"("}})";
  std::string params;
  params.reserve(kHead.size() + bytes + kTail.size());  // or making it would take more memory than sending it
  params.append(kHead.data(), kHead.size()).append(bytes, 'x').append(kTail.data(), kTail.size());
  return params;
}
std::string WantLarge(std::size_t bytes) { return absl::StrCat(R"({"name":"t","arguments":{"bytes":)", bytes, "}}"); }

// ---- Raw pipes

std::string RawRequest(const std::string& method, const std::string& params) {
  return absl::StrCat(R"({"jsonrpc":"2.0","id":1,"method":")", method, "\"",
                      params.empty() ? "" : ",\"params\":", params, "}\n");
}
constexpr std::size_t kSmallAnswer = sizeof(R"({"jsonrpc":"2.0","id":1,"result":{}})");
std::size_t LargeAnswer(std::size_t bytes) {
  return sizeof(R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":""}]}})") + bytes;
}

// ---- The SDK

class Sdk {
 public:
  explicit Sdk(std::vector<std::string> words) : peer_(std::move(words)) { input_ = fdopen(peer_.TakeFrom(), "r"); }
  ~Sdk() { std::fclose(input_); }
  Sdk(const Sdk&) = delete;
  Sdk& operator=(const Sdk&) = delete;

  // Microseconds; nothing if it failed, and `why` is set.
  std::optional<double> Measure(const std::string& what, int count, std::size_t bytes) {
    WriteAll(peer_.to(), absl::StrCat("[\"", what, "\",", count, ",", bytes, "]\n"));
    char line[512];
    if (std::fgets(line, sizeof line, input_) == nullptr) Die("the SDK's client ended");
    double time = 0;
    if (absl::SimpleAtod(line, &time)) return time;
    why = std::string(line, std::strcspn(line, "\n"));
    return std::nullopt;
  }

  std::string why;

 private:
  Peer peer_;
  FILE* input_;
};

// ---- What is compared

struct Times {
  std::vector<double> raw, ours, sdk;
};

std::string Ratio(const std::vector<double>& of, const std::vector<double>& to, bool is_throughput) {
  if (of.empty() || to.empty()) return "-";
  const double ratio = is_throughput ? Median(to) / Median(of) : Median(of) / Median(to);
  char text[32];
  std::snprintf(text, sizeof text, "%.3g x", ratio);
  return text;
}

// Times become throughput if there are `bytes`.
void Print(const std::string& what, const Times& times, std::size_t bytes, const std::string& goal) {
  const auto show = [bytes](const std::vector<double>& values) {
    char text[32] = "-";
    if (!values.empty() && bytes == 0) std::snprintf(text, sizeof text, "%.2f us", Median(values));
    if (!values.empty() && bytes != 0) {
      std::snprintf(text, sizeof text, "%.0f MB/s", static_cast<double>(bytes) / Median(values));
    }
    return std::string(text);
  };
  std::printf("%-26s %12s %12s %12s %9s %9s %9s  (goal %s)\n", what.c_str(), show(times.raw).c_str(),
              show(times.ours).c_str(), show(times.sdk).c_str(), Ratio(times.ours, times.raw, bytes != 0).c_str(),
              Ratio(times.sdk, times.raw, bytes != 0).c_str(), Ratio(times.ours, times.sdk, bytes != 0).c_str(),
              goal.c_str());
  std::fflush(stdout);
}

// In turn, `rounds` times after one that warms up. A side may be absent.
struct Contest {
  std::string what, goal;
  std::size_t bytes = 0;
  std::function<double()> raw, ours;
  std::function<std::optional<double>()> sdk;
};

void Measure(const Contest& contest, int rounds, Sdk& sdk) {
  Times times;
  bool sdk_fails = false;
  for (int round = 0; round <= rounds; ++round) {
    const double raw = contest.raw ? contest.raw() : 0;
    const double ours = contest.ours();
    const auto theirs = sdk_fails ? std::nullopt : contest.sdk();
    sdk_fails = !theirs;
    if (round == 0) continue;
    if (contest.raw) times.raw.push_back(raw);
    times.ours.push_back(ours);
    if (theirs) times.sdk.push_back(*theirs);
  }
  Print(contest.what, times, contest.bytes, contest.goal);
  if (sdk_fails) std::printf("  the SDK fails: %s\n", sdk.why.c_str());
}

// What a caller has in its hand is made before the clock runs.
double TimeCalls(Host& host, mcp::Session& session, const std::string& method,
                 const std::function<std::string()>& params, int count) {
  std::vector<std::string> made;
  for (int i = 0; i != count; ++i) made.push_back(params());
  const auto begin = Clock::now();
  host.Call(
      session, method,
      [&made] {
        std::string next = std::move(made.back());
        made.pop_back();
        return next;
      },
      count);
  return Microseconds(begin) / count;
}

void RoundTrips(Host& host, Sdk& sdk, const char* what, const char* goal, int rounds) {
  constexpr int kTrips = 3000;
  Peer raw({server_path});
  const auto session = host.NewSession();
  host.Connect(*session);
  Measure({what, goal, 0, [&] { return RawExchange(raw, RawRequest("ping", ""), kSmallAnswer, kTrips); },
           [&] { return TimeCalls(host, *session, "ping", NoParams, kTrips); },
           [&] { return sdk.Measure("ping", kTrips, 0); }},
          rounds, sdk);
  host.Close(*session);
}

void Messages(Host& host, Sdk& sdk, int rounds) {
  std::printf("%-26s %12s %12s %12s %9s %9s %9s\n", "", "raw pipe", "Session", "SDK", "S/raw", "SDK/raw", "S/SDK");
  {
    const OnOneProcessor pinned;  // but for the SDK, which has threads
    RoundTrips(host, sdk, "round trip", "<= 2.2 x raw", rounds);
  }
  RoundTrips(host, sdk, "  on any processors", "-", rounds);

  Peer raw({server_path});
  const auto session = host.NewSession();
  host.Connect(*session);
  constexpr int kPings = 10'000;
  const auto pings = [&] {
    int left = kPings;
    const auto begin = Clock::now();
    for (int i = 0; i != kPings; ++i) {
      session->AsyncCall("ping", "", {}, [&](const absl::StatusOr<mcp::Reply>& reply) {
        Host::Check(reply);
        if (--left == 0) host.context.stop();
      });
    }
    host.Run();
    return Microseconds(begin) / kPings;
  };
  Measure(
      {"10,000 pipelined pings", "<= 0.05 x SDK", 0, nullptr, pings, [&] { return sdk.Measure("pings", kPings, 0); }},
      rounds, sdk);

  for (const std::size_t mib : {std::size_t{8}, std::size_t{64}}) {
    const std::size_t bytes = mib * kMiB;
    const int count = mib == 64 ? 1 : 4;
    const std::string name = absl::StrCat(mib, " MiB ");
    const std::string large = RawRequest("tools/call", LargeParams(bytes));
    const std::string wanted = RawRequest("tools/call", WantLarge(bytes));
    const std::string params = LargeParams(bytes);
    Measure(
        {name + "to the server", ">= 0.35 x raw", bytes, [&] { return RawExchange(raw, large, kSmallAnswer, count); },
         [&] {
           return TimeCalls(
               host, *session, "tools/call", [&] { return params; }, count);
         },
         [&] { return sdk.Measure("to", count, bytes); }},
        rounds, sdk);
    Measure({name + "from the server", ">= 0.35 x raw", bytes,
             [&] { return RawExchange(raw, wanted, LargeAnswer(bytes), count); },
             [&] {
               return TimeCalls(
                   host, *session, "tools/call", [&] { return WantLarge(bytes); }, count);
             },
             [&] { return sdk.Measure("from", count, bytes); }},
            rounds, sdk);
  }
  host.Close(*session);
}

void Connecting(Host& host, Sdk& sdk, int rounds) {
  constexpr int kCount = 10;
  const auto connect = [&] {
    double time = 0;
    for (int i = 0; i != kCount; ++i) {
      const auto session = host.NewSession();
      const auto begin = Clock::now();
      host.Connect(*session);
      time += Microseconds(begin);
      host.Close(*session);
    }
    return time / kCount;
  };
  Measure({"connect", "<= 2 x SDK", 0, nullptr, connect, [&] { return sdk.Measure("connect", kCount, 0); }}, rounds,
          sdk);
}

// ---- Without a counterpart

void ManyServers(Host& host, int rounds) {
  constexpr int kServers = 200, kWindow = 8, kTrips = 100'000;
  std::vector<std::unique_ptr<mcp::Session>> sessions;
  for (int i = 0; i != kServers; ++i) {
    sessions.push_back(host.NewSession());
    host.Connect(*sessions.back());
  }
  std::vector<double> rates;
  for (int round = 0; round <= rounds; ++round) {
    int left = kTrips, to_send = kTrips;
    std::function<void(mcp::Session&)> send = [&](mcp::Session& session) {
      --to_send;
      session.AsyncCall("ping", "", {}, [&](const absl::StatusOr<mcp::Reply>& reply) {
        Host::Check(reply);
        if (to_send > 0) send(session);
        if (--left == 0) host.context.stop();
      });
    };
    const auto begin = Clock::now();
    for (const auto& session : sessions) {
      for (int i = 0; i != kWindow; ++i) send(*session);
    }
    host.Run();
    if (round != 0) rates.push_back(kTrips / Microseconds(begin) * 1e6);
  }
  std::printf("%d servers, window %d: %.0f round trips/s  (goal >= 200000)\n", kServers, kWindow, Median(rates));
  for (const auto& session : sessions) host.Close(*session);
}

// KiB, of /proc/self/status.
double Status(const std::string& key) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::atof(line.c_str() + key.size() + 1);
  }
  Die("no " + key + " in /proc/self/status");
}

// Of the host, from the caller's making of the params on; the copy in the caller's hand counts, too.
void MemoryOfAMessage(Host& host, const char* what, const std::function<std::string()>& params) {
  constexpr std::size_t kBytes = 64 * kMiB;
  const auto session = host.NewSession();
  host.Connect(*session);
  host.Call(*session, "ping", NoParams, 1);
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << 5;  // VmHWM begins anew
  const double before = Status("VmRSS");
  host.Call(*session, "tools/call", params, 1);
  const double peak = (Status("VmHWM") - before) * 1024;
  std::printf("memory, 64 MiB %s the server: %.2f x its size  (goal <= 2)\n", what, peak / static_cast<double>(kBytes));
  host.Close(*session);
}

void IdleSessions(Host& host) {
  constexpr int kCount = 1000;
  rlimit files = {16384, 16384};
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) {
    std::printf("1,000 idle sessions: not measured, too few descriptors may be open\n");
    return;
  }
  std::vector<std::unique_ptr<mcp::Session>> sessions;
  sessions.reserve(kCount);
  sessions.push_back(host.NewSession());
  host.Connect(*sessions.back());
  const auto heap = [] {
    const struct mallinfo2 info = mallinfo2();
    return static_cast<double>(info.uordblks + info.hblkhd);
  };
  const double heap_before = heap(), rss_before = Status("RssAnon");
  for (int i = 1; i != kCount; ++i) {
    sessions.push_back(host.NewSession());
    host.Connect(*sessions.back());
    host.Call(*sessions.back(), "ping", NoParams, 1);
  }
  const double heap_kib = (heap() - heap_before) / 1024 / (kCount - 1);
  const double rss_kib = (Status("RssAnon") - rss_before) / (kCount - 1);
  std::printf("1,000 idle sessions: %.1f KiB of heap each, %.1f KiB of resident memory  (goal <= 16 KiB)\n", heap_kib,
              rss_kib);
  std::fflush(stdout);
  sessions.clear();
  host.Run();
}

int Main(int argc, char** argv) {
  if (argc < 4) Die("usage: session_bench SERVER SDK_CLIENT NODE_MODULES_FOLDER [ROUNDS]");
  server_path = argv[1];
  const int rounds = argc > 4 ? std::atoi(argv[4]) : 9;
  Host host;
  Sdk sdk({"node", argv[2], argv[3], server_path});
  Messages(host, sdk, rounds);
  Connecting(host, sdk, rounds);
  ManyServers(host, rounds / 2);
  MemoryOfAMessage(host, "to", [] { return LargeParams(64 * kMiB); });
  MemoryOfAMessage(host, "from", [] { return WantLarge(64 * kMiB); });
  IdleSessions(host);
  return 0;
}

}  // namespace
}  // namespace bulkhead::bench

int main(int argc, char** argv) { return bulkhead::bench::Main(argc, argv); }
